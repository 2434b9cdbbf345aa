"""Confidence: how likely a memory helps to answer a question, from 0 to 1, whatever else was found.

It is a logistic regression over numbers that do not depend on the other candidates: the similarity of the vectors,
which share of the question's words the memory holds (by their weights, without stop words and the names of subjects),
and whether the question is about somebody whom no candidate knows. It was learned from the first twenty results of
questions about conversations, with their answers, and of questions of other conversations, which have none.

Similarities differ between embedding models. Those of other models than the bundled one do not count, and without
them nothing is held back: words alone cannot tell that nothing answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import ScoringContext
from memory_project.embedded.models import BUNDLED_MODEL

FLOOR = 0.035
"""Prompt contexts and packets show no evidence if the best result is less likely to help than this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The weights of the regression: log odds of a helpful memory, and what each number adds to them."""

    intercept: float
    similarity: float
    words: float
    stranger: float


WITH_MEANING = Calibration(intercept=-5.01, similarity=2.55, words=2.77, stranger=-1.8)
WITH_WORDS = Calibration(intercept=-3.68, similarity=0.0, words=2.86, stranger=-2.31)


def add_confidence(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Set the confidence of each candidate."""
    if not candidates:
        return
    similarity = np.array([each.similarity or 0.0 for each in candidates])
    stranger = float(is_about_stranger(candidates, context))
    by = WITH_MEANING if compares_meaning(context) else WITH_WORDS
    odds = by.intercept + by.similarity * similarity + by.words * word_shares(candidates, context)
    chances = 1 / (1 + np.exp(-odds - by.stranger * stranger))
    for candidate, chance in zip(candidates, chances.tolist(), strict=True):
        candidate.likelihood = chance


def compares_meaning(context: ScoringContext) -> bool:
    """Return True if similarities are those of the model that confidence was learned with."""
    return context.query.vector is not None and context.query.model == BUNDLED_MODEL


def may_be_silent(context: ScoringContext) -> bool:
    """Return True if a low confidence means something: words and meaning of the question were compared."""
    return compares_meaning(context) and context.query.has_words and bool(context.query.text.strip())


def word_shares(candidates: Sequence[Candidate], context: ScoringContext) -> NDArray[np.float64]:
    """Return for each candidate the share, by weight, of the question's words that it holds."""
    asked = enumerate(context.analysis.terms)
    terms = [(bit, term.weight) for bit, term in asked if term.is_content and not term.is_subject]
    weights = np.array([weight for _, weight in terms])
    if not weights.sum():
        return np.zeros(len(candidates))
    masks = np.array([each.held for each in candidates], dtype=np.int64)
    held = (masks[:, None] >> np.array([bit for bit, _ in terms])) & 1
    shares: NDArray[np.float64] = held @ weights / weights.sum()
    return shares


def is_about_stranger(candidates: Sequence[Candidate], context: ScoringContext) -> bool:
    """Return True if the question has subjects, and no candidate names one or is theirs."""
    subjects = context.query.subjects
    if not subjects:
        return False
    named = sum(1 << bit for bit, term in enumerate(context.analysis.terms) if term.is_subject)
    words = {word.casefold() for subject in subjects for word in subject.split()}
    return not any(each.held & named or words & set(each.speaker.casefold().split()) for each in candidates)
