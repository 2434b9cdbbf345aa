"""One evaluation from the file's samples to its answers, in an account that is gone afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass

from lab.evaluation.ablation import (
    SHIPPED,
    Ablation,
    AblationRow,
    ablate_signals,
    ask_through,
    other_plans,
    row_of_answers,
    rows_by_plan,
    steps_of_signals,
)
from lab.evaluation.asking import AskingMode, QuestionResult, ask_all
from lab.evaluation.budgets import Spent, average_shares, plans_to_compare, spend_all
from lab.evaluation.datasets import EvaluationSample
from lab.evaluation.loading import Loaded, load_in_scratch
from lab.evaluation.progress import collect, open_bar
from lab.evaluation.ranker import (
    NOTHING,
    count_untaught,
    learn_weights,
    untaught_when_held_out,
    with_weights,
    without,
)
from lab.evaluation.recording import RecordedQuestion, counted, record_all
from memory.retrieval.techniques import choose_plan

PURPOSE = "evaluation"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedFigures:
    """The figures to compute besides the answers to the questions."""

    techniques: Sequence[str] = ()
    leaves_one_out: bool = False
    ablates: bool = False
    spends: bool = False
    """True to compare answers within several token budgets."""
    extracts: bool = False
    """True to extract knowledge from the conversations before asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """`left_out` are answers by weights that were learned on the other samples, `fitted` by such as were on all.

    `untaught` of those left out are as `count_untaught` says.
    """

    answers: Sequence[QuestionResult]
    left_out: Sequence[QuestionResult] = ()
    untaught: int = 0
    fitted: Sequence[QuestionResult] = ()
    ablation: Ablation | None = None
    budgets: Sequence[Spent] = ()


def evaluate(samples: list[EvaluationSample], wanted: RequestedFigures) -> Evaluation:
    """Load, ask, and delete again, whatever happens."""
    with load_in_scratch(PURPOSE, samples, extracts=wanted.extracts) as loaded:
        answers = ask_each("asking", loaded, AskingMode(techniques=wanted.techniques))
        recorded = record_each(loaded, wanted.techniques) if wanted.leaves_one_out or wanted.ablates else []
        return Evaluation(
            answers=answers,
            left_out=leave_each_out(loaded, recorded, wanted) if wanted.leaves_one_out else [],
            untaught=untaught_by_the_others(loaded, recorded) if wanted.leaves_one_out else 0,
            fitted=ask_fitted(loaded, recorded, wanted) if wanted.leaves_one_out else [],
            ablation=ablate(loaded, recorded, answers, wanted) if wanted.ablates else None,
            budgets=spend_each(loaded, wanted) if wanted.spends else [],
        )


def ask_each(name: str, loaded: Sequence[Loaded], way: AskingMode) -> list[QuestionResult]:
    return collect(name, sum(len(each.sample.questions) for each in loaded), ask_all(loaded, way))


def record_each(loaded: Sequence[Loaded], techniques: Sequence[str]) -> list[RecordedQuestion]:
    return collect("recording", questions_of(loaded), record_all(loaded, choose_plan(techniques)))


def leave_each_out(
    loaded: Sequence[Loaded], recorded: Sequence[RecordedQuestion], wanted: RequestedFigures
) -> list[QuestionResult]:
    """Ask each sample with weights learned from all others."""
    answers = []
    for each in loaded:
        _own, others = divide(recorded, each)
        # shipped weights may know the sample that is left out
        weights = learn_weights(others, kept=NOTHING).weights
        plan = with_weights(choose_plan(wanted.techniques), weights)
        answers += ask_each(f"without {each.sample.name}", [each], AskingMode(plan=plan))
    return answers


def untaught_by_the_others(loaded: Sequence[Loaded], recorded: Sequence[RecordedQuestion]) -> int:
    return sum(count_untaught(*divide(recorded, each)) for each in loaded)


def divide(
    recorded: Sequence[RecordedQuestion], loaded: Loaded
) -> tuple[list[RecordedQuestion], list[RecordedQuestion]]:
    """Return the recorded questions of the sample, and those of all others."""
    own = [question for question in recorded if question.sample == loaded.sample.name]
    return own, without(own, recorded)


def ask_fitted(
    loaded: Sequence[Loaded], recorded: Sequence[RecordedQuestion], wanted: RequestedFigures
) -> list[QuestionResult]:
    plan = with_weights(choose_plan(wanted.techniques), learn_weights(recorded).weights)
    return ask_each("fitted", loaded, AskingMode(plan=plan))


def ablate(
    loaded: Sequence[Loaded],
    recorded: Sequence[RecordedQuestion],
    answers: Sequence[QuestionResult],
    wanted: RequestedFigures,
) -> Ablation:
    with open_bar("signals", steps_of_signals(recorded)) as advance:
        signals, alone, without = ablate_signals(recorded, advance=advance)
    techniques, untaught = ablate_techniques(loaded, answers, wanted), untaught_when_held_out(recorded)
    return Ablation(signals=signals, alone=alone, without=without, techniques=techniques, untaught=untaught)


def ablate_techniques(
    loaded: Sequence[Loaded], answers: Sequence[QuestionResult], wanted: RequestedFigures
) -> list[AblationRow]:
    plans = other_plans(wanted.techniques, worked=frozenset[str]().union(*(each.worked for each in answers)))
    asked = collect("techniques", len(plans) * questions_of(loaded), ask_through(loaded, plans))
    return [row_of_answers(SHIPPED, answers), *rows_by_plan(asked)]


def spend_each(loaded: Sequence[Loaded], wanted: RequestedFigures) -> list[Spent]:
    plans = plans_to_compare(wanted.techniques)
    shares = collect("budgets", len(plans) * questions_of(loaded), spend_all(loaded, plans))
    return average_shares([share for some in shares for share in some])


def questions_of(loaded: Sequence[Loaded]) -> int:
    """Return the counted questions."""
    return sum(len(counted(each)) for each in loaded)
