"""Walks among 100,000 links from a hub of 10,000 neighbours: bounded in what they answer, and in what they read."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from memory.models import Link
from memory.models.binary import binary_cursor
from memory.owner import Owner
from memory.retrieval.graph import Bounds, Graph, walk_graph
from tests.memory.episodes import NOW
from tests.memory.graphs import HUB_LINKS, OTHER_LINKS, make_hub

pytestmark = pytest.mark.django_db

TABLES = ("memory_links", "memories", "entities", "facts", "conversation_participants")
BOUNDS = Bounds()


def walk(owner: Owner, start: UUID, depth: int) -> Graph:
    return walk_graph(owner, [start], depth=depth, bounds=BOUNDS, now=NOW)


def rows_read(owner: Owner, start: UUID, depth: int) -> float:
    """How many rows of tables the walk's statement looks at, whether or not it goes on with them."""
    caught: list[tuple[Any, Any]] = []

    def catch(execute: Any, sql: Any, params: Any, many: bool, context: Any) -> Any:
        caught.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(catch):
        walk(owner, start, depth)
    [(statement, parameters)] = caught
    with binary_cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {statement}", parameters)
        [[explained]] = cursor.fetchall()
    read = [step for step in steps_of(explained[0]["Plan"]) if step.get("Relation Name") in TABLES]
    return sum(rows_of(step) for step in read)


def steps_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from steps_of(below)


def rows_of(step: dict[str, Any]) -> float:
    """Figures of a plan are those of one loop."""
    removed = step.get("Rows Removed by Filter", 0) + step.get("Rows Removed by Index Recheck", 0)
    return float((step["Actual Rows"] + removed) * step["Actual Loops"])


def test_walks_stay_bounded_however_large_a_hub_is(owner: Owner) -> None:
    hub, leaf = make_hub(owner)
    assert Link.objects.count() == HUB_LINKS + OTHER_LINKS

    for start in (hub, leaf):
        for depth in (1, 2, 3):
            graph = walk(owner, start, depth)
            # a tenth of what there is, and no more than the bounds let in from each node
            assert rows_read(owner, start, depth) < 10_000 < BOUNDS.nodes * BOUNDS.fan_out * 2
            assert len(graph.nodes) <= BOUNDS.nodes
            assert len(graph.edges) <= BOUNDS.edges
            assert graph.truncated is (start == hub or depth > 1)

    weightiest = Link.objects.filter(source_id=hub).order_by("-weight", "id")[: BOUNDS.fan_out]
    assert {node.id for node in walk(owner, hub, 1).nodes} == {hub, *(link.target_id for link in weightiest)}
