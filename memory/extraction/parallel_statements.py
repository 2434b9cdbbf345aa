"""Statements about different things, or about different attributes of one thing, however near they are in meaning.

"My nephew Kuba turns nine" and "My nephew Filip turns six"; "The conference is in Vienna" and "The conference is on 14
May".
"""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher

from memory.extraction.statement_words import NUMBER, STOP_WORDS, StatementWords, part_about

_LEAST_PARALLEL = 0.5
"""Share of words in the same order from which two texts are built alike."""
_MOST_PARALLEL_WORDS = 40
_MOST_SLOT_WORDS = 2
_ONE_AT_A_TIME = frozenset({"live", "lives", "living", "work", "works", "working", "based"})
"""Verbs of what is true of one place at a time, so that another place and another detail are no other thing."""
_PRONOUN = re.compile(r"(?:i|you|we|they|he|she|it|that|there)['’]\w+")
_SPAN = re.compile(r"(?:milli)?(?:second|minute|hour|day|week|month|year)s?|ms|s|min|mins|hrs?|h")
_OFTEN = re.compile(r"(?:hour|dai|week|month|quarter|year)ly|continuous(?:ly)?")
_CLOCK = re.compile(r"\d{1,2}[:.]\d\d|\d{1,2}(?::\d\d)?[ap]m")
_SCHEDULED = re.compile(
    r"(?P<owner>(?:my|our|\w+['’]s)) (?P<what>[a-z][\w -]{1,40}?) (?:is|are)(?: \w+)? (?:on|at|in|every) ",
    re.IGNORECASE,
)
"""A thing of somebody, and when or where it is."""
_LINKING = frozenset({"is", "are", "was", "were", "costs", "has", "have"})
_PREPOSITIONS = frozenset({"in", "on", "at", "by", "from", "with", "for", "every"})
_MOST_PREDICATE_WORDS = 14
_ONE_FORM = {"are": "is", "were": "was", "have": "has", "do": "does"}
"""Forms of verbs that only tell one thing from several."""
_DATE_WORDS = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october"
    r"|november|december|[ap]m|morning|afternoon|evening|night|noon|midnight|today|tomorrow|yesterday"
    r"|(?:week|month|year|day|hour|minute)s?"
)


def are_qualified_otherwise(older: StatementWords, newer: StatementWords) -> bool:
    """Return True if both name a thing of one kind, and another one of it: "the staging", "the production database"."""
    kinds = {noun for noun, _ in older.qualified} & {noun for noun, _ in newer.qualified}
    return bool(kinds) and older.qualified.isdisjoint(newer.qualified)


def are_parallel(older: StatementWords, newer: StatementWords) -> bool:
    """Return True if both say the same of different things: "My nephew Kuba turns nine", "My nephew Filip turns six".

    Most words are the same in the same order, at least two places differ, and the first of them is a word or two of
    content, not a number or a date alone, unless the text opens with it ("Invoice 1042"). Nobody speaks of a change.
    """
    before, after = ([_ONE_FORM.get(word, word) for word in each.in_order] for each in (older, newer))
    same = older.distinct & newer.distinct
    fewest = min(len(older.distinct), len(newer.distinct))
    # neither of these depends on the order of words, which takes longer to compare
    may_be_alike = len(same) >= _LEAST_PARALLEL / 2 * fewest
    may_differ_twice = fewest - len(same) >= 2
    if not (may_be_alike and may_differ_twice) or max(len(before), len(after)) > _MOST_PARALLEL_WORDS:
        return False
    if part_about(older, newer).has_change:
        return False
    likeness = SequenceMatcher(None, before, after, autojunk=False)
    if likeness.ratio() < _LEAST_PARALLEL or not _ONE_AT_A_TIME.isdisjoint(same):
        return False
    places: list[tuple[Sequence[str], Sequence[str], int]] = []
    for tag, start, end, other_start, other_end in likeness.get_opcodes():
        one, other = before[start:end], after[other_start:other_end]
        if tag == "replace" and len(one) > 1 < len(other) and NUMBER.fullmatch(one[-1]) and NUMBER.fullmatch(other[-1]):
            # "Max 20", "my cousin 35": what a number is of is a place of its own
            places += ((one[:-1], other[:-1], start), (one[-1:], other[-1:], end - 1))
        elif tag == "replace" and len(one) == len(other) and len({bool(NUMBER.fullmatch(word)) for word in one}) > 1:
            # "Max 20", "Eva 35": a number is a place of its own
            places += ((one[at : at + 1], other[at : at + 1], start + at) for at in range(len(one)))
        elif tag == "replace":
            places.append((one, other, start))
    if len(places) < 2:
        return False
    first, others, at = places[0]
    is_short = max(len(first), len(others)) <= _MOST_SLOT_WORDS
    return is_short and (at < _MOST_SLOT_WORDS or (_names_something(first) and _names_something(others)))


