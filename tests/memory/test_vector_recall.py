"""Recall of the filtered search against the exact one, for owners of unequal size among 20,000 episodes."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from django.db import connection, transaction

from memory import conf
from memory.models import Account, Kind, Vector
from memory.models.statements import Embedding, binary_cursor, half_vector
from memory.owner import Owner
from memory.retrieval.retrievers.vector import nearest_ctes
from memory.retrieval.search import MemoryQuery, search_episodes
from memory.retrieval.statements import where_sql
from memory.services.embedding.vector_index import Hnsw, IvfFlat, build_index, drop_all_indexes, find_index_names
from tests.memory.episodes import NOW
from tests.memory.vectors import INDEXED, MODEL, WIDTH, Clusters, build, fill

pytestmark = pytest.mark.django_db(transaction=True)

ROWS_OF_AGENTS = {"small": 60, "medium": 600, "large": 6_000, "others": 13_340}
QUESTIONS = 24
K = 10
CENTRE: Embedding = np.eye(WIDTH, dtype=np.float32)[0]


def search(owner: Owner, vector: Embedding, *, exact_rows: int = conf.EXACT_SEARCH_ROWS) -> list[UUID]:
    query = MemoryQuery(text="text", top_k=K, model=MODEL, width=WIDTH, vector=vector, exact_rows=exact_rows)
    return [hit.id for hit in search_episodes(owner, query, now=NOW).hits]


def recall(owner: Owner, questions: Embedding) -> float:
    """The mean share of the exact ten that a search under the shipped settings finds; it always finds ten."""
    shares = []
    for question in questions:
        exact = search(owner, question, exact_rows=1_000_000)
        found = search(owner, question)
        assert len(found) == len(exact) == K
        shares.append(len(set(found) & set(exact)) / K)
    return float(np.mean(shares))


def plan_of_search(owner: Owner) -> str:
    """Return PostgreSQL's plan for the vector part of a search."""
    where = where_sql(Vector.objects.visible_to(owner, Kind.EPISODE).of_model(MODEL, WIDTH), prefix="v")
    statement = f"EXPLAIN WITH {nearest_ctes(where=where.text, width=WIDTH)} SELECT * FROM nearest"
    vector = half_vector(np.ones(WIDTH, dtype=np.float32))
    own: dict[str, Any] = {"vector": vector, "limit": K, "exact_rows": conf.EXACT_SEARCH_ROWS}
    with binary_cursor() as cursor:
        cursor.execute(statement, {**where.parameters, **own})
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.fixture
def no_index_left(transactional_db: None) -> Iterator[None]:
    """Indexes outlive the rows that the tests' database is emptied of."""
    yield
    drop_all_indexes(INDEXED)


@pytest.fixture
def crowd(no_index_left: None, account: Account) -> Account:
    """20,000 episodes of four agents."""
    clusters = Clusters()
    for agent_id, rows in ROWS_OF_AGENTS.items():
        fill(Owner(account_id=account.id, agent_id=agent_id), clusters.draw(rows))
    analyze()
    return account


@pytest.fixture
def large(no_index_left: None, owner: Owner) -> Owner:
    """An owner of more episodes than are searched exactly."""
    fill(owner, Clusters().draw(conf.EXACT_SEARCH_ROWS + 500))
    analyze()
    return owner


def analyze() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_vectors")


@pytest.mark.slow
def test_a_filtered_search_matches_an_exact_one_with_either_index_method(crowd: Account) -> None:
    questions = Clusters().draw(QUESTIONS)

    for method in (Hnsw(), IvfFlat()):
        build(method)
        for agent_id in ("small", "medium", "large", ""):
            assert recall(Owner(account_id=crowd.id, agent_id=agent_id), questions) >= 0.95, (method.name, agent_id)
        assert recall(Owner(account_id=crowd.id, agent_id="large", user_id="ana"), questions) >= 0.95, method.name


@pytest.fixture
def far_away(no_index_left: None, account: Account) -> Owner:
    """An agent with 50 episodes on the other side of what 3,000 of another's are about (`CENTRE`)."""
    noise = 0.05 * np.random.default_rng(7).normal(size=(3_050, WIDTH))
    others, own = np.split((CENTRE + noise).astype(np.float32), [3_000])
    fill(Owner(account_id=account.id, agent_id="others"), others)
    owner = Owner(account_id=account.id, agent_id="assistant")
    fill(owner, -own)
    analyze()
    return owner


@pytest.mark.slow
def test_a_filter_that_exhausts_the_scan_of_the_index_finds_its_k_all_the_same(far_away: Owner) -> None:
    build(Hnsw())

    with transaction.atomic(), connection.cursor() as cursor:
        # for so few rows the planner would rather sort them
        cursor.execute("SET LOCAL hnsw.max_scan_tuples = 1; SET LOCAL enable_sort = off")
        found_by_index = count_indexed(far_away, CENTRE, exact_rows=20)
        found = search(far_away, CENTRE, exact_rows=20)

    assert found_by_index < K
    assert found == search(far_away, CENTRE)
    assert len(found) == K


def count_indexed(owner: Owner, vector: Embedding, *, exact_rows: int) -> int:
    """Count the rows that the index alone returns."""
    where = where_sql(Vector.objects.visible_to(owner, Kind.EPISODE).of_model(MODEL, WIDTH), prefix="v")
    statement = f"WITH {nearest_ctes(where=where.text, width=WIDTH)} SELECT count(*) FROM indexed"
    own: dict[str, Any] = {"vector": half_vector(vector), "limit": K, "exact_rows": exact_rows}
    with binary_cursor() as cursor:
        cursor.execute(statement, {**where.parameters, **own})
        return int(cursor.fetchall()[0][0])


@pytest.mark.slow
def test_the_planner_takes_the_index_for_a_large_owner_and_a_build_that_is_given_up_leaves_it(large: Owner) -> None:
    for method in (IvfFlat(), Hnsw()):
        built = build(method)
        assert f"Index Scan using {built.name}" in plan_of_search(large)

    steps = build_index(INDEXED, Hnsw(m=100, ef_construction=1000))
    next(steps)
    steps.close()

    assert find_index_names(INDEXED, valid=True) == [built.name]
    assert find_index_names(INDEXED, valid=False) == []


@pytest.mark.slow
def test_searches_go_on_while_an_index_is_built(large: Owner) -> None:
    [question] = Clusters().draw(1)

    found = [search(large, question) for _progress in build_index(INDEXED, Hnsw(ef_construction=400))]

    assert found
    assert all(len(hits) == K for hits in found)
