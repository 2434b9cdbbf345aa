"""The probability that a statement replaces an earlier one, read from the words of both. English; no model is called.

"Standup was moved to 10" replaces "Our standup is at 9:30"; "My daughter Ngozi studies in Ghent" does not replace "My
daughter Chioma studies in Utrecht". A logistic regression over few features decides: a phrase of change in
the sentence of the later text that speaks of the earlier one, numbers and names that differ, names and words that both
have, subjects that differ, plans, how long the texts are, whether they name the same thing ("our standup", "the
standup"), the time between them, and how near the two are in meaning compared with all else that was said (`rank` and
`nearer`).

The weights are in `replacement.json`, with how they were learned (`manage.py learn_replacements`).
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from pathlib import Path

MAX_COMPARED_CHARACTERS = 2_000
MAX_NEIGHBOURS = 30
"""Nearest statements that the rank of one among them is counted in."""

_CHANGE_PHRASES = (
    # now
    (
        r"\b(?:now|nowadays|these days|by now|meanwhile|(?:from|as of|starting) (?:now|today|tomorrow|here|this \w+)"
        r"|effective|for good)\b"
    ),
    # no longer
    r"\b(?:any ?(?:more|longer)|no longer|never again|no more)\b",
    # something took the place of something else
    (
        r"\b(?:mov(?:ed|ing|e)|switch(?:ed|ing)?|chang(?:ed|es?|ing)|replac(?:ed|es?|ing)|swap(?:ped|ping)?"
        r"|renam(?:ed?|ing)|migrat(?:ed|ing)|converted|updat(?:ed?|ing)|(?:went|gone|took|takes?|taken) over"
        r"|(?:turn(?:ed)?|switched) (?:\w+ ){0,4}(?:down|up|off|on)|upgraded|downgraded|transferred|shift(?:ed)?"
        r"|in favou?r of|rather|instead)\b"
    ),
    # another time
    r"\b(?:postponed|push(?:ed)?|rescheduled|brought forward|delayed|slipped|extended|prolonged|put (?:off|back))\b",
    # an end
    (
        r"\b(?:quit|left|leaving|leaves|sold|stopped|gave (?:up|in)|given up|broke up|split up|divorced|retired|fired"
        r"|cancell?ed|dropped?|scrapped|deleted|removed?|closed|ditched|called (?:\w+ ){0,4}off|decommissioned"
        r"|(?:went|gone) (?:right )?off|is (?:dead|gone|out|off|over|done)|finished|cut|threw|thrown|got rid|ended"
        r"|expired|ran out|lost)\b"
    ),
    # a correction
    (
        r"\b(?:actually|correct(?:ed|ion)?|wrong|mistaken?|mixed up|misread|mis-?typed|typo|nonsense|meant|scratch that"
        r"|misspoke|strike|no wait|sorry|turn(?:s|ed) out|for real|is right|should be|ought to be)\b|, not \w+|\bnot \d"
    ),
    # another amount
    (
        r"\b(?:raised?|lower(?:ed)?|increased|decreased|reduced|bumped|(?:went|goes|go|came|come) (?:up|down)"
        r"|(?:up|down) to|another|one more|grew|doubled|halved)\b"
    ),
    # something new
    (
        r"\b(?:new|newly|just (?:got|started|began|bought|adopted|moved)|started|adopted|finally|recently|latest"
        r"|at last|since (?:yesterday|last|this|the|\w+day|\d)|again|last night|hired|promoted|joined)\b"
    ),
)
_CHANGES = tuple(re.compile(phrase, re.IGNORECASE) for phrase in _CHANGE_PHRASES)
_PLAN = re.compile(
    r"\b(?:plan(?:ning|s)?|want(?:s|ed)? to|would(?:n't)? (?:like|love)|i'd (?:like|love)|wish|dream|some ?day|one day"
    r"|maybe|might|hop(?:e|ing)|next year|if i|thinking (?:of|about)|considering|goal)\b",
    re.IGNORECASE,
)
_OVER = re.compile(r"\bused to\b|\bwas\b|\bwere\b", re.IGNORECASE)
_NEGATION = re.compile(r"\b(?:not|no|never|none|nothing|without|dont|cant|wont|doesnt|didnt)\b|n't", re.IGNORECASE)
_NUMBER = re.compile(
    r"\d[\d.,:]*|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty"
    r"|sixty|hundred)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][a-zA-Z'-]+|\b[A-Za-z]+[-_./][\w.-]+")
_CAPITALIZED = re.compile(r"\b[A-Z][a-zA-Z-]{2,}")
"""A name, or the first word of a sentence: that both statements have one says more the rarer it is."""
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|\n+|,\s+(?:so|and|but|because|since)\s+|\s+-\s+")
_THING = re.compile(r"\b(?:my|our|the|his|her|their)\s+(\w+)", re.IGNORECASE)
_QUALIFIED = re.compile(
    r"\b(?:my|our|the|his|her|their|your)\s+(?!(?:new|old|current|former|previous|first|second|last|next|other|same)\b)"
    r"(\w+)\s+(\w+)",
    re.IGNORECASE,
)
"""A noun and the word that tells it from others of its kind: "the staging database"."""
_WORD = re.compile(r"[a-z0-9][a-z0-9'-]+", re.IGNORECASE)
_WORDS_OF_PLACES = re.compile(r"\w(?:[\w'.:/-]*\w)?")
_STOP_WORDS = frozenset(
    re.findall(
        r"\w+",
        """the a an and or but so to of in on at for with from by is are was were be been am do does did have has had
    i you he she it we they me him her us them my your his its our their this that these those not no yes what
    which who when where how why if then than as will would can could should may might just also too very
    really all any some there here up out about into over one get got go going
