"""Changing goals (X6): adding, changing, blocking, completing and deleting them, and the same for staff.

A goal is blocked until every goal that it waits for is completed. An abandoned one goes on blocking it, until it is
unblocked or completed with `force`. Every owner that sees a goal may read it; it may be
changed for the user that it is held for, by the agent that added it and by the account. Only goals of one holder are
linked. When a goal is deleted or a link removed, by whomever, the goals that waited are not left waiting.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from memory.audit import texts_metadata
from memory.errors import Conflict, Unprocessable, require_found
from memory.identity import holder_key
from memory.masking import masks_secrets
from memory.models import Goal, Kind, Link, Memory, writer
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_changeable
from memory.services.audit import delete_audited_row, write_waiting_reads
from memory.services.custody.traces import erase_traces_of_deleted
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.resolve import holder_of_row
from memory.services.goals.store import (
    GoalLink,
    blocking_goals,
    find_goal,
    insert_goal_links,
    links_between_goals,
    lock_goal,
    lock_goal_graph,
    lock_goal_rows,
    lock_linkable_goals,
    lock_with_waiters,
    open_goals,
    recompute_status,
    recompute_waiters,
    record_goals,
    refuse_blocked_completion,
    refuse_closed_blockers,
    refuse_goal_cycle,
    save_goal,
)
from memory.services.memories.lifecycle import Lifecycle
from memory.services.memories.store import (
    ClientVector,
    MemoryDraft,
    TextUpdate,
    own_vectors,
    store_memories,
    update_texts,
)
from memory.services.work_episodes.propagate import lock_mentioning_episodes, remove_mentions
from memory.tiers.json_documents import column_differs

Status = Goal.Status

END_OPERATIONS = {Status.COMPLETED.value: "complete", Status.ABANDONED.value: "abandon"}
"""Operation in the audit log by the status that a goal ends with."""

HIDING_COLUMNS = frozenset({"archived", "quarantined"})
"""Columns that take a goal out of the way of those that wait for it."""

MAX_PRIORITY = 1_000_000_000
"""Greatest priority; the smallest is its negative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalDraft(MemoryDraft):
    """A goal before it is added, below `parent_id` and waiting for the goals in `blocked_by`.

    A greater `priority` matters more.
    """

    description: str
    priority: int = 0
    deadline: datetime | None = None
    parent_id: UUID | None = None
    blocked_by: Sequence[UUID] = ()


OWN_COLUMNS = frozenset(each.name for each in fields(GoalDraft)) - {
    *(each.name for each in fields(MemoryDraft)), "description", "parent_id", "blocked_by",
}  # fmt: skip
"""Fields of a draft that are columns of Goal under the same name. The others are shared, or become text and links."""

