"""Confidence: how likely a memory helps to answer a question, from 0 to 1, whatever else was found.

It is a logistic regression over three numbers: the similarity of the vectors, which share of the question's words the
memory holds (without stop words, and without the names of subjects if there are other words), and whether the question
is about somebody whom no candidate knows. Words weigh more the fewer candidates hold them, and most if none does:
candidates are what the owner sees, so that nothing counts that others of the account said. It was learned from the
first twenty results of questions about conversations, with their answers, and of questions of other conversations,
which have none. The weights are in `confidence.json`, with how they were learned (`manage.py learn_confidence`).

Similarities differ between embedding models. Those of other models than the one that the weights were learned with do
not count, and without them nothing is held back: words alone cannot tell that nothing answers. The shipped weights are
for the bundled model; `MEMORY_CONFIDENCE_WEIGHTS` names a file with weights for another.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from memory import conf
from memory.retrieval.candidates import Candidate
from memory.retrieval.own_questions import patterns_of_answers
from memory.retrieval.plans import ScoringContext, Term
from memory.retrieval.queries import Query
from memory.retrieval.ranking import MAX_WEIGHT, is_weight

CONFIDENCE_FILE = Path(__file__).with_name("confidence.json")
"""The shipped weights."""
FEATURES = ("similarity", "words", "stranger")
FLOOR = 0.035
"""Prompt contexts and packets show no evidence if the best result is less likely to help than this, among many."""
OWN = 0.3
"""Least confidence of what a user's question about themselves asks for ("Where do I live?", "I moved to Lisbon")."""
MANY = 128
"""Candidates from which FLOOR counts as it is."""
FLOOR_BY_COUNT = 0.2
"""What the logarithm of the number of candidates adds to the log odds of the floor, up to MANY of them."""
WORD = re.compile(r"[^\W_]+")
MAX_JUDGED = 20
"""The first results, which confidence was learned from and by which the floor decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The weights of the regression: log odds of a helpful memory, and what each number adds to them.

    Raises ValueError for weights that are not numbers.
    """

    intercept: float
    similarity: float
    words: float
    stranger: float

    def __post_init__(self) -> None:
        for name, weight in asdict(self).items():
            if not is_weight(weight):
                raise ValueError(f"The weight of {name} must be a number from {-MAX_WEIGHT:g} to {MAX_WEIGHT:g}.")

    def chances(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the confidence of each row of FEATURES."""
        odds = self.intercept + features @ np.array([getattr(self, name) for name in FEATURES])
        chances: NDArray[np.float64] = 1 / (1 + np.exp(-odds))
        return chances


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrations:
    """The weights with which confidence is computed: with the similarities of an embedding model, and without."""

    model: str
    with_meaning: Calibration
    with_words: Calibration


@lru_cache(maxsize=1)
def learned_calibrations() -> Calibrations:
    """Return the weights that the settings name, read once per process. Raises ValueError, as `read_calibrations`."""
    return read_calibrations(Path(conf.CONFIDENCE_WEIGHTS) if conf.CONFIDENCE_WEIGHTS else CONFIDENCE_FILE)


def read_calibrations(path: Path) -> Calibrations:
    """Read weights from a JSON file. Raises ValueError with a sentence that names the file and the problem."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        parts = {name: calibration_part(content, name) for name in ("with_meaning", "with_words")}
        return Calibrations(model=model_of(content), **parts)
    except OSError as err:
        raise ValueError(f"{path} cannot be read: {err.strerror}") from err
    except ValueError as err:
        raise ValueError(f"{path}: {err}") from err


def calibration_part(content: Any, name: str) -> Calibration:
    part = content.get(name) if isinstance(content, dict) else None
    if not isinstance(part, dict) or part.keys() != {"intercept", *FEATURES}:
        raise ValueError(f'"{name}" must be an object with the weights intercept, {", ".join(FEATURES)}.')
    return Calibration(**part)


def model_of(content: dict[str, Any]) -> str:
    learned = content.get("learned")
    model = learned.get("model") if isinstance(learned, dict) else None
    if not isinstance(model, str) or not model:
        raise ValueError('"learned" must be an object with the name of the embedding model as "model".')
    return model


def floor_among(count: int) -> float:
    """Return the least confidence that the best of `count` candidates needs: FLOOR, and less among few.

    The best of three memories that have nothing to do with a question is not as near to it as the best of hundreds. So
    four of five foreign questions get nothing at any size of a store, and few own ones (docs/recall.md).
    """
    many = math.log(FLOOR / (1 - FLOOR))
    return 1 / (1 + math.exp(FLOOR_BY_COUNT * math.log(MANY / min(max(count, 1), MANY)) - many))


class Judged(Protocol):
    """Columns of a candidate on which its confidence depends, besides the question."""

    @property
    def similarity(self) -> float | None: ...

    @property
    def held(self) -> int:
        """Return the terms that it holds, bit n for term n of the query analysis."""

    @property
    def speaker(self) -> str: ...

    @property
    def text(self) -> str: ...


def add_confidence(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Set the confidence of each candidate of a recall."""
    chances = chances_of(candidates, weigh_words_by(candidates, context))
    answers = patterns_of_answers(context.query.text)
    asker = ("", "user", context.owner.user_id.casefold())
    for candidate, chance in zip(candidates, chances, strict=True):
        is_by_asker = candidate.role in ("", "user") and candidate.speaker.casefold() in asker
        is_own = is_by_asker and any(answer.search(candidate.text) for answer in answers)
        candidate.likelihood = max(chance, OWN) if is_own else chance


def chances_of(candidates: Sequence[Judged], context: ScoringContext) -> list[float]:
    """Return the confidence of each candidate."""
    learned = learned_calibrations()
    by = learned.with_meaning if compares_meaning(context.query) else learned.with_words
    chances: list[float] = by.chances(confidence_features(candidates, context)).tolist()
    return chances


def confidence_features(candidates: Sequence[Judged], context: ScoringContext) -> NDArray[np.float64]:
    """Return a row of FEATURES for each candidate.

    A candidate without a vector has a similarity of 0, and so has a bare name of a question that asks more than who
    that is: it is as near to "What is Ana's shoe size?" as an answer is.
    """
    query = context.query
    names = {name.casefold() for name in (*query.names, *query.mentions)} if asks_more_than_names(context) else set()
    similarity = np.array([0.0 if each.text.casefold() in names else each.similarity or 0.0 for each in candidates])
    stranger = np.full(len(candidates), float(is_about_stranger(candidates, context)))
    return np.stack([similarity, word_shares(candidates, context), stranger], axis=1)


def weigh_words_by(candidates: Sequence[Judged], context: ScoringContext) -> ScoringContext:
    """Return the context with words weighed by how many of these candidates hold them, instead of the account.

    The candidates of a recall are some hundred memories of the owner, and in a small store all of them.
    """
    analysis = context.analysis
    masks = np.array([each.held for each in candidates], dtype=np.int64)
    counts = ((masks[:, None] >> np.arange(len(analysis.terms))) & 1).sum(axis=0).tolist()

    def weigh(term: Term, holding: int) -> Term:
        # what else is in the weight is due to the question: names weigh more
        own = rarity(holding, len(masks)) / rarity(term.docs, analysis.docs)
        return replace(term, weight=term.weight * own)

    terms = [weigh(term, holding) for term, holding in zip(analysis.terms, counts, strict=True)]
    unknown = [weigh(term, 0) for term in analysis.unknown]
    return replace(context, analysis=replace(analysis, terms=terms, unknown=unknown))


def rarity(holding: int, every: int) -> float:
    """Return the inverse document frequency of a word that `holding` of `every` memories hold, as of BM25."""
    return math.log(1 + (max(every - holding, 0) + 0.5) / (holding + 0.5))


def compares_meaning(query: Query) -> bool:
    """Return True if similarities are those of the model that confidence was learned with."""
    return query.vector is not None and query.model == learned_calibrations().model


def may_be_silent(query: Query) -> bool:
    """Return True if a low confidence means something: words and meaning of the question were compared."""
    return compares_meaning(query) and query.has_words and bool(query.text.strip())


def word_shares(candidates: Sequence[Judged], context: ScoringContext) -> NDArray[np.float64]:
    """Return for each candidate the share, by weight, of the question's words that it holds.

    Words that no memory holds count as well. Of a question without other words ("Who is Ana?") the names count.
    """
    known, unknown = context.analysis.terms, context.analysis.unknown
    counts = is_asked if asks_more_than_names(context) else attrgetter("is_content")
    terms = [(bit, term.weight) for bit, term in enumerate(known) if counts(term)]
    total = sum(weight for _, weight in terms) + sum(term.weight for term in unknown if counts(term))
    if not terms or not total:
        return np.zeros(len(candidates))
    masks = np.array([each.held for each in candidates], dtype=np.int64)
    held = (masks[:, None] >> np.array([bit for bit, _ in terms])) & 1
    shares: NDArray[np.float64] = held @ np.array([weight for _, weight in terms]) / total
    return shares


def asks_more_than_names(context: ScoringContext) -> bool:
    """Return True if any word of the question says what is asked about its subjects."""
    return any(map(is_asked, (*context.analysis.terms, *context.analysis.unknown)))


def is_asked(term: Term) -> bool:
    """Return True for words that say what is asked: neither stop words nor the names of subjects."""
    return term.is_content and not term.is_subject


def is_about_stranger(candidates: Sequence[Judged], context: ScoringContext) -> bool:
    """Return True if the question has subjects, none is the user, and no candidate names one or is theirs."""
    subjects = context.query.subjects
    if not subjects:
        return False
    named = sum(1 << bit for bit, term in enumerate(context.analysis.terms) if term.is_subject)
    words = {word.casefold() for subject in subjects for word in subject.split()}
    if words & set(WORD.findall(context.owner.user_id.casefold())):
        return False
    return not any(each.held & named or words & set(each.speaker.casefold().split()) for each in candidates)
