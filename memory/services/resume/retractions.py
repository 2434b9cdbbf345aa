"""What was taken back, or is done: a decision stands no longer where something later says that it does not.

Told apart by words: a later correction, decision or rejection names what it undoes ("instead of the blue pump", "forget
the tank"), and an earlier piece whose decision that is, is left out. Where nothing is named, both stay, in the order of
time, and the later one is told as a correction.
"""

import re
from collections.abc import Mapping, Sequence

from memory.extraction.work_notes import NoteKind
from memory.services.resume.notes import IS_RECORDED
from memory.services.resume.pieces import STOP_WORDS, Piece, content_words, names_in, specifics_of, tokens_of

UNDONE_SHARE = 0.6
"""Of the words that a later piece undoes, so many stand in what it takes back."""
MOST_COMPARED = 150
"""Pieces that each is compared with, the weightiest."""
REVISED_SHARE = 0.8
"""Of what a decision is about, so much stands in one that revises its amount."""
FEWEST_WORDS = 2
"""That both have: one word alone may be what all of the work is about."""
TAKES_BACK = frozenset({NoteKind.CORRECTION.value, NoteKind.DECISION.value, NoteKind.REJECTION.value})
MAY_BE_TAKEN_BACK = frozenset({NoteKind.DECISION.value, NoteKind.NEXT_STEP.value, "said"})
RESOLVES = frozenset({NoteKind.RESULT.value, NoteKind.DECISION.value})
MAY_BE_RESOLVED = frozenset({NoteKind.BLOCKER.value, NoteKind.NEXT_STEP.value})

_AMOUNT = re.compile(r"(?P<number>\d[\d.,]*) ?(?P<unit>%|(?!(?:in|on|at|to|of|by|or|as|is|a)\b)[^\W\d_]+)")
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_DATE = re.compile(
    rf"(?P<day>\b\d{{1,2}})(?:st|nd|rd|th|\.)? (?:of )?(?P<month>(?:{_MONTHS}))[a-z]*\b"
    rf"|\b(?P<month_first>(?:{_MONTHS}))[a-z]* (?P<day_after>\d{{1,2}})(?!\d)"
    r"|\b\d{4}-(?P<month_number>\d\d)-(?P<day_number>\d\d)\b",
    re.IGNORECASE,
)
_MOVES = re.compile(
    r"\b(?:(?:mov(?:e|ed|ing)|chang(?:e|ed|ing)|switch(?:ed|ing)?|cut|push(?:ed)?|extend(?:ed)?|shorten(?:ed)?"
    r"|(?:raise|lower|postpone|reschedule)d?)\b.{0,40}\bto|make (?:it|that|them)|after all|instead)\b",
    re.IGNORECASE,
)
_NOW = re.compile(r"\b(?:now|from now on|as of today)\b", re.IGNORECASE)
# what a sentence that sets a date or an amount has besides what it sets
_SETTING_WORDS = content_words(
    "date time day week month deadline go going take make set move change use have book plan fine good agreed please "
    "monday tuesday wednesday thursday friday saturday sunday today tomorrow"
)
_NOT_YET = re.compile(r"\b(?:not|yet|still|until|waiting|pending|no|if|once|when)\b|n't\b", re.IGNORECASE)
_IS_UNDONE = re.compile(
    r"(?:^|[.;,:!?] )(?P<undone>(?:[^.;,:!?]|[.,:](?=\S)){2,60}?) (?:is|are|was|were) (?:given up|off the table|"
    r"dropped|out of the question|rejected|ruled out|obsolete|cancell?ed|dead|not needed|no longer \w+)",
    re.IGNORECASE,
)
_UNDOES = re.compile(
    r"\b(?:instead of|rather than|no longer|not going (?:to|with)|decided (?:against|not to)"
    r"|reject(?:ed)?|rul(?:e|ed) out|drop(?:ped)?|scrap(?:ped)?|forget(?: about)?|ditch(?:ed)?|discard(?:ed)?"
    r"|abandon(?:ed)?|revert(?:ed)?|undo|in place of"
    r"|(?:this |that |it )?replaces|don'?t|do not|won'?t|without|not)\s+"
    r"(?P<undone>(?:[^.;,:!?(]|[.,:](?=[^\s.,:])){1,80})",
    re.IGNORECASE,
)


