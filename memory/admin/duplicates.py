"""What was merged with what, on the pages of memories, and the action that takes it apart again."""

from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.base import BoundedAdmin, staff_owner
from memory.admin.deeds import say_refusal
from memory.admin.text import EXCERPT_CHARACTERS, shorten
from memory.admin.vectors import link_to_memory
from memory.errors import MemoryServiceError
from memory.models import ContextEntry, Fact, Learning, Link, Memory, Strategy
from memory.services.duplicates.merge import undo_merge
from memory.services.memories.links import DUPLICATE_OF, NOT_DUPLICATE_OF

MERGED_MODELS: frozenset[type[Memory]] = frozenset({Memory, Fact, ContextEntry, Learning, Strategy})
"""Whose pages tell of merges and have the action."""

MOST_NAMED = 20

RELATIONS = {
    (DUPLICATE_OF, True): "Merged into",
    (DUPLICATE_OF, False): "Stands for",
    (NOT_DUPLICATE_OF, True): "Kept apart from",
    (NOT_DUPLICATE_OF, False): "Kept apart from",
}
"""By type of link, and whether it leads away."""


def tell_merges(memory: Memory) -> SafeString | str:
    """The latest first; of the same kind, so that who may read the one may read the other."""
    links = Link.objects.filter(Q(source_id=memory.pk) | Q(target_id=memory.pk), account_id=memory.account_id)
    rows = links.filter(type__in=(DUPLICATE_OF, NOT_DUPLICATE_OF)).order_by("-id")
    texts = [Left(f"{end}__text", EXCERPT_CHARACTERS + 1) for end in ("source", "target")]
    columns: list[Any] = ["type", "source_id", "target_id", "weight", "created_at", *texts]
    told = [tell_merge(memory, row) for row in rows.values_list(*columns)[:MOST_NAMED]]
    return format_html_join("", "<p>{}</p>", ((each,) for each in told)) if told else "nothing"


def tell_merge(memory: Memory, row: tuple[Any, ...]) -> SafeString:
    type_, source_id, target_id, similarity, made_at, source_text, target_text = row
    is_out = source_id == memory.pk
    other_id, text = (target_id, target_text) if is_out else (source_id, source_text)
    how = f", similar by {similarity:.3f}, {made_at:%Y-%m-%d}" if type_ == DUPLICATE_OF else ""
    return format_html("{} {} <bdi>{}</bdi>{}", RELATIONS[type_, is_out], link_to_memory(other_id), shorten(text), how)


def undo_merges(pages: BoundedAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> None:
    """Of each of the selected: it is back, with its counts, and not merged into that one again."""
    done, refusals = 0, set()
    for memory in queryset.only("id", "account_id").order_by("-pk"):
        try:
            undo_merge(staff_owner(request, memory.account_id), memory.pk, now=datetime.now(UTC))
        except MemoryServiceError as err:
            refusals.add(say_refusal(err))
        else:
            pages.log_change(request, memory, "Merge undone.")
            done += 1
    pages.message_user(request, f"Back: {done}.", messages.SUCCESS)
    for refusal in sorted(refusals):
        pages.message_user(request, f"Not all: {refusal}", messages.WARNING)