def _names_something(words: Sequence[str]) -> bool:
    """Return True if one of the words names something. A letter may do: "Room A"."""
    return any(
        not word[0].isdigit() and (len(word) == 1 or word not in STOP_WORDS) and not _DATE_WORDS.fullmatch(word)
        for word in words
    )


def give_different_attributes(older: StatementWords, newer: StatementWords) -> bool:
    """Return True if both say another kind of thing of one subject: a place and a date, a language and a port.

    They begin alike, what follows has no word in common, and gives values of different kinds. Or both say when or where
    two things of one owner are: "Theo's birthday is on 14 March", "Theo's swim class is on Tuesdays".
    """
    before, after = _SCHEDULED.match(older.text), _SCHEDULED.match(newer.text)
    if before and after and before["owner"].lower() == after["owner"].lower():
        things, others = (_content(each["what"].lower().split()) for each in (before, after))
        if things and others and things.isdisjoint(others) and "new" not in others:
            return True
    words, other_words = older.in_order, newer.in_order
    pairs = enumerate(zip(words, other_words, strict=False))
    start = next((at for at, (one, other) in pairs if one != other), min(len(words), len(other_words)))
    said, said_later = words[start:], other_words[start:]
    if not _content(words[:start]) or not said or not said_later or "and" in (said[0], said_later[0]):
        return False
    if NUMBER.fullmatch(said[0]) or NUMBER.fullmatch(said_later[0]):
        # both fill the same place: "is 30 seconds", "is 45"
        return False
    if max(len(said), len(said_later)) > _MOST_PREDICATE_WORDS or not _content(said).isdisjoint(_content(said_later)):
        return False
    kinds, other_kinds = _kinds_of_values(said), _kinds_of_values(said_later)
    if words[start - 1] in _LINKING:
        # "is in Vienna", "is on 14 May"; not "is at 9:30", "is asynchronous"
        are_phrases = {said[0], said_later[0]} <= _PREPOSITIONS
        is_other_kind = are_phrases and ("time" in kinds) != ("time" in other_kinds)
    else:
        is_other_kind = kinds != other_kinds
    return is_other_kind and not part_about(older, newer).has_change


def _content(words: Sequence[str]) -> frozenset[str]:
    return frozenset(word.rstrip("s") for word in words if not _PRONOUN.fullmatch(word)) - STOP_WORDS


def _kinds_of_values(words: Sequence[str]) -> frozenset[str]:
    """Return "time", "span", and what each number counts: {"replica"} of "has 3 replicas"."""
    kinds = set()
    numbers = [NUMBER.fullmatch(word) is not None for word in words]
    is_date = [_DATE_WORDS.fullmatch(word) is not None for word in words]
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else ""
        if numbers[at] and _SPAN.fullmatch(following):
            kinds.add("time" if "every" in words else "span")
        elif (
            _OFTEN.fullmatch(word)
            or _CLOCK.fullmatch(word)
            or (numbers[at] and any(is_date))
            or (is_date[at] and not (at and numbers[at - 1]))
        ):
            kinds.add("time")
        elif numbers[at]:
            kinds.add(following.rstrip("s"))
    return frozenset(kinds)
