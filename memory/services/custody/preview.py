"""Previews of deletions: counts by kind of what goes, and which memories were derived from it."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from memory.errors import Unprocessable, require_found
from memory.models import Memory
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation
from memory.services.custody.conversations import held_memories, strategies_of
from memory.services.custody.memories import find_derived

MAX_PREVIEWED = 20_000
"""Memories of a conversation that are looked at together."""
MAX_NAMED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """Numbers of memories by kind: those that are deleted as such, and those that go with them as derived from them.

    `derived_ids` are the first MAX_NAMED derived ones that the owner sees.
    """

    counts: Counter[str]
    derived: Counter[str]
    derived_ids: list[UUID]


def preview_memory(owner: Owner, memory_id: UUID) -> ErasurePreview:
    """Say what goes when a memory is erased, of whatever kind. Raises NotFound."""
    rows = Memory.objects.visible_to(owner).filter(id=memory_id)
    return preview_rows(owner, [require_found(rows.values_list("id", flat=True).first(), "memory")])


def preview_conversation(owner: Owner, conversation_id: str) -> ErasurePreview:
    """Say what goes when a conversation is erased. Raises NotFound, and Unprocessable for one that is too large."""
    conversation = find_conversation(owner, conversation_id)
    held = held_memories(owner.account_id, conversation_id).order_by("id").values_list("id", flat=True)
    ids = list(held[: MAX_PREVIEWED + 1])
    if len(ids) > MAX_PREVIEWED:
        raise Unprocessable(f"a conversation of more than {MAX_PREVIEWED:,} memories has no preview")
    return preview_rows(owner, [*ids, *strategies_of(conversation)])


def preview_rows(owner: Owner, memory_ids: Collection[UUID]) -> ErasurePreview:
    derived_ids = find_derived(owner.account_id, memory_ids) - set(memory_ids)
    rows = Memory.objects.filter(account_id=owner.account_id)
    seen = Memory.objects.visible_to(owner).filter(id__in=derived_ids).order_by("id")
    return ErasurePreview(
        counts=Counter(rows.filter(id__in=memory_ids).order_by().values_list("kind", flat=True)),
        derived=Counter(rows.filter(id__in=derived_ids).order_by().values_list("kind", flat=True)),
        derived_ids=list(seen.values_list("id", flat=True)[:MAX_NAMED]),
    )
