"""Relationships: typed links between two entities, which clients and extraction make; and walks over all links.

Whoever holds the entities (`identity.holder`) makes and deletes what is between them. Writers lock both ends as whoever
refers to memories does, so that neither is deleted, nor merged into another, while a link to it is on its way.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from memory import conf
from memory.audit import record
from memory.errors import Forbidden, NotFound, TooLarge, Unprocessable
from memory.identity import holder
from memory.models import Entity, Kind, Link
from memory.models.binary import binary_cursor, fetch_dicts
from memory.models.links import STRUCTURAL_TYPES
from memory.owner import Owner
from memory.retrieval.graph import Bounds, Graph, walk_graph
from memory.services.audit.log import count_elsewhere, record_read
from memory.services.entities.learn import is_live, lock_entities, visible_entities
from memory.services.entities.resolve import holder_of
from memory.services.facts.references import holds
from memory_project.ids import uuid7

TYPE_SHAPE = r"^[A-Z][A-Z0-9_]{0,49}\Z"
LARGEST_PROPERTIES_BYTES = 65_536
NO_ENTITY = "there is no such entity"

# one that is there keeps its weight, unless another is given
UPSERT = """
INSERT INTO memory_links AS link (id, account_id, source_id, target_id, type, weight, properties)
SELECT id, %(account_id)s, source_id, target_id, type, coalesce(weight, 1), properties::jsonb
FROM unnest(%(ids)s::uuid[], %(sources)s::uuid[], %(targets)s::uuid[], %(types)s::text[], %(weights)s::float8[],
    %(properties)s::text[]) AS given (id, source_id, target_id, type, weight, properties)
ON CONFLICT (account_id, source_id, type, target_id) DO UPDATE SET
    weight = CASE WHEN EXCLUDED.id = ANY(%(weightless)s::uuid[]) THEN link.weight ELSE EXCLUDED.weight END,
    properties = link.properties || EXCLUDED.properties
RETURNING id, account_id, source_id, target_id, type, weight, properties, created_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipDraft:
    """What is said of two entities. Without a `weight` (0 to 1) a new one weighs 1, and what there is keeps its own."""

    source_id: UUID
    target_id: UUID
    type: str
    weight: float | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=uuid7)

    @property
    def key(self) -> tuple[UUID, str, UUID]:
        """What makes it the same relationship again."""
        return self.source_id, self.type, self.target_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """What a draft came to."""

    link: Link
    is_new: bool


def create_relationship(owner: Owner, draft: RelationshipDraft, *, now: datetime) -> Related:
    """`relate` of one."""
    [related] = relate(owner, [draft], now=now)
    return related


def create_relationships(owner: Owner, drafts: Sequence[RelationshipDraft], *, now: datetime) -> list[Link]:
    """`relate`, for those who do not ask what was there before."""
    return [related.link for related in relate(owner, drafts, now=now)]


def relate(owner: Owner, drafts: Sequence[RelationshipDraft], *, now: datetime) -> list[Related]:
    """Make relationships, in the order of the drafts; joins the caller's transaction.

    What is there already (source, type and target) gets the properties given, name by name, and the weight if one is
    given. Raises Unprocessable for entities that are not live, not of the owner's own knowledge, of two holders, or
    one and the same, for types that are none or the service's own, and for weights out of bounds; TooLarge for
    properties that have grown too large.
    """
    if not drafts:
        return []
    for draft in drafts:
        check_draft(draft)
    with transaction.atomic():
        check_ends(owner, drafts, now=now)
        stored = upsert_links(owner.account_id, merge_drafts(drafts))
        record_relationships(owner, "store", [link.id for link in stored.values()])
    new = {link.id for link in stored.values()} & {draft.id for draft in drafts}
    return [Related(link=stored[draft.key], is_new=stored[draft.key].id in new) for draft in drafts]


def check_draft(draft: RelationshipDraft) -> None:
    if not re.match(TYPE_SHAPE, draft.type):
        raise Unprocessable("a type is up to 50 capitals, digits and underscores, a capital first")
    if draft.type in STRUCTURAL_TYPES:
        raise Unprocessable(f"{draft.type} is the service's own: no relationship has this type")
    if draft.source_id == draft.target_id:
        raise Unprocessable("an entity has no relationship with itself")
    if draft.weight is not None and not 0 <= draft.weight <= 1:
        raise Unprocessable("a weight is from 0 to 1")


