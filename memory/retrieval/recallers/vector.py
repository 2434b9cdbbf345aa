"""By meaning: the nearest vectors, of all kinds at once (`retrieval.vectors`)."""

from typing import Any

from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query
from memory.retrieval.vectors import least_seen, nearest


def serves(query: Query, _orientation: Orientation) -> bool:
    return query.vector is not None


def compose(ground: Ground) -> str:
    return nearest(ground.vectors, ground.shape)


def bind(_query: Query, orientation: Orientation) -> dict[str, Any]:
    return {"least_seen": least_seen(orientation.indexed_rows)}


VECTOR = Recaller(name="vector", serves=serves, compose=compose, bind=bind)
