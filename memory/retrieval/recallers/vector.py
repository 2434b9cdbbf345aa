"""By meaning: the nearest vectors, of all kinds at once (`retrieval.vectors`)."""

from typing import Any

from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Mode, Query
from memory.retrieval.vectors import most_exact_rows, nearest


def serves(query: Query, _orientation: Orientation) -> bool:
    return query.vector is not None


def compose(ground: Ground) -> str:
    shape = ground.shape
    return nearest(
        ground.vectors,
        width=shape.width,
        is_nested=shape.is_nested,
        mode=Mode(shape.mode),
        has_index=shape.has_index,
    )


def bind(query: Query, orientation: Orientation) -> dict[str, Any]:
    return {"exact_rows": most_exact_rows(orientation.indexed_rows)}


VECTOR = Recaller(name="vector", serves=serves, compose=compose, bind=bind)
