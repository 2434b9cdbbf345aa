"""What marking and deleting memories by hand means for goals: those that waited for one are not left waiting."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory.errors import NotFound
from memory.models import Goal, Kind, Link, Memory
from memory.models.goals import BLOCKED_BY
from memory.owner import Owner
from memory.services.audit.staff_writes import delete_row
from memory.services.goals.links import IS_WAITED_FOR, links_of, lock_rows, lock_with_waiters, settle, take_turn
from memory.services.goals.plan import erase_locked, lock_around
from memory.services.goals.rows import save_goal
from memory.services.work_episodes.mentions import hold_mentions


def hold_goals(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """The goals among these memories, after waiting for who changes how goals hang together; nobody waits for none."""
    rows = Memory.objects.filter(account_id=owner.account_id, kind=Kind.GOAL, id__in=memory_ids)
    found = list(rows.values_list("id", flat=True))
    if found:
        take_turn(owner.account_id)
    return found


def waited_for(owner: Owner, memory_ids: Collection[UUID]) -> bool:
    """Whether one of these memories is a goal that is in the way of another. Ask in the account's turn."""
    waiting = links_of(owner.account_id, BLOCKED_BY).filter(
        target_id__in=memory_ids, source__goal__status__in=Goal.OPEN
    )
    return bool(waiting.filter(IS_WAITED_FOR).exists())


def erase_goal(owner: Owner, goal_id: UUID, *, now: datetime) -> list[UUID]:
    """`delete_goal` for staff: of one that is archived, quarantined or expired as well. Raises NotFound."""
    with transaction.atomic():
        mentions = hold_mentions(owner, [goal_id])
        take_turn(owner.account_id)
        lock_around(owner, goal_id, mentions)
        locked = lock_with_waiters(owner.account_id, [goal_id])
        goal = locked.pop(goal_id, None)
        if goal is None:
            raise NotFound("no such goal")
        return erase_locked(owner, goal, locked.keys(), now=now)


def delete_goal_link(owner: Owner, link: Link, *, now: datetime) -> None:
    """Take one goal from below another, or out of its way, whatever has become of both; it goes on where nothing else
    holds it up."""
    with transaction.atomic():
        take_turn(owner.account_id)
        linked = lock_rows(owner.account_id, Q(id=link.source_id))
        delete_row(owner, link, memory_type="link")
        settled = settle(owner, linked.keys(), now=now)
        for goal in linked.values():
            if goal.id not in settled:
                save_goal(goal, now=now)
