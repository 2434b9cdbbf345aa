"""Signals: numbers about each candidate that distinguish answers from texts that only share the subject.

A signal is a function of the table of candidates (`Table`, their columns of numbers) that returns one number for each
of them, between about -3 and 3, or 0 and 2. It describes a question and a memory, never a subject.

To add a signal, write a function, add its line to SIGNALS, and run `manage.py learn_ranking` for its weight.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from memory.models.memory import EXTRACTED_SOURCE
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import ScoringContext
from memory.retrieval.ranking.places import Places, Rows, find_places
from memory.retrieval.ranking.turns import NO_FEATURES, Speakers, TurnFeatures, find_speakers, turn_features
from memory.retrieval.rewriters.self_query import ASSISTANT
from memory.retrieval.scorers import MAX_FADES, fading_window

Scores = NDArray[np.float64]

MIN_WORDS_DEVIATION = 0.25
MIN_MEANING_DEVIATION = 0.02
"""Smaller standard deviations count as these, so that candidates that hardly differ get similar scores and words that
nearly all memories hold decide little."""

PASSAGE_DISCOUNT = 0.08
"""Similarity that a memory loses for each e-fold of its passages. Otherwise long answers would come before the messages
that they answer."""
NEARBY = 8
"""Places in a conversation within which one turn that fits speaks for another, whatever the time between them."""


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
        meaning=meaning_scores(similarity, gist, by_gist, waits, found_words),
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


MAX_GUESSED_SHARE = 0.5


def meaning_scores(
    similarity: Scores, gist: Scores, by_gist: NDArray[np.bool_], waits: NDArray[np.bool_], found_words: Scores
) -> Scores:
    """Return standard scores of similarity. Candidates `by_gist` are put in the order of their gist scores.

    Mean and deviation of their scores stay, so these turns keep their place among other kinds. What waits for its
    vector (`waits`) is as near as its words (`found_words`) say, from average to MAX_GUESSED_SHARE of what the
    nearest has.
    """
    meaning = standard_scores(similarity, min_deviation=MIN_MEANING_DEVIATION)
    if by_gist.any():
        scores = standard_scores(gist[by_gist], min_deviation=MIN_MEANING_DEVIATION)
        meaning[by_gist] = meaning[by_gist].mean() + meaning[by_gist].std() * scores
    meaning[waits] = np.clip(found_words[waits], 0.0, MAX_GUESSED_SHARE * meaning.max(initial=0.0))
    return meaning


Signal = Callable[[Table], Scores]

BEST_OF_SEGMENT = 3
ADJACENT_SHARE = 0.7
"""The value of a word in the turn before or after, as a share of its value in the turn itself."""
MAX_LENGTH_TOKENS = 500
"""Length counts up to here: any word occurs somewhere in a longer text."""

_ASKS_WHEN = re.compile(
    r"\W*(?:when|how long|since when|(?:on |in )?(?:what|which) (?:date|day|week|month|year))\b", re.IGNORECASE
)


def words(table: Table) -> Scores:
    """Return BM25 over all words, including stop words."""
    return table.words


def content(table: Table) -> Scores:
    """Return BM25 over what the question asks, without stop words and without subjects who speak here."""
    return table.content


def meaning(table: Table) -> Scores:
    """Return the cosine similarity."""
    return table.meaning


def meaning_before(table: Table) -> Scores:
    """Return the cosine similarity of the turn before."""
    return table.shifted(table.meaning, -1)


def meaning_after(table: Table) -> Scores:
    return table.shifted(table.meaning, 1)


def content_before(table: Table) -> Scores:
    """Return BM25 of the turn two before, which is the same speaker's last turn if two people talk."""
    return table.shifted(table.content, -2)


def best_of_segment(table: Table) -> Scores:
    """Return the mean of words and meaning over the three best turns of the same session segment."""
    places = table.places
    scores = (table.words + table.meaning)[places.rows]
    order = np.lexsort((-scores, places.segments))
    segments = places.segments[order]
    is_best = np.arange(order.size) - np.searchsorted(segments, segments) < BEST_OF_SEGMENT
    best = np.zeros(table.size)
    best[places.rows] = np.bincount(segments[is_best], scores[order][is_best] / BEST_OF_SEGMENT)[places.segments]
    return best


def nearby(table: Table) -> Scores:
    """Return words and meaning of the best turn within NEARBY places of the same conversation, or of the turn itself.

    0 for other kinds.
    """
    rows, talks, indexes = table.places.rows, table.places.talks, table.places.indexes
    in_order = (table.words + table.meaning)[rows]
    best = in_order.copy()
    for step in range(1, min(NEARBY + 1, rows.size)):
        is_near = (talks[step:] == talks[:-step]) & (indexes[step:] - indexes[:-step] <= NEARBY)
        best[step:] = np.maximum(best[step:], np.where(is_near, in_order[:-step], -np.inf))
        best[:-step] = np.maximum(best[:-step], np.where(is_near, in_order[step:], -np.inf))
    found = np.zeros(table.size)
    found[rows] = best
    return found


def by_assistant(table: Table) -> Scores:
    """Return 1 for what an assistant without a name said, unless the question asks for the assistant's words."""
    if ASSISTANT in table.context.query.speakers:
        return np.zeros(table.size)
    return np.array([float(each.role == ASSISTANT and not each.speaker) for each in table.candidates])


