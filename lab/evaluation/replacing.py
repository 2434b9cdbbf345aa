"""Learning and judging the weights by which a later statement is taken to replace an earlier one.

Questions that name what their answers `replaced` say which pairs are replacements; all other pairs of their samples are
not. Every question is learned from a second time where little was said (`small_samples`). Logistic regression, ridge
regularization, Newton's method.
"""

import random
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np

from lab.evaluation.datasets import EvaluationSample, SampleConversation, SampleQuestion
from lab.evaluation.learning import Numbers
from lab.evaluation.loading import Loaded
from memory.extraction.replacement import FEATURES, pair_features
from memory.models import Kind, Turn
from memory.providers.embeddings import embedding_provider
from memory.services.replacements import compare_statements
from memory_project.ids import uuid7

ROUNDS = 30
L2 = 5.0
OTHERS_SHARE = 0.3
"""Weight of a pair of the further samples, of which nobody said what replaces what."""
TURNS_AT_ONCE = 200
SMALL_SIZES = (2, 4, 8)
"""Numbers of turns that a small sample has besides those that its question is about."""
MAX_EVIDENCE = 4
MAX_SMALL_SAMPLES = 60
"""Small samples that are drawn from one sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPairs:
    """Pairs of turns of one sample: a row of FEATURES each, and whether it is a replacement. `missed` were not near."""

    sample: str
    features: Numbers
    is_replacement: Numbers
    share: float
    missed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementWeights:
    """The weights of FEATURES, for features as they are."""

    intercept: float
    weights: Numbers

    def probabilities(self, features: Numbers) -> Numbers:
        return 1 / (1 + np.exp(-(features @ self.weights + self.intercept)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacementFigures:
    """Among pairs from a probability on: the share that are replacements, and the share of replacements found."""

    least: float
    precision: float
    recall: float


def small_samples(sample: EvaluationSample) -> Iterator[EvaluationSample]:
    """Yield samples of one question each: the turns that it is about, and a few others that nothing replaced."""
    draw = random.Random(sample.name)  # noqa: S311  the same samples each time
    turns = {turn.id for talk in sample.talks for turn in talk.turns}
    said = [key for key, row_id in sample.ids.items() if row_id in turns]
    replaced = {key for question in sample.questions for key in question.replaced}
    others = [key for key in said if key not in replaced]
    questions = [
        each for each in sample.questions if len(each.answers) + len(each.replaced) <= MAX_EVIDENCE and each.answers
    ]
    for number, question in enumerate(draw.sample(questions, min(len(questions), MAX_SMALL_SAMPLES))):
        some = draw.sample(others, min(len(others), draw.choice(SMALL_SIZES)))
        yield keep_turns(sample, {*question.answers, *question.replaced, *some}.intersection(said), question, number)


def keep_turns(sample: EvaluationSample, keys: Set[str], question: SampleQuestion, number: int) -> EvaluationSample:
    """Return a sample with these turns alone, which have new ids, and with one question."""
    new = {sample.ids[key]: (key, uuid7()) for key in keys}
    talks = [
        SampleConversation(
            conversation_id=f"{talk.conversation_id}-{number}",
            turns=[replace(turn, id=new[turn.id][1]) for turn in talk.turns if turn.id in new],
        )
        for talk in sample.talks
    ]
    return replace(
        sample,
        name=f"{sample.name}-{number}",
        talks=[talk for talk in talks if talk.turns],
        notes=(),
        questions=[question],
        ids=dict(new.values()),
    )


def compare_sample(loaded: Loaded, *, share: float = 1.0) -> ComparedPairs:
    """Return the compared pairs of a loaded sample."""
    replaced = loaded.replacements
    found = dict(compared_features(loaded))
    labels = [float(pair in replaced) for pair in found]
    return ComparedPairs(
        sample=loaded.sample.name,
        features=np.array(list(found.values())).reshape(-1, len(FEATURES)),
        is_replacement=np.array(labels),
        share=share,
        missed=len(replaced - found.keys()),
    )


def join_pairs(parts: Sequence[ComparedPairs]) -> ComparedPairs:
    """Return the pairs of a sample and of its small samples as those of the first: they are left out together."""
    return replace(
        parts[0],
        features=np.concatenate([part.features for part in parts]),
        is_replacement=np.concatenate([part.is_replacement for part in parts]),
        missed=sum(part.missed for part in parts),
    )


def compared_features(loaded: Loaded) -> Iterator[tuple[tuple[object, object], tuple[float, ...]]]:
    owner, model = loaded.owner, embedding_provider().model
    rows = Turn.objects.filter(account_id=owner.account_id, agent_id=owner.agent_id).order_by("event_time", "id")
    ids = list(rows.values_list("id", flat=True))
    for start in range(0, len(ids), TURNS_AT_ONCE):
        for compared in compare_statements(
            owner.account_id, ids[start : start + TURNS_AT_ONCE], kind=Kind.TURN, model=model
        ):
            yield (compared.newer_id, compared.older_id), pair_features(compared.pair)


def learn_replacements(samples: Sequence[ComparedPairs]) -> ReplacementWeights:
    """Learn weights from all pairs of the samples."""
    features = np.concatenate([each.features for each in samples])
    wanted = np.concatenate([each.is_replacement for each in samples])
    shares = np.concatenate([np.full(len(each.features), each.share) for each in samples])
    mean, deviation = features.mean(axis=0), features.std(axis=0) + 1e-6
    table = np.c_[(features - mean) / deviation, np.ones(len(features))]
    ridge = np.diag([*[L2] * len(FEATURES), 1e-6])
    weights = np.zeros(table.shape[1])
    for _ in range(ROUNDS):
        likely = 1 / (1 + np.exp(-table @ weights))
        slope = table.T @ (shares * (likely - wanted)) + ridge @ weights
        curve = (table * (shares * likely * (1 - likely))[:, None]).T @ table + ridge
        weights -= np.linalg.solve(curve, slope)
    own = weights[:-1] / deviation
    return ReplacementWeights(intercept=float(weights[-1] - own @ mean), weights=own)


def judge_held_out(samples: Sequence[ComparedPairs], *, least: Sequence[float]) -> list[ReplacementFigures]:
    """Judge the pairs of each sample by weights that were learned without it."""
    judged = [each for each in samples if each.is_replacement.any()]
    likely = [
        learn_replacements([other for other in samples if other is not each]).probabilities(each.features)
        for each in judged
    ]
    probabilities = np.concatenate(likely)
    wanted = np.concatenate([each.is_replacement for each in judged])
    total = wanted.sum() + sum(each.missed for each in judged)
    return [
        ReplacementFigures(
            least=one,
            precision=float(wanted[probabilities >= one].mean()) if (probabilities >= one).any() else 0.0,
            recall=float(wanted[probabilities >= one].sum() / total),
        )
        for one in least
    ]
