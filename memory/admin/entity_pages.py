"""What is known of an entity, to look at: what it is related to, what is claimed of it, where it is spoken of."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import reverse

from memory.admin.base import staff_owner
from memory.admin.beliefs import QUOTE_CHARACTERS, Named, Quote, make_quote, tell_span
from memory.admin.neighbourhoods import MOST_NODES, Drawing, Edge, Node, draw
from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible, shorten
from memory.errors import NotFound
from memory.extraction.knowledge import RELATIONSHIP_TYPES
from memory.models import Entity, Kind, Link
from memory.retrieval.graph import Bounds, walk_graph
from memory.services.memories.links import ABOUT, MENTIONS

MOST_NEIGHBOURS = 100
MOST_FACTS = 50
MOST_MENTIONS = 20
MOST_ABSORBED = 50
BOUNDS = Bounds(nodes=MOST_NODES, fan_out=MOST_NODES)
DEPTH = 2
ALWAYS_WALKED = (ABOUT, *RELATIONSHIP_TYPES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """A relationship: `is_out` where it goes from the entity to the other one."""

    link_id: UUID
    type: str
    is_out: bool
    other: Named
    weight: float

    @property
    def link_url(self) -> str:
        return reverse("admin:memory_link_change", args=[self.link_id])


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldFact:
    claim: str
    status: str
    valid: str
    confidence: float
    url: str


def read_neighbours(entity: Entity) -> list[Neighbour]:
    """The entities that it is related to, the weightiest relationships first."""
    links = Link.objects.filter(Q(source_id=entity.pk) | Q(target_id=entity.pk), account_id=entity.account_id)
    links = links.filter(source__kind=Kind.ENTITY, target__kind=Kind.ENTITY).order_by("-weight", "id")
    sides = [f"{end}{column}" for end in ("source", "target") for column in ("_id", "__entity__name", "__entity__type")]
    found = links.values_list("id", "type", "weight", *sides)[:MOST_NEIGHBOURS]
    return [make_neighbour(entity.pk, *row) for row in found]


def make_neighbour(entity_id: UUID, link_id: UUID, type_: str, weight: float, *sides: Any) -> Neighbour:
    is_out = sides[0] == entity_id
    other_id, name, sort = sides[3:] if is_out else sides[:3]
    url = reverse("admin:memory_entity_change", args=[other_id])
    other = Named(name=shorten(name), sort=mark_invisible(sort), url=url)
    return Neighbour(link_id=link_id, type=mark_invisible(type_), is_out=is_out, other=other, weight=weight)


def read_facts(entity: Entity) -> list[ToldFact]:
    """The latest that are about it, whatever became of them."""
    links = Link.objects.filter(account_id=entity.account_id, target_id=entity.pk, type=ABOUT)
    columns = ("status", "valid_from", "valid_to", "confidence")
    found = (
        links.exclude(source__fact=None)
        .order_by("-id")
        .values_list(
            "source_id", Left("source__text", EXCERPT_CHARACTERS + 1), *(f"source__fact__{name}" for name in columns)
        )
    )
    return [make_fact(*row) for row in found[:MOST_FACTS]]


def make_fact(
    fact_id: UUID, text: str, status: str, valid_from: datetime | None, valid_to: datetime | None, confidence: float
) -> ToldFact:
    return ToldFact(
        claim=shorten(text),
        status=status,
        valid=tell_span(valid_from, valid_to),
        confidence=confidence,
        url=reverse("admin:memory_fact_change", args=[fact_id]),
    )


def read_mentions(entity: Entity) -> list[Quote]:
    """The latest turns that speak of it."""
    links = Link.objects.filter(account_id=entity.account_id, target_id=entity.pk, type=MENTIONS)
    columns = (
        Left("source__text", QUOTE_CHARACTERS + 1),
        "source__event_time",
        "source__conversation_id",
        "source__turn__index",
        "source__turn__role",
        "source__turn__name",
        "source__turn__log_id",
    )
    rows = links.exclude(source__turn=None).order_by("-id").values_list(*columns)[:MOST_MENTIONS]
    return [make_quote(*row) for row in rows]


def read_absorbed(entity: Entity) -> list[Named]:
    """Those that were merged into it."""
    rows: Any = Entity.objects.filter(account_id=entity.account_id, merged_into_id=entity.pk).order_by("-id")
    return [name_entity(row) for row in rows.only("id", "name", "type")[:MOST_ABSORBED]]


def name_entity(entity: Entity) -> Named:
    url = reverse("admin:memory_entity_change", args=[entity.pk])
    return Named(name=shorten(entity.name), sort=mark_invisible(entity.type), url=url)


def draw_neighbourhood(request: HttpRequest, entity: Entity, types: Collection[str], now: datetime) -> Drawing | None:
    """Entities and true facts within DEPTH relationships of it; None for one that no walk begins at, such as a merged
    one."""
    owner = staff_owner(request, entity.account_id, channel=entity.channel)
    walked = {*ALWAYS_WALKED, *types}
    try:
        graph = walk_graph(owner, [entity.pk], depth=DEPTH, types=walked, bounds=BOUNDS, now=now)
    except NotFound:
        return None
    nodes = [
        Node(id=node.id, kind=node.kind, sort=node.type or node.kind, text=node.label, depth=node.depth)
        for node in graph.nodes
    ]
    edges = [Edge(source_id=edge.source, target_id=edge.target, type=edge.type) for edge in graph.edges]
    return draw(nodes, edges, is_cut=graph.truncated)


def count_links(account_id: UUID, entity_ids: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
    """How many links of each type entities have, whichever way. Two statements."""
    found: dict[UUID, dict[str, int]] = {}
    for end in ("source_id", "target_id"):
        links = Link.objects.filter(**{"account_id": account_id, f"{end}__in": entity_ids}).order_by()
        for entity_id, type_, count in links.values_list(end, "type").annotate(count=Count("id")):
            counts = found.setdefault(entity_id, {})
            counts[type_] = counts.get(type_, 0) + count
    return found