CHANGEABLE = OWN_COLUMNS | {"description", "metadata", "parent"}
"""Names that `change_goal` takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedGoal:
    """A goal that has ended, and the ids of the goals that it was the last to block."""

    goal: Goal
    unblocked: Sequence[UUID]


@masks_secrets
def add_goal(owner: Owner, draft: GoalDraft, *, embedded: EmbeddedTexts, now: datetime) -> Goal:
    """Add a goal: active, or blocked where it waits for another one.

    Embed the description first (`embed_texts`), outside transactions. Raises Unprocessable for a parent or blocker that
    does not exist or belongs to another holder, for a closed blocker, and for values out of range.
    """
    columns = {name: getattr(draft, name) for name in OWN_COLUMNS}
    check_goal_values({"description": draft.description, **columns})
    blockers = list(dict.fromkeys(draft.blocked_by))
    goal = Goal(
        kind=Kind.GOAL,
        text=draft.description,
        status=(Status.BLOCKED if blockers else Status.ACTIVE).value,
        **columns,
        **draft.shared_columns(now=now),
    )
    parents = [] if draft.parent_id is None else [draft.parent_id]
    with transaction.atomic():
        links = [GoalLink(goal.id, SUBGOAL_OF, other) for other in parents]
        links += [GoalLink(goal.id, BLOCKED_BY, other) for other in blockers]
        if links:
            lock_goal_graph(owner.account_id)
            others = lock_linkable_goals(owner, holder_key(owner), [*parents, *blockers], now=now)
            refuse_closed_blockers([others[other] for other in blockers])
        store_memories(owner, [goal], embedded=embedded, own=own_vectors([draft]), now=now)
        insert_goal_links(owner.account_id, links)
    goal.parent_id = draft.parent_id
    return goal


def check_goal_values(values: Mapping[str, Any]) -> None:
    if "description" in values and not values["description"].strip():
        raise Unprocessable("a goal needs a description")
    if abs(values.get("priority", 0)) > MAX_PRIORITY:
        raise Unprocessable(f"priority must be between -{MAX_PRIORITY} and {MAX_PRIORITY}")
    deadline = values.get("deadline")
    if deadline is not None and deadline.tzinfo is None:
        raise Unprocessable("a deadline needs a time zone")


@masks_secrets
def change_goal(
    owner: Owner,
    goal_id: UUID,
    *,
    changes: Mapping[str, Any],
    embedded: EmbeddedTexts,
    own: ClientVector | None = None,
    expected: ExpectedVersions = None,
    now: datetime,
) -> Goal:
    """Change columns of a goal (CHANGEABLE). `parent` is the id of a goal, or None. Equal values change nothing.

    Embed a new description first. Raises NotFound, Forbidden, StaleVersion, Unprocessable.
    """
    check_changeable(changes, allowed=CHANGEABLE, what="goal")
    check_goal_values(changes)
    with transaction.atomic():
        if "parent" in changes:
            lock_goal_graph(owner.account_id)
            lock_with_parent(owner, goal_id, changes["parent"], now=now)
        goal = lock_goal(owner, goal_id, expected=expected, now=now)
        wanted = {"text" if name == "description" else name: value for name, value in changes.items()}
        parent = wanted.pop("parent", goal.parent_id)
        columns = {name: value for name, value in wanted.items() if column_differs(goal, name, value)}
        if parent != goal.parent_id:
            set_goal_parent(owner, goal, parent, now=now)
        elif not columns:
            return goal
        if (text := columns.pop("text", None)) is not None:
            goal.version -= 1  # incremented again by `save_goal`
            update_texts(owner, [TextUpdate(row=goal, text=text, own=own)], embedded=embedded, now=now)
        save_goal(goal, now=now, **columns)
        texts = texts_metadata(owner, [] if text is None else [text])
        record_goals(owner, "update", [goal], metadata={"columns": sorted(changes)} | texts)
    return goal


def lock_with_parent(owner: Owner, goal_id: UUID, parent_id: UUID | None, *, now: datetime) -> None:
    """Lock a goal and the goal that becomes its parent, if any, in one statement: in the order of their ids.

    Call it under the lock of the goal graph. Raises NotFound, and Unprocessable for a parent that it may not have.
    """
    goal = find_goal(owner, goal_id, now=now)
    if parent_id not in (None, goal.parent_id):
        lock_linkable_goals(owner, holder_of_row(goal), {goal_id, parent_id}, now=now)


def set_goal_parent(owner: Owner, goal: Goal, parent_id: UUID | None, *, now: datetime) -> None:
    """Give a goal another parent, or none, once both are locked (`lock_with_parent`). Raises Unprocessable."""
    links_between_goals(owner.account_id, SUBGOAL_OF).filter(source_id=goal.id).delete()
    if parent_id is not None:
        link = GoalLink(goal.id, SUBGOAL_OF, parent_id)
        refuse_goal_cycle(owner.account_id, link)
        insert_goal_links(owner.account_id, [link])
    goal.parent_id = parent_id


def block_goal(owner: Owner, goal_id: UUID, *, by: UUID, expected: ExpectedVersions = None, now: datetime) -> Goal:
    """Make a goal wait for another one. Nothing changes where it does already.

    Raises NotFound, Forbidden, StaleVersion; Conflict for a closed goal; Unprocessable for a blocker that does not
    exist, is closed, waits for the goal, or is the goal itself.
    """
    link = GoalLink(goal_id, BLOCKED_BY, by)
    with transaction.atomic():
        lock_goal_graph(owner.account_id)
        goal = find_goal(owner, goal_id, now=now)
        if by == goal_id:
            raise Unprocessable("a goal cannot wait for itself")
        # both in one statement, in the order of their ids
        blocker = lock_linkable_goals(owner, holder_of_row(goal), [goal_id, by], now=now)[by]
        goal = lock_goal(owner, goal_id, expected=expected, now=now)
        if goal.completed_at is not None:
            raise Conflict("the goal is closed: nothing can block it any more")
        if links_between_goals(owner.account_id, BLOCKED_BY).filter(source_id=goal_id, target_id=by).exists():
            return goal
        refuse_closed_blockers([blocker])
        refuse_goal_cycle(owner.account_id, link)
        insert_goal_links(owner.account_id, [link])
        save_goal(goal, now=now, status=Status.BLOCKED.value)
        record_goals(owner, "block", [goal])
    return goal


def unblock_goal(owner: Owner, goal_id: UUID, *, by: UUID, expected: ExpectedVersions = None, now: datetime) -> Goal:
    """Stop a goal from waiting for another one; it is active once nothing blocks it.

    Where it does not wait for that goal, nothing changes. Raises NotFound, Forbidden, StaleVersion.
    """
    with transaction.atomic():
        lock_goal_graph(owner.account_id)
        goal = lock_goal(owner, goal_id, expected=expected, now=now)
        links = links_between_goals(owner.account_id, BLOCKED_BY).filter(source_id=goal_id)
        gone, _ = links.filter(target_id=by).delete()
        if not gone:
            return goal
        waits = links.filter(target_id__in=blocking_goals(owner.account_id, now=now).values("id")).exists()
        status = goal.status if goal.completed_at else (Status.BLOCKED if waits else Status.ACTIVE).value
        save_goal(goal, now=now, status=status)
        record_goals(owner, "unblock", [goal])
    return goal


@masks_secrets
def complete_goal(
    owner: Owner,
    goal_id: UUID,
    *,
    status: str,
    result: str = "",
    force: bool = False,
    expected: ExpectedVersions = None,
    now: datetime,
) -> EndedGoal:
    """Close a goal as `completed` or `abandoned`. Its subgoals stay as they are.

    A blocked goal is completed only with `force`, and abandoned at any time. Goals that wait for an abandoned goal stay
    blocked. Closing it again with the same status and result changes nothing. Raises NotFound, Forbidden, StaleVersion;
    Conflict where it is blocked or was closed differently; Unprocessable for another status.
    """
    if status not in END_OPERATIONS:
        raise Unprocessable("a goal can only be closed as completed or abandoned")
    with transaction.atomic():
        goal, waiting = lock_goal_with_waiters(owner, goal_id, expected=expected, now=now)
        if goal.completed_at is not None:
            if (goal.status, goal.result) != (status, result):
                raise Conflict(f"the goal is closed already: {goal.status}")
            return EndedGoal(goal=goal, unblocked=[])
        if status == Status.COMPLETED and goal.status == Status.BLOCKED and not force:
            refuse_blocked_completion(owner, goal, now=now)
        save_goal(goal, now=now, status=str(status), result=result, completed_at=now)
        record_goals(owner, END_OPERATIONS[status], [goal])
        return EndedGoal(goal=goal, unblocked=unblock_waiters(owner, waiting, now=now))


def delete_goal(owner: Owner, goal_id: UUID, *, expected: ExpectedVersions = None, now: datetime) -> list[UUID]:
    """Delete a goal and its links for good. Returns the ids of the goals that nothing blocks any more.

    Its subgoals then have no parent, and work episodes no longer mention it. Raises NotFound, Forbidden, StaleVersion.
    """
    write_waiting_reads(owner.account_id)
    with transaction.atomic():
        lock_goal_with_referrers(owner, goal_id)
        goal, waiting = lock_goal_with_waiters(owner, goal_id, expected=expected, now=now)
        erase_traces_of_deleted(owner, [goal.id])
        return erase_locked_goal(owner, goal, waiting, now=now)


def lock_goal_with_referrers(owner: Owner, goal_id: UUID) -> None:
    """Lock the goal graph. If episodes mention the goal, lock it, them, its subgoals and its waiters in one order."""
    episode_ids = lock_mentioning_episodes(owner, [goal_id])
    lock_goal_graph(owner.account_id)
    if not episode_ids:
        return
    links = links_between_goals(owner.account_id, SUBGOAL_OF, BLOCKED_BY).filter(target_id=goal_id)
    wanted = {goal_id, *episode_ids, *links.values_list("source_id", flat=True)}
    rows = Memory.objects.filter(account_id=owner.account_id, id__in=wanted).order_by("id")
    list(rows.select_for_update(of=("self",)).values_list("id", flat=True))


def erase_locked_goal(owner: Owner, goal: Goal, waiting: Collection[UUID], *, now: datetime) -> list[UUID]:
    """Delete a goal as `delete_goal` does; it and those `waiting` for it are locked, and so is the goal graph."""
    below = links_between_goals(owner.account_id, SUBGOAL_OF).filter(target_id=goal.id)
    children = list(below.values_list("source_id", flat=True))
    orphans = Memory.objects.filter(account_id=owner.account_id, id__in=children)
    locked = list(orphans.order_by("id").select_for_update(no_key=True).values_list("id", flat=True))
    remove_mentions(owner, [goal.id], now=now)
    writer.delete_memory_rows(owner.account_id, [goal.id])
    orphans.filter(id__in=locked).update(version=F("version") + 1, updated_at=now)
    record_goals(owner, "delete", [goal])
    return unblock_waiters(owner, waiting, now=now)


def lock_goal_with_waiters(
    owner: Owner, goal_id: UUID, *, expected: ExpectedVersions, now: datetime
) -> tuple[Goal, Collection[UUID]]:
    """Lock a goal that the owner may change, and those that wait for it. Returns it and their ids.

    Raises as `lock_goal` does.
    """
    lock_goal_graph(owner.account_id)
    # in one statement, in the order of their ids
    locked = lock_with_waiters(owner.account_id, [goal_id])
    goal = lock_goal(owner, goal_id, expected=expected, now=now)
    return goal, locked.keys() - {goal_id}


def unblock_waiters(owner: Owner, goal_ids: Collection[UUID], *, now: datetime) -> list[UUID]:
    """Unblock those of the locked goals that no goal blocks any more, and return their ids in order."""
    changed = recompute_status(owner, goal_ids, now=now)
    return sorted(goal_id for goal_id, status in changed.items() if status == Status.ACTIVE)


def erase_goal(owner: Owner, goal_id: UUID, *, now: datetime) -> list[UUID]:
    """Delete a goal as `delete_goal` does, for staff: archived, quarantined and expired ones, too. Raises NotFound."""
    with transaction.atomic():
        lock_goal_with_referrers(owner, goal_id)
        locked = lock_with_waiters(owner.account_id, [goal_id])
        goal = require_found(locked.pop(goal_id, None), "goal")
        return erase_locked_goal(owner, goal, locked.keys(), now=now)


def delete_goal_link(owner: Owner, link: Link, *, now: datetime) -> None:
    """Delete a link between two goals in any state, for staff. A goal that nothing else blocks is unblocked."""
    with transaction.atomic():
        lock_goal_graph(owner.account_id)
        linked = lock_goal_rows(owner.account_id, Q(id=link.source_id))
        delete_audited_row(owner, link, memory_type="link")
        changed = recompute_status(owner, linked.keys(), now=now)
        for goal in linked.values():
            if goal.id not in changed:
                save_goal(goal, now=now)


class GoalLifecycle(Lifecycle):
    """Goals, which block one another."""

    @property
    def _is_hidden_or_shown(self) -> bool:
        return not HIDING_COLUMNS.isdisjoint(self.operation.columns)

    def prepare(self) -> None:
        if self.operation.is_erasure or self._is_hidden_or_shown:
            lock_goal_graph(self.owner.account_id)
        if self.operation.is_erasure:
            blockers = Goal.objects.filter(
                account_id=self.owner.account_id, id__in=self.memory_ids, archived=False, quarantined=False
            ).exclude(status=Status.COMPLETED)
            waiting = links_between_goals(self.owner.account_id, BLOCKED_BY).filter(
                source_id__in=open_goals(self.owner.account_id).values("id"), target_id__in=blockers.values("id")
            )
            if waiting.exists():
                raise Unprocessable("others wait for one of these goals: delete it from the list of goals")

    def propagate(self, rows: Sequence[Memory]) -> None:
        if self._is_hidden_or_shown:
            recompute_waiters(self.owner, self.memory_ids, now=self.now)
