"""Properties of turns: features of their texts, and who speaks.

The rules for features are for English. In other languages they find little, and those features then say nothing.

A name under which no candidate speaks is a topic like any other: "What is Redis?" is about nothing else.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Query
from memory.retrieval.ranking.registers import find_register
from memory.retrieval.rewriters.self_query import ASSISTANT, USER
from memory.retrieval.rewriters.words import INSIDE_NAMES, MAX_READ_CHARACTERS, NAMELESS, frozen_words, split_words

MAX_FEATURE_CHARACTERS = 600
"""Characters of a turn whose features are read."""
MAX_COUNT = 2
"""Times and numbers that count."""
MAX_CACHED_TEXTS = 20_000
"""Texts whose features a process keeps."""
MIN_TRANSCRIPT_LINES = 2
"""Lines that a speaker of a transcript has at least. Nobody named Plan says "Plan: sell the sofa"."""
PAIR = 2
SPELLED_ALIKE = 0.75
"""Similarity of two spellings of one name (`difflib`): "Aqib" and "Akib"."""

TRANSCRIPT = re.compile(r"([^\W\d_][\w'’. -]{0,40}):\s")
"""The speaker's name at the beginning of a line of a transcript."""

_SHARED = re.compile(r"\[[^\][]{1,1000}\]\s*\Z")
_SENTENCE_ENDS = re.compile(r"(?<=[.!?])\s+")
_WORD = re.compile(r"\w+")
# looked up word by word, since a pattern of so many alternatives took most of the time
_TIME_WORDS = frozen_words(
    "yesterday today tonight tomorrow ago last next week weekend month year years day days since morning evening night "
    "recently soon monday tuesday wednesday thursday friday saturday sunday january february march april june july "
    "august september october november december"
)
_DATE = re.compile(r"(?:19|20)\d\d|\d+(?:st|nd|rd|th)")
_NUMBER_WORDS = frozen_words("one two three four five six seven eight nine ten twice couple several dozen")
_HAPPENED = re.compile(
    r"\b(?:I|we|We)(?:['’]ve)?(?: just| recently| finally| also| even)? (?:\w{1,30}ed|went|got|had|was|were|made|took"
    r"|saw|did|found|came|bought|gave|met|won|wrote|read|been|started)\b"
)
_PLACES = re.compile(r"\b(?:in|at|to|from|near|around) (?:the |a |my |our )?[A-Z][a-z]")
_GREETINGS = "hey|hi|hello|bye|thanks|thank you|thx|morning|night|evening|welcome|sorry|congrats|congratulations"
_REACTION = re.compile(
    r"(?:wow|thanks|thank you|that['’]s|that sounds|sounds|cool|awesome|great|nice|congrats|congratulations|yeah|yep"
    r"|yes|definitely|totally|absolutely|a+w+|oh|glad|bye|take care|sure|i['’]m glad|so glad|i agree|right|exactly)\b",
    re.IGNORECASE,
)


class TurnFeatures(NamedTuple):
    """Features of a turn's text.

    `asks` is the share of its words that are in questions; `times` and `numbers` are counts up to 2. The others are 0
    or 1: the speaker says what happened to them, names a place, begins with a reaction to what was said before.
    """

    asks: float
    times: float
    numbers: float
    happened: float
    places: float
    reacts: float


