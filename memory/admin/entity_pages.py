"""Relationships, facts and mentions of an entity, for its page."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q
from django.http import HttpRequest

from memory.admin.base import staff_owner
from memory.admin.beliefs import NamedLink, TurnQuote, entity_link, format_validity, quote_columns, turn_quote
from memory.admin.neighbourhoods import MAX_NODES, Drawing, Edge, Node, render_neighbourhood
from memory.admin.page_links import change_url
from memory.admin.text import excerpt_of, mark_invisible, text_excerpt
from memory.errors import NotFound
from memory.extraction.knowledge import RELATIONSHIP_TYPES
from memory.models import Entity, Kind, Link
from memory.retrieval.graph import WalkBounds, walk_graph
from memory.services.memories.links import ABOUT, MENTIONS

MAX_NEIGHBOURS = 100
MAX_FACTS = 50
MAX_MENTIONS = 20
MAX_ABSORBED = 50
BOUNDS = WalkBounds(nodes=MAX_NODES, fan_out=MAX_NODES)
DEPTH = 2
ALWAYS_WALKED = (ABOUT, *RELATIONSHIP_TYPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A related entity. `is_out` if the relationship goes from this entity to the other one."""

    link_id: UUID
    type: str
    is_out: bool
    other: NamedLink
    weight: float

    @property
    def link_url(self) -> str:
        return change_url("link", self.link_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityFact:
    """A fact about an entity, ready for a page."""

    claim: str
    status: str
    valid: str
    confidence: float
    url: str


def read_neighbours(entity: Entity) -> list[Neighbour]:
    """Return the related entities, those with the greatest weight first."""
    links = Link.objects.filter(Q(source_id=entity.pk) | Q(target_id=entity.pk), account_id=entity.account_id)
    links = links.filter(source__kind=Kind.ENTITY, target__kind=Kind.ENTITY).order_by("-weight", "id")
    columns = [f"{end}{name}" for end in ("source", "target") for name in ("_id", "__entity__name", "__entity__type")]
    neighbours = []
    for link_id, type_, weight, *ends in links.values_list("id", "type", "weight", *columns)[:MAX_NEIGHBOURS]:
        is_out = ends[0] == entity.pk
        other = entity_link(*(ends[3:] if is_out else ends[:3]))
        type_ = mark_invisible(type_)
        neighbours.append(Neighbour(link_id=link_id, type=type_, is_out=is_out, other=other, weight=weight))
    return neighbours


def read_facts(entity: Entity) -> list[EntityFact]:
    """Return the latest facts about an entity, whatever their status."""
    links = Link.objects.filter(account_id=entity.account_id, target_id=entity.pk, type=ABOUT)
    rows = links.exclude(source__fact=None).order_by("-id")
    names = (f"source__fact__{name}" for name in ("status", "valid_from", "valid_to", "confidence"))
    found = rows.values_list("source_id", text_excerpt("source__text"), *names)[:MAX_FACTS]
    return [
        EntityFact(
            claim=excerpt_of(text),
            status=status,
            valid=format_validity(valid_from, valid_to),
            confidence=confidence,
            url=change_url("fact", fact_id),
        )
        for fact_id, text, status, valid_from, valid_to, confidence in found
    ]


def read_mentions(entity: Entity) -> list[TurnQuote]:
    """Return the latest turns that mention an entity."""
    links = Link.objects.filter(account_id=entity.account_id, target_id=entity.pk, type=MENTIONS)
    rows = links.exclude(source__turn=None).order_by("-id").values_list(*quote_columns("source"))
    return [turn_quote(*row) for row in rows[:MAX_MENTIONS]]


def read_absorbed(entity: Entity) -> list[NamedLink]:
    """Return the entities that were merged into this one."""
    rows: Any = Entity.objects.filter(account_id=entity.account_id, merged_into_id=entity.pk).order_by("-id")
    return [entity_link(*row) for row in rows.values_list("id", "name", "type")[:MAX_ABSORBED]]


def render_entity(request: HttpRequest, entity: Entity, types: Collection[str], now: datetime) -> Drawing | None:
    """Render the entities and true facts within DEPTH relationships of an entity.

    Return None for an entity that no walk can start at, such as a merged one.
    """
    owner = staff_owner(request, entity.account_id, channel=entity.channel)
    walked = {*ALWAYS_WALKED, *types}
    try:
        graph = walk_graph(owner, [entity.pk], depth=DEPTH, types=walked, bounds=BOUNDS, now=now)
    except NotFound:
        return None
    nodes = [
        Node(id=node.id, kind=node.kind, type=node.type or node.kind, text=node.label, depth=node.depth)
        for node in graph.nodes
    ]
    edges = [Edge(source_id=edge.source, target_id=edge.target, type=edge.type) for edge in graph.edges]
    return render_neighbourhood(nodes, edges, is_cut=graph.truncated)


def count_links(account_id: UUID, entity_ids: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
    """Return how many links of each type each entity has, in both directions. Issue two statements."""
    found: dict[UUID, dict[str, int]] = {}
    for end in ("source_id", "target_id"):
        links = Link.objects.filter(**{"account_id": account_id, f"{end}__in": entity_ids}).order_by()
        for entity_id, type_, count in links.values_list(end, "type").annotate(count=Count("id")):
            counts = found.setdefault(entity_id, {})
            counts[type_] = counts.get(type_, 0) + count
    return found
