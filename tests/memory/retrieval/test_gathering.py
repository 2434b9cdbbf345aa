"""Candidates of all retrievers from one statement: filters, columns, metrics, deadline."""

from dataclasses import replace
from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Kind, Turn
from memory.models.writer import insert_vectors
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.retrieval.gathering import (
    CANDIDATES_PER_RESULT,
    MIN_CANDIDATES,
    MIN_CANDIDATES_OF_ONE,
    candidate_limit,
    gather_candidates,
)
from memory.retrieval.plans import QueryAnalysis, Retriever, VisibleRows
from memory.retrieval.queries import Mode, Query, TimeWindow
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers import RETRIEVERS
from memory.services.facts.supersede import correct_fact
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import MODEL, NOTHING, NOW, direction
from tests.memory.facts import day, know
from tests.memory.gatherings import asked, found, gathered, recall_context
from tests.memory.graphs import link, node
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

NO_ANALYSIS = QueryAnalysis()
ALWAYS = TimeWindow(since=None, until=None)
EVER = asked(windows=[ALWAYS])
"""Everything there is is of that time."""


def everything(owner: Owner, **fields: Any) -> set[str]:
    """Return all that filters let through."""
    return found(owner, replace(EVER, **fields), NO_ANALYSIS, "temporal")


