"""Phrases of claims: the words after a verb, cut to a phrase that is understood without the conversation."""

import re
from dataclasses import dataclass

from memory.verbs import VERBS

GAP = "\ufffc"
"""The character in place of text that was removed (`passages`). A phrase before it is incomplete."""
MAX_PHRASE_WORDS = 12

_END = re.compile(
    r"\s*(?:[;!?…()\[\]{}—–\ufffc~*=<>|/\\\"]|,(?!\d{3})|(?<!\bSt)(?<!\bDr)(?<!\bMt)\.(?=\s|$|\.)"
    r"|:(?!\d)|\s-+\s|--|[\U0001f000-\U0001faff\u2600-\u27bf])"
)
_CONNECTED = re.compile(
    r"\s+(?:because|'cause|cause(?= (?:i|we|it|he|she|they|the|my|there)\b)|cuz|so|since"
    r"|although|though|when|whenever|while|where|who|which|whom|whose|that|until"
    r"|till|as|than|but|plus|before|after|during|despite|without|unlike|like|how|what|why"
    r"|yet|except|including|I|we)(?=\s|$)"
    r"|\s+to \w+ (?:me|us|myself|ourselves)\b"
)
_LOOSE = re.compile(r"(?:\s+to \w+|\s+(?:with|for|at|in|of|on) the \w+)$")
"""The end of a phrase whose relative clause was cut: "a retreat to see (where …)", "time with the friends (I have)"."""
_FINITE = frozenset(form for verb in VERBS.values() for form in (verb.present, verb.past))
_AND = re.compile(r"\s+(?:and|&)\s+", re.IGNORECASE)
_PLAIN_PAIR = re.compile(r"(?:[a-z-]+ ){0,1}[\w'-]+ (?:and|&) (?:[a-z-]+ ){0,1}[\w'-]+")
_DAY = re.compile(r"(?:mon|tues?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:days?)?,?", re.IGNORECASE)
_AFTER_DAY = frozenset(["at", "from", "till", "until", "between", "mornings", "evenings", "afternoons", "nights"])
"""Words after two days that a pair of days may have: "tue and thu at nine"."""
_PRONOUN = re.compile(r"i|me|we|us|he|she|they|it|you|my|our|his|her|their|your", re.IGNORECASE)
_TRAILING = re.compile(
    r"\s+(?:too|as well|again|now|a lot|so much|so far|very much|much|more|lately|recently|these days|nowadays"
    r"|already|together|anyway|right now|yet|soon|later|then|today|myself|ourselves|at the moment|for now|all the time"
    r"|the other day|once|twice|next|here|there|the most|in the past|ever|first|also|a bit|for a while|a while ago"
    r"|a few (?:days|weeks|months|years) ago|last (?:summer|winter|spring|fall|autumn)"
    r"|(?:this|next|over the|in the) (?:summer|winter|spring|fall|autumn|past)|one day|someday|sometime|with it"
    r"|btw|by the way|tho|though|you know|tbh|in the end"
    r"|and|or|to|for|of|in|at|on|with|the|a|an|my|our|from|by|about|just|really|all|both|am|is|was)$",
    re.IGNORECASE,
)
_NOT_ALONE = re.compile(
    r"\b(?:you|your|yours|yourself|y'all|it|its|this|that|these|those|him|he|she|they|them|theirs|hers|there|here"
    r"|something|someone|somewhere|somebody|anything|anyone|anybody|everything|everyone|everybody|stuff|things?|ones?"
    r"|what|how|why|such|same|another|else|lots?(?! of)|bunch(?! of)|way|ton|tons(?! of)"
    r"|nothing|none|no|never|not|or|nor|neither|either"
    r"|else|if|would|could|other|others|whatever|whole|bit(?! of)|kind(?! of)|sort(?! of)"
    r"|thought|idea|so|too|etc|latter|former|certain|various)\b",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    r"(?:(?:an?|the|my|our|new|to|some|many|really|great|good|cool|nice|big|few|special|important|different) )*"
    r"(?:places?|people|person|folks|time|times|day|days|to|it|difference|methods?"
    r"|changes?|part|areas?|points?|event|events"
    r"|happen|happening|spending time|playing|doing|making|having|being|getting|going|one day|moments?|experiences?)?",
    re.IGNORECASE,
)
_PRAISE = (
    "great|awesome|amazing|good|nice|cool|beautiful|lovely|wonderful|fantastic|incredible|fun|gorgeous|stunning|perfect"
    "|delicious|interesting|special|exciting|inspiring|cute|sweet|pretty|big|huge|fresh|rare|unique|fancy|funny|crazy"
    "|terrible|horrible|awful|bad|weird|strange|memorable|unforgettable|magical|breathtaking|adorable|neat|epic|sick"
    "|fabulous|brilliant|super|yummy|tasty|favou?rite|impressive|fascinating|peaceful|relaxing|real|new|different|classic"
)
_PRAISED = re.compile(
    rf"(?:(?:an?|the|my|our|their|some|many|several|so many|two|three|a few|a lot of|lots of|plenty of) )?"
    rf"(?:(?:really|very|so|super|truly|pretty|absolutely|most) )*(?:(?:{_PRAISE}),? (?:and )?)+[\w'-]+",
    re.IGNORECASE,
)
_NEW = re.compile(
    r"(?:an?|the|my|our|their|two|three) (?:(?:new|big|fresh|rare|classic|real|different) )+[\w'-]+", re.I
)
_SOME = re.compile(
    r"(?:[\w-]+ )?(?:some|many|several|a few|a couple of|lots of|plenty of)(?: (?:[\w-]+ )?[\w'-]+)?", re.IGNORECASE
)
_HALF = re.compile(r"(?:both|either|neither|whether|all|even|just|only|really|so|too|very|quite)\b", re.IGNORECASE)
_OF_OTHERS = re.compile(r"\b(?:his|her|their)\b", re.IGNORECASE)
_ANOTHER = re.compile(r"\banother (?P<vowel>(?=[aeiou]))?")
_MINE = re.compile(r"\b(?:my|our)\b", re.IGNORECASE)
_ME = re.compile(r"\b(?:me|us|mine|ours|i|we|myself|ourselves|i'd|i'm|let's)\b", re.IGNORECASE)
_WITH_ME = re.compile(r"with (?:me|us)")
_SHAPE = re.compile(r"[\w$€£#'&+.,:%-]+(?: [\w$€£#'&+.,:%-]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Voice:
    """The name of the speaker in claims, and whether the clause is about the speaker."""

    speaker: str
    is_own: bool

    @property
    def possessive(self) -> str:
        return "their" if self.is_own else possessive(self.speaker)


def possessive(name: str) -> str:
    """Return the possessive, such as "Ana's" or "the user's"."""
    return f"{_inside(name)}'s"


def _inside(name: str) -> str:
    return "the user" if name == "The user" else name


def make_phrase(text: str, voice: Voice) -> str:
    """Return the text as a phrase of a claim; empty if it is not understood outside of the conversation.

    Pronouns for others, "this" and "there" refer to something that a claim does not contain. "My" becomes "their", or
    the possessive of the speaker's name if the clause is about somebody else, and "with us" ends in that name then.
    """
    if not voice.is_own and _WITH_ME.fullmatch(text):
        return f"with {_inside(voice.speaker)}"
    is_plain = (
        not _VAGUE.fullmatch(text) and _SHAPE.fullmatch(text) is not None and len(text.split()) <= MAX_PHRASE_WORDS
    )
    if not is_plain or _NOT_ALONE.search(text) or _ME.search(text):
        return ""
    if _HALF.match(text):
        return ""
    if voice.is_own and _OF_OTHERS.search(text):
        return ""
    return _MINE.sub(voice.possessive, text)


def is_vague(text: str) -> bool:
    """Return True for an object that could be anything: "some", "some awesome cars", "a great shot"."""
    if any(word[:1].isupper() or word[:1].isdecimal() for word in text.split()[1:]):
        return False
    return _SOME.fullmatch(text) is not None or (_PRAISED.fullmatch(text) is not None and not _NEW.fullmatch(text))


def trim_phrase(text: str) -> str:
    """Return a phrase without adverbs and other words at its end that add nothing."""
    text = " ".join(text.split())
    while match := _TRAILING.search(text):
        text = text[: match.start()]
    return _ANOTHER.sub(lambda match: "an " if match["vowel"] else "a ", text)


def cut_at_marks(words: str) -> str:
    """Return the words up to the first mark that may end a clause."""
    match = _END.search(words)
    return words[: match.start()] if match else words


def cut_phrase(words: str) -> str:
    """Return the words up to the first mark or connective that ends their phrase; empty if the phrase is incomplete."""
    text = " ".join(words.split())
    for end in (_END, _CONNECTED):
        if match := end.search(f"{text} "):
            if GAP in match[0] or not match.start():
                return ""
            text = _LOOSE.sub("", text[: match.start()]) if end is _CONNECTED else text[: match.start()]
    match = _AND.search(text)
    if match and not _is_pair(text, match):
        text = text[: match.start()]
    return trim_phrase(text.strip(" '.-"))


def _is_pair(text: str, match: re.Match[str]) -> bool:
    """Return True if "and" joins two names, two days or two plain words, not two actions."""
    before, after = text[: match.start()].split(), text[match.end() :].split()
    if not before or not after or _PRONOUN.fullmatch(after[0]) or after[0] in _FINITE:
        return False
    if _DAY.fullmatch(before[-1]) and _DAY.fullmatch(after[0]):
        return len(after) == 1 or after[1].lower() in _AFTER_DAY
    return (before[-1][:1].isupper() and after[0][:1].isupper()) or _PLAIN_PAIR.fullmatch(text) is not None