def without_settled(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that still hold, in their order: neither taken back nor, of what is open, come to a result since.

    What says the same as something that was taken back, and was said no later than that, goes with it.
    """
    undoing = [(piece, words) for piece in pieces if piece.says in TAKES_BACK for words in undone_by(piece)]
    undoing = undoing[:MOST_COMPARED]
    results = [piece for piece in pieces if piece.says in RESOLVES and not _NOT_YET.search(piece.text)]
    results = results[:MOST_COMPARED]
    gone = [
        (piece, later)
        for piece in pieces
        for later in [next((later for later, words in undoing if takes_back(later, words, piece)), None)]
        if later is not None
    ]
    amounts = [(piece, found) for piece in pieces if is_decided(piece) and (found := amounts_in(piece))]
    amounts = amounts[:MOST_COMPARED]
    gone += [(piece, later) for piece, was in amounts for later, now in amounts if revises(later, now, piece, was)]
    moving = [piece for piece in pieces if piece.says in TAKES_BACK and sets_anew(piece)][:MOST_COMPARED]
    gone += [(piece, later) for piece in pieces if moving for later in moving if is_moved(later, piece)]
    return [
        piece
        for piece in pieces
        if not any(piece is each for each, _ in gone)
        and not any(is_again(piece, each, later) for each, later in gone[:MOST_COMPARED])
        and not any(resolves(later, piece) for later in results)
    ]


def is_decided(piece: Piece) -> bool:
    """Whether it was recorded as a decision, and does not only sound like one."""
    return piece.says == NoteKind.DECISION and IS_RECORDED in piece.reasons


def amounts_in(piece: Piece) -> Mapping[str, str]:
    """What is counted, to its number: "5,000 rows, 3 %". What has another number twice is left out."""
    found: dict[str, set[str]] = {}
    for match in _AMOUNT.finditer(piece.text.partition(" (because ")[0]):
        found.setdefault(match["unit"].casefold(), set()).add(match["number"])
    return {
        unit: next(iter(numbers)) for unit, numbers in found.items() if len(numbers) == 1 and unit not in STOP_WORDS
    }


def revises(later: Piece, now: Mapping[str, str], piece: Piece, was: Mapping[str, str]) -> bool:
    """Whether a later decision says the same with another amount: all that the earlier one is about stands in it."""
    if piece.place >= later.place or not any(was[unit] != now[unit] for unit in was.keys() & now.keys()):
        return False
    about = {word for word in content_words(piece.text.partition(" (because ")[0]) if not word.isdecimal()}
    return len(about) >= FEWEST_WORDS and len(about & later.words) >= REVISED_SHARE * len(about)


def is_moved(later: Piece, piece: Piece) -> bool:
    """Whether a later decision sets another date or amount of the same thing, and has a form of change: "we move the
    party to 18 March" after "let's go with 11 March"."""
    is_weak = _MOVES.search(later.text) is None
    if piece.says not in MAY_BE_TAKEN_BACK or later.says not in TAKES_BACK or piece.place >= later.place:
        return False
    if (is_weak and _NOW.search(later.text) is None) or not sets_another(later, piece):
        return False
    about = about_of(piece)
    names = names_in(piece.text) & names_in(later.text)
    if is_weak and names != names_in(piece.text):
        return False
    return not about or len(about & later.words) >= UNDONE_SHARE * len(about)


def sets_anew(piece: Piece) -> bool:
    return _MOVES.search(piece.text) is not None or _NOW.search(piece.text) is not None


def sets_another(later: Piece, piece: Piece) -> bool:
    was, now = dates_in(piece.text), dates_in(later.text)
    if was or now:
        return bool(was and now) and not was & now
    amounts, revised = amounts_in(piece), amounts_in(later)
    return any(amounts[unit] != revised[unit] for unit in amounts.keys() & revised.keys())


def dates_in(text: str) -> frozenset[tuple[int, int]]:
    """Month and day of each date."""
    return frozenset(date_of(match) for match in _DATE.finditer(text))


def date_of(match: re.Match[str]) -> tuple[int, int]:
    if match["month_number"]:
        return int(match["month_number"]), int(match["day_number"])
    name = (match["month"] or match["month_first"]).casefold()
    return _MONTHS.split("|").index(name) + 1, int(match["day"] or match["day_after"])


def about_of(piece: Piece) -> frozenset[str]:
    """What it sets a date or an amount of: its words without these, and without those of setting one."""
    told = _DATE.sub(" ", _AMOUNT.sub(" ", piece.text.partition(" (because ")[0]))
    return frozenset(word for word in content_words(told) - _SETTING_WORDS if not word.isdecimal())


def is_again(piece: Piece, gone: Piece, later: Piece) -> bool:
    """Whether it says, before it was taken back, what was."""
    may_be = piece.says in MAY_BE_TAKEN_BACK and piece.place < later.place and piece.id != later.id
    shared = piece.words & gone.words
    return may_be and len(shared) >= FEWEST_WORDS and len(shared) >= UNDONE_SHARE * len(piece.words)


def undone_by(piece: Piece) -> list[frozenset[str]]:
    """The words of each thing that the piece undoes; of a rejected option, all of it."""
    if piece.says == NoteKind.REJECTION and piece.label:
        return [tokens_of(piece.text.partition(" (because ")[0])]
    found = [*_UNDOES.finditer(piece.text), *_IS_UNDONE.finditer(piece.text)]
    return [words for match in found if (words := undone_words(match["undone"]))]


def undone_words(undone: str) -> frozenset[str]:
    """As `tokens_of`, but what has a dot or a sign inside ("0.5", "b.sql") is one word, not several."""
    specifics = specifics_of(undone)
    rest = undone
    for each in sorted(specifics, key=lambda each: (-len(each), each)):
        rest = re.sub(re.escape(each), " ", rest, flags=re.IGNORECASE)
    return specifics | tokens_of(rest)


def takes_back(later: Piece, undone: frozenset[str], piece: Piece) -> bool:
    """Whether the piece decides what the later one undoes: most of its words; one word only where both speak of
    something else that is the same, or both were recorded as decisions."""
    if piece.says not in MAY_BE_TAKEN_BACK or piece.place >= later.place or piece.id == later.id:
        return False
    shared = undone & piece.tokens
    if len(shared) < UNDONE_SHARE * len(undone):
        return False
    if len(shared) >= FEWEST_WORDS:
        return True
    is_recorded = IS_RECORDED in piece.reasons and IS_RECORDED in later.reasons
    # a number is rarer than a word
    common = 1 if any(map(str.isdecimal, undone)) else FEWEST_WORDS
    same_topic = len((piece.words & later.words) - undone) >= common
    return len(shared) == len(undone) and piece.says != "said" and (is_recorded or same_topic)


def resolves(later: Piece, piece: Piece) -> bool:
    """Whether a later result says most of what was open."""
    if piece.says not in MAY_BE_RESOLVED or piece.place >= later.place or piece.id == later.id:
        return False
    shared = later.words & piece.words
    return len(shared) >= FEWEST_WORDS and len(shared) >= UNDONE_SHARE * len(piece.words)