""",
    )
)
OTHER_THING = 2.0
"""What a pair about two things of a kind loses ("the staging database", "the production database"). The samples have
too few to learn."""
_LEAST_PARALLEL = 0.5
"""Share of words in the same order from which two texts are built alike."""
_MOST_PARALLEL_WORDS = 40
_MOST_SLOT_WORDS = 2
_ONE_AT_A_TIME = frozenset({"live", "lives", "living", "work", "works", "working", "based"})
"""Verbs of what is true of one place at a time, so that another place and another detail are no other thing."""
_DATE_WORDS = re.compile(
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|january|february|march|april|may|june|july|august|september|october"
    r"|november|december|[ap]m|morning|afternoon|evening|night|noon|midnight|today|tomorrow|yesterday"
    r"|(?:week|month|year|day|hour|minute)s?"
)
_SUBJECT_WORDS = 5
_MAX_SENTENCES = 30
_MIN_WORDS = 3
_LONG_CHARACTERS = 400
"""Longer texts count as being as long as this."""
_DAY = timedelta(days=1)
_SESSION = timedelta(hours=12)
"""A conversation that goes on after so long is a new session: some agents talk to a user in one for years."""
_CORRECTING = re.compile(
    r"(?:(?:oh|ah|oops|hmm|hm|no|well|and|but|ok|okay)[,.!… ]+)*(?:actually|scratch that|strike that|correction"
    r"|i (?:meant|misspoke)|no,? wait|wait,? no|sorry,? (?:i meant|it'?s|that'?s)|(?:let'?s |please )?make (?:it|that)"
    r"|let me correct|my mistake|change of plans?)\b(?!.*\b(?:also|too|as well)\b)",
    re.IGNORECASE,
)
"""How people begin to correct what was said a moment ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """A statement and who made it, where and when."""

    text: str
    speaker: str
    conversation_id: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An earlier and a later statement.

    `rank` counts the statements that are nearer in meaning to one of the two than the other is: 0 for the nearest.
    `nearer` counts those near the one that are nearer to the other than it is. `neighbours` is the number of statements
    among which both are counted, at most MAX_NEIGHBOURS: where little was said, being nearest says little.
    """

    older: Saying
    newer: Saying
    rank: int
    nearer: int
    neighbours: int


@dataclass(frozen=True, kw_only=True)
class _Sentence:
    """A sentence, or a part of one, of a longer text."""

    content: frozenset[str]
    has_change: bool


@dataclass(frozen=True, kw_only=True)
class _Words:
    """The words and signs of a text that features compare."""

    text: str
    content: frozenset[str]
    all: frozenset[str]
    numbers: frozenset[str]
    names: frozenset[str]
    subject: frozenset[str]
    things: frozenset[str]
    qualified: frozenset[tuple[str, str]]
    capitalized: frozenset[str]
    length: float
    has_change: bool
    corrects: bool
    is_negated: bool
    is_question: bool
    is_plan: bool
    is_over: bool

    @cached_property
    def sentences(self) -> tuple[_Sentence, ...]:
        parts = _SENTENCE_END.split(self.text)[:_MAX_SENTENCES]
        return tuple(_Sentence(content=_content_words(part), has_change=_has_change(part)) for part in parts)

    @cached_property
    def in_order(self) -> Sequence[str]:
        """The words in lower case, with numbers, letters and names of files among them."""
        return _WORDS_OF_PLACES.findall(self.text.lower())

    @cached_property
    def weight_as_older(self) -> float:
        """The sum of the weights of what is known from this text alone if it is the earlier one."""
        return (
            WEIGHT_OF["older_plans"] * self.is_plan
            + WEIGHT_OF["older_is_over"] * self.is_over
            + WEIGHT_OF["older_length"] * self.length
        )

    @cached_property
    def weight_as_newer(self) -> float:
        """The sum of the weights of what is known from this text alone if it is the later one."""
        return (
            max(0.0, WEIGHT_OF["has_change"]) * self.has_change
            + WEIGHT_OF["newer_plans"] * self.is_plan
            + WEIGHT_OF["newer_length"] * self.length
        )


@lru_cache(maxsize=4_096)
def _read_words(text: str) -> _Words:
    words = frozenset(word.lower() for word in _WORD.findall(text))
    return _Words(
        text=text,
        content=_content_words(text),
        all=words,
        numbers=frozenset(_NUMBER.findall(text)),
        names=frozenset(name.lower() for name in _NAME.findall(text)),
        subject=_named_subject(text),
        things=frozenset(thing.lower() for thing in _THING.findall(text)),
        qualified=frozenset(
            (noun, qualifier)
            for qualifier, noun in _QUALIFIED.findall(text.lower())
            if _STOP_WORDS.isdisjoint((noun, qualifier))
        ),
        capitalized=frozenset(name.lower() for name in _CAPITALIZED.findall(text)) - _STOP_WORDS,
        length=math.log1p(min(len(text), _LONG_CHARACTERS)),
        has_change=_has_change(text),
        corrects=_CORRECTING.match(text) is not None,
        is_negated=_NEGATION.search(text) is not None,
        is_question="?" in text,
        is_plan=_PLAN.search(text) is not None,
        is_over=_OVER.search(text) is not None,
    )


def _content_words(text: str) -> frozenset[str]:
    return frozenset(word.lower().rstrip("s") for word in _WORD.findall(text)) - _STOP_WORDS


def _has_change(text: str) -> bool:
    return any(change.search(text) for change in _CHANGES)


def _sentence_about(other: _Words, words: _Words) -> _Sentence:
    """Return the sentence of a text that shares the most words with the other text, the first of several.

    People say a thing in passing: what else the message asks or tells has nothing to do with it.
    """
    return max(words.sentences, key=lambda sentence: len(sentence.content & other.content))


def _named_subject(text: str) -> frozenset[str]:
    """Return the capitalized words among the first five; they name what the statement is about."""
    first, *others = re.findall(r"[\w'-]+", text)[:_SUBJECT_WORDS] or [""]
    named = {word.lower() for word in others if word[0].isupper() and word != "I" and not word.startswith("I'")}
    opens = first.lower() if first[:1].isupper() and len(first) > len("An") else ""
    return frozenset(named | ({opens} - {""} - _STOP_WORDS))


def make_saying(text: str, *, speaker: str, conversation_id: str, at: datetime) -> Saying:
    """Return the statement that a message makes, without its speaker's name in front."""
    said = text.removeprefix(f"{speaker}: ") if speaker else text
    return Saying(text=said[:MAX_COMPARED_CHARACTERS], speaker=speaker, conversation_id=conversation_id, at=at)


