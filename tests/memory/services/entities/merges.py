"""Entities that are merged and split, and what is stored of them."""

from typing import Any
from uuid import UUID

import pytest

from memory.models import Entity, EntityName, Link
from memory.owner import Owner
from memory.services.entities.merge import merge_entities, split_entity
from tests.memory.entities import entity_of
from tests.memory.episodes import NOW

Edge = tuple[str, str, str]


@pytest.fixture
def ana(owner: Owner) -> Entity:
    return entity_of(owner, "Ana", aliases=["Anita"])


@pytest.fixture
def twin(owner: Owner) -> Entity:
    """Return the same person, met under another name."""
    return entity_of(owner, "A. Lima", aliases=["Lima"])


@pytest.fixture
def acme(owner: Owner) -> Entity:
    return entity_of(owner, "Acme", type="organization")


def merge(owner: Owner, into: Entity, other: Entity) -> Entity:
    return merge_entities(owner, into.id, other.id, now=NOW)


def split(owner: Owner, entity: Entity, *names: str, links: tuple[UUID, ...] = ()) -> Entity:
    return split_entity(owner, entity.id, names=names, link_ids=links, now=NOW)


def link(source: Entity, type_: str, target: Entity, **fields: Any) -> Link:
    ends = {"source_id": source.id, "target_id": target.id}
    return Link.objects.create(account_id=source.account_id, type=type_, **ends, **fields)


def stored(entity: Entity) -> Entity:
    return Entity.objects.get(id=entity.id)


def edges() -> set[Edge]:
    rows = Entity.objects.all()
    names = {entity.id: entity.name for entity in rows}
    return {(names[link.source_id], link.type, names[link.target_id]) for link in Link.objects.all()}


def everything() -> tuple[set[Any], set[Any], set[Any]]:
    """Return all rows that a merge changes and a split restores."""
    rows = Entity.objects.all()
    entities = {
        (row.name, str(row.aliases), row.description, str(row.properties), row.archived, row.merged_into_id)
        for row in rows
    }
    links = {(row.source_id, row.type, row.target_id, str(row.properties), row.weight) for row in Link.objects.all()}
    names = set(EntityName.objects.values_list("entity_id", "identity"))
    return entities, links, names
