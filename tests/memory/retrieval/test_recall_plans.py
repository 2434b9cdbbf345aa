"""PostgreSQL's plans of the statements of a recall and a context: by indexes alone, among thousands of memories."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from django.db import connection

from memory.models import Account, Kind, Memory
from memory.owner import Owner
from memory.retrieval.gathering import gather_candidates
from memory.retrieval.lookups import read_adjacent_turns, read_links_between
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.queries import Query, Scope, TimeWindow
from memory.retrieval.query_analysis import MAX_PENDING, analyze_query
from memory.retrieval.retrievers import RETRIEVERS
from memory.retrieval.retrievers.vector import index_expression, index_name
from memory.services.embedding.vector_index import find_partitions
from tests.memory.crowds import analyze, crowd, prefer_indexes
from tests.memory.episodes import MODEL, NOW, WIDTH
from tests.memory.gatherings import Sent, asked, explain, gathered, recall_context, steps_of
from tests.memory.partitions import account_beside

pytestmark = pytest.mark.django_db

LARGE = frozenset({"memories", "memory_vectors", "memory_links", "fact_versions", "memory_terms", "entity_names"})
OWN_ROWS, OTHER_ROWS = 4_000, 8_000
WINDOW = TimeWindow(since=NOW - timedelta(hours=2), until=NOW)
QUESTION = asked(
    'What is word3 of "word3 word77" and Name 1003?',
    angle=0.3,
    names=("Name 1003",),
    phrases=("word3 word77",),
    conversation_id="c11",
    windows=[WINDOW],
    nearest_episodes=3,
)
FILTERS: tuple[dict[str, Any], ...] = (
    {},
    {"kinds": (Kind.FACT, Kind.TURN)},
    {"known_at": NOW},
    {"since": NOW - timedelta(days=1), "until": NOW},
    {"scopes": (Scope.SESSION, Scope.LINEAGE, Scope.WORKSPACE)},
)


@pytest.mark.slow
def test_no_large_table_is_read_as_a_whole(account: Account) -> None:
    _first, agent, *_ = crowd(account, rows=OWN_ROWS)
    # in a partition of its own, an account's vectors are read whole rather than by an index
    crowd(account_beside(account, in_same_partition=True), rows=OTHER_ROWS)
    analyze()
    prefer_indexes()

    for owner, query in product(owners_like(agent), (replace(QUESTION, **fields) for fields in FILTERS)):
        with Sent() as sent:
            found = recall(owner, query)
        assert len(sent.statements) == 4
        for statement, parameters in sent.statements:
            assert read_whole(statement, parameters) == set(), (owner, query, statement)
        assert found > 10, (owner, query)


def owners_like(agent: Owner) -> Iterator[Owner]:
    """Return owners with and without an agent, a user, a channel."""
    for agent_id, user_id, channel in product((agent.agent_id, ""), ("", "ana"), ("_global", "garden")):
        yield replace(agent, agent_id=agent_id, user_id=user_id, channel=channel)


def recall(owner: Owner, query: Query) -> int:
    """Run the statements of a recall, each with as much to do as possible. Return the number of candidates."""
    analysis = analyze_query(owner, query, recall_context(owner))
    gathered = gather_candidates(owner, query, analysis, list(RETRIEVERS.values()), recall_context(owner))
    read_links_between(owner, [each.id for each in gathered.candidates])
    read_adjacent_turns(owner, gathered.candidates, query, now=NOW)
    return len(gathered.candidates)


@pytest.mark.slow
def test_filters_by_time_and_scope_are_conditions_on_vectors_themselves(account: Account) -> None:
    _first, agent, *_ = crowd(account, rows=OWN_ROWS)
    crowd(account_beside(account, in_same_partition=True), rows=OTHER_ROWS)
    index_vectors(account)
    analyze()
    prefer_indexes()

    for owner, fields in product((agent, Owner(account_id=account.id)), FILTERS):
        with Sent() as sent:
            found = gathered(owner, replace(QUESTION, **fields), QueryAnalysis(indexed_rows=OWN_ROWS), "vector")
        [(statement, parameters)] = sent.statements
        assert read_whole(statement, parameters) == set(), (owner, fields)
        assert len(found.candidates) > 10, (owner, fields)
        # of the nearest vectors: the candidate itself, and what only facts and only slots say about themselves
        assert rows_read(statement, parameters, of="memories") < OWN_ROWS / 4, (owner, fields)


def index_vectors(account: Account) -> None:
    """Build the index as the job does, without a transaction of its own."""
    name = index_name(account.id, model=MODEL, width=WIDTH, is_nested=False)
    indexed = index_expression(WIDTH, is_nested=False)
    [partition] = find_partitions(account.id)
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(
            f"CREATE INDEX {name} ON {partition} USING hnsw ({indexed} halfvec_cosine_ops)"
            f" WHERE account_id = '{account.id}' AND model = '{MODEL}' AND width = {WIDTH} AND live"
        )


def rows_read(statement: str, parameters: Any, *, of: str) -> int:
    steps = [step for step in steps_of(explain(statement, parameters)["Plan"]) if step.get("Relation Name") == of]
    return sum(
        int(step["Actual Loops"] * (step["Actual Rows"] + step.get("Rows Removed by Filter", 0))) for step in steps
    )


@pytest.mark.slow
@pytest.mark.parametrize("has_agent", [True, False])
def test_the_check_for_pending_vectors_reads_few_rows_of_other_agents(account: Account, has_agent: bool) -> None:
    _first, agent, *_ = crowd(account, rows=OWN_ROWS)
    Memory.objects.exclude(agent_id=agent.agent_id).update(embed_after=NOW, user_id="ben")
    analyze()
    prefer_indexes()
    owner = replace(agent if has_agent else Owner(account_id=account.id), user_id="ana")

    with Sent() as sent:
        analysis = analyze_query(owner, asked(), recall_context(owner))

    [(statement, parameters)] = sent.statements
    assert not analysis.has_pending
    assert read_whole(statement, parameters) == set()
    assert rows_read(statement, parameters, of="memories") <= 2 * MAX_PENDING


def read_whole(statement: str, parameters: Any) -> set[str]:
    plan = explain(statement, parameters)["Plan"]
    return {step["Relation Name"] for step in steps_of(plan) if step["Node Type"] == "Seq Scan"} & LARGE
