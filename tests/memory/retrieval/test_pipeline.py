"""The last stages of the pipeline: reranker, selectors in turn, and room for pinned memories."""

from collections.abc import Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Kind
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.providers.rerankers import reranking_provider
from memory.retrieval.candidates import Candidate
from memory.retrieval.pipeline import (
    MAX_RERANKED,
    RERANK_SHARE,
    RecallRun,
    keep_pinned,
    rerank_candidates,
    select_candidates,
    sort_best_first,
)
from memory.retrieval.plans import Plan, RecallContext, ScoringContext
from memory.retrieval.queries import Query
from memory.retrieval.ranking import fuse_standardized
from memory.retrieval.selectors import SELECTORS
from tests.memory.candidates import found, link, numbers, ranked
from tests.memory.episodes import NOW
from tests.properties import examples
from tests.reranker_server import RerankerServer

QUESTION = "where is the archive"


def run_of(question: str = QUESTION, *, seconds: float | None = 5, plan: Plan | None = None) -> RecallRun:
    context = RecallContext(owner=Owner(account_id=UUID(int=1)), now=NOW, deadline=Deadline.after(seconds))
    return RecallRun(plan=plan or Plan(fuse=fuse_standardized), context=context, query=Query(text=question))


class RecordingReranker:
    """A reranker that finds all texts equal, and keeps the deadline that it was given."""

    model = "recording"
    deadline = Deadline()

    def score(self, question: str, texts: Sequence[str], *, deadline: Deadline) -> list[float]:
        self.deadline = deadline
        return [0.0] * len(texts)


def reranked(run: RecallRun, candidates: list[Candidate]) -> list[int]:
    return numbers(rerank_candidates(run, candidates, reranking_provider()))


def test_the_reranker_orders_the_best_candidates_and_the_rest_follow(
    reranker_server: RerankerServer,
) -> None:
    candidates = ranked(*(1 / number for number in range(1, MAX_RERANKED + 3)))
    candidates[4].text, candidates[9].text = "the archive", "the archive is here"
    candidates[-1].text = QUESTION

    order = reranked(run_of(), candidates)

    first = [10, 5, *(number for number in range(1, MAX_RERANKED + 1) if number not in (5, 10))]
    assert order == [*first, MAX_RERANKED + 1, MAX_RERANKED + 2]


def test_scores_are_reassigned_in_reranked_order_and_rerank_is_a_signal(reranker_server: RerankerServer) -> None:
    candidates = [found(1, "nothing", score=0.9), found(2, "the archive", score=0.5)]
    run = run_of()

    reranked(run, candidates)

    assert [(each.score, each.signals["rerank"]) for each in candidates] == [(0.5, 0.0), (0.9, 2.0)]
    assert [(metric.technique, metric.results) for metric in run.metrics] == [("rerank", 2)]


def test_candidates_with_equal_reranker_scores_keep_their_order(reranker_server: RerankerServer) -> None:
    assert reranked(run_of(), ranked(0.9, 0.8, 0.7)) == [1, 2, 3]


def test_the_reranker_has_its_share_of_the_time_that_is_left() -> None:
    run, reranker = run_of(seconds=1_000), RecordingReranker()

    rerank_candidates(run, ranked(0.9, 0.8), reranker)

    # measured later than the share was, so there was no less left at that time
    later_stages_seconds = run.context.deadline.at - reranker.deadline.at
    assert later_stages_seconds >= (1 - RERANK_SHARE) * run.context.deadline.left_seconds()
    assert reranker.deadline.left_seconds() > 0


@pytest.mark.parametrize("body", ["[]", "<html>"])
def test_a_failing_reranker_keeps_the_order_and_is_reported(reranker_server: RerankerServer, body: str) -> None:
    reranker_server.reply(body)
    run = run_of()
    candidates = ranked(0.9, 0.8)

    assert reranked(run, candidates) == [1, 2]
    assert run.degraded == ["rerank_failed"]
    assert [(metric.technique, metric.results) for metric in run.metrics] == [("rerank", 0)]
    assert all("rerank" not in each.signals for each in candidates)


def test_a_reranker_that_misses_the_deadline_is_reported(reranker_server: RerankerServer) -> None:
    reranker_server.hang()
    run = run_of(seconds=0.2)

    assert reranked(run, ranked(0.9, 0.8)) == [1, 2]
    assert run.degraded == ["rerank_deadline"]


@pytest.mark.parametrize("question", ["", " \n"])
def test_a_blank_question_is_not_reranked(reranker_server: RerankerServer, question: str) -> None:
    run = run_of(question)

    assert reranked(run, ranked(0.9, 0.8)) == [1, 2]
    assert reranker_server.requests == []
    assert run.degraded == []