NO_FEATURES = TurnFeatures(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
"""The features of a memory that is not a turn."""

_cached_features: dict[int, TurnFeatures] = {}
"""Features by hash of the text, so that no text stays here after its erasure."""


def turn_features(text: str) -> TurnFeatures:
    """Return the cached features of a turn, without its speaker's name and what it shares (`[a photo of …]`)."""
    beginning = text[:MAX_FEATURE_CHARACTERS]
    # 64 bits under a key of the process: two of so many texts have the same once in 10 ** 11 processes
    digest = hash(beginning)
    known = _cached_features.get(digest)
    if known is None:
        if len(_cached_features) >= MAX_CACHED_TEXTS:
            _cached_features.clear()
        known = _cached_features[digest] = extract_features(beginning)
    return known


def extract_features(text: str) -> TurnFeatures:
    if match := TRANSCRIPT.match(text):
        text = text[match.end() :]
    text = _SHARED.sub("", text).strip()
    words = _WORD.findall(text.lower())
    return TurnFeatures(
        question_share(text),
        float(min(sum(map(is_time_word, words)), MAX_COUNT)),
        float(min(sum(map(is_number_word, words)), MAX_COUNT)),
        float(_HAPPENED.search(text) is not None),
        float(_PLACES.search(text) is not None),
        float(_REACTION.match(text) is not None),
    )


def is_time_word(word: str) -> bool:
    return word in _TIME_WORDS or (word[0].isdecimal() and _DATE.fullmatch(word) is not None)


def is_number_word(word: str) -> bool:
    return word.isdecimal() or word in _NUMBER_WORDS


def question_share(text: str) -> float:
    """Return the share of the words that are in questions."""
    if "?" not in text:
        return 0.0
    sentences = [(len(each.split()), each.endswith("?")) for each in _SENTENCE_ENDS.split(text)]
    return sum(count for count, is_question in sentences if is_question) / max(sum(count for count, _ in sentences), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speakers:
    """The speakers among the candidates. `of_rows` has the lower-case speaker of each, empty if unknown."""

    of_rows: Sequence[str]
    asked: Collection[str]
    """Speakers that the question names."""
    are_subjects: bool
    """True if all subjects of the question speak here."""
    register: str
    """One of REGISTERS."""


def find_speakers(candidates: Sequence[Candidate], query: Query) -> Speakers:
    of_rows = [each.speaker.casefold() for each in candidates]
    if not any(of_rows):
        of_rows = transcript_speakers(candidates)
    speakers = {speaker: frozenset(speaker.split()) for speaker in set(of_rows) if speaker}
    named = {name: speakers_called(name, speakers) for name in {*asked_names(query), *query.subjects}}
    if len(speakers) == PAIR:
        for name in query.subjects:
            named[name] = named[name] or speaker_nicknamed(name, candidates, of_rows)
    return Speakers(
        of_rows=of_rows,
        asked={speaker for name in asked_names(query) for speaker in named[name]},
        are_subjects=bool(query.subjects) and all(named[name] for name in query.subjects),
        register=find_register(candidates, of_rows, query),
    )


def speaker_nicknamed(name: str, candidates: Sequence[Candidate], of_rows: Sequence[str]) -> set[str]:
    """Return which of two speakers goes by a name that is neither's: whom the other one greets by it.

    People do not say their own name to each other: the one whom it means never says it. Without any mention it may be
    another spelling of a speaker's name.
    """
    mention = re.compile(rf"\b{re.escape(name)}\b", re.IGNORECASE)
    saying = [(speaker, each.text) for each, speaker in zip(candidates, of_rows, strict=True) if speaker]
    mentions = [(speaker, text) for speaker, text in saying if mention.search(text)]
    who = {speaker for speaker, _ in mentions}
    if len(who) == 1:
        greets = re.compile(rf"\b(?:{_GREETINGS})\W+{re.escape(name)}\b", re.IGNORECASE)
        return {speaker for speaker, _ in saying} - who if any(greets.search(text) for _, text in mentions) else set()
    words = {word: speaker for speaker, _ in saying for word in speaker.split()}
    alike = [] if who else get_close_matches(name.casefold(), words, n=1, cutoff=SPELLED_ALIKE)
    return {words[word] for word in alike}


def transcript_speakers(candidates: Sequence[Candidate]) -> list[str]:
    """Return the speaker of each turn that begins with a name, as in a transcript."""
    # most texts have no colon, which is found out faster
    heads = [
        TRANSCRIPT.match(each.text) if each.index is not None and ":" in each.text else None for each in candidates
    ]
    names = ["" if head is None else head[1].casefold() for head in heads]
    lines = Counter(names)
    return [name if lines[name] >= MIN_TRANSCRIPT_LINES else "" for name in names]


def asked_names(query: Query) -> Iterable[str]:
    """Return the names that rules found by their capitals. In a text without capitals any word may be a name."""
    names = {*query.names, *query.subjects, *query.speakers} - {USER, ASSISTANT}
    text = query.text[:MAX_READ_CHARACTERS]
    if names or text != text.lower():
        return names
    return split_words(text) - NAMELESS


def speakers_called(name: str, speakers: dict[str, frozenset[str]]) -> set[str]:
    """Return the speakers whose name is, contains or is part of this one; of several those with most words in common.

    "Lima" and "Ana Lima" are one name, "Ana Costa" is another. Small words inside a name do not count.
    """
    words = frozenset(word.casefold() for word in name.split() if word not in INSIDE_NAMES)
    shared = {speaker: len(words & own) for speaker, own in speakers.items() if words <= own or own <= words}
    most = max(shared.values(), default=0)
    return {speaker for speaker, count in shared.items() if count == most and most}