def check_ends(owner: Owner, drafts: Sequence[RelationshipDraft], *, now: datetime) -> None:
    """Lock the entities, and see that they may be related. One statement."""
    ends = {end for draft in drafts for end in (draft.source_id, draft.target_id)}
    locked = {entity.id: entity for entity in lock_entities(owner, ends) if is_live(entity, now=now)}
    if set(locked) != ends:
        raise Unprocessable(NO_ENTITY)
    for draft in drafts:
        # the account, acting for itself, holds everything: what two others know it does not mix
        if len({holder(holder_of(locked[end])) for end in (draft.source_id, draft.target_id)}) > 1:
            raise Unprocessable("the entities are not of one holder's knowledge")


def merge_drafts(drafts: Sequence[RelationshipDraft]) -> list[RelationshipDraft]:
    """Each relationship once, in the order in which everybody stores links; what is said later counts."""
    merged: dict[tuple[UUID, str, UUID], RelationshipDraft] = {}
    for draft in drafts:
        said = merged.get(draft.key, draft)
        weight = said.weight if draft.weight is None else draft.weight
        merged[draft.key] = replace(said, weight=weight, properties={**said.properties, **draft.properties})
    return [merged[key] for key in sorted(merged)]


def upsert_links(account_id: UUID, drafts: Sequence[RelationshipDraft]) -> dict[tuple[UUID, str, UUID], Link]:
    """By what makes each the same again. One statement. Raises TooLarge."""
    values: dict[str, Any] = {
        "account_id": account_id,
        "ids": [draft.id for draft in drafts],
        "sources": [draft.source_id for draft in drafts],
        "targets": [draft.target_id for draft in drafts],
        "types": [draft.type for draft in drafts],
        "weights": [draft.weight for draft in drafts],
        "properties": [json.dumps(draft.properties) for draft in drafts],
        "weightless": [draft.id for draft in drafts if draft.weight is None],
    }
    with binary_cursor() as cursor:
        cursor.execute(UPSERT, values)
        links = [Link(**row) for row in fetch_dicts(cursor)]
    for link in links:
        check_size(link)
    return {(link.source_id, link.type, link.target_id): link for link in links}


def check_size(link: Link) -> None:
    size_bytes = len(json.dumps(link.properties, ensure_ascii=False).encode())
    if size_bytes > LARGEST_PROPERTIES_BYTES:
        message = f"with these, the properties have {size_bytes} bytes; they have at most {LARGEST_PROPERTIES_BYTES}"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=LARGEST_PROPERTIES_BYTES)


def visible_relationships(owner: Owner, *, now: datetime) -> QuerySet[Link]:
    """Those between entities that the owner knows of in the active channel and `_global`."""
    return relationships_between(owner, visible_entities(owner, now=now))


def relationships_between(owner: Owner, entities: "QuerySet[Entity]") -> QuerySet[Link]:
    ends = entities.values("id")
    rows = Link.objects.filter(account_id=owner.account_id, source_id__in=ends, target_id__in=ends)
    return rows.exclude(type__in=sorted(STRUCTURAL_TYPES))


def find_relationship(owner: Owner, relationship_id: UUID, *, now: datetime) -> Link:
    """Of whatever channel. Raises NotFound."""
    entities: Any = Entity.objects.visible_to(owner, Kind.ENTITY).live(now)
    found = relationships_between(owner, entities).filter(id=relationship_id).first()
    if found is None:
        raise NotFound("no such relationship")
    return found


def delete_relationship(owner: Owner, relationship_id: UUID, *, now: datetime) -> None:
    """For whoever holds the entities. Raises NotFound, Forbidden where they are only seen."""
    with transaction.atomic():
        link = find_relationship(owner, relationship_id, now=now)
        ends: Any = Entity.objects.filter(account_id=owner.account_id, id__in=(link.source_id, link.target_id))
        if not all(holds(owner, end) for end in ends):
            raise Forbidden("who holds the entities deletes what is between them, or the account")
        deleted, _by_model = Link.objects.filter(account_id=owner.account_id, id=link.id).delete()
        if not deleted:
            raise NotFound("no such relationship")
        record_relationships(owner, "delete", [link.id])


def explore_graph(
    owner: Owner,
    ids: Collection[UUID],
    *,
    depth: int,
    types: Collection[str] = (),
    nodes: int = conf.GRAPH_NODES,
    now: datetime,
) -> Graph:
    """`walk_graph` for the edges: what was read is told to the audit log, where it keeps reads."""
    graph = walk_graph(owner, ids, depth=depth, types=types, bounds=Bounds(nodes=nodes), now=now)
    record_read(
        owner,
        memory_type="semantic",
        affected_ids=[node.id for node in graph.nodes],
        target_channels=list(owner.channels),
        result_count=len(graph.nodes),
        cross_channel_count=count_elsewhere(owner, [node.channel for node in graph.nodes]),
    )
    return graph


def record_relationships(owner: Owner, operation: str, ids: Sequence[UUID]) -> None:
    record(owner, operation=operation, memory_type="semantic", affected_ids=ids, result_count=len(ids))
