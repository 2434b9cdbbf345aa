"""Search in entities (X3): the documented `vector_search_entities`, by words for those without a vector yet."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import Found, Hit, MemoryQuery, Searched, search_rows

ENTITIES = Searched(
    kind=Kind.ENTITY,
    table="entities",
    columns=("name", "type", "aliases", "description", "properties", "salience"),
    type_column="type",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityHit(Hit):
    """A found entity. `text` are its names and its description, as they are searched; `event_time` is first seen."""

    kind: ClassVar[Kind] = Kind.ENTITY

    text: str
    name: str
    type: str
    aliases: list[str]
    description: str
    properties: dict[str, Any]
    salience: float


EntitiesFound = Found[EntityHit]


def search_entities(owner: Owner, query: MemoryQuery, *, now: datetime) -> EntitiesFound:
    """The `top_k` entities nearest to the query that the owner knows of (see `search_rows`). One statement.

    Of `query.types` only, where it names any; none that was merged into another.
    """
    found = search_rows(owner, ENTITIES, query, now=now)
    return Found(hits=[EntityHit(**row) for row in found.hits], degraded=found.degraded)
