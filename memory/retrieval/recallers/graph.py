"""By links: from the entities that the question names to facts, neighbours and the turns that they came from."""

from typing import Any

from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query

MOST = 100
FAN_OUT = 50


def serves(_query: Query, orientation: Orientation) -> bool:
    return bool(orientation.entities)


def compose(ground: Ground) -> str:
    return f"""
        SELECT id, 0 AS hops FROM memories WHERE {ground.rows} AND id = ANY(%(named)s::uuid[])
        LIMIT {MOST}"""


def bind(_query: Query, orientation: Orientation) -> dict[str, Any]:
    return {"named": list(orientation.entities)}


GRAPH = Recaller(name="graph", serves=serves, compose=compose, bind=bind)
