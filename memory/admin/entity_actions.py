"""Pages that merge entities and that split one, and that say beforehand what would move."""

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
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect

from memory.admin.base import BoundedAdmin, staff_owner
from memory.admin.entity_pages import count_links
from memory.admin.page_links import change_url
from memory.admin.text import error_sentence, excerpt_of, mark_invisible, text_excerpt
from memory.errors import MemoryServiceError
from memory.kinds import Kind, all_specs
from memory.models import Entity, Link
from memory.services.entities.merge import merge_entities, split_entity

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
    """Return the page that asks which entity stays. If a survivor was posted, merge the others into it."""
    obstacle = find_merge_obstacle(entities)
    if obstacle:
        pages.message_user(request, obstacle, messages.ERROR)
        return None
    survivor_id = request.POST.get("survivor", "")
    survivor = next((entity for entity in entities if str(entity.pk) == survivor_id), None)
    if request.POST.get("post") != "yes" or survivor is None:
        context = {
            "type": mark_invisible(entities[0].type),
            "candidates": merge_candidates(entities),
            "selected": ACTION_CHECKBOX_NAME,
        }
        return pages.render_page(request, "entity/merge.html", "Which entity stays?", **context)
    others = [entity for entity in entities if entity.pk != survivor.pk]
    owner, now = staff_owner(request, survivor.account_id), datetime.now(UTC)
    try:
        with transaction.atomic():
            for other in others:
                merge_entities(owner, survivor.pk, other.pk, now=now)
                pages.log_change(request, other, f"Merged into {survivor.pk}.")
            pages.log_change(request, survivor, f"Merged {len(others)} others into it.")
    except MemoryServiceError as err:
        pages.message_user(request, f"Nothing was merged. {error_sentence(err)}", messages.ERROR)
        return None
    message = f"Merged {len(others) + 1} entities into {excerpt_of(survivor.name)}. A split undoes this."
    pages.message_user(request, message, messages.SUCCESS)
    return HttpResponseRedirect(change_url("entity", survivor.pk))


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