def may_state(text: str) -> bool:
    """Return False for texts that are too short to state anything, or that only ask."""
    words = _read_words(text[:MAX_COMPARED_CHARACTERS])
    return len(words.content) >= _MIN_WORDS - 1 and not (words.is_question and text.count("?") == _sentences(text))


def _sentences(text: str) -> int:
    return max(1, len(re.findall(r"[.!?]+(?:\s|$)", text)))


FEATURES = (
    *("is_same_session", "nearer", "rank", "has_change"),
    *("other_subject", "newer_plans", "older_plans", "older_is_over"),
    *("other_number", "other_names", "other_names_with_change", "is_short", "days", "shared_words", "other_negation"),
    *("older_length", "newer_length", "same_thing", "few_neighbours"),
    *("shared_names", "shared_count"),
)


def pair_features(pair: Pair) -> tuple[float, ...]:
    """Return the values of FEATURES for a pair."""
    older, newer = _read_words(pair.older.text), _read_words(pair.newer.text)
    has_change = _sentence_about(older, newer).has_change
    smaller = max(1, min(len(older.content), len(newer.content)))
    shared = len(older.content & newer.content)
    is_other_subject = bool(older.subject - newer.all) and bool(newer.subject - older.all)
    is_other_name = bool(older.names - newer.names) and bool(newer.names - older.names)
    return (
        float(_is_same_session(pair)),
        math.log1p(pair.nearer),
        float(pair.rank),
        float(has_change),
        float(is_other_subject and not has_change),
        float(newer.is_plan),
        float(older.is_plan),
        float(older.is_over),
        float(bool(older.numbers) and bool(newer.numbers) and older.numbers != newer.numbers),
        float(is_other_name),
        float(is_other_name and has_change),
        float(min(len(older.content), len(newer.content)) < _MIN_WORDS),
        math.log1p((pair.newer.at - pair.older.at) / _DAY),
        shared / smaller,
        float(older.is_negated != newer.is_negated),
        older.length,
        newer.length,
        float(bool(older.things & newer.things)),
        _few(pair.neighbours),
        math.log1p(len(older.capitalized & newer.capitalized)),
        math.log1p(shared),
    )