def test_a_memory_is_one_candidate_with_all_ways_that_found_it(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    boiler = node(owner, "The boiler leaks.", kind=Kind.GOAL, pinned=True)
    link(boiler, node(owner, "beside"))
    insert_vectors(owner.account_id, model=MODEL, vectors=[(boiler.id, direction(0.5))])
    query = asked("boiler", angle=0.0, windows=[ALWAYS])
    analysis = replace(analyze_query(owner, query, recall_context(owner)), entities=[boiler.id])

    with django_assert_num_queries(1):
        both = gathered(owner, query, analysis, *RETRIEVERS)

    first, second = sorted(both.candidates, key=lambda each: -len(each.ways))
    assert first.ways == {"lexical", "vector", "temporal", "graph", "pinned"}
    assert second.ways == {"temporal", "graph"}
    assert (second.text, first.hops, second.hops) == ("beside", 0, 1)
    assert first.similarity == pytest.approx(0.8776, abs=1e-3)
    assert first.bm25 > second.bm25 == 0
    assert second.similarity is None


def test_a_candidate_of_one_retriever_has_both_a_word_score_and_a_similarity(owner: Owner) -> None:
    words, meaning = node(owner, "The boiler leaks."), node(owner, "Water on the floor.")
    insert_vectors(owner.account_id, model=MODEL, vectors=[(words.id, direction(1.0)), (meaning.id, direction(0.1))])
    query = asked("boiler", angle=0.0)

    [only] = gathered(owner, query, analyze_query(owner, query, recall_context(owner)), "lexical").candidates

    assert only.bm25 > 0
    assert only.similarity == pytest.approx(0.5403, abs=1e-3)


def test_candidates_have_the_columns_of_their_kind(owner: Owner) -> None:
    [said] = say(owner, turn("We moved.")).turns
    Turn._base_manager.filter(pk=said.pk).update(name="Ana")
    fact = know(owner, confidence=0.7, valid_to=day(9))

    candidates = {each.kind: each for each in gathered(owner, EVER, NO_ANALYSIS, "temporal").candidates}

    turned, known = candidates[Kind.TURN], candidates[Kind.FACT]
    assert (turned.id, turned.index, turned.role, turned.speaker) == (said.id, 0, "user", "Ana")
    assert (turned.conversation_id, turned.confidence, turned.hops) == ("c1", None, None)
    assert (known.id, known.confidence, known.temporal, known.status) == (fact.id, 0.7, "current", "active")
    assert (known.valid_from, known.valid_to, known.index) == (None, day(9), None)


@pytest.mark.parametrize(("ends", "status"), [(-1, "ended"), (1, "active")])
def test_a_fact_has_ended_if_it_is_over_at_the_time_of_the_question(owner: Owner, ends: int, status: str) -> None:
    know(owner, valid_from=day(-9), valid_to=day(ends))
    query = asked(windows=[ALWAYS], as_of=day(-2))

    [known] = gathered(owner, query, NO_ANALYSIS, "temporal").candidates

    assert known.status == status


def test_metrics_count_results_of_each_retriever(owner: Owner) -> None:
    for number in range(3):
        node(owner, f"boiler {number}", pinned=number == 0)
    query = asked("boiler")

    metrics = gathered(owner, query, analyze_query(owner, query, recall_context(owner)), "lexical", "pinned").metrics

    assert [(metric.technique, metric.results) for metric in metrics] == [("lexical", 3), ("pinned", 1)]
    assert all(metric.took_ms >= 0 for metric in metrics)


def test_retrievers_that_find_nothing_have_metrics(owner: Owner) -> None:
    none = gathered(owner, EVER, NO_ANALYSIS, "temporal", "pinned")

    assert (none.candidates, none.dropped) == ([], [])
    assert [metric.results for metric in none.metrics] == [0, 0]


@pytest.mark.parametrize(("top_k", "expected"), [(1, MIN_CANDIDATES_OF_ONE), (50, 50 * CANDIDATES_PER_RESULT)])
def test_each_retriever_returns_three_times_top_k_and_at_least_twenty(owner: Owner, top_k: int, expected: int) -> None:
    for number in range(expected + 3):
        node(owner, f"boiler {number}")
    query = asked("boiler", top_k=top_k)

    assert (
        len(gathered(owner, query, analyze_query(owner, query, recall_context(owner)), "lexical").candidates)
        == expected
    )


def test_more_candidates_are_gathered_if_several_retrievers_are_compared() -> None:
    both = asked("boiler", angle=0)
    ways = [(both, ["lexical", "vector"]), (asked("boiler"), ["lexical", "graph"]), (asked("boiler"), ["lexical"])]

    least = [candidate_limit(replace(query, top_k=1), NO_ANALYSIS, names) for query, names in ways]

    assert least == [MIN_CANDIDATES, MIN_CANDIDATES, MIN_CANDIDATES_OF_ONE]


@pytest.mark.parametrize(
    ("mode", "has_passages", "factor"),
    [(None, True, 1), (Mode.DEFAULT, True, 1), (Mode.DEEP, True, 2), (Mode.DEEP, False, 1)],
)
def test_deep_mode_gathers_twice_as_many_candidates_where_there_are_passages(
    mode: Mode | None, has_passages: bool, factor: int
) -> None:
    analysis = replace(NO_ANALYSIS, has_passages=has_passages)

    limit = candidate_limit(asked("boiler", angle=0, mode=mode, top_k=1), analysis, ["lexical", "vector"])

    assert limit == factor * MIN_CANDIDATES


def test_no_retriever_starts_after_the_deadline(owner: Owner) -> None:
    node(owner, "pinned", pinned=True)
    late = recall_context(owner, deadline=Deadline.after(-1))

    none = gather_candidates(owner, EVER, NO_ANALYSIS, [RETRIEVERS["temporal"], RETRIEVERS["pinned"]], late)

    assert (none.candidates, none.dropped) == ([], ["temporal", "pinned"])
    assert [metric.results for metric in none.metrics] == [0, 0]


class SlowRetriever(Retriever):
    """A retriever that takes all the remaining time, and finds memories with the text `found late`."""

    name = "slow"

    def to_sql(self, visible: VisibleRows) -> str:
        return f"""
            SELECT memories.id FROM memories CROSS JOIN (SELECT pg_sleep(%(left_ms)s::float8 / 1000) OFFSET 0) AS slept
            WHERE {visible.rows} AND text = 'found late'"""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Retriever:
    retriever = SlowRetriever()
    monkeypatch.setitem(RETRIEVERS, "slow", retriever)
    return retriever


@pytest.mark.slow
def test_a_slow_retriever_finishes_and_later_ones_are_dropped(owner: Owner, slow: Retriever) -> None:
    node(owner, "found late")
    node(owner, "pinned", pinned=True)
    soon = recall_context(owner, deadline=Deadline.after(6))

    some = gather_candidates(owner, EVER, NO_ANALYSIS, [slow, RETRIEVERS["temporal"], RETRIEVERS["pinned"]], soon)

    assert [each.text for each in some.candidates] == ["found late"]
    assert some.dropped == ["temporal", "pinned"]
    assert [metric.results for metric in some.metrics] == [1, 0, 0]


def test_facts_are_those_that_are_true_now(owner: Owner) -> None:
    know(owner, "It is so.")
    know(owner, "It was so.", valid_to=NOW)
    know(owner, "It will be so.", valid_from=day(1))

    assert everything(owner) == {"It is so."}


def test_facts_may_be_asked_for_as_they_were_true_at_another_time(owner: Owner) -> None:
    know(owner, "It is so.", valid_from=day(-1))
    know(owner, "It was so.", valid_to=NOW)
    know(owner, "It will be so.", valid_from=day(1))
    node(owner, "no fact")

    assert everything(owner, as_of=day(-2)) == {"It was so.", "no fact"}
    assert everything(owner, as_of=day(9)) == {"It is so.", "It will be so.", "no fact"}


def test_facts_may_be_asked_for_as_they_were_believed_at_another_time(owner: Owner) -> None:
    fact = know(owner, "Ana lives in Berlin.", confidence=0.6, now=day(-9))
    changes = {"claim": "Ana lives in Lisbon.", "confidence": 0.9}
    correct_fact(owner, fact.id, changes=changes, embedded=NOTHING, now=day(-1))
    know(owner, "It is new.")

    assert everything(owner) == {"Ana lives in Lisbon.", "It is new."}
    assert everything(owner, known_at=day(-5)) == {"Ana lives in Berlin."}
    assert everything(owner, known_at=day(-5), min_confidence=0.7) == set()
    assert everything(owner, known_at=day(-10)) == set()


def test_min_confidence_filters_facts_only(owner: Owner) -> None:
    know(owner, "It is sure.", confidence=0.9)
    know(owner, "It is doubtful.", confidence=0.5)
    node(owner, "no fact")

    assert everything(owner, min_confidence=0.9) == {"It is sure.", "no fact"}


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kinds": (Kind.GOAL,)}, {"a goal"}),
        ({"kinds": (Kind.GOAL, Kind.CONTEXT_ENTRY)}, {"a goal", "noted", "decided"}),
        ({"types": ("decision",)}, {"decided"}),
        ({"since": day(-3)}, {"noted", "decided"}),
        ({"until": day(-3)}, {"a goal", "a thing"}),
        ({"since": day(-3), "until": NOW}, set()),
    ],
    ids=["kind", "kinds", "types", "since", "until", "both"],
)
@pytest.mark.parametrize("name", ["temporal", "vector"])
def test_filters_apply_equally_to_vector_and_temporal_search(
    owner: Owner, name: str, fields: dict[str, Any], expected: set[str]
) -> None:
    context = context_of(owner, "notes")
    goal, thing = node(owner, "a goal", kind=Kind.GOAL, event_time=day(-4)), node(owner, "a thing", event_time=day(-5))
    keep(owner, context, entry("noted", angle=0.3), entry("decided", angle=0.4, entry_type="decision"))
    insert_vectors(owner.account_id, model=MODEL, vectors=[(row.id, direction(0.2)) for row in (goal, thing)])

    query = asked(angle=0.0, windows=[ALWAYS], **fields)

    assert found(owner, query, NO_ANALYSIS, name) == expected


def test_contexts_limit_a_search_to_their_entries(owner: Owner) -> None:
    notes, others = context_of(owner, "notes"), context_of(owner, "others")
    keep(owner, notes, entry("noted"))
    keep(owner, others, entry("another"))
    node(owner, "outside")

    assert everything(owner, contexts=[notes.id]) == {"noted"}


def test_memories_excluded_by_the_query_are_not_found(owner: Owner) -> None:
    kept, gone = node(owner, "kept"), node(owner, "gone")

    assert everything(owner, without=[gone.id]) == {kept.text}


@pytest.mark.parametrize("text", ["%s %(x)s $1", "'; DROP TABLE memories; --", "\\' | & ! ( : *"])
def test_hostile_questions_and_rows_are_treated_as_plain_words(owner: Owner, text: str) -> None:
    start = node(owner, text, pinned=True)
    query = Query(text=text, windows=[ALWAYS], names=(text,), phrases=(text,), conversation_id=text)
    analysis = replace(analyze_query(owner, query, recall_context(owner)), entities=[start.id])

    assert found(owner, query, analysis, *RETRIEVERS) == {text}
    assert everything(owner, types=(text,)) == set()
