"""What tells an answer from what only shares its subject: numbers about each candidate, which the ranker weighs.

Each is a function of the table of the candidates, and answers with one number a candidate, about -3 to 3 or 0 to 2. A
signal is about what a question and a memory are like, never about a subject.

To add one: a function, its line in SIGNALS, and `manage.py learn_ranking` for its weight.
"""

import re
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import Candidate
from memory.retrieval.fusion import Scores
from memory.retrieval.ranking.said import Said
from memory.retrieval.ranking.tables import Table
from memory.retrieval.scorers.window import FAR, make_span

Signal = Callable[[Table], Scores]

BEST_OF_A_SITTING = 3
BESIDE_SHARE = 0.7
"""What a word counts that stands right beside a turn."""
MOST_TOKENS = 500
"""Longer texts are no better for being longer: any word stands somewhere in them."""

_ASKS_WHEN = re.compile(
    r"\W*(?:when|how long|since when|(?:on |in )?(?:what|which) (?:date|day|week|month|year))\b", re.IGNORECASE
)


def words(table: Table) -> Scores:
    """BM25 over all words, stop words among them."""
    return table.words


def content(table: Table) -> Scores:
    """BM25 over what the question is about: neither stop words nor speakers whom it is about."""
    return table.content


def meaning(table: Table) -> Scores:
    """Cosine similarity."""
    return table.meaning


def meaning_before(table: Table) -> Scores:
    """That of the turn before."""
    return table.shifted(table.meaning, -1)


def meaning_after(table: Table) -> Scores:
    return table.shifted(table.meaning, 1)


def content_before(table: Table) -> Scores:
    """BM25 of the turn two before: what the same speaker said last, where two talk."""
    return table.shifted(table.content, -2)


def sitting(table: Table) -> Scores:
    """How good the three best turns of its sitting are, in words and meaning."""
    scores = table.words + table.meaning
    best = np.zeros(table.sittings.max(initial=-1) + 2)
    taken = np.zeros_like(best)
    for row in np.lexsort((-scores, table.sittings)).tolist():
        number = table.sittings[row]
        if number >= 0 and taken[number] < BEST_OF_A_SITTING:
            best[number] += scores[row] / BEST_OF_A_SITTING
            taken[number] += 1
    found: Scores = best[table.sittings]
    return found


def covers(table: Table) -> Scores:
    """How much of what the question is about it holds, in [0, 1]; what stands right beside a turn counts 0.7."""
    asked = enumerate(table.setting.orientation.terms)
    without = table.speakers.are_subjects
    terms = [(bit, term.weight) for bit, term in asked if term.is_content and not (without and term.is_subject)]
    worth = np.array([weight for _, weight in terms])
    if not worth.sum():
        return np.zeros(table.size)
    masks = np.array([each.held for each in table.candidates], dtype=np.int64)
    held = ((masks[:, None] >> np.array([bit for bit, _ in terms])) & 1) * shares_of_length(table)[:, None]
    padded = np.vstack([held, np.zeros((1, len(terms)))])
    beside = np.maximum(padded[table.beside[-1]], padded[table.beside[1]])
    covered: Scores = np.maximum(held, BESIDE_SHARE * beside) @ worth / worth.sum()
    return covered


def shares_of_length(table: Table) -> Scores:
    """1, and of longer texts what MOST_TOKENS are of them."""
    return np.array([min(1.0, MOST_TOKENS / max(each.token_count, 1)) for each in table.candidates])


def replies(table: Table) -> Scores:
    """BM25 of the turn before, where that asks."""
    asked = np.array([float("?" in each.text) for each in table.candidates])
    return table.shifted(table.content * asked, -1)


def quoted(table: Table) -> Scores:
    """What share of the question's phrases it holds as they stand."""
    phrases = max(len(table.setting.orientation.phrases), 1)
    return np.array([each.quoted / phrases for each in table.candidates])


def said_by(table: Table) -> Scores:
    """1 for turns of the one speaker whom the question names; 0 for all where it names several of them, or none."""
    asked = table.speakers.asked
    if len(asked) != 1:
        return np.zeros(table.size)
    return np.array([float(speaker in asked) for speaker in table.speakers.of_rows])


def of_time(table: Table) -> Scores:
    """1 for what happened, began or ended within a time that the question speaks of; half a fading outside of it.

    What is true for years is true then as well, and answers nothing about that time.
    """
    spans = [make_span(window) for window in table.setting.query.windows]
    if not spans:
        return np.zeros(table.size)
    far = [min(span.fadings(at, at) for span in spans for at in moments_of(each)) for each in table.candidates]
    near: Scores = 0.5 ** np.minimum(far, FAR)
    return near


def moments_of(candidate: Candidate) -> list[float]:
    told = (candidate.event_time, candidate.valid_from, candidate.valid_to)
    return [moment.timestamp() for moment in told if moment is not None]


def tells_when(table: Table) -> Scores:
    """Its words of time, where the question asks when."""
    is_asked = _ASKS_WHEN.match(table.setting.query.text) is not None
    return read(table, lambda said: said.times * is_asked)


def times(table: Table) -> Scores:
    return relevant(table, lambda said: said.times)


def numbers(table: Table) -> Scores:
    return relevant(table, lambda said: said.numbers)


def happened(table: Table) -> Scores:
    return relevant(table, lambda said: said.happened)


def places(table: Table) -> Scores:
    return relevant(table, lambda said: said.places)


def relevant(table: Table, what: Callable[[Said], float]) -> Scores:
    """As far as it is about what is asked, 1 / (1 + e^-(meaning + content)): to tell something else answers nothing."""
    gate: Scores = 1 / (1 + np.exp(-(table.meaning + table.content)))
    return read(table, what) * gate


def reacts(table: Table) -> Scores:
    return read(table, lambda said: said.reacts)


def asks(table: Table) -> Scores:
    """A turn that only asks answers nothing."""
    return read(table, lambda said: said.asks)


def read(table: Table, what: Callable[[Said], float]) -> NDArray[np.float64]:
    return np.array([what(said) for said in table.said])


def parent(table: Table) -> Scores:
    """How much better the found goal that it is a part of is, in words and meaning."""
    scores = table.words + table.meaning
    rows = {each.id: row for row, each in enumerate(table.candidates)}
    above = [rows.get(each.part_of, row) if each.part_of else row for row, each in enumerate(table.candidates)]
    better: Scores = np.maximum(scores[above] - scores, 0.0)
    return better


def no_turn(table: Table) -> Scores:
    """1 for what is no turn: how other kinds compare with turns."""
    return (~table.is_turn).astype(np.float64)


def length(table: Table) -> Scores:
    """The logarithm of its tokens, up to MOST_TOKENS."""
    return np.log1p([min(each.token_count, MOST_TOKENS) for each in table.candidates])


SIGNALS: Mapping[str, Signal] = {
    signal.__name__: signal
    for signal in (
        *(words, content, meaning, meaning_before, meaning_after, content_before, sitting, covers, replies),
        *(quoted, said_by, of_time, tells_when, times, numbers, happened, places, reacts, asks),
        *(length, parent, no_turn),
    )
}
