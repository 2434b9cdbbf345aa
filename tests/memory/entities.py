"""Entities for tests, stored through the service, with vectors whose neighbourhood is known beforehand."""

from typing import Any

from memory.models import Entity
from memory.owner import Owner
from memory.services.entities.learn import EntityDraft, ResolvedEntity, upsert_entities, upsert_entity
from memory.services.memories.store import ClientVector
from tests.memory.episodes import MODEL, NOTHING, NOW, direction


def entity_draft(name: str = "Ana Lima", *, type: str = "person", **fields: Any) -> EntityDraft:  # noqa: A002
    """`fields` are those of the draft; with an `angle`, its vector is known."""
    angle = fields.pop("angle", None)
    own = None if angle is None else ClientVector(model=MODEL, vector=direction(angle))
    return EntityDraft(name=name, type=type, own=own, **fields)


def meet(owner: Owner, name: str = "Ana Lima", **fields: Any) -> ResolvedEntity:
    """Upserted without the embedder; `fields` as of `entity_draft`."""
    return upsert_entity(owner, entity_draft(name, **fields), embedded=NOTHING, now=NOW)


def entity_of(owner: Owner, name: str = "Ana Lima", **fields: Any) -> Entity:
    """The entity of `meet`."""
    return meet(owner, name, **fields).entity


def entities_of(owner: Owner, *names: str, **fields: Any) -> list[Entity]:
    """One of each name; `fields` as of `entity_draft`."""
    drafts = [entity_draft(name, **fields) for name in names]
    return [each.entity for each in upsert_entities(owner, drafts, embedded=NOTHING, now=NOW)]
