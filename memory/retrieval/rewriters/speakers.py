"""Who is asked about as having said something: names as they are written, or the role of the user or the assistant.

The question is the user's, put to the assistant: "I" is the user and "you" the assistant. What is asked of the
assistant now ("can you tell me", "what do you suggest") is about nobody's words.
"""

import re
from collections.abc import Iterator

from memory.retrieval.rewriters.words import NAMELESS, OPENERS

USER = "user"
ASSISTANT = "assistant"
MOST_SPEAKERS = 5

_MACHINES = ("the assistant", "the agent", "the bot", "the ai", "the model")
_ROLES = {
    **dict.fromkeys(("i", "me", "my", "the user", "the user's"), USER),
    **dict.fromkeys(("you", "your", *_MACHINES, *(f"{machine}'s" for machine in _MACHINES)), ASSISTANT),
}
_BASES = (
    "say|tell|mention|suggest|recommend|advise|propose|ask|answer|reply|respond|explain|claim|promise|announce|describe"
    "|report|state|warn|complain|admit|write|call|point out|bring up|talk about|speak about|talk|speak|offer"
)
_PASTS = (
    "said|told|mentioned|suggested|recommended|advised|proposed|asked|answered|replied|responded|explained|claimed"
    "|promised|announced|described|reported|stated|warned|complained|admitted|wrote|called|pointed out|brought up"
    "|talked about|spoke about|offered"
)
_PARTICIPLES = f"{_PASTS}|written|spoken about|talked|spoken"
_WORDS = (
    "opinions?|views?|advice|suggestions?|recommendations?|ideas?|answers?|questions?|words|messages?|feedback"
    "|explanations?|proposals?|requests?|comments?|notes?|instructions?"
)
_NAME_WORD = r"(?-i:[^\W\d_a-zß-öø-ÿ][\w'’-]{0,30})"
_NAME = rf"{_NAME_WORD}(?: {_NAME_WORD}){{0,3}}"
_ROLE = r"I|you|the (?:user|assistant|agent|bot|AI|model)"
_SUBJECT = rf"(?P<who>{_ROLE}|{_NAME}(?: and {_NAME})?)"
_OWNER = rf"(?P<who>my|your|the (?:user|assistant|agent|bot|AI|model)['’]s|{_NAME}['’]s)"
_ADVERB = r"(?:(?:ever|also|already|just|last|first|once|originally|previously|actually|always|recently|not) )?"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w'’-])(?:{text})(?![\w-])", re.IGNORECASE)


_PATTERNS = (
    _pattern(rf"(?:did|didn['’]t) {_SUBJECT} {_ADVERB}(?:{_BASES})"),
    _pattern(rf"(?:does) (?P<who>{_NAME}(?: and {_NAME})?) {_ADVERB}(?:{_BASES})"),
    _pattern(rf"(?:has|have|had|haven['’]t|hasn['’]t) {_SUBJECT} {_ADVERB}(?:{_PARTICIPLES})"),
    _pattern(rf"{_SUBJECT} (?:(?:has|have|had) )?{_ADVERB}(?:{_PASTS})"),
    _pattern(rf"according to (?P<who>you|me|the (?:user|assistant|agent)|{_NAME})"),
    _pattern(rf"{_OWNER} (?:(?:last|first|latest|earlier|previous|original) )?(?:{_WORDS})"),
    _pattern(rf"(?:{_WORDS}) (?:from|by|of) (?P<who>you|me|{_NAME})"),
)
# most questions are about nobody's words
_HINT = _pattern(rf"{_BASES}|{_PARTICIPLES}|{_WORDS}|according")


def speakers_of(text: str) -> list[str]:
    """Each once, in the order of the text."""
    if not _HINT.search(text):
        return []
    found = [(match.start("who"), match["who"]) for pattern in _PATTERNS for match in pattern.finditer(text)]
    speakers = [speaker for _, who in sorted(found) for speaker in named(who)]
    return list(dict.fromkeys(speakers))[:MOST_SPEAKERS]


def named(who: str) -> Iterator[str]:
    """The role or the names that a subject is; nothing for a word that is neither."""
    folded = who.lower().replace("’", "'")
    if role := _ROLES.get(folded):
        yield role
        return
    for name in who.split(" and "):
        words = name.removesuffix("'s").removesuffix("’s").split()
        # the capital of "Tell Ana" is the sentence's
        while words and words[0].lower() in NAMELESS | OPENERS:
            words = words[1:]
        if words and not any(word.lower() in NAMELESS for word in words):
            yield " ".join(words)
