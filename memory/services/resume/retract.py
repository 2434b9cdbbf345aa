"""The step of a resume that drops what was retracted, revised or resolved by something later.

A later correction, decision or rejection names what it undoes ("instead of the blue pump", "forget the tank"), and the
earlier item that decided it is dropped. If nothing is named both stay, in the order of time.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from memory.extraction.terms import STOP_WORDS, capitalized_names, comparison_terms, content_words, specific_terms
from memory.extraction.work_notes import NoteKind
from memory.services.resume.given import gives, gives_wanted
from memory.services.resume.items import NOTES, PacketItem
from memory.services.resume.settle import SETTLED_TYPES, settles, settles_item, withdrawn_words, withdraws_item
from memory.services.resume.snippets import RECORDED_REASON

MIN_UNDONE_SHARE = 0.6
"""Share of the words undone by a later item that stand in the item it retracts."""
MAX_COMPARED_ITEMS = 150
"""Number of later items that each item is compared with, the heaviest ones."""
MIN_REVISED_SHARE = 0.8
"""Share of a decision's words that stand in the one that revises its amount."""
MIN_SHARED_WORDS = 2
"""Words that two items share at least: one word alone may be what all of the work is about."""
RETRACTING_TYPES = frozenset({NoteKind.CORRECTION.value, NoteKind.DECISION.value, NoteKind.REJECTION.value})
RETRACTABLE_TYPES = frozenset({NoteKind.DECISION.value, NoteKind.NEXT_STEP.value, "said"})
CHANGEABLE_TYPES = RETRACTABLE_TYPES | {NoteKind.CONSTRAINT.value, "fact"}
"""Types of items that may set a date or an amount which a later one changes."""
RESOLVING_TYPES = frozenset({NoteKind.RESULT.value, NoteKind.DECISION.value})
RESOLVABLE_TYPES = frozenset({NoteKind.BLOCKER.value, NoteKind.NEXT_STEP.value})

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
# words of a sentence that sets a date or an amount, besides what it is about
_SETTING_WORDS = content_words(
    "date time day week month deadline due first expire go going take make set move change use have book plan fine "
    "good agreed please decide decided moved postponed user "
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
_CHOOSES = re.compile(
    r"\b(?:use|take|pick|choose|(?:go|stick|stay) (?:with|for)|switch to|opt for)\b(?P<rest>.*)", re.IGNORECASE
)
_RETHINKS = re.compile(r"\bon second thoughts?\b|\bchanged? my mind\b", re.IGNORECASE)
MAX_RETHOUGHT_TURNS = 6
"""Number of turns before a second thought among which the choice is that it takes back."""


Retraction = tuple[PacketItem, PacketItem]
"""An item that no longer holds, and the later one that says so."""


def drop_retracted(items: Sequence[PacketItem], others: Sequence[PacketItem] = ()) -> list[PacketItem]:
    """Return the items that still hold, in their order: not retracted, and if open not resolved since.

    `others`, which the packet does not contain, may retract them by name. An item that says the same as a retracted
    one, and no later than the retraction, is dropped too.
    """
    gone = [*find_retracted(items, [*items, *others]), *find_revised(items), *find_changed(items), *find_settled(items)]
    gone += find_rethought(items)
    results = [item for item in items if item.item_type in RESOLVING_TYPES and not _NOT_YET.search(item.text)]
    return [
        item
        for item in items
        if not any(item is each for each, _ in gone)
        and not any(repeats_retracted(item, each, later) for each, later in gone[:MAX_COMPARED_ITEMS])
        and not any(resolves_item(later, item) for later in results[:MAX_COMPARED_ITEMS])
    ]


def find_retracted(items: Sequence[PacketItem], retracting: Sequence[PacketItem]) -> Iterator[Retraction]:
    """Return the items whose decision a later one of `retracting` undoes by name."""
    undoing = [
        (each, terms) for each in retracting if each.item_type in RETRACTING_TYPES for terms in undone_term_sets(each)
    ][:MAX_COMPARED_ITEMS]
    for item in items:
        later = next((each for each, terms in undoing if retracts_item(each, terms, item)), None)
        if later is not None:
            yield item, later


def find_revised(items: Sequence[PacketItem]) -> Iterator[Retraction]:
    """Return the recorded decisions that a later one repeats with another amount."""
    decisions = [each for each in items if each.item_type == NoteKind.DECISION and RECORDED_REASON in each.reasons]
    amounts = [(each, found) for each in decisions if (found := amounts_in(each))][:MAX_COMPARED_ITEMS]
    return ((item, later) for item, was in amounts for later, now in amounts if revises_amount(later, now, item, was))


def find_changed(items: Sequence[PacketItem]) -> Iterator[Retraction]:
    """Return the items whose date or amount a later item changes."""
    retracting = [each for each in items if each.item_type in RETRACTING_TYPES]
    changes = [each for each in retracting if _MOVES.search(each.text) or _NOW.search(each.text)]
    # what is true now replaces what was decided before it became known
    changes += [each for each in items if each.item_type == "fact" and dates_in(each.text)]
    return ((item, later) for item in items for later in changes[:MAX_COMPARED_ITEMS] if changes_value(later, item))


def find_settled(items: Sequence[PacketItem]) -> Iterator[Retraction]:
    """Return the rules, decisions and open ends that a later sentence settles or withdraws, or gives what they need."""
    of_turns = [each for each in items if each.item_type in SETTLED_TYPES and each.position[0] == NOTES]
    for may_close, closes_other in (
        (settles, settles_item),
        (withdrawn_words, withdraws_item),
        (gives, gives_wanted),
    ):
        closing = [each for each in items if may_close(each.text)][:MAX_COMPARED_ITEMS]
        for item in of_turns if closing else ():
            later = next((each for each in closing if closes_other(each, item)), None)
            if later is not None:
                yield item, later


def find_rethought(items: Sequence[PacketItem]) -> Iterator[Retraction]:
    """Return the choices that their speaker replaces by another on second thought.

    It takes back the only choice of the speaker's last turns, or of several the only one with a subject in common.
    """
    choices = [(each, chosen) for each in items if each.speaker == "user" and (chosen := _CHOOSES.search(each.text))]
    for later, chosen in choices[:MAX_COMPARED_ITEMS]:
        if not _RETHINKS.search(later.text):
            continue
        recent = [(each, was) for each, was in choices if is_recent_choice(each, later)]
        about = content_words(chosen["rest"]) - content_words("instead")
        related = [each for each, was in recent if content_words(was["rest"]) & about]
        candidates = related or [each for each, _ in recent]
        if len(candidates) == 1:
            yield candidates[0], later


def is_recent_choice(item: PacketItem, later: PacketItem) -> bool:
    if item.item_type != NoteKind.DECISION or item.conversation_id != later.conversation_id:
        return False
    return item.position < later.position and later.position[2] - item.position[2] <= MAX_RETHOUGHT_TURNS


def amounts_in(item: PacketItem) -> Mapping[str, str]:
    """Return the number of each unit counted in the item ("5,000 rows, 3 %"), without units that have two numbers."""
    found: dict[str, set[str]] = {}
    for match in _AMOUNT.finditer(item.text.partition(" (because ")[0]):
        found.setdefault(match["unit"].casefold(), set()).add(match["number"])
    return {
        unit: next(iter(numbers)) for unit, numbers in found.items() if len(numbers) == 1 and unit not in STOP_WORDS
    }


def revises_amount(later: PacketItem, now: Mapping[str, str], item: PacketItem, was: Mapping[str, str]) -> bool:
    """Return True if a later decision has another amount, and contains most of what the earlier one is about."""
    if item.position >= later.position or not any(was[unit] != now[unit] for unit in was.keys() & now.keys()):
        return False
    about = {word for word in content_words(item.text.partition(" (because ")[0]) if not word.isdecimal()}
    return len(about) >= MIN_SHARED_WORDS and len(about & later.words) >= MIN_REVISED_SHARE * len(about)


def changes_value(later: PacketItem, item: PacketItem) -> bool:
    """Return True if `later`, which announces a change, sets another date or amount of the same thing.

    An example is "we move the party to 18 March" after "let's go with 11 March". A fact with another date changes it if
    it is of exactly the same.
    """
    if item.item_type not in CHANGEABLE_TYPES or not is_earlier(item, later) or not sets_other_value(later, item):
        return False
    about = subject_words(item)
    if later.item_type == "fact":
        return item.item_type != "said" and bool(about) and about == subject_words(later)
    names = capitalized_names(item.text)
    if _MOVES.search(later.text) is None and not names <= capitalized_names(later.text):
        return False
    return not about or len(about & later.words) >= MIN_UNDONE_SHARE * len(about)


def is_earlier(item: PacketItem, later: PacketItem) -> bool:
    """Return True if the item was said before the other; facts, which stand before notes, by the time."""
    if "fact" in (item.item_type, later.item_type) and item.event_time and later.event_time:
        return item.event_time < later.event_time
    return item.position < later.position


def sets_other_value(later: PacketItem, item: PacketItem) -> bool:
    was, now = dates_in(item.text), dates_in(later.text)
    if was or now:
        return bool(was and now) and not was & now
    amounts, revised = amounts_in(item), amounts_in(later)
    return any(amounts[unit] != revised[unit] for unit in amounts.keys() & revised.keys())


def dates_in(text: str) -> frozenset[tuple[int, int]]:
    """Return month and day of each date in the text."""
    found = set()
    for match in _DATE.finditer(text):
        name = (match["month"] or match["month_first"] or "").casefold()
        month = _MONTHS.split("|").index(name) + 1 if name else int(match["month_number"])
        found.add((month, int(match["day"] or match["day_after"] or match["day_number"])))
    return frozenset(found)


def subject_words(item: PacketItem) -> frozenset[str]:
    """Return what the item sets a date or an amount of: its words without those of setting one."""
    rest = _AMOUNT.sub(" ", _DATE.sub(" ", item.text.partition(" (because ")[0]))
    return frozenset(word for word in content_words(rest) - _SETTING_WORDS if not word.isdecimal())


def repeats_retracted(item: PacketItem, gone: PacketItem, later: PacketItem) -> bool:
    """Return True if the item says what was retracted, before it was."""
    may_repeat = item.item_type in RETRACTABLE_TYPES and item.position < later.position and item.id != later.id
    shared = item.words & gone.words
    return may_repeat and len(shared) >= MIN_SHARED_WORDS and len(shared) >= MIN_UNDONE_SHARE * len(item.words)


def undone_term_sets(item: PacketItem) -> list[frozenset[str]]:
    """Return the terms of each thing that the item undoes; a rejected option undoes all of it."""
    if item.item_type == NoteKind.REJECTION and item.is_recorded:
        return [comparison_terms(item.text.partition(" (because ")[0])]
    found = [*_UNDOES.finditer(item.text), *_IS_UNDONE.finditer(item.text)]
    return [words for match in found if (words := undone_terms(match["undone"]))]


def undone_terms(undone: str) -> frozenset[str]:
    """Return `comparison_terms`, but specific terms like "0.5" or "b.sql" count once, and not also as several words."""
    specifics = specific_terms(undone)
    rest = undone
    for each in sorted(specifics, key=lambda each: (-len(each), each)):
        rest = re.sub(re.escape(each), " ", rest, flags=re.IGNORECASE)
    return specifics | comparison_terms(rest)


def retracts_item(later: PacketItem, undone: frozenset[str], item: PacketItem) -> bool:
    """Return True if the item decides what the later one undoes: most of its terms are the same.

    One shared term is enough only if both items share another subject, or both were recorded as decisions.
    """
    if item.item_type not in RETRACTABLE_TYPES or item.position >= later.position or item.id == later.id:
        return False
    shared = undone & item.terms
    if len(shared) < MIN_UNDONE_SHARE * len(undone):
        return False
    if len(shared) >= MIN_SHARED_WORDS:
        return True
    is_recorded = RECORDED_REASON in item.reasons and RECORDED_REASON in later.reasons
    # a number is rarer than a word
    min_common = 1 if any(map(str.isdecimal, undone)) else MIN_SHARED_WORDS
    same_topic = len((item.words & later.words) - undone) >= min_common
    return len(shared) == len(undone) and item.item_type != "said" and (is_recorded or same_topic)


def resolves_item(later: PacketItem, item: PacketItem) -> bool:
    """Return True if a later result says most of what was open."""
    if item.item_type not in RESOLVABLE_TYPES or item.position >= later.position or item.id == later.id:
        return False
    shared = later.words & item.words
    return len(shared) >= MIN_SHARED_WORDS and len(shared) >= MIN_UNDONE_SHARE * len(item.words)
