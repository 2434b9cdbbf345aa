"""The episodes nearest to the question, whatever else is nearer: where a client wants some of them in any case.

By meaning, or by words where the question has no vector: as those recallers find, among episodes alone.
"""

from dataclasses import replace
from typing import Any

from memory.models import Kind
from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query
from memory.retrieval.recallers.lexical import LEXICAL
from memory.retrieval.recallers.vector import VECTOR

OF_EPISODES = f" AND kind = '{Kind.EPISODE.value}'"


def serves(query: Query, orientation: Orientation) -> bool:
    return query.nearest_episodes > 0 and finder(query.width).serves(query, orientation)


def compose(ground: Ground) -> str:
    among = replace(ground, rows=f"{ground.rows}{OF_EPISODES}", vectors=f"{ground.vectors}{OF_EPISODES}")
    part = finder(ground.shape.width).compose(among)
    return f"SELECT id FROM ({part}) AS nearest LIMIT %(nearest_episodes)s"


def bind(query: Query, orientation: Orientation) -> dict[str, Any]:
    return {"nearest_episodes": query.nearest_episodes, **finder(query.width).bind(query, orientation)}


def finder(width: int) -> Recaller:
    return VECTOR if width else LEXICAL


EPISODES = Recaller(name="episodes", serves=serves, compose=compose, bind=bind)
