"""The contribution of each part of recall: signals from recorded questions, techniques by asking again."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from lab.evaluation.asking import AskingMode, QuestionResult, ask
from lab.evaluation.datasets import ADVERSARIAL
from lab.evaluation.loading import Loaded
from lab.evaluation.metrics import recall_at
from lab.evaluation.ranker import ALL, L2, PLACES, found_when_held_out
from lab.evaluation.recording import RecordedQuestion, counted
from memory.errors import Unprocessable
from memory.retrieval.plans import Plan
from memory.retrieval.ranking import FUSIONS
from memory.retrieval.retrievers.lexical import LEXICAL
from memory.retrieval.retrievers.vector import VECTOR
from memory.retrieval.techniques import choose_plan

REFERENCE = ("words", "meaning")
"""Signals that every search has."""
EVERYTHING = "all signals"
SHIPPED = "as asked"
BARE = {"words alone": LEXICAL.name, "meaning alone": VECTOR.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationRow:
    """The share of answers among the first ten of so many questions, and by their types."""

    name: str
    all: float
    types: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """The result of an ablation.

    `signals` holds all signals together, and REFERENCE. They, `alone` and `without` are judged on questions that their
    weights were not learned from, before selectors; `untaught` counts questions as `count_untaught` does. `techniques`
    are judged on what recalls returned, the first one as requested.
    """

    signals: Sequence[AblationRow]
    alone: Sequence[AblationRow]
    without: Sequence[AblationRow]
    techniques: Sequence[AblationRow] = ()
    untaught: int = 0


def ablate_signals(
    recorded: Sequence[RecordedQuestion], *, l2: float = L2, advance: Callable[[int], None]
) -> tuple[list[AblationRow], list[AblationRow], list[AblationRow]]:
    """Judge all signals and REFERENCE, each alone, and all but each. Calls `advance` `steps_of_signals` times."""

    def judge(name: str, names: Collection[str]) -> AblationRow:
        judged = found_when_held_out(recorded, l2=l2, names=names)
        advance(1)
        return ablation_row(name, [(each.question.type, found) for each, found in judged])

    used = used_signals(recorded)
    return (
        [judge(EVERYTHING, ALL), judge(" and ".join(REFERENCE), REFERENCE)],
        [judge(name, [name]) for name in used],
        [judge(name, [each for each in ALL if each != name]) for name in used],
    )


def steps_of_signals(recorded: Sequence[RecordedQuestion]) -> int:
    return 2 + 2 * len(used_signals(recorded))


def used_signals(recorded: Sequence[RecordedQuestion]) -> list[str]:
    """Return the signals that have a value for any candidate."""
    return [name for column, name in enumerate(ALL) if any(each.signals[:, column].any() for each in recorded)]


def ablation_row(name: str, found: Sequence[tuple[str, float]]) -> AblationRow:
    """Return the mean shares, overall and by type. `found` has at least one pair of type and share."""
    types = sorted({type_ for type_, _ in found})
    return AblationRow(
        name=name,
        all=mean([share for _, share in found]),
        types={each: mean([share for type_, share in found if type_ == each]) for each in types},
    )


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def row_of_answers(name: str, answers: Sequence[QuestionResult]) -> AblationRow:
    counted = [answer for answer in answers if answer.question.type != ADVERSARIAL]
    return ablation_row(name, [(each.question.type, recall_at(each.ranked, each.answers, PLACES)) for each in counted])


def other_plans(names: Sequence[str], worked: Collection[str]) -> dict[str, Plan]:
    """Return plans by name: without each technique that did something, with each other fusion, and bare."""
    asked = choose_plan(names)
    techniques = (*asked.rewriters, *(each.name for each in asked.retrievers), *asked.scorers, *asked.selectors)
    plans = {}
    for name in [f"-{each}" for each in techniques if each in worked] + [
        each for each in FUSIONS if each != asked.fusion
    ]:
        # the only retriever cannot be left out
        with suppress(Unprocessable):
            plans[name] = choose_plan([*names, name])
    return plans | {name: bare_plan(retriever) for name, retriever in BARE.items()}


def bare_plan(retriever: str) -> Plan:
    """Return a plan with this retriever alone."""
    plan = choose_plan([retriever, "standardized"])
    return replace(plan, rewriters={}, scorers={}, selectors={}, reranks=False)


def ask_through(loaded: Sequence[Loaded], plans: Mapping[str, Plan]) -> Iterator[tuple[str, QuestionResult]]:
    """Ask every counted question through each plan."""
    for name, plan in plans.items():
        for each in loaded:
            for question in counted(each):
                yield name, ask(each, question, AskingMode(plan=plan, context_tokens=0))


def rows_by_plan(answered: Sequence[tuple[str, QuestionResult]]) -> list[AblationRow]:
    names = dict.fromkeys(name for name, _ in answered)
    return [row_of_answers(name, [answer for each, answer in answered if each == name]) for name in names]