def _is_same_session(pair: Pair) -> bool:
    """Return True if both were said in one sitting, where little is replaced, unless the later one corrects the other.

    It corrects what its speaker has said and what it shares words with, or is nearest to.
    """
    older, newer = pair.older, pair.newer
    if older.conversation_id != newer.conversation_id or newer.at - older.at >= _SESSION:
        return False
    words = _read_words(newer.text)
    if not words.corrects or older.speaker != newer.speaker:
        return True
    is_nearest = pair.rank == 0 and pair.nearer == 0
    return not is_nearest and words.content.isdisjoint(_read_words(older.text).content)


def _are_qualified_otherwise(older: _Words, newer: _Words) -> bool:
    """Return True if both name a thing of one kind, and another one of it: "the staging", "the production database"."""
    kinds = {noun for noun, _ in older.qualified} & {noun for noun, _ in newer.qualified}
    return bool(kinds) and older.qualified.isdisjoint(newer.qualified)


def _are_parallel(older: _Words, newer: _Words) -> bool:
    """Return True if both say the same of different things: "My nephew Kuba turns nine", "My nephew Filip turns six".

    Most words are the same in the same order, at least two places differ, and the first of them is a word or two of
    content, not a number or a date alone, unless the text opens with it ("Invoice 1042"). Nobody speaks of a change.
    """
    before, after = older.in_order, newer.in_order
    same = {*before} & {*after}
    # neither of these depends on the order of words, which takes longer to compare
    may_be_alike = len(same) >= _LEAST_PARALLEL / 2 * min(len({*before}), len({*after}))
    may_differ_twice = min(len({*before} - same), len({*after} - same)) >= 2
    if not (may_be_alike and may_differ_twice) or max(len(before), len(after)) > _MOST_PARALLEL_WORDS:
        return False
    if _sentence_about(older, newer).has_change:
        return False
    likeness = SequenceMatcher(None, before, after, autojunk=False)
    if likeness.ratio() < _LEAST_PARALLEL or not _ONE_AT_A_TIME.isdisjoint(same):
        return False
    places: list[tuple[Sequence[str], Sequence[str], int]] = []
    for tag, start, end, other_start, other_end in likeness.get_opcodes():
        one, other = before[start:end], after[other_start:other_end]
        if tag == "replace" and len(one) == len(other) and len({bool(_NUMBER.fullmatch(word)) for word in one}) > 1:
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
        not word[0].isdigit() and (len(word) == 1 or word not in _STOP_WORDS) and not _DATE_WORDS.fullmatch(word)
        for word in words
    )


