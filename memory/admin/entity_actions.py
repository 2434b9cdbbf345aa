"""Merging entities that are one, and splitting one that is two: pages that say beforehand what moves."""

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
from django.db.models import Q
from django.db.models.functions import Left
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from memory.admin.base import Admin, staff_owner
from memory.admin.deeds import say_refusal
from memory.admin.entity_pages import count_links
from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible, shorten
from memory.errors import MemoryServiceError
from memory.models import Entity, Kind, Link
from memory.services.entities.merge import merge_entities, split_entity

MOST_MERGED = 20
"""Entities at once."""

MOST_LINKS_LISTED = 200

MODELS_OF_KINDS = {
    Kind.TURN: "turn",
    Kind.EPISODE: "episodicmemory",
    Kind.FACT: "fact",
    Kind.STRATEGY: "strategy",
    Kind.GOAL: "goal",
    Kind.CONTEXT_ENTRY: "contextentry",
    Kind.LEARNING: "learning",
}
"""Whose pages are looked at by a permission of their own; those of other kinds by that for all memories."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An entity that may be merged, with what would move."""

    id: UUID
    name: str
    others: Sequence[str]
    held_by: str
    links: Sequence[tuple[str, int]]
    url: str


class SplitForm(forms.Form):
    """Which names leave, by their places among those of the version that was seen, and which links, by their ids."""

    seen_version = forms.IntegerField(widget=forms.HiddenInput)

    names = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Names that leave")
    links = forms.MultipleChoiceField(
        widget=forms.CheckboxSelectMultiple, required=False, label="Further links that leave"
    )

    def __init__(self, *args: Any, names: Sequence[str], links: Sequence[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["names"].choices = [(str(place), mark_invisible(name)) for place, name in enumerate(names)]  # type: ignore[attr-defined]
        self.fields["links"].choices = links  # type: ignore[attr-defined]


def merge_selected(pages: Admin, request: HttpRequest, entities: Sequence[Entity]) -> HttpResponse | None:
    """The page that asks which one stays; posted with a survivor, merge the others into it."""
    refusal = find_obstacle(entities)
    if refusal:
        pages.message_user(request, refusal, messages.ERROR)
        return None
    survivor_id = request.POST.get("survivor", "")
    survivor = next((entity for entity in entities if str(entity.pk) == survivor_id), None)
    if request.POST.get("post") != "yes" or survivor is None:
        return TemplateResponse(request, "admin/memory/entity/merge.html", describe_merge(pages, request, entities))
    others = [entity for entity in entities if entity.pk != survivor.pk]
    owner, now = staff_owner(request, survivor.account_id), datetime.now(UTC)
    try:
        with transaction.atomic():
            for other in others:
                merge_entities(owner, survivor.pk, other.pk, now=now)
                pages.log_change(request, other, f"Merged into {survivor.pk}.")
            pages.log_change(request, survivor, f"Merged {len(others)} others into it.")
    except MemoryServiceError as err:
        pages.message_user(request, f"Nothing was merged: {say_refusal(err)}", messages.ERROR)
        return None
    told = f"Merged: {len(others) + 1} are one, {shorten(survivor.name)}. A split takes it back."
    pages.message_user(request, told, messages.SUCCESS)
    return HttpResponseRedirect(reverse("admin:memory_entity_change", args=[survivor.pk]))


def find_obstacle(entities: Sequence[Entity]) -> str:
    """Why these cannot be merged; empty where they can, as far as is seen beforehand."""
    if not 2 <= len(entities) <= MOST_MERGED:
        return f"Choose two entities, or up to {MOST_MERGED}."
    if len({entity.account_id for entity in entities}) > 1:
        return "They belong to different accounts, and nothing crosses an account."
    if len({entity.type for entity in entities}) > 1:
        return "They are of different types: only entities of one type are merged."
    if len({(entity.user_id, "" if entity.user_id else entity.agent_id) for entity in entities}) > 1:
        return "They are known to different users or agents: what two of them know is not mixed."
    if any(entity.archived for entity in entities):
        return "One of them is archived, or merged already."
    return ""


def describe_merge(pages: Admin, request: HttpRequest, entities: Sequence[Entity]) -> dict[str, Any]:
    counts = count_links(entities[0].account_id, [entity.pk for entity in entities])
    return {
        **pages.admin_site.each_context(request),
        "opts": pages.opts,
        "title": "Which one stays?",
        "type": mark_invisible(entities[0].type),
        "candidates": [
            Candidate(
                id=entity.pk,
                name=shorten(entity.name),
                others=[shorten(alias) for alias in entity.aliases],
                held_by=tell_holder(entity),
                links=sorted((mark_invisible(name), count) for name, count in counts.get(entity.pk, {}).items()),
                url=reverse("admin:memory_entity_change", args=[entity.pk]),
            )
            for entity in entities
        ],
        "selected": ACTION_CHECKBOX_NAME,
    }


def tell_holder(entity: Entity) -> str:
    """Who knows of it, and in which channel."""
    return f"{mark_invisible(entity.user_id or entity.agent_id) or 'the account'}, {mark_invisible(entity.channel)}"


def split_view(pages: Admin, request: HttpRequest, object_id: str) -> HttpResponse:
    """A page of its own: names and links of an entity; posted, those chosen leave it for another one."""
    entity: Entity | None = pages.get_object(request, object_id)
    if not pages.has_change_permission(request, entity):
        raise PermissionDenied
    if entity is None:
        raise Http404("no such entity")
    names: list[str] = entity.names
    links = list_links(entity, readable=readable_kinds(request))
    form = SplitForm(request.POST or None, names=names, links=links, initial={"seen_version": entity.version})
    if request.method == "POST" and form.is_valid():
        other = split(pages, request, entity, form)
        if other is not None:
            return HttpResponseRedirect(reverse("admin:memory_entity_change", args=[other.pk]))
    context = {
        **pages.admin_site.each_context(request),
        "opts": pages.opts,
        "title": f"Split {shorten(entity.name)}",
        "heading": shorten(entity.name),
        "entity": entity,
        "form": form,
        "may_split": len(names) > 1 and not entity.archived,
    }
    return TemplateResponse(request, "admin/memory/entity/split.html", context)


def split(pages: Admin, request: HttpRequest, entity: Entity, form: SplitForm) -> Entity | None:
    """The other one; None, after saying why, where there is none."""
    if form.cleaned_data["seen_version"] != entity.version:
        form.add_error(None, "Somebody else has changed it in the meantime: choose again.")
        return None
    names = [entity.names[int(place)] for place in form.cleaned_data["names"]]
    link_ids = [UUID(link_id) for link_id in form.cleaned_data["links"]]
    owner = staff_owner(request, entity.account_id)
    try:
        other = split_entity(owner, entity.pk, names=names, link_ids=link_ids, now=datetime.now(UTC))
    except MemoryServiceError as err:
        form.add_error(None, say_refusal(err))
        return None
    pages.log_change(request, entity, f"Split: {other.pk} left it.")
    pages.message_user(request, f"Split: this is {shorten(other.name)} by itself.", messages.SUCCESS)
    return other


def readable_kinds(request: HttpRequest) -> set[str]:
    """The kinds whose texts the user may read, on pages of entities."""
    models = {kind: MODELS_OF_KINDS.get(kind, "memory") for kind in Kind}
    return {Kind.ENTITY, *(kind for kind, model in models.items() if request.user.has_perm(f"memory.view_{model}"))}


def list_links(entity: Entity, *, readable: Collection[str]) -> list[tuple[str, str]]:
    """Links of the entity by id, told from the other end, the latest first; texts of readable kinds only."""
    links = Link.objects.filter(Q(source_id=entity.pk) | Q(target_id=entity.pk), account_id=entity.account_id)
    sides = [
        (f"{end}_id", f"{end}__kind", Left(f"{end}__text", EXCERPT_CHARACTERS + 1)) for end in ("source", "target")
    ]
    columns: list[Any] = ["id", "type", *sides[0], *sides[1]]
    rows = links.order_by("-id").values_list(*columns)[:MOST_LINKS_LISTED]
    return [(str(link_id), tell_link(entity.pk, type_, ends, readable)) for link_id, type_, *ends in rows]


def tell_link(entity_id: UUID, type_: str, ends: Sequence[Any], readable: Collection[str]) -> str:
    """For people: the type, and what is at the other end; its id in place of a text that is not theirs to read."""
    is_out = ends[0] == entity_id
    other_id, kind, text = ends[3:] if is_out else ends[:3]
    other = f"{kind}: {shorten(text)}" if kind in readable else f"{kind} {other_id}"
    return f"{mark_invisible(type_)} {'→' if is_out else '←'} {other}"