def covers(table: Table) -> Scores:
    """Return the share of the question's content terms that the text holds, by weight, in [0, 1].

    A term in the turn before or after counts ADJACENT_SHARE.
    """
    asked = enumerate(table.context.analysis.terms)
    without = table.speakers.are_subjects
    terms = [(bit, term.weight) for bit, term in asked if term.is_content and not (without and term.is_subject)]
    worth = np.array([weight for _, weight in terms])
    if not worth.sum():
        return np.zeros(table.size)
    masks = np.array([each.held for each in table.candidates], dtype=np.int64)
    held = ((masks[:, None] >> np.array([bit for bit, _ in terms])) & 1) * length_shares(table)[:, None]
    padded = np.vstack([held, np.zeros((1, len(terms)))])
    adjacent = np.maximum(padded[table.adjacent[-1]], padded[table.adjacent[1]])
    covered: Scores = np.maximum(held, ADJACENT_SHARE * adjacent) @ worth / worth.sum()
    return covered


def length_shares(table: Table) -> Scores:
    """Return 1 for each text of up to MAX_LENGTH_TOKENS, and the share of that length for longer ones."""
    shares: Scores = np.minimum(1.0, MAX_LENGTH_TOKENS / np.maximum(table.tokens, 1))
    return shares


def replies(table: Table) -> Scores:
    """Return BM25 of the turn before if that turn asks a question."""
    asked = np.array([float("?" in each.text) for each in table.candidates])
    return table.shifted(table.content * asked, -1)


def quoted(table: Table) -> Scores:
    """Return the share of the question's quoted phrases that the text holds word for word."""
    phrases = max(len(table.context.analysis.phrases), 1)
    return np.array([each.quoted / phrases for each in table.candidates])


def said_by(table: Table) -> Scores:
    """Return 1 for turns of the one speaker that the question names; 0 for all if it names several of them or none."""
    asked = table.speakers.asked
    if len(asked) != 1:
        return np.zeros(table.size)
    return np.array([float(speaker in asked) for speaker in table.speakers.of_rows])


def of_time(table: Table) -> Scores:
    """Return 1 for what happened, began or ended at a time that the question mentions, halved per fade time outside.

    A fact that is true for years is true then as well, but says nothing about that time.
    """
    windows = [fading_window(window) for window in table.context.query.windows]
    if not windows:
        return np.zeros(table.size)
    far = [
        min(window.fades(at, at) for window in windows for at in known_timestamps(each)) for each in table.candidates
    ]
    near: Scores = 0.5 ** np.minimum(far, MAX_FADES)
    return near


def known_timestamps(candidate: Candidate) -> list[float]:
    times = (candidate.event_time, candidate.valid_from, candidate.valid_to)
    return [time.timestamp() for time in times if time is not None]


def tells_when(table: Table) -> Scores:
    """Return the number of time words if the question asks when."""
    is_asked = _ASKS_WHEN.match(table.context.query.text) is not None
    return feature_values(table, "times") * is_asked


def times(table: Table) -> Scores:
    return weigh_by_relevance(table, "times")


def numbers(table: Table) -> Scores:
    return weigh_by_relevance(table, "numbers")


def happened(table: Table) -> Scores:
    return weigh_by_relevance(table, "happened")


def places(table: Table) -> Scores:
    return weigh_by_relevance(table, "places")


def weigh_by_relevance(table: Table, feature: str) -> Scores:
    """Return a feature times 1 / (1 + e^-(meaning + content)): it counts only in a turn about what is asked."""
    gate: Scores = 1 / (1 + np.exp(-(table.meaning + table.content)))
    return feature_values(table, feature) * gate


def reacts(table: Table) -> Scores:
    return feature_values(table, "reacts")


def asks(table: Table) -> Scores:
    """Return the share of words in questions: a turn that only asks answers nothing."""
    return feature_values(table, "asks")


def feature_values(table: Table, feature: str) -> Scores:
    values: Scores = table.features[:, TurnFeatures._fields.index(feature)]
    return values


def parent(table: Table) -> Scores:
    """Return how much higher the found goal that this one is part of scores in words and meaning."""
    if not any(each.part_of for each in table.candidates):
        return np.zeros(table.size)
    scores = table.words + table.meaning
    rows = {each.id: row for row, each in enumerate(table.candidates)}
    above = [rows.get(each.part_of, row) if each.part_of else row for row, each in enumerate(table.candidates)]
    better: Scores = np.maximum(scores[above] - scores, 0.0)
    return better


def no_turn(table: Table) -> Scores:
    """Return 1 for all kinds but turns. Its weight says how other kinds compare with turns."""
    return (~table.is_turn).astype(np.float64)


def length(table: Table) -> Scores:
    """Return the logarithm of the tokens, up to MAX_LENGTH_TOKENS."""
    logarithms: Scores = np.log1p(np.minimum(table.tokens, MAX_LENGTH_TOKENS))
    return logarithms


SIGNALS: Mapping[str, Signal] = {
    "sitting" if signal is best_of_segment else signal.__name__: signal
    for signal in (
        *(words, content, meaning, meaning_before, meaning_after, content_before, best_of_segment, covers, replies),
        *(nearby, by_assistant, quoted, said_by, of_time, tells_when, times, numbers, happened, places, reacts, asks),
        *(length, parent, no_turn),
    )
}
"""Signals by the names in `weights.json` and `Candidate.signals`, which are those of the functions except `sitting`."""

OF_REGISTERS = frozenset(
    (
        *("meaning_before", "meaning_after", "content_before", "sitting", "replies", "tells_when", "times"),
        *("numbers", "happened", "places", "reacts", "asks", "length"),
    )
)
"""Signals whose weight in one register says nothing about another. In talk between people a turn that asks is no
answer; half of what a user asks an assistant is evidence itself."""
