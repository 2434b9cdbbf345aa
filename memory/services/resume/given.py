"""Sentences that say that somebody has what an open end waits for.

"I have the client secret" and "The client secret is in the vault" give what "I need the client secret from the security
team" waits for, and "Petra approved it" what "Waiting for the review by Petra" does. The sentences are English.
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
_IS_THERE = re.compile(
    r"^(?P<thing>(?:the|your) (?:[\w./#-]+ ){1,5}?)"
    r"(?:(?:is|are) (?:now )?(?:in|at|on|here|there|available|ready)\b|arrived\b)",
    re.IGNORECASE,
)
_NOT_GIVEN = re.compile(r"\b(?:not|no|never|yet|still|until|if|once|when|unless)\b|n't\b|\?$", re.IGNORECASE)
_LIGHT_WORDS = content_words("missing new your need")
_VERDICT = r"(?:review|approval|sign-?off|answer|reply|confirmation|feedback|decision)"
_WANTS_VERDICT = re.compile(
    rf"\b{_VERDICT} (?:by|from|of) (?P<who>[A-Z]\w+)|\b(?P<whose>[A-Z]\w+)(?:'s {_VERDICT}| to (?:approve|review|sign))"
)
_GIVES_VERDICT = re.compile(
    r"^(?P<who>[A-Z]\w+)(?: has| just)* (?:approved|reviewed|signed off|confirmed|answered|replied|agreed)"
    r"(?: (?:it|this|that|everything))?(?: (?:now|today|yesterday|this morning))?[.!]?$"
)


def gives(text: str) -> bool:
    """Return True if the sentence says that something or a verdict is there: not that it will be, or would be."""
    return bool(given_words(text)) or (_GIVES_VERDICT.match(text) is not None and not _NOT_GIVEN.search(text))


def given_words(text: str) -> frozenset[str]:
    """Return the words of what the sentence says is there; none if it says no such thing."""
    given = _HAS.match(text) or _IS_THERE.match(text)
    return frozenset() if given is None or _NOT_GIVEN.search(text) else words_of_thing(given["thing"])


def words_of_thing(phrase: str) -> frozenset[str]:
    return frozenset(word for word in content_words(phrase) - _LIGHT_WORDS if not word.isdecimal())


def gives_wanted(later: PacketItem, item: PacketItem) -> bool:
    """Return True if `later` says that exactly the thing, or the verdict, is there for which the item waits."""
    waits = item.item_type in WAITING_TYPES or _OWN_NEED.match(item.text) is not None
    if not waits or item.position >= later.position or item.id == later.id:
        return False
    verdict = _GIVES_VERDICT.match(later.text)
    if verdict is not None:
        return any(verdict["who"] in match.group("who", "whose") for match in _WANTS_VERDICT.finditer(item.text))
    given, amount = given_words(later.text), largest_number(later.text)
    wanted = [each["thing"] for each in _WANTS.finditer(item.text)] if given else []
    return any(words_of_thing(each) == given and not 0 < amount < largest_number(each) for each in wanted)


def largest_number(text: str) -> float:
    """Return the largest number in a text, 0 if it has none."""
    return max((float(each.replace(",", "")) for each in re.findall(r"\d[\d,]*(?:\.\d+)?", text)), default=0.0)
