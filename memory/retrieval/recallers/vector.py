"""By meaning: the nearest vectors, of all kinds at once."""

from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query


def serves(query: Query, _orientation: Orientation) -> bool:
    return query.vector is not None


def compose(ground: Ground) -> str:
    return f"""
        SELECT memory_id AS id FROM memory_vectors
        WHERE {ground.vectors} AND model = %(model)s AND width = {ground.shape.width}
        ORDER BY vector <=> %(vector)s::halfvec LIMIT %(candidates)s"""


VECTOR = Recaller(name="vector", serves=serves, compose=compose)
