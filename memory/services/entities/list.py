"""Reading entities: lists narrowed by type, name and conversation, and one by its id."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from memory.errors import NotFound
from memory.identity import normalize_name
from memory.models import Entity, EntityName, Kind, Link, Memory
from memory.models.entities import LONGEST_NAME
from memory.owner import Owner
from memory.services.entities.learn import normalize_type, visible_entities
from memory.services.memories.links import MENTIONS


def list_entities(
    owner: Owner,
    *,
    of_type: str = "",
    name: str = "",
    conversation_id: str = "",
    now: datetime,
) -> QuerySet[Entity]:
    """The entities that the owner knows of: of a type, by a name or alias, mentioned in a conversation it reads."""
    rows = visible_entities(owner, now=now)
    if of_type:
        rows = rows.filter(type=normalize_type(of_type))
    if name:
        known = EntityName.objects.filter(account_id=owner.account_id, name=normalize_name(name)[:LONGEST_NAME])
        rows = rows.filter(id__in=known.values("entity_id"))
    if conversation_id:
        turns = Memory.objects.visible_to(owner, Kind.TURN).in_conversation(conversation_id)
        mentions = Link.objects.filter(account_id=owner.account_id, type=MENTIONS, source_id__in=turns.values("id"))
        rows = rows.filter(id__in=mentions.values("target_id"))
    return rows


def read_entity(owner: Owner, entity_id: UUID, *, now: datetime) -> Entity:
    """One of whatever channel, or one that was merged into another. Raises NotFound."""
    merged = Q(merged_into__isnull=False, quarantined=False)
    rows: Any = Entity.objects.visible_to(owner, Kind.ENTITY).filter(id=entity_id)
    entity: Entity | None = (rows.live(now) | rows.filter(merged)).first()
    if entity is None:
        raise NotFound("no such entity")
    return entity
