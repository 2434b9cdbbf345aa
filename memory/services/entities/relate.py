"""Relationships: typed links between two entities, made by clients and extraction, and walks over all links.

The holder of the entities (`identity.holder_key`) creates and deletes the links between them. Writers lock both ends as
code that refers to memories does, so that neither is deleted or merged while a link to it is stored.
"""

import json
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from memory import conf
from memory.audit import record_audit
from memory.errors import Forbidden, NotFound, Unprocessable, require_found
from memory.identity import holder_key
from memory.masking import masks_secrets
from memory.models import Entity, Kind, Link
from memory.models.links import STRUCTURAL_TYPES
from memory.models.statements import binary_cursor, fetch_dicts
from memory.owner import Owner
from memory.retrieval.graph import Graph, WalkBounds, walk_graph
from memory.services.audit import count_other_channels, record_read
from memory.services.entities.resolve import check_size_of_properties, holds_memory, owner_of_row
from memory.services.entities.store import follow_merges, is_live_entity, lock_entities, visible_entities
from memory.services.entities.structure import STRUCTURE_TYPES, add_structure
from memory_project.ids import uuid7

RELATIONSHIP_TYPE_PATTERN = r"^[A-Z][A-Z0-9_]{0,49}\Z"
# a link that exists keeps its weight unless another one is given
UPSERT_LINKS = """
INSERT INTO memory_links AS link (id, account_id, source_id, target_id, type, weight, properties)
SELECT id, %(account_id)s::uuid, source_id, target_id, type, coalesce(weight, 1), properties::jsonb
FROM unnest(%(ids)s::uuid[], %(sources)s::uuid[], %(targets)s::uuid[], %(types)s::text[], %(weights)s::float8[],
    %(properties)s::text[]) AS given (id, source_id, target_id, type, weight, properties)
ON CONFLICT (account_id, source_id, type, target_id) DO UPDATE SET
    weight = CASE WHEN EXCLUDED.id = ANY(%(weightless)s::uuid[]) THEN link.weight ELSE EXCLUDED.weight END,
    properties = link.properties || EXCLUDED.properties
RETURNING id, account_id, source_id, target_id, type, weight, properties, created_at
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipDraft:
    """A relationship before it is stored. Without `weight` (0 to 1), a new one gets 1 and others keep theirs."""

    source_id: UUID
    target_id: UUID
    type: str
    weight: float | None = None
    properties: dict[str, Any] = field(default_factory=dict)
    id: UUID = field(default_factory=uuid7)

    @property
    def key(self) -> tuple[UUID, str, UUID]:
        """Return what identifies the relationship: source, type and target."""
        return self.source_id, self.type, self.target_id


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRelationship:
    """The stored link of a draft."""

    link: Link
    is_new: bool


def create_relationship(owner: Owner, draft: RelationshipDraft, *, now: datetime) -> StoredRelationship:
    """Create or extend one relationship, as `create_relationships` does; a merged entity stands for its survivor."""
    ends = follow_merges(owner.account_id, [draft.source_id, draft.target_id])
    draft = replace(draft, source_id=ends[0], target_id=ends[-1])
    [related] = create_relationships(owner, [draft], now=now)
    return related


@masks_secrets
def create_relationships(
    owner: Owner, drafts: Sequence[RelationshipDraft], *, now: datetime
) -> list[StoredRelationship]:
    """Create relationships, or extend existing ones, in the order of the drafts. Joins the caller's transaction.

    An existing one (same source, type and target) gets the given properties, name by name, and the weight if one is
    given. Raises Unprocessable for entities that are not live, not of the owner's own knowledge, of two holders, or one
    and the same, for types that are malformed or reserved, and for weights out of bounds; TooLarge for properties that
    have grown too large.
    """
    if not drafts:
        return []
    for draft in drafts:
        check_relationship_draft(draft)
    with transaction.atomic():
        lock_related_entities(owner, drafts, now=now)
        stored = upsert_links(owner.account_id, merge_relationship_drafts(drafts))
        record_relationships(owner, "store", [link.id for link in stored.values()])
    new = {link.id for link in stored.values()} & {draft.id for draft in drafts}
    return [StoredRelationship(link=stored[draft.key], is_new=stored[draft.key].id in new) for draft in drafts]


def check_relationship_draft(draft: RelationshipDraft) -> None:
    if not re.match(RELATIONSHIP_TYPE_PATTERN, draft.type):
        raise Unprocessable("a type must have up to 50 capitals, digits and underscores, and begin with a capital")
    if draft.type in STRUCTURAL_TYPES:
        raise Unprocessable(f"the type {draft.type} is reserved for links that the service makes: use another one")
    if draft.source_id == draft.target_id:
        raise Unprocessable("an entity cannot have a relationship with itself")
    if draft.weight is not None and not 0 <= draft.weight <= 1:
        raise Unprocessable("weight must be between 0 and 1")


def lock_related_entities(owner: Owner, drafts: Sequence[RelationshipDraft], *, now: datetime) -> None:
    """Lock the entities of the drafts, and check that they may be related. One statement. Raises Unprocessable."""
    ends = {end for draft in drafts for end in (draft.source_id, draft.target_id)}
    locked = {entity.id: entity for entity in lock_entities(owner, ends) if is_live_entity(entity, now=now)}
    if set(locked) != ends:
        raise Unprocessable("there is no such entity")
    for draft in drafts:
        # an owner that acts for the account may use all entities, but must not mix two holders' knowledge
        if len({holder_key(owner_of_row(locked[end])) for end in (draft.source_id, draft.target_id)}) > 1:
            raise Unprocessable("the two entities must belong to the same holder")


def merge_relationship_drafts(drafts: Sequence[RelationshipDraft]) -> list[RelationshipDraft]:
    """Return each relationship once, in the order in which links are stored; later drafts override earlier ones."""
    merged: dict[tuple[UUID, str, UUID], RelationshipDraft] = {}
    for draft in drafts:
        earlier = merged.get(draft.key, draft)
        weight = earlier.weight if draft.weight is None else draft.weight
        merged[draft.key] = replace(earlier, weight=weight, properties={**earlier.properties, **draft.properties})
    return [merged[key] for key in sorted(merged)]


def upsert_links(account_id: UUID, drafts: Sequence[RelationshipDraft]) -> dict[tuple[UUID, str, UUID], Link]:
    """Store the links, and return them by their keys. One statement. Raises TooLarge."""
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
    # a distributed database executes it in two parts, and refuses parameters of which one part has only some
    with binary_cursor(binds_here=settings.DATABASE_IS_DISTRIBUTED) as cursor:
        cursor.execute(UPSERT_LINKS, values)
        links = [Link(**row) for row in fetch_dicts(cursor)]
    for link in links:
        check_size_of_properties(link.properties)
    return {(link.source_id, link.type, link.target_id): link for link in links}


def visible_relationships(owner: Owner, *, now: datetime) -> QuerySet[Link]:
    """Return the relationships between entities that the owner knows in the active channel and `_global`."""
    return relationships_between(owner, visible_entities(owner, now=now))


def relationships_between(owner: Owner, entities: "QuerySet[Entity]") -> QuerySet[Link]:
    ends = entities.values("id")
    rows = Link.objects.filter(account_id=owner.account_id, source_id__in=ends, target_id__in=ends)
    return rows.exclude(type__in=sorted(STRUCTURAL_TYPES))


def find_relationship(owner: Owner, relationship_id: UUID, *, now: datetime) -> Link:
    """Return a relationship of any channel. Raises NotFound."""
    entities = Entity.objects.visible_to(owner, Kind.ENTITY).live(now)
    return require_found(relationships_between(owner, entities).filter(id=relationship_id).first(), "relationship")


def delete_relationship(owner: Owner, relationship_id: UUID, *, now: datetime) -> None:
    """Delete a relationship between entities of the owner's own knowledge. Raises NotFound, Forbidden for others."""
    with transaction.atomic():
        link = find_relationship(owner, relationship_id, now=now)
        ends = Entity.objects.filter(account_id=owner.account_id, id__in=(link.source_id, link.target_id))
        if not all(holds_memory(owner, end) for end in ends):
            raise Forbidden("a relationship can be deleted only by the holder of its entities or by the account")
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
    """Walk the graph as `walk_graph` does, for the edges, and record the read in the audit log if that keeps reads.

    An entity that was merged into another stands for that one. Relations to conversations, users and tools are added if
    `types` names them (`structure.STRUCTURE_TYPES`).
    """
    bounds = WalkBounds(nodes=nodes)
    try:
        graph = walk_graph(owner, ids, depth=depth, types=types, bounds=bounds, now=now)
    except NotFound:
        starts = follow_merges(owner.account_id, ids)
        if set(starts) == set(ids):
            raise
        graph = walk_graph(owner, starts, depth=depth, types=types, bounds=bounds, now=now)
    if not STRUCTURE_TYPES.isdisjoint(types):
        graph = add_structure(owner, graph, types=types, limit=nodes)
    record_read(
        owner,
        memory_type="semantic",
        affected_ids=[node.id for node in graph.nodes],
        target_channels=list(owner.channels),
        result_count=len(graph.nodes),
        cross_channel_count=count_other_channels(owner, [node.channel for node in graph.nodes]),
    )
    return graph


def record_relationships(owner: Owner, operation: str, ids: Sequence[UUID]) -> None:
    record_audit(owner, operation=operation, memory_type="semantic", affected_ids=ids, result_count=len(ids))
