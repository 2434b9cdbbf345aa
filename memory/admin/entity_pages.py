"""Relationships, facts and mentions of an entity, for its page."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, Q
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from memory.admin.base import BoundedAdmin, staff_owner
from memory.admin.beliefs import (
    NamedLink,
    TurnQuote,
    entity_link,
    format_validity,
    quote_columns,
    state_of_fact,
    turn_quote,
)
from memory.admin.bulk import CONFIRMED, ReasonForm
from memory.admin.columns import change_url
from memory.admin.graph_pages import DrawnNode, GraphPicture, draw_nodes
from memory.admin.link_ends import own_column
from memory.admin.text import error_sentence, excerpt_of, mark_invisible, text_excerpt
from memory.audit import record_audit
from memory.errors import MemoryServiceError, NotFound
from memory.extraction.knowledge import RELATIONSHIP_TYPES
from memory.kinds import all_specs
from memory.models import Entity, Kind, Link
from memory.owner import Owner
from memory.retrieval.graph import WalkBounds, walk_graph
from memory.services.entities.merge import merge_entities, split_entity
from memory.services.memories.links import ABOUT, MENTIONS

MAX_NEIGHBOURS = 100
MAX_NODES = 40
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
    state: str
    valid: str
    confidence: float
    url: str


def read_neighbours(entity: Entity) -> list[Neighbour]:
    """Return the related entities, those with the greatest weight first."""
    links = Link.objects.filter(Q(source_id=entity.pk) | Q(target_id=entity.pk), account_id=entity.account_id)
    links = links.filter(source__kind=Kind.ENTITY, target__kind=Kind.ENTITY).order_by("-weight", "id")
    columns: list[Any] = []
    for end in ("source", "target"):
        columns += [f"{end}_id", own_column(end, "name"), own_column(end, "type")]
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
    rows = links.filter(source__kind=Kind.FACT).order_by("-id")
    own = (own_column("source", name) for name in ("status", "valid_from", "valid_to", "confidence"))
    found = rows.values_list("source_id", text_excerpt("source__text"), *own)[:MAX_FACTS]
    now = datetime.now(UTC)
    return [
        EntityFact(
            claim=excerpt_of(text),
            state=state_of_fact(status, valid_from, valid_to, now=now),
            valid=format_validity(valid_from, valid_to),
            confidence=confidence,
            url=change_url("fact", fact_id),
        )
        for fact_id, text, status, valid_from, valid_to, confidence in found
    ]


def read_mentions(entity: Entity) -> list[TurnQuote]:
    """Return the latest turns that mention an entity."""
    links = Link.objects.filter(account_id=entity.account_id, target_id=entity.pk, type=MENTIONS)
    rows = links.filter(source__kind=Kind.TURN).order_by("-id").values_list(*quote_columns("source"))
    return [turn_quote(*row) for row in rows[:MAX_MENTIONS]]


def read_absorbed(entity: Entity) -> list[NamedLink]:
    """Return the entities that were merged into this one."""
    rows = Entity.objects.filter(account_id=entity.account_id, merged_into_id=entity.pk).order_by("-id")
    return [entity_link(*row) for row in rows.values_list("id", "name", "type")[:MAX_ABSORBED]]


def render_entity(request: HttpRequest, entity: Entity, types: Collection[str], now: datetime) -> GraphPicture | None:
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
        DrawnNode(id=node.id, kind=node.kind, name=node.type or node.kind, text=node.label, depth=node.depth)
        for node in graph.nodes
    ]
    return draw_nodes(nodes, graph.edges, expand={}, is_cut=graph.truncated)


def count_links(account_id: UUID, entity_ids: Sequence[UUID]) -> dict[UUID, dict[str, int]]:
    """Return how many links of each type each entity has, in both directions. Issue two statements."""
    found: dict[UUID, dict[str, int]] = {}
    for end in ("source_id", "target_id"):
        links = Link.objects.filter(**{"account_id": account_id, f"{end}__in": entity_ids}).order_by()
        for entity_id, type_, count in links.values_list(end, "type").annotate(count=Count("id")):
            counts = found.setdefault(entity_id, {})
            counts[type_] = counts.get(type_, 0) + count
    return found


MAX_MERGED = 20
"""Entities that are merged at a time."""

MAX_LINKS_LISTED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class EntityCandidate:
    """An entity that may be merged, with what would move."""

    id: UUID
    name: str
    aliases: Sequence[str]
    holder: str
    links: Sequence[tuple[str, int]]
    url: str


class SplitForm(forms.Form):
    """The names that leave, by their positions in the version that the page showed, and the links that leave, by id."""

    seen_version = forms.IntegerField(widget=forms.HiddenInput)
    names = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Names to split off")
    links = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, required=False, label="Further links to split off"
    )

    def __init__(self, *args: Any, names: Sequence[str], links: Sequence[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(str(position), mark_invisible(name)) for position, name in enumerate(names)]
        self.fields["names"].choices = choices  # type: ignore[attr-defined]
        self.fields["links"].choices = links  # type: ignore[attr-defined]


def merge_selected(pages: BoundedAdmin, request: HttpRequest, entities: Sequence[Entity]) -> HttpResponse | None:
    """Return the page that asks which entity stays, and why. If both were posted, merge the others into it."""
    obstacle = find_merge_obstacle(entities)
    if obstacle:
        pages.message_user(request, obstacle, messages.ERROR)
        return None
    survivor_id = request.POST.get("survivor", "")
    survivor = next((entity for entity in entities if str(entity.pk) == survivor_id), None)
    form = ReasonForm(request.POST if request.POST.get("post") == CONFIRMED else None)
    if survivor is None or not form.is_valid():
        context = {
            "type": mark_invisible(entities[0].type),
            "candidates": merge_candidates(entities),
            "kept": survivor or entities[0],
            "selected": ACTION_CHECKBOX_NAME,
            "form": form,
        }
        return pages.render_page(request, "entity/merge.html", "Which entity stays?", **context)
    others = [entity for entity in entities if entity.pk != survivor.pk]
    owner, reason = staff_owner(request, survivor.account_id), form.cleaned_data["reason"]
    try:
        with transaction.atomic():
            merge_others(owner, survivor, others, reason=reason)
            for other in others:
                pages.log_change(request, other, f"Merged into {survivor.pk}. Reason: {reason}")
            pages.log_change(request, survivor, f"Merged {len(others)} others into it. Reason: {reason}")
    except MemoryServiceError as err:
        pages.message_user(request, f"Nothing was merged. {error_sentence(err)}", messages.ERROR)
        return None
    message = f"Merged {len(others) + 1} entities into {excerpt_of(survivor.name)}. A split undoes this."
    pages.message_user(request, message, messages.SUCCESS)
    return HttpResponseRedirect(change_url("entity", survivor.pk))


def merge_others(owner: Owner, survivor: Entity, others: Sequence[Entity], *, reason: str) -> None:
    """Merge entities into one, with an audit entry that has the reason, like that of a bulk change."""
    now = datetime.now(UTC)
    for other in others:
        merge_entities(owner, survivor.pk, other.pk, now=now)
    record_audit(
        owner,
        operation="bulk_change",
        memory_type="bulk",
        affected_ids=[survivor.pk, *(other.pk for other in others)],
        result_count=len(others),
        config_snapshot={"model": "entity", "action": "merge", "reason": reason},
    )


def find_merge_obstacle(entities: Sequence[Entity]) -> str:
    """Return why these entities cannot be merged, or "" if nothing is known to prevent it."""
    if not 2 <= len(entities) <= MAX_MERGED:
        return f"Choose 2 to {MAX_MERGED} entities to merge."
    if len({entity.account_id for entity in entities}) > 1:
        return "The entities belong to different accounts. Only entities of one account can be merged."
    if len({entity.type for entity in entities}) > 1:
        return "The entities are of different types. Only entities of one type can be merged."
    if len({(entity.user_id, "" if entity.user_id else entity.agent_id) for entity in entities}) > 1:
        return "The entities are known to different users or agents, whose knowledge is never mixed."
    if any(entity.archived for entity in entities):
        return "One of the entities is archived or was merged already."
    return ""


def merge_candidates(entities: Sequence[Entity]) -> list[EntityCandidate]:
    counts = count_links(entities[0].account_id, [entity.pk for entity in entities])
    return [
        EntityCandidate(
            id=entity.pk,
            name=excerpt_of(entity.name),
            aliases=[excerpt_of(alias) for alias in entity.aliases],
            holder=f"{mark_invisible(entity.user_id or entity.agent_id) or 'the account'}, "
            f"{mark_invisible(entity.channel)}",
            links=sorted((mark_invisible(name), count) for name, count in counts.get(entity.pk, {}).items()),
            url=change_url("entity", entity.pk),
        )
        for entity in entities
    ]


def split_view(pages: BoundedAdmin, request: HttpRequest, object_id: str) -> HttpResponse:
    """Show the names and links of an entity. If some were posted, move them to another entity."""
    entity: Entity | None = pages.get_object(request, object_id)
    if not pages.has_change_permission(request, entity):
        raise PermissionDenied
    if entity is None:
        raise Http404("There is no such entity.")
    names: list[str] = entity.names
    links = list_links(entity, readable=readable_kinds(request))
    form = SplitForm(request.POST or None, names=names, links=links, initial={"seen_version": entity.version})
    if request.method == "POST" and form.is_valid():
        other = split_off(pages, request, entity, form)
        if other is not None:
            return HttpResponseRedirect(change_url("entity", other.pk))
    context = {
        "heading": excerpt_of(entity.name),
        "entity": entity,
        "form": form,
        "may_split": len(names) > 1 and not entity.archived,
    }
    return pages.render_page(request, "entity/split.html", f"Split {excerpt_of(entity.name)}", **context)


def split_off(pages: BoundedAdmin, request: HttpRequest, entity: Entity, form: SplitForm) -> Entity | None:
    """Split off what was chosen and return the other entity. Return None after adding an error to the form."""
    if form.cleaned_data["seen_version"] != entity.version:
        form.add_error(None, "Somebody else has changed the entity in the meantime. Choose again.")
        return None
    names = [entity.names[int(position)] for position in form.cleaned_data["names"]]
    link_ids = [UUID(link_id) for link_id in form.cleaned_data["links"]]
    owner = staff_owner(request, entity.account_id)
    try:
        other = split_entity(owner, entity.pk, names=names, link_ids=link_ids, now=datetime.now(UTC))
    except MemoryServiceError as err:
        form.add_error(None, error_sentence(err))
        return None
    pages.log_change(request, entity, f"Split off {other.pk}.")
    pages.message_user(request, f"{excerpt_of(other.name)} is an entity of its own now.", messages.SUCCESS)
    return other


def readable_kinds(request: HttpRequest) -> set[str]:
    """Return the kinds whose texts the user may read on pages of entities."""
    readable = {spec.name for spec in all_specs() if request.user.has_perm(f"memory.view_{spec.admin_page}")}
    return {Kind.ENTITY, *readable}


def list_links(entity: Entity, *, readable: Collection[str]) -> list[tuple[str, str]]:
    """Return the links of an entity as choices, latest first. Show the texts of readable kinds only."""
    links = Link.objects.filter(Q(source_id=entity.pk) | Q(target_id=entity.pk), account_id=entity.account_id)
    columns: list[Any] = ["id", "type"]
    for end in ("source", "target"):
        columns += [f"{end}_id", f"{end}__kind", text_excerpt(f"{end}__text")]
    choices = []
    for link_id, type_, *ends in links.order_by("-id").values_list(*columns)[:MAX_LINKS_LISTED]:
        is_out = ends[0] == entity.pk
        other_id, kind, text = ends[3:] if is_out else ends[:3]
        other = f"{kind}: {excerpt_of(text)}" if kind in readable else f"{kind} {other_id}"
        choices.append((str(link_id), f"{mark_invisible(type_)} {'→' if is_out else '←'} {other}"))
    return choices
