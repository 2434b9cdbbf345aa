"""The episodes nearest to the question, whatever else is nearer: where a client wants some of them in any case.

By meaning, and by words those that have no vector yet, or all where the question has none: as those recallers find,
among episodes alone.
"""

from dataclasses import replace
from typing import Any

from memory.models import Kind
from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query
from memory.retrieval.recallers.lexical import LEXICAL
from memory.retrieval.recallers.vector import VECTOR

OF_EPISODES = f" AND kind = '{Kind.EPISODE.value}'"
WITHOUT_VECTOR = " AND embed_after IS NOT NULL"


def serves(query: Query, orientation: Orientation) -> bool:
    is_found = VECTOR.serves(query, orientation) or LEXICAL.serves(query, orientation)
    return query.nearest_episodes > 0 and is_found


def compose(ground: Ground) -> str:
    among = replace(ground, rows=f"{ground.rows}{OF_EPISODES}", vectors=f"{ground.vectors}{OF_EPISODES}")
    if not ground.shape.width:
        return first_of(LEXICAL.compose(among))
    waiting = replace(among, rows=f"{among.rows}{WITHOUT_VECTOR}")
    return f"{first_of(VECTOR.compose(among))} UNION ALL {first_of(LEXICAL.compose(waiting))}"


def first_of(part: str) -> str:
    return f"(SELECT id FROM ({part}) AS nearest LIMIT %(nearest_episodes)s)"


def bind(query: Query, orientation: Orientation) -> dict[str, Any]:
    parameters = {**LEXICAL.bind(query, orientation), **VECTOR.bind(query, orientation)}
    return {**parameters, "nearest_episodes": query.nearest_episodes}


EPISODES = Recaller(name="episodes", serves=serves, compose=compose, bind=bind)