def test_a_plan_without_reranking_calls_no_reranker(reranker_server: RerankerServer) -> None:
    run = run_of(plan=Plan(fuse=fuse_standardized, reranks=False))

    assert reranked(run, ranked(0.9, 0.8)) == [1, 2]
    assert reranker_server.requests == []


def test_selectors_run_in_turn_and_are_timed() -> None:
    def backwards(candidates: list[Candidate], _setting: ScoringContext) -> list[Candidate]:
        return list(candidates)[::-1]

    def first_two(candidates: list[Candidate], _setting: ScoringContext) -> list[Candidate]:
        return list(candidates)[:2]

    selectors = {"backwards": backwards, "first_two": first_two}
    run = run_of(plan=Plan(fuse=fuse_standardized, selectors=selectors))  # type: ignore[arg-type]  # lists are sequences

    assert numbers(select_candidates(run, ranked(0.9, 0.8, 0.7))) == [3, 2]
    assert [(metric.technique, metric.results) for metric in run.metrics] == [("backwards", 3), ("first_two", 2)]


@pytest.mark.parametrize(
    ("pinned", "top_k", "kept"),
    [
        ([], 3, [1, 2, 3]),
        ([5], 3, [1, 2, 5]),
        ([1], 3, [1, 2, 3]),
        ([4, 5], 3, [1, 4, 5]),
        ([2, 3, 4, 5], 3, [2, 3, 4]),
        ([3], 1, [3]),
        ([3], 9, [1, 2, 3, 4, 5]),
    ],
)
def test_the_last_candidates_make_room_for_pinned_ones(pinned: list[int], top_k: int, kept: list[int]) -> None:
    candidates = [found(number, pinned=number in pinned) for number in range(1, 6)]

    assert numbers(keep_pinned(candidates, top_k)) == kept


@given(st.lists(st.booleans(), max_size=12), st.integers(1, 8))
@examples(60)
def test_top_k_candidates_are_kept_in_order_with_pinned_ones_among_them(pinned: list[bool], top_k: int) -> None:
    candidates = [found(number, pinned=is_pinned) for number, is_pinned in enumerate(pinned)]

    kept = keep_pinned(candidates, top_k)

    assert len(kept) == min(top_k, len(candidates))
    assert numbers(kept) == sorted(numbers(kept))
    assert sum(each.pinned for each in kept) == min(top_k, sum(pinned))


def test_equal_scores_are_ordered_by_latest_time_then_greatest_id() -> None:
    later = found(1, event_time=NOW.replace(year=2027), score=0.5)

    assert numbers(sort_best_first([found(2, score=0.5), found(3, score=0.5), later, found(4, score=0.6)])) == [
        4,
        1,
        3,
        2,
    ]


def superseded_in_another_conversation() -> list[Candidate]:
    """Return ten of one conversation; the tenth supersedes the eleventh, which is from another one and as good."""
    own = [found(at, score=1 - at / 1_000, conversation_id="c1", kind=Kind.FACT, status="active") for at in range(10)]
    return [*own, found(10, score=0.98, conversation_id="c2", kind=Kind.FACT, status="superseded")]


def selected(candidates: list[Candidate]) -> list[Candidate]:
    run = run_of(plan=Plan(fuse=fuse_standardized, selectors=SELECTORS))
    run.links = [link(9, "SUPERSEDES", 10)]
    return select_candidates(run, candidates)


def test_diversity_keeps_a_candidate_before_the_one_it_superseded() -> None:
    order = numbers(selected(superseded_in_another_conversation()))

    assert order.index(9) < order.index(10)


@pytest.mark.parametrize("top_k", [1, 2, 9])
def test_a_pinned_candidate_does_not_displace_its_successor(top_k: int) -> None:
    candidates = superseded_in_another_conversation()
    candidates[-1].pinned = True

    assert numbers(keep_pinned(selected(candidates), top_k))[-2:] == [9, 10][:top_k]


@given(st.lists(st.tuples(st.sampled_from(["c1", "c2"]), st.booleans()), min_size=2, max_size=14), st.integers(1, 12))
@examples(60)
def test_no_selector_and_no_pin_undoes_lineage(drawn: list[tuple[str, bool]], top_k: int) -> None:
    candidates = [
        found(at, score=1 - at / 1_000, conversation_id=name, pinned=pinned, kind=Kind.FACT, status="superseded")
        for at, (name, pinned) in enumerate(drawn)
    ]
    run = run_of(plan=Plan(fuse=fuse_standardized, selectors=SELECTORS))
    run.links = [link(at + 1, "SUPERSEDES", at) for at in range(0, len(drawn) - 1, 2)]

    order = numbers(keep_pinned(select_candidates(run, candidates), top_k))

    for at in order:
        if at % 2 == 0 and at + 1 < len(drawn):
            assert at + 1 in order[: order.index(at)]
