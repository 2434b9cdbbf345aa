"""The candidates of one question as columns, which signals are computed from: one row each, in their order."""

from collections import defaultdict
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
from memory.retrieval.ranking.said import NOTHING_SAID, Said, read_said
from memory.retrieval.ranking.speakers import Speakers, find_speakers

Rows = NDArray[np.intp]

REACH = 2
SITTING = timedelta(hours=6)
"""Turns of a conversation with a longer silence between them were said in two sittings."""
MOST_TURNS = 2**32
"""No conversation has as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`words`, `content` and `meaning` are standard scores over the candidates, 0 where nothing is known. Where those
    whom the question is about speak among the candidates, who speaks says whom a turn is about: their names are no
    content then, and `meaning` of turns is that of the question's gist (`by_gist`). `said` is of turns, too.

    `beside[n]` is the row of the turn n places later in the same sitting (-2 to 2), and `size` where none is among the
    candidates. `sittings` numbers the sittings from 0; what is no turn is in none, -1.
    """

    candidates: Sequence[Candidate]
    setting: Setting
    is_turn: NDArray[np.bool_]
    words: Scores
    content: Scores
    meaning: Scores
    by_gist: NDArray[np.bool_]
    said: Sequence[Said]
    speakers: Speakers
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
    speakers = find_speakers(candidates, setting.query)
    by_gist = is_turn & speakers.are_subjects & ~np.isnan(read_gist(candidates))
    return Table(
        candidates=candidates,
        setting=setting,
        is_turn=is_turn,
        words=standard_scores(read_words(candidates), least_spread=LEAST_SPREAD_OF_WORDS),
        content=standard_scores(read_content(candidates, speakers), least_spread=LEAST_SPREAD_OF_WORDS),
        meaning=compare_meaning(candidates, by_gist),
        by_gist=by_gist,
        said=[NOTHING_SAID if each.index is None else read_said(each.text) for each in candidates],
        speakers=speakers,
        beside=find_neighbours(candidates, sittings),
        sittings=sittings,
    )


def read_gist(candidates: Sequence[Candidate]) -> Scores:
    """NaN for None."""
    return known(np.array([each.gist for each in candidates], dtype=np.float64))


def read_content(candidates: Sequence[Candidate], speakers: Speakers) -> Scores:
    content = known(np.array([each.content for each in candidates], dtype=np.float64))
    if speakers.are_subjects:
        content -= known(np.array([each.naming for each in candidates], dtype=np.float64))
    return content


def compare_meaning(candidates: Sequence[Candidate], by_gist: NDArray[np.bool_]) -> Scores:
    """Standard scores of similarity; of those `by_gist` those of the gist, on the scale of their similarities: it puts
    turns in another order, and leaves them where they are among other kinds."""
    meaning = standard_scores(read_meaning(candidates), least_spread=LEAST_SPREAD_OF_MEANING)
    if by_gist.any():
        scores = standard_scores(read_gist(candidates)[by_gist], least_spread=LEAST_SPREAD_OF_MEANING)
        meaning[by_gist] = meaning[by_gist].mean() + meaning[by_gist].std() * scores
    return meaning


def find_sittings(candidates: Sequence[Candidate]) -> Rows:
    """As far as candidates show them: a silence between two of them is one in the conversation."""
    said: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, each in enumerate(candidates):
        if each.index is not None:
            said[each.conversation_id].append((each.index, row))
    sittings = np.full(len(candidates), -1, dtype=np.intp)
    number = -1
    for _, turns in sorted(said.items()):
        before = None
        for _, row in sorted(turns):
            moment = candidates[row].event_time
            number += before is None or abs(moment - before) > SITTING
            sittings[row], before = number, moment
    return sittings


def find_neighbours(candidates: Sequence[Candidate], sittings: Rows) -> Mapping[int, Rows]:
    """By how many places later."""
    indexes = np.array([0 if each.index is None else each.index for each in candidates], dtype=np.int64)
    # one number for sitting and index; what is no turn is far from all
    places = np.where(sittings < 0, -MOST_TURNS, sittings * MOST_TURNS + indexes)
    order = np.argsort(places)
    in_order = np.append(places[order], np.iinfo(np.int64).max)
    rows = np.append(order, len(candidates))
    return {step: look_up(places + step, in_order, rows) for step in range(-REACH, REACH + 1) if step}


def look_up(wanted: Rows, in_order: Rows, rows: Rows) -> Rows:
    """The rows of places, given in order; the last row where a place is not there."""
    found = np.searchsorted(in_order, wanted)
    return np.where(in_order[found] == wanted, rows[found], rows[-1])
