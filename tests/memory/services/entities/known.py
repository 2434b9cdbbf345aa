"""Stored entities, their changes and their lookup."""

from memory.models import Entity
from memory.owner import Owner
from memory.services.entities.store import visible_entities
from tests.memory.episodes import NOW


def stored(entity: Entity) -> Entity:
    return Entity.objects.get(id=entity.id)


def known(owner: Owner) -> list[str]:
    return [entity.name for entity in visible_entities(owner, now=NOW).order_by("id")]
