"""Sentences that say that somebody has what an open end waits for.

"I have the client secret" and "The client secret is in the vault" give what "I need the client secret from the
security team" waits for, "Petra approved it" what "Waiting for the review by Petra" does, and "The relay accepts the
host now" what "Blocked: the relay refuses the host" does. The sentences are English.
"""

import re

from memory.extraction.terms import content_words
from memory.extraction.work_notes import NoteKind
from memory.services.resume.items import PacketItem

WAITING_TYPES = frozenset({NoteKind.BLOCKER.value, NoteKind.NEXT_STEP.value})

_PHRASE = r"(?P<thing>(?:(?!\b(?:from|by|before|until|so|and|but|now|since|is|are|to)\b)[^,;:!?]){2,80})"
_WANTS = re.compile(
    rf"\b(?:need|needs|wait(?:ing)? (?:for|on)|blocked (?:by|on)|awaiting|missing|lack)\b:? {_PHRASE}", re.IGNORECASE
)
_OWN_NEED = re.compile(r"i(?: still| also)? need (?!to\b)", re.IGNORECASE)
_HAS = re.compile(
    r"^(?:i|we|you)(?:'ve)? (?:now |finally |just )?(?:(?:have|got|received|freed|granted|added|provided|installed) )+"
    rf"(?=the\b|your\b|\d){_PHRASE}",
    re.IGNORECASE,
)
_PUTS = re.compile(
    r"^(?:i|we)(?:'ve)? (?:now |finally |just )?(?:have )?(?:put|stored|saved|left|uploaded) "
    r"(?P<thing>(?:the|your|it) (?:[\w./#-]+ ){0,5}?)(?:into|in|to|on|at)\b(?P<place>[^,;:!?]{2,60})",
    re.IGNORECASE,
)
_IS_THERE = re.compile(
    r"^(?P<thing>(?:the|your) (?:[\w./#-]+ ){1,5}?)"
    r"(?:(?:is|are) (?:now )?(?:in|at|on|here|there|available|ready)\b|arrived\b)",
    re.IGNORECASE,
)
_NOT_GIVEN = re.compile(r"\b(?:not|no|never|yet|still|until|if|once|when|unless)\b|n't\b|\?$", re.IGNORECASE)
_LIGHT_WORDS = content_words("missing new your need")
_VERDICT = r"(?:review|approval|sign-?off|answer|reply|confirmation|feedback|decision)"
_WANTS_VERDICT = re.compile(
    rf"\b(?P<what>{_VERDICT}) (?:by|from|of) (?:the )?(?P<who>\w+)|\b(?P<whose>\w+)(?:'s {_VERDICT}|"
    r" to (?:approve|review|sign|answer|reply)"
    r"|(?: has| have)?(?:n't| not)(?: yet)? (?:answered|replied|approved|reviewed|confirmed|signed))\b",
    re.IGNORECASE,
)
_GIVES_VERDICT = re.compile(
    r"^(?:the )?(?P<who>(?!(?:i|we|you|he|she|they|it|who|nobody|none|not)\b)\w+)(?: has| have| just)* "
    r"(?P<verdict>approved|reviewed|signed off|confirmed|answered|replied|agreed)"
    r"(?: (?:it|this|that|everything))?(?: (?:now|today|yesterday|this morning))?(?:(?P<said>:\s.*)|[.!]?$)",
    re.IGNORECASE | re.DOTALL,
)
_ANSWERS = frozenset({"answered", "replied"})
_ANSWER_WANTED = re.compile(r"answer|repl|feedback|confirm", re.IGNORECASE)
_WORKS_NOW = re.compile(
    r"\b(?:accepts?|allows?|answers?|responds?|works?|runs?|passes|starts?|is up|are up|lets)\b.{0,60}"
    r"\b(?:now|again)[.!]?$"
    r"|\b(?:is|are|was|were|has been|have been) (?:now )?(?:whitelisted|granted|installed|restored|enabled|unblocked"
    r"|unlocked|reachable|available|approved|merged|deployed|renewed|fixed|open(?:ed)?)(?: now| again)?[.!]?$",
    re.IGNORECASE,
)
"""A sentence that says that something works which did not."""
_WORKING_WORDS = content_words(
    "accept accepts allow allows answer answers respond responds work works run runs pass passes start starts let lets "
    "up now again granted installed restored enabled unblocked unlocked reachable available renewed fixed"
)
MIN_SHARED_WORDS = 2
"""Words that a sentence about something that works shares with the obstacle, and all but the working words."""


def gives(text: str) -> bool:
    """Return True if the sentence says that something or a verdict is there: not that it will be, or would be."""
    return bool(given_words(text)) or verdict_in(text) is not None or works_now(text)


def verdict_in(text: str) -> re.Match[str] | None:
    """Return the match of a sentence such as "Petra approved it" or "Vipps answered: it is not signed"."""
    verdict = _GIVES_VERDICT.match(text)
    if verdict is None or _NOT_GIVEN.search(text[: verdict.end("verdict")]) or text.rstrip().endswith("?"):
        return None
    # an answer is one whatever it says, an approval with conditions is none
    is_plain = verdict["verdict"].casefold() in _ANSWERS or not _NOT_GIVEN.search(text)
    return verdict if is_plain else None


def works_now(text: str) -> bool:
    return _WORKS_NOW.search(text) is not None and not _NOT_GIVEN.search(text)


def given_words(text: str) -> frozenset[str]:
    """Return the words of what the sentence says is there; none if it says no such thing."""
    given = _HAS.match(text) or _IS_THERE.match(text) or _PUTS.match(text)
    return frozenset() if given is None or _NOT_GIVEN.search(text) else words_of_thing(given["thing"])


def place_words(text: str) -> frozenset[str]:
    """Return the words of where the sentence says that something was put."""
    put = _PUTS.match(text)
    return words_of_thing(put["place"]) if put else frozenset()


def words_of_thing(phrase: str) -> frozenset[str]:
    return frozenset(word for word in content_words(phrase) - _LIGHT_WORDS if not word.isdecimal())


def gives_wanted(later: PacketItem, item: PacketItem) -> bool:
    """Return True if `later` says that exactly the thing, or the verdict, is there for which the item waits.

    Of an obstacle, it may say that what was refused works.
    """
    waits = item.item_type in WAITING_TYPES or _OWN_NEED.match(item.statement) is not None
    if not waits or item.position >= later.position or item.id == later.id:
        return False
    verdict = verdict_in(later.text)
    if verdict is not None:
        return any(is_verdict_wanted(verdict, wanted) for wanted in _WANTS_VERDICT.finditer(item.statement))
    given, amount = given_words(later.text), largest_number(later.text)
    wanted = [each["thing"] for each in _WANTS.finditer(item.statement)] if given else []
    put = given | place_words(later.text)
    if any(given <= words_of_thing(each) <= put and not 0 < amount < largest_number(each) for each in wanted):
        return True
    about = (
        later.words - _WORKING_WORDS if item.item_type == NoteKind.BLOCKER and works_now(later.text) else frozenset()
    )
    return len(about) >= MIN_SHARED_WORDS and about <= item.words


def is_verdict_wanted(verdict: re.Match[str], wanted: re.Match[str]) -> bool:
    who = (wanted["who"] or wanted["whose"]).casefold()
    if who != verdict["who"].casefold():
        return False
    return verdict["verdict"].casefold() not in _ANSWERS or _ANSWER_WANTED.search(wanted[0]) is not None


def largest_number(text: str) -> float:
    """Return the largest number in a text, 0 if it has none."""
    return max((float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", text)), default=0.0)
