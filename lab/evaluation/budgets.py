"""The evidence within token budgets: the ranking quoted in order, and `/context`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from lab.evaluation.ablation import BARE, bare_plan, mean
from lab.evaluation.asking import TOP_K, AskingMode, ask_for_context
from lab.evaluation.datasets import SampleQuestion
from lab.evaluation.loading import Loaded
from lab.evaluation.metrics import recall_at
from lab.evaluation.recording import counted
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Plan
from memory.retrieval.queries import Query
from memory.retrieval.ranking import FUSIONS
from memory.retrieval.techniques import choose_plan
from memory.services.recall.recall import RecallRequest, recall

BUDGETS = (250, 500, 1_000, 2_000)
"""Tokens."""
IN_A_ROW = "one after the other"
IN_CONTEXT = "/context"


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetShare:
    """The share of one question's answers that stood within so many tokens."""

    plan: str
    form: str
    tokens: int
    found: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The mean of shares over questions, by tokens."""

    plan: str
    form: str
    found: dict[int, float]


def plans_to_compare(names: Sequence[str]) -> dict[str, Plan]:
    """Return the plans by name: the requested one with each fusion, its own first, and searches by words or meaning."""
    own = choose_plan(names).fusion
    fusions = [own, *(fusion for fusion in FUSIONS if fusion != own)]
    plans = {fusion: choose_plan([*names, fusion]) for fusion in fusions}
    return plans | {name: bare_plan(retriever) for name, retriever in BARE.items()}


def spend_all(loaded: Sequence[Loaded], plans: dict[str, Plan]) -> Iterator[list[BudgetShare]]:
    """Measure every counted question with each plan; contexts, which no retriever makes alone, with the first plan."""
    for place, (name, plan) in enumerate(plans.items()):
        for each in loaded:
            for question in counted(each):
                shares = list(spend_in_a_row(each, question, name, plan))
                yield shares if place else [*shares, *spend_in_contexts(each, question, name, plan)]


def spend_in_a_row(loaded: Loaded, question: SampleQuestion, name: str, plan: Plan) -> Iterator[BudgetShare]:
    """Measure the results of one recall, quoted in order."""
    answers = loaded.sample.ids_of(question.answers)
    request = RecallRequest(query=Query(text=question.text, top_k=TOP_K), plan=plan)
    bundle = recall(loaded.owner, request, now=question.asked_at or loaded.asked_at)
    for tokens in BUDGETS:
        found = first_tokens([*bundle.results, *bundle.others], tokens)
        yield BudgetShare(plan=name, form=IN_A_ROW, tokens=tokens, found=recall_at(found, answers, len(found)))


def spend_in_contexts(loaded: Loaded, question: SampleQuestion, name: str, plan: Plan) -> Iterator[BudgetShare]:
    """Measure one context per budget."""
    answers, moment = loaded.sample.ids_of(question.answers), question.asked_at or loaded.asked_at
    for tokens in BUDGETS:
        found = ask_for_context(loaded, question, AskingMode(plan=plan, context_tokens=tokens), now=moment)
        yield BudgetShare(plan=name, form=IN_CONTEXT, tokens=tokens, found=recall_at(found, answers, len(found)))


def first_tokens(ranked: Sequence[Candidate], most: int) -> list[UUID]:
    """Return the best candidates, up to the first that exceeds the tokens."""
    fitting, left = [], most
    for candidate in ranked:
        left -= candidate.token_count
        if left < 0:
            break
        fitting.append(candidate.id)
    return fitting


def average_shares(shares: Sequence[BudgetShare]) -> list[Spent]:
    """Average the shares by form, then by plan."""
    pairs = dict.fromkeys((each.form, each.plan) for each in shares)
    return [
        Spent(
            plan=plan,
            form=form,
            found={
                tokens: mean(
                    [each.found for each in shares if (each.form, each.plan, each.tokens) == (form, plan, tokens)]
                )
                for tokens in BUDGETS
            },
        )
        for form, plan in sorted(pairs, key=lambda pair: pair[0] == IN_CONTEXT)
    ]
