"""Who speaks among the candidates, and of whom of them the question asks.

A name that nobody here speaks under is a topic like any other: "What is Redis?" is about nothing else.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from memory.retrieval.candidates import Candidate
from memory.retrieval.queries import Query
from memory.retrieval.ranking.said import TRANSCRIPT
from memory.retrieval.rewriters.speakers import ASSISTANT, USER
from memory.retrieval.rewriters.words import INSIDE_NAMES, LONGEST_READ, NAMELESS, split_words

FEWEST_LINES = 2
"""A transcript has more than one line of a speaker: "Plan: sell the sofa" is said by nobody of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speakers:
    """`of_rows` has the speaker of each candidate in small letters, empty where none is known."""

    of_rows: Sequence[str]
    asked: Collection[str]
    """Whom the question names."""
    are_subjects: bool
    """Whether all whom the question is about speak here."""


def find_speakers(candidates: Sequence[Candidate], query: Query) -> Speakers:
    of_rows = [each.speaker.casefold() for each in candidates]
    if not any(of_rows):
        of_rows = speakers_of_transcript(candidates)
    speakers = {speaker: frozenset(speaker.split()) for speaker in set(of_rows) if speaker}
    asked = {speaker for name in names_of(query) for speaker in called(name, speakers)}
    are_subjects = bool(query.subjects) and all(called(name, speakers) for name in query.subjects)
    return Speakers(of_rows=of_rows, asked=asked, are_subjects=are_subjects)


def speakers_of_transcript(candidates: Sequence[Candidate]) -> list[str]:
    """Of turns that begin with who says them."""
    heads = [TRANSCRIPT.match(each.text) if each.index is not None else None for each in candidates]
    names = ["" if head is None else head[1].casefold() for head in heads]
    lines = Counter(names)
    return [name if lines[name] >= FEWEST_LINES else "" for name in names]


def names_of(query: Query) -> Iterable[str]:
    """Those that rules find by their capitals; where nothing is written in capitals, any word may be one."""
    names = {*query.names, *query.subjects, *query.speakers} - {USER, ASSISTANT}
    text = query.text[:LONGEST_READ]
    if names or text != text.lower():
        return names
    return split_words(text) - NAMELESS


def called(name: str, speakers: dict[str, frozenset[str]]) -> set[str]:
    """Those who go by the name, or by a part of it, or by more: of several those that share most words with it.

    "Lima" and "Ana Lima" are one name, "Ana Costa" is another. Small words inside a name are none of it.
    """
    words = frozenset(word.casefold() for word in name.split() if word not in INSIDE_NAMES)
    shared = {speaker: len(words & own) for speaker, own in speakers.items() if words <= own or own <= words}
    most = max(shared.values(), default=0)
    return {speaker for speaker, count in shared.items() if count == most and most}
