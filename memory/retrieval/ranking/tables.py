"""The candidates of one question as columns, which signals are computed from: one row each, in their order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import Candidate
from memory.retrieval.fusion import (
    LEAST_SPREAD_OF_MEANING,
    LEAST_SPREAD_OF_WORDS,
    Scores,
    known,
    read_meaning,
    read_words,
    standard_scores,
)
from memory.retrieval.plans import Setting

Rows = NDArray[np.intp]

REACH = 2
SITTING = timedelta(hours=6)
"""Turns of a conversation with a longer silence between them were said in two sittings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`words`, `content` and `meaning` are standard scores over the candidates, 0 where nothing is known; of turns
    `meaning` is that of the question's gist, since who speaks says whom a turn is about.

    `beside[n]` is the row of the turn n places later in the same sitting (-2 to 2), and `size` where none is among the
    candidates. `sittings` numbers the sittings from 0; what is no turn is in none, -1.
    """

    candidates: Sequence[Candidate]
    setting: Setting
    is_turn: NDArray[np.bool_]
    words: Scores
    content: Scores
    meaning: Scores
    beside: Mapping[int, Rows]
    sittings: Rows

    @property
    def size(self) -> int:
        return len(self.candidates)

    def shifted(self, values: Scores, places: int) -> Scores:
        """Of each turn the value of the one so many places later, 0 where there is none."""
        padded = np.append(values, 0.0)
        shifted: Scores = padded[self.beside[places]]
        return shifted


def make_table(candidates: Sequence[Candidate], setting: Setting) -> Table:
    is_turn = np.array([each.index is not None for each in candidates], dtype=np.bool_)
    sittings = find_sittings(candidates)
    content = known(np.array([each.content for each in candidates], dtype=np.float64))
    return Table(
        candidates=candidates,
        setting=setting,
        is_turn=is_turn,
        words=standard_scores(read_words(candidates), least_spread=LEAST_SPREAD_OF_WORDS),
        content=standard_scores(content, least_spread=LEAST_SPREAD_OF_WORDS),
        meaning=compare_meaning(candidates, is_turn),
        beside=find_neighbours(candidates, sittings),
        sittings=sittings,
    )


def compare_meaning(candidates: Sequence[Candidate], is_turn: NDArray[np.bool_]) -> Scores:
    """Standard scores of similarity; of turns those of the gist, on the scale of their similarities: the gist puts
    turns in another order, and leaves them where they are among other kinds."""
    meaning = standard_scores(read_meaning(candidates), least_spread=LEAST_SPREAD_OF_MEANING)
    gist = known(np.array([each.gist for each in candidates], dtype=np.float64))
    told = is_turn & ~np.isnan(gist)
    if told.any():
        scores = standard_scores(gist[told], least_spread=LEAST_SPREAD_OF_MEANING)
        meaning[told] = meaning[told].mean() + meaning[told].std() * scores
    return meaning


def find_sittings(candidates: Sequence[Candidate]) -> Rows:
    """As far as candidates show them: a silence between two of them is one in the conversation."""
    sittings = np.full(len(candidates), -1, dtype=np.intp)
    turns = [(each.conversation_id, each.index, row) for row, each in enumerate(candidates) if each.index is not None]
    number, before = -1, None
    for _, _, row in sorted(turns):
        candidate = candidates[row]
        if before is None or is_apart(before, candidate):
            number += 1
        sittings[row] = number
        before = candidate
    return sittings


def is_apart(before: Candidate, candidate: Candidate) -> bool:
    is_other = before.conversation_id != candidate.conversation_id
    return is_other or abs(candidate.event_time - before.event_time) > SITTING


def find_neighbours(candidates: Sequence[Candidate], sittings: Rows) -> Mapping[int, Rows]:
    """By how many places later."""
    places = list(zip(sittings.tolist(), [each.index for each in candidates], strict=True))
    rows = {place: row for row, place in enumerate(places) if place[1] is not None}
    none = len(candidates)
    return {
        step: np.array(
            [none if index is None else rows.get((sitting, index + step), none) for sitting, index in places],
            dtype=np.intp,
        )
        for step in range(-REACH, REACH + 1)
        if step
    }
