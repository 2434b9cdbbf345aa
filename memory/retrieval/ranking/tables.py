"""The candidates of one question as columns of numbers, one row per candidate. Signals are computed from them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import ScoringContext
from memory.retrieval.ranking.turns import NO_FEATURES, Speakers, TurnFeatures, find_speakers, turn_features

Scores = NDArray[np.float64]
Rows = NDArray[np.intp]

MIN_WORDS_DEVIATION = 0.25
MIN_MEANING_DEVIATION = 0.02
"""Smaller standard deviations count as these, so that candidates that hardly differ get similar scores and words that
nearly all memories hold decide little."""

REACH = 2
SESSION_GAP = timedelta(hours=6)
"""A longer silence between two turns of a conversation begins a new session segment."""
MAX_TURNS = 2**32
"""More than any conversation has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns of numbers about candidates.

    `words`, `content` and `meaning` are standard scores over the candidates, 0 if nothing is known. If the subjects of
    the question speak among the candidates, the speaker says whom a turn is about: then their names do not count as
    content, and `meaning` of turns is that of the question's gist (`by_gist`). `features` are those of turns.

    `adjacent[n]` is the row of the turn n places later in the same segment (-2 to 2), or `size` if it is not among the
    candidates. `segments` numbers the session segments from 0; -1 for candidates that are not turns.
    """

    candidates: Sequence[Candidate]
    context: ScoringContext
    is_turn: NDArray[np.bool_]
    words: Scores
    content: Scores
    meaning: Scores
    by_gist: NDArray[np.bool_]
    features: Sequence[TurnFeatures]
    speakers: Speakers
    adjacent: Mapping[int, Rows]
    segments: Rows

    @property
    def size(self) -> int:
        return len(self.candidates)

    def shifted(self, values: Scores, places: int) -> Scores:
        """Return for each turn the value of the turn so many places later, 0 if there is none."""
        padded = np.append(values, 0.0)
        shifted: Scores = padded[self.adjacent[places]]
        return shifted


def make_table(candidates: Sequence[Candidate], context: ScoringContext) -> Table:
    is_turn = np.array([each.index is not None for each in candidates], dtype=np.bool_)
    segments = find_segments(candidates)
    speakers = find_speakers(candidates, context.query)
    by_gist = is_turn & speakers.are_subjects & ~np.isnan(gist_scores(candidates))
    return Table(
        candidates=candidates,
        context=context,
        is_turn=is_turn,
        words=standard_scores(bm25_scores(candidates), min_deviation=MIN_WORDS_DEVIATION),
        content=standard_scores(content_scores(candidates, speakers), min_deviation=MIN_WORDS_DEVIATION),
        meaning=meaning_scores(candidates, by_gist),
        by_gist=by_gist,
        features=[NO_FEATURES if each.index is None else turn_features(each.text) for each in candidates],
        speakers=speakers,
        adjacent=find_adjacent(candidates, segments),
        segments=segments,
    )


def standard_scores(values: Scores, *, min_deviation: float) -> Scores:
    """Return (x - mean) / standard deviation, the latter at least `min_deviation`; 0, the average, for NaN."""
    known = values[~np.isnan(values)]
    if not known.size:
        return np.zeros(values.size)
    scores: Scores = np.nan_to_num((values - known.mean()) / max(float(known.std()), min_deviation))
    return scores


def mask_infinite(values: Scores) -> Scores:
    """Replace infinite numbers by NaN, in place."""
    values[~np.isfinite(values)] = np.nan
    return values


def bm25_scores(candidates: Sequence[Candidate]) -> Scores:
    return mask_infinite(np.array([each.bm25 for each in candidates], dtype=np.float64))


def similarity_scores(candidates: Sequence[Candidate]) -> Scores:
    """Return the similarities, NaN for None."""
    return mask_infinite(np.array([each.similarity for each in candidates], dtype=np.float64))


def gist_scores(candidates: Sequence[Candidate]) -> Scores:
    """Return the similarities to the gist, NaN for None."""
    return mask_infinite(np.array([each.gist for each in candidates], dtype=np.float64))


def content_scores(candidates: Sequence[Candidate], speakers: Speakers) -> Scores:
    content = mask_infinite(np.array([each.content for each in candidates], dtype=np.float64))
    if speakers.are_subjects:
        content -= mask_infinite(np.array([each.naming for each in candidates], dtype=np.float64))
    return content


def meaning_scores(candidates: Sequence[Candidate], by_gist: NDArray[np.bool_]) -> Scores:
    """Return standard scores of similarity. Candidates `by_gist` are put in the order of their gist scores.

    Mean and deviation of their scores stay, so these turns keep their place among other kinds.
    """
    meaning = standard_scores(similarity_scores(candidates), min_deviation=MIN_MEANING_DEVIATION)
    if by_gist.any():
        scores = standard_scores(gist_scores(candidates)[by_gist], min_deviation=MIN_MEANING_DEVIATION)
        meaning[by_gist] = meaning[by_gist].mean() + meaning[by_gist].std() * scores
    return meaning


def find_segments(candidates: Sequence[Candidate]) -> Rows:
    """Return the number of each candidate's session segment. A gap between two candidates counts as a silence."""
    turns_of: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, each in enumerate(candidates):
        if each.index is not None:
            turns_of[each.conversation_id].append((each.index, row))
    segments = np.full(len(candidates), -1, dtype=np.intp)
    number = -1
    for _, turns in sorted(turns_of.items()):
        before = None
        for _, row in sorted(turns):
            time = candidates[row].event_time
            number += before is None or abs(time - before) > SESSION_GAP
            segments[row], before = number, time
    return segments


def find_adjacent(candidates: Sequence[Candidate], segments: Rows) -> Mapping[int, Rows]:
    """Return for each distance from -REACH to REACH the row of the turn so many places later."""
    indexes = np.array([0 if each.index is None else each.index for each in candidates], dtype=np.int64)
    # one number for segment and index; candidates that are not turns are far from all
    places = np.where(segments < 0, -MAX_TURNS, segments * MAX_TURNS + indexes)
    order = np.argsort(places)
    in_order = np.append(places[order], np.iinfo(np.int64).max)
    rows = np.append(order, len(candidates))
    return {step: rows_of_places(places + step, in_order, rows) for step in range(-REACH, REACH + 1) if step}


def rows_of_places(wanted: Rows, in_order: Rows, rows: Rows) -> Rows:
    """Return the rows of the wanted places, which `in_order` lists; the last row for a place that is not there."""
    found = np.searchsorted(in_order, wanted)
    return np.where(in_order[found] == wanted, rows[found], rows[-1])
