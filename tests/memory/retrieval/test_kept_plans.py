"""Gathering statements whose plans the server keeps: for which questions, what they read, and what they find."""

from typing import Any

import pytest
from django.db import connection

from memory.models import Account, Kind
from memory.models.statements import PREPARED_AFTER
from memory.models.vectors import Vector
from memory.owner import Owner
from memory.retrieval import kept_plans
from memory.retrieval.gathering import GatheredCandidates, gathering_shape
from memory.retrieval.kept_plans import (
    MAX_PARTITIONS,
    MAX_ROWS,
    MAX_SHAPES,
    admit_partition,
    admit_shape,
    keeps_plan,
    name_partition,
)
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.query_analysis import analyze_query
from memory.services.embedding.vector_index import find_partitions
from tests.memory.crowds import AGENT_ROWS, analyze, crowd
from tests.memory.gatherings import asked, gathered, recall_context

pytestmark = pytest.mark.django_db

WORDS = asked("word3 word77")
QUESTION = asked("word3 word77", angle=0.3)
PARTITION = "memory_vectors_p1"
ROWS_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = %s"
PLANS = """
SELECT sum(generic_plans), sum(custom_plans) FROM pg_prepared_statements
WHERE statement LIKE '%%begun AS MATERIALIZED%%' AND statement LIKE %s"""


@pytest.fixture(autouse=True)
def partitions(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The partitions that this process keeps plans for: none before the test, and no shapes."""
    found: set[str] = set()
    monkeypatch.setattr(kept_plans, "_partitions", found)
    monkeypatch.setattr(kept_plans, "_shapes", set())
    return found


@pytest.mark.parametrize(
    ("analysis", "expected"),
    [
        ({"docs": 1}, True),
        ({"docs": MAX_ROWS}, True),
        ({"docs": MAX_ROWS + 1}, False),
        ({"docs": 0}, False),
        ({"docs": 1, "indexed_rows": 1}, False),
    ],
)
def test_plans_are_kept_for_small_accounts(analysis: dict[str, Any], *, expected: bool) -> None:
    assert keeps_plan(QUESTION, QueryAnalysis(partition=PARTITION, **analysis)) is expected
    assert keeps_plan(WORDS, QueryAnalysis(**analysis)) is expected


def test_an_account_without_vectors_keeps_plans_of_searches_by_words_alone() -> None:
    assert not keeps_plan(QUESTION, QueryAnalysis(docs=1))
    assert keeps_plan(WORDS, QueryAnalysis(docs=1))


def test_a_process_keeps_plans_for_the_first_partitions_that_it_is_asked_about() -> None:
    names = [f"memory_vectors_p{number}" for number in range(MAX_PARTITIONS + 1)]

    assert [admit_partition(name) for name in names] == [True] * MAX_PARTITIONS + [False]
    assert [admit_partition(name) for name in names] == [True] * MAX_PARTITIONS + [False]


def test_a_process_keeps_plans_for_the_first_shapes_of_questions_that_it_meets(owner: Owner) -> None:
    analysis = QueryAnalysis(docs=1)
    shapes = [gathering_shape(owner, WORDS, analysis, [f"retriever {number}"]) for number in range(MAX_SHAPES + 1)]

    assert [admit_shape(shape).keeps_plan for shape in shapes] == [True] * MAX_SHAPES + [False]
    assert admit_shape(shapes[0]) == shapes[0]


def test_a_partition_replaces_the_table_wherever_it_is_read() -> None:
    statement = "SELECT memory_vectors.id FROM memory_vectors WHERE id IN (SELECT id FROM memory_vectors AS own)"

    assert name_partition(statement, PARTITION) == (
        f"SELECT memory_vectors.id FROM {PARTITION} AS memory_vectors WHERE id IN (SELECT id FROM {PARTITION} AS own)"
    )


def gather(owner: Owner, *, repeats: int = 1) -> GatheredCandidates:
    analysis = analyze_query(owner, QUESTION, recall_context(owner))
    for _ in range(repeats):
        found = gathered(owner, QUESTION, analysis, "lexical", "vector", "passage", "pinned")
    return found


def fetch_row(statement: str, parameter: str) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, [parameter])
        return cursor.fetchone()


def test_the_server_keeps_the_plan_and_not_that_of_a_further_partition(account: Account, partitions: set[str]) -> None:
    agent, *_ = crowd(account, rows=AGENT_ROWS)
    [partition] = find_partitions(account.id)

    gather(agent, repeats=PREPARED_AFTER + 2)
    assert fetch_row(PLANS, f"%{partition}%") == (2, 0)

    partitions.clear()
    partitions.update(f"other_{number}" for number in range(MAX_PARTITIONS))
    gather(agent, repeats=PREPARED_AFTER + 2)
    assert fetch_row(PLANS, "%FROM memory_vectors WHERE%") == (0, 2)


def test_a_kept_plan_reads_the_vectors_of_the_agent_and_not_of_all_in_the_account(account: Account) -> None:
    agent, *_ = crowd(account, rows=4 * AGENT_ROWS)
    # where all are of one kind, the planner has to know which kinds a condition is about
    Vector.objects.filter(account_id=account.id).update(kind=Kind.EPISODE, conversation_id="")
    analyze()
    [partition] = find_partitions(account.id)
    gather(agent, repeats=PREPARED_AFTER + 1)

    [before] = fetch_row(ROWS_READ, partition)
    gather(agent)
    [after] = fetch_row(ROWS_READ, partition)

    assert 0 < after - before < 2 * AGENT_ROWS


def test_a_kept_plan_finds_the_same_with_the_same_scores(account: Account, partitions: set[str]) -> None:
    first, second, *_ = crowd(account, rows=2 * AGENT_ROWS)
    analyze()

    for owner in (first, second):
        kept = gather(owner)
        partitions.clear()
        partitions.update(f"other_{number}" for number in range(MAX_PARTITIONS))
        planned = gather(owner)
        partitions.clear()

        assert len(kept.candidates) > 100
        assert {each.id: each for each in kept.candidates} == {each.id: each for each in planned.candidates}
