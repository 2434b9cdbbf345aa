"""Signals: numbers about each candidate that distinguish answers from texts that only share the subject.

A signal is a function of the table of candidates (`Table`, their columns of numbers) that returns one number for each
of them, between about -3 and 3, or 0 and 2. It describes a question and a memory, never a subject.

To add a signal, write a function, add its line to SIGNALS, and run `manage.py learn_ranking` for its weight.
"""

import re
from collections.abc import Callable, Mapping

import numpy as np

from memory.retrieval.candidates import Candidate
from memory.retrieval.ranking.table import Scores, Table
from memory.retrieval.ranking.turns import TurnFeatures
from memory.retrieval.rewriters.self_query import ASSISTANT
from memory.retrieval.scorers import MAX_FADES, fading_window

Signal = Callable[[Table], Scores]

NEARBY = 8
"""Places in a conversation within which one turn that fits speaks for another, whatever the time between them."""
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
