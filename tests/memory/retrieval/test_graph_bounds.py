"""Walks among 100,000 links from a hub of 10,000 neighbours: bounded in what they return and in what they read."""

from uuid import UUID

import pytest

from memory.models import Link
from memory.models.statements import binary_cursor
from memory.owner import Owner
from memory.retrieval.graph import Graph, WalkBounds, walk_graph
from tests.memory.episodes import NOW
from tests.memory.gatherings import Sent, rows_read
from tests.memory.graphs import HUB_LINKS, OTHER_LINKS, make_hub

pytestmark = pytest.mark.django_db

TABLES = ("memory_links", "memories", "conversation_participants")
BOUNDS = WalkBounds()


def walk(owner: Owner, start: UUID, depth: int) -> Graph:
    return walk_graph(owner, [start], depth=depth, bounds=BOUNDS, now=NOW)


def rows_walked(owner: Owner, start: UUID, depth: int) -> float:
    with Sent() as sent:
        walk(owner, start, depth)
    return rows_read(sent, of=TABLES, cursor_for=binary_cursor)


@pytest.mark.slow
def test_walks_stay_bounded_however_large_a_hub_is(owner: Owner) -> None:
    hub, leaf = make_hub(owner)
    assert Link.objects.count() == HUB_LINKS + OTHER_LINKS

    for start in (hub, leaf):
        for depth in (1, 2, 3):
            graph = walk(owner, start, depth)
            # a tenth of what there is, and no more than the bounds let in from each node
            assert rows_walked(owner, start, depth) < 10_000 < BOUNDS.nodes * BOUNDS.fan_out * 2
            assert len(graph.nodes) <= BOUNDS.nodes
            assert len(graph.edges) <= BOUNDS.edges
            assert graph.truncated is (start == hub or depth > 1)

    weightiest = Link.objects.filter(source_id=hub).order_by("-weight", "id")[: BOUNDS.fan_out]
    assert {node.id for node in walk(owner, hub, 1).nodes} == {hub, *(link.target_id for link in weightiest)}
