"""What marking and deleting memories by hand means for goals: those that waited for one are not left waiting."""

from collections.abc import Collection
from uuid import UUID

from memory.models import Kind, Memory
from memory.models.goals import BLOCKED_BY
from memory.owner import Owner
from memory.services.goal_links import links_of, take_turn


def hold_goals(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """The goals among these memories, after waiting for who changes how goals hang together; nobody waits for none."""
    rows = Memory.objects.filter(account_id=owner.account_id, kind=Kind.GOAL, id__in=memory_ids)
    found = list(rows.values_list("id", flat=True))
    if found:
        take_turn(owner.account_id)
    return found


def waited_for(owner: Owner, memory_ids: Collection[UUID]) -> bool:
    """Whether one of these memories is a goal that holds up another."""
    waiting = links_of(owner.account_id, BLOCKED_BY).filter(target_id__in=memory_ids)
    return bool(waiting.filter(target__archived=False, target__quarantined=False).exists())
