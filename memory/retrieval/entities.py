"""Search in entities (X3): the documented `vector_search_entities`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from memory.kinds import Kind
from memory.owner import Owner
from memory.retrieval.search import Hit, KindSearch, MemoryQuery, SearchResults, search_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityHit(Hit):
    """A found entity. `text` holds its names and description; `event_time` is when it was first seen."""

    kind: ClassVar[Kind] = Kind.ENTITY

    text: str
    name: str
    type: str
    aliases: list[str]
    description: str
    properties: dict[str, Any]
    salience: float


EntityResults = SearchResults[EntityHit]
ENTITIES = KindSearch(
    kind=Kind.ENTITY,
    hit=EntityHit,
    table="entities",
    columns=("name", "type", "aliases", "description", "properties", "salience"),
    type_column="type",
)


def search_entities(owner: Owner, query: MemoryQuery, *, now: datetime) -> EntityResults:
    """Return the `top_k` entities nearest to the query that the owner knows (see `search_rows`). One statement.

    `query.types` limits their types. Entities that were merged into others are left out.
    """
    return search_kind(owner, ENTITIES, query, now=now)