def _few(neighbours: int) -> float:
    return math.log((MAX_NEIGHBOURS + 1) / (neighbours + 1))


WEIGHTS_FILE = Path(__file__).with_name("replacement.json")
_LEARNED = json.loads(WEIGHTS_FILE.read_text(encoding="utf-8"))
INTERCEPT: float = _LEARNED["intercept"]
WEIGHTS: Sequence[float] = [_LEARNED["weights"][name] for name in FEATURES]


WEIGHT_OF = dict(zip(FEATURES, WEIGHTS, strict=True))
_MOST_OF_NUMBERS, _MOST_OF_NAMES, _MOST_OF_THINGS = (
    max(0.0, WEIGHT_OF[name]) for name in ("other_number", "other_names", "same_thing")
)
_MOST_OF_CHANGED_NAMES = max(0.0, WEIGHT_OF["other_names"] + WEIGHT_OF["other_names_with_change"])
_MOST_OF_OTHERS = sum(max(0.0, WEIGHT_OF[name]) for name in ("shared_words", "other_subject"))
_MOST_OF_SHARED_NAMES, _MOST_OF_SHARED_COUNT = (max(0.0, WEIGHT_OF[name]) for name in ("shared_names", "shared_count"))
_ROUNDING = 1e-6


def replacement_probability(pair: Pair) -> float:
    """Return the probability that the later statement replaces the earlier one, in [0, 1].

    It is 0 if one states nothing, and if both say the same of different things.
    """
    if not (may_state(pair.older.text) and may_state(pair.newer.text)):
        return 0.0
    total = INTERCEPT + sum(weight * value for weight, value in zip(WEIGHTS, pair_features(pair), strict=True))
    older, newer = _read_words(pair.older.text), _read_words(pair.newer.text)
    if _are_parallel(older, newer):
        # not even a weak link, which would put one thing before the other that the question names
        return 0.0
    if _are_qualified_otherwise(older, newer):
        total -= OTHER_THING
    return 1 / (1 + math.exp(-total))


def may_replace(pair: Pair, *, least: float) -> bool:
    """Return False if the probability of this pair is certainly below `least`, which takes a tenth of the time.

    Features that compare the words of both texts are taken to have the values that make it most probable; whether they
    speak of two things of a kind is not asked.
    """
    if least <= 0:
        return True
    older, newer = pair.older, pair.newer
    before, after = _read_words(older.text), _read_words(newer.text)
    most = (
        INTERCEPT
        + WEIGHT_OF["is_same_session"] * _is_same_session(pair)
        + WEIGHT_OF["nearer"] * math.log1p(pair.nearer)
        + WEIGHT_OF["rank"] * pair.rank
        + WEIGHT_OF["few_neighbours"] * _few(pair.neighbours)
        + WEIGHT_OF["other_negation"] * (before.is_negated != after.is_negated)
        + WEIGHT_OF["is_short"] * (min(len(before.content), len(after.content)) < _MIN_WORDS)
        + WEIGHT_OF["days"] * math.log1p((newer.at - older.at) / _DAY)
        + before.weight_as_older
        + after.weight_as_newer
        + _MOST_OF_OTHERS
        + _MOST_OF_SHARED_NAMES * math.log1p(min(len(before.capitalized), len(after.capitalized)))
        + _MOST_OF_SHARED_COUNT * math.log1p(min(len(before.content), len(after.content)))
    )
    if before.numbers and after.numbers:
        most += _MOST_OF_NUMBERS
    if before.names and after.names:
        most += max(_MOST_OF_CHANGED_NAMES, _MOST_OF_NAMES) if after.has_change else _MOST_OF_NAMES
    if before.things and after.things:
        most += _MOST_OF_THINGS
    return most + _ROUNDING >= math.log(least / (1 - least))
