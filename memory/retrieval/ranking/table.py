"""The columns of numbers about candidates that signals are computed from, and their standard scores.

The places of turns among the candidates are their session segments, and the turns right before and after each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from memory.models.memory import EXTRACTED_SOURCE
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import ScoringContext
from memory.retrieval.ranking.turns import NO_FEATURES, Speakers, find_speakers, turn_features

Scores = NDArray[np.float64]
Rows = NDArray[np.intp]

MIN_WORDS_DEVIATION = 0.25
MIN_MEANING_DEVIATION = 0.02
"""Smaller standard deviations count as these, so that candidates that hardly differ get similar scores and words that
nearly all memories hold decide little."""

MAX_GUESSED_SHARE = 0.5
PASSAGE_DISCOUNT = 0.08
"""Similarity that a memory loses for each e-fold of its passages. Otherwise long answers would come before the messages
that they answer."""

REACH = 2
"""Places before and after a turn that count as next to it."""
SESSION_GAP = timedelta(hours=6)
"""A longer silence between two turns of a conversation begins a new session segment."""
MAX_TURNS = 2**32
"""More than any conversation has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The turns among the candidates, in the order in which they were said, conversation by conversation.

    `rows` are those of the turns among all candidates. `talks` numbers their conversations and `segments` their session
    segments, both from 0 on; `indexes` are the places of turns in their conversations.
    """

    rows: Rows
    talks: Rows
    indexes: Rows
    segments: Rows

    def segment_of_rows(self, size: int) -> Rows:
        """Return the segment of each candidate; -1 for candidates that are not turns."""
        segments = np.full(size, -1, dtype=np.intp)
        segments[self.rows] = self.segments
        return segments

    def adjacent_rows(self, size: int) -> Mapping[int, Rows]:
        """Return for each distance from -REACH to REACH the row of the turn so many places later in the same segment.

        It is `size`, the number of candidates, for those that have none.
        """
        # one number for segment and index, and one at the end that no turn has
        places = np.append(self.segments * MAX_TURNS + self.indexes, np.iinfo(np.intp).max)
        rows = np.append(self.rows, size)
        adjacent = {}
        for step in (step for step in range(-REACH, REACH + 1) if step):
            wanted = places[:-1] + step
            found = np.searchsorted(places, wanted)
            adjacent[step] = np.full(size, size, dtype=np.intp)
            adjacent[step][self.rows] = np.where(places[found] == wanted, rows[found], size)
        return adjacent


def find_places(candidates: Sequence[Candidate]) -> Places:
    """Return the places of the turns. A gap between two candidates counts as a silence."""
    turns = [row for row, each in enumerate(candidates) if each.index is not None]
    names = [candidates[row].conversation_id for row in turns]
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    rows = np.array(turns, dtype=np.intp)
    talks = np.array([numbers[name] for name in names], dtype=np.intp)
    indexes = np.array([candidates[row].index for row in turns], dtype=np.intp)
    order = np.lexsort((indexes, talks))
    rows, talks, indexes = rows[order], talks[order], indexes[order]
    times = [candidates[row].event_time for row in rows.tolist()]
    is_late = np.array([abs(later - earlier) > SESSION_GAP for earlier, later in pairwise(times)], dtype=np.bool_)
    segments = np.zeros(rows.size, dtype=np.intp)
    np.cumsum(is_late | (talks[1:] != talks[:-1]), out=segments[1:])
    return Places(rows=rows, talks=talks, indexes=indexes, segments=segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Columns of numbers about candidates.

    `words`, `content` and `meaning` are standard scores over the candidates, 0 if nothing is known, and `asked_content`
    is what `content` was computed from. If the subjects of the question speak among the candidates, the speaker says
    whom a turn is about: then their names do not count as content, and `meaning` of turns is that of the question's
    gist (`by_gist`). `compared` are the similarities that `meaning` was computed from, NaN for None. `features` has a
    row of TurnFeatures for each candidate, `tokens` their lengths.

    `adjacent[n]` is the row of the turn n places later in the same segment (-2 to 2), or `size` if it is not among the
    candidates. `segments` numbers the session segments from 0; -1 for candidates that are not turns. `is_extracted`
    marks the facts and entities that were learned from turns.
    """

    candidates: Sequence[Candidate]
    context: ScoringContext
    is_turn: NDArray[np.bool_]
    is_extracted: NDArray[np.bool_]
    words: Scores
    content: Scores
    asked_content: Scores
    meaning: Scores
    compared: Scores
    by_gist: NDArray[np.bool_]
    features: Scores
    tokens: Scores
    speakers: Speakers
    places: Places
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
    size = len(candidates)
    is_turn = np.array([each.index is not None for each in candidates], dtype=np.bool_)
    places = find_places(candidates)
    speakers = find_speakers(candidates, context.query)
    similarity, gist = similarity_scores(candidates), gist_scores(candidates)
    by_gist = is_turn & speakers.are_subjects & ~np.isnan(gist)
    waits = np.array([each.similarity is None for each in candidates], dtype=np.bool_)
    equals = waits & np.array([each.text == context.query.text for each in candidates], dtype=np.bool_)
    found_words = standard_scores(bm25_scores(candidates), min_deviation=MIN_WORDS_DEVIATION)
    asked_content = content_scores(candidates, speakers)
    features = [NO_FEATURES if each.index is None else turn_features(each.text) for each in candidates]
    return Table(
        candidates=candidates,
        context=context,
        is_turn=is_turn,
        is_extracted=np.array([each.source == EXTRACTED_SOURCE for each in candidates], dtype=np.bool_),
        words=found_words,
        content=standard_scores(asked_content, min_deviation=MIN_WORDS_DEVIATION),
        asked_content=asked_content,
        meaning=meaning_scores(similarity, gist, by_gist, waits, equals, found_words),
        compared=np.where(by_gist, gist, similarity),
        by_gist=by_gist,
        features=np.fromiter(chain.from_iterable(features), np.float64).reshape(size, len(NO_FEATURES)),
        tokens=np.array([each.token_count for each in candidates], dtype=np.float64),
        speakers=speakers,
        places=places,
        adjacent=places.adjacent_rows(size),
        segments=places.segment_of_rows(size),
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
    """Return the similarities, less what the best of many passages has by chance, NaN for None."""
    similarities = mask_infinite(np.array([each.similarity for each in candidates], dtype=np.float64))
    return similarities - chance_gains(candidates)


def gist_scores(candidates: Sequence[Candidate]) -> Scores:
    """Return the similarities to the gist likewise, NaN for None."""
    gists = [each.gist for each in candidates]
    if all(each is None for each in gists):
        return np.full(len(candidates), np.nan)
    similarities = mask_infinite(np.array(gists, dtype=np.float64))
    return similarities - chance_gains(candidates)


def chance_gains(candidates: Sequence[Candidate]) -> Scores:
    """Return how much greater the greatest of a text's similarities is expected to be than one alone."""
    passages = [each.passages for each in candidates]
    if not any(passages):
        return np.zeros(len(candidates))
    gains: Scores = PASSAGE_DISCOUNT * np.log(np.maximum(passages, 1))
    return gains


def content_scores(candidates: Sequence[Candidate], speakers: Speakers) -> Scores:
    content = mask_infinite(np.array([each.content for each in candidates], dtype=np.float64))
    if speakers.are_subjects:
        content -= mask_infinite(np.array([each.naming for each in candidates], dtype=np.float64))
    return content


def meaning_scores(
    similarity: Scores,
    gist: Scores,
    by_gist: NDArray[np.bool_],
    waits: NDArray[np.bool_],
    equals: NDArray[np.bool_],
    found_words: Scores,
) -> Scores:
    """Return standard scores of similarity. Candidates `by_gist` are put in the order of their gist scores.

    Mean and deviation of their scores stay, so these turns keep their place among other kinds. What waits for its
    vector (`waits`) is as near as its words (`found_words`) say, from average to MAX_GUESSED_SHARE of what the
    nearest has; if it equals the question (`equals`), it is as near as the nearest, since equal texts have equal
    vectors.
    """
    meaning = standard_scores(similarity, min_deviation=MIN_MEANING_DEVIATION)
    if by_gist.any():
        scores = standard_scores(gist[by_gist], min_deviation=MIN_MEANING_DEVIATION)
        meaning[by_gist] = meaning[by_gist].mean() + meaning[by_gist].std() * scores
    meaning[waits] = np.clip(found_words[waits], 0.0, MAX_GUESSED_SHARE * meaning.max(initial=0.0))
    meaning[equals] = meaning.max(initial=0.0)
    return meaning
