"""Merged duplicates on the pages of memories."""

from typing import Any

from django.db.models import Q
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from memory.admin.columns import DAY
from memory.admin.page_links import row_link
from memory.admin.text import excerpt_of, text_excerpt
from memory.kinds import kinds_where
from memory.models import Link, Memory
from memory.models.memory import model_of
from memory.services.memories.links import DUPLICATE_OF, NOT_DUPLICATE_OF

MERGED_MODELS: frozenset[type[Memory]] = frozenset({Memory, *map(model_of, kinds_where(lambda spec: spec.merging))})
"""Models whose pages show merges and offer to undo them."""

MAX_MERGES = 20

RELATIONS = {
    (DUPLICATE_OF, True): "Merged into",
    (DUPLICATE_OF, False): "Replaces the duplicate",
    (NOT_DUPLICATE_OF, True): "Kept apart from",
    (NOT_DUPLICATE_OF, False): "Kept apart from",
}
"""Relations of a memory to another one, by type of link and whether the link goes out."""


def render_merges(memory: Memory) -> SafeString | str:
    """Render the merges of a memory, latest first.

    The other memories are of the same kind: a user who may read this one may read them.
    """
    links = Link.objects.filter(Q(source_id=memory.pk) | Q(target_id=memory.pk), account_id=memory.account_id)
    rows = links.filter(type__in=(DUPLICATE_OF, NOT_DUPLICATE_OF)).order_by("-id")
    columns: list[Any] = ["type", "source_id", "target_id", "weight", "created_at"]
    columns += [text_excerpt("source__text"), text_excerpt("target__text")]
    lines = [merge_line(memory, row) for row in rows.values_list(*columns)[:MAX_MERGES]]
    return format_html_join("", "<p>{}</p>", ((line,) for line in lines)) or "none"


def merge_line(memory: Memory, row: tuple[Any, ...]) -> SafeString:
    type_, source_id, target_id, similarity, made_at, source_text, target_text = row
    is_out = source_id == memory.pk
    other_id, text = (target_id, target_text) if is_out else (source_id, source_text)
    details = f", similarity {similarity:.3f}, {made_at:{DAY}}" if type_ == DUPLICATE_OF else ""
    link = row_link("memory", other_id, other_id)
    return format_html("{} {} <bdi>{}</bdi>{}", RELATIONS[type_, is_out], link, excerpt_of(text), details)
