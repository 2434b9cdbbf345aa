"""Walks over links, from an entity to depth 2, among as many links as a busy account has."""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from django.db import connection

from lab.benchmarks.measure import BenchmarkVariant
from lab.benchmarks.scratch import Scratch
from lab.benchmarks.web import KeepAliveClient
from memory import conf
from memory.models import Entity, Kind, Link
from memory.models.writer import insert_memories
from memory.retrieval.graph import walk_graph

ENTITIES, LINKS_EACH, STARTS, DEPTH = 5_000, 5, 50, 2

# both directions, as many nodes as a walk answers with: no wall, no order, no bound on what is read
NEIGHBOURHOOD = """
WITH RECURSIVE walk (id, depth) AS (
    SELECT %s::uuid, 0
    UNION
    SELECT CASE WHEN link.source_id = walk.id THEN link.target_id ELSE link.source_id END, depth + 1
    FROM walk JOIN memory_links AS link ON link.account_id = %s AND walk.id IN (link.source_id, link.target_id)
    WHERE depth < %s
)
SELECT memories.id, kind, text, salience FROM (SELECT DISTINCT id FROM walk LIMIT %s) AS found
JOIN memories ON memories.account_id = %s AND memories.id = found.id
"""


def walk_links(scratch: Scratch, client: KeepAliveClient, *, now: datetime) -> list[BenchmarkVariant]:
    """Measure a walk from another entity in every round."""
    owner, ids = scratch.owner(), fill_graph(scratch, now=now)[:STARTS]
    paths = [f"/api/v1/graph?ids={entity_id}&depth={DEPTH}&agent_id={owner.agent_id}" for entity_id in ids]
    return [
        BenchmarkVariant(name="psycopg", run=walk_bare(scratch, ids)),
        BenchmarkVariant(
            name="in process", run=lambda number: walk_graph(owner, [ids[number % STARTS]], depth=DEPTH, now=now)
        ),
        BenchmarkVariant(name="over HTTP", run=lambda number: client.request("GET", paths[number % STARTS])),
    ]


def walk_bare(scratch: Scratch, ids: list[UUID]) -> Callable[[int], object]:
    account_id = scratch.account.id

    def walk(number: int) -> None:
        with psycopg.Cursor(connection.connection) as cursor:
            parameters: list[Any] = [ids[number % STARTS], account_id, DEPTH, conf.GRAPH_NODES, account_id]
            cursor.execute(NEIGHBOURHOOD, parameters).fetchall()

    return walk


def fill_graph(scratch: Scratch, *, now: datetime) -> list[UUID]:
    """Insert entities of the first agent, each with links to some others; the first few are hubs."""
    owner = scratch.owner()
    rows = [
        Entity(
            account_id=owner.account_id,
            agent_id=owner.agent_id,
            kind=Kind.ENTITY,
            identity=f"bench {number}",
            name=f"Pump {number}",
            type="product",
            text=f"Pump {number}",
            salience=number % 97 / 97,
            event_time=now,
        )
        for number in range(ENTITIES)
    ]
    ids = [row.id for row in insert_memories(rows)]
    pairs = {
        (number, (number * number * step + step) % (ENTITIES if step > 1 else STARTS))
        for number in range(ENTITIES)
        for step in range(1, LINKS_EACH + 1)
    }
    Link.objects.bulk_create(
        [
            Link(
                account_id=owner.account_id,
                source_id=ids[one],
                target_id=ids[other],
                type="RELATED_TO",
                weight=(one * 31 + other) % 101 / 101,
            )
            for one, other in sorted(pairs)
            if one != other
        ],
        batch_size=5_000,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories, memory_links")
    return ids
