"""Goals (X6): added, found, changed, put into each other's way, ended.

A goal is blocked as long as one that it waits for is open. Who sees a goal may read it; it is changed for the user that
it is held for, by the agent that added it, and by the account. Goals hang together within one holder only.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Value, When
from django.db.models.functions import Coalesce

from memory.audit import texts_kept
from memory.errors import Conflict, Unprocessable
from memory.identity import holder
from memory.models import Goal, Kind, Link, Memory, writer
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.owner import Owner
from memory.retrieval.goals import GoalsFound, search_goals
from memory.services.accounts.access import Versions
from memory.services.embedding.embed import Embedded
from memory.services.goals.links import (
    IS_WAITED_FOR,
    GoalLink,
    insert_goal_links,
    links_of,
    lock_with_waiters,
    refuse_ring,
    settle,
    take_turn,
)
from memory.services.goals.rows import (
    find_goal,
    holder_of,
    lock_goal,
    lock_linkable,
    record_goals,
    refuse_closed,
    save_goal,
    visible_goals,
)
from memory.services.memories.store import OwnVector, Rewording, reword_memories, store_memories
from memory.services.recall.search import make_query, record_search
from memory.services.work_episodes.mentions import hold_mentions, retell_without
from memory.tiers.json_documents import comparable_json
from memory_project.ids import uuid7

Status = Goal.Status

OPERATIONS = {Status.COMPLETED.value: "complete", Status.ABANDONED.value: "abandon"}
"""In the audit log, by the status that a goal ends with."""

CHANGEABLE = frozenset({"description", "priority", "deadline", "metadata", "parent"})

LARGEST_PRIORITY = 1_000_000_000
"""And, below zero, the smallest."""

MOST_RELATED = 200
"""Goals that come along with one that is read."""

NEVER = datetime.max.replace(tzinfo=UTC)
"""The deadline of a goal that has none, as lists order it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalDraft:
    """A goal before it is added: below `parent_id`, waiting for those in `blocked_by`. The greater `priority`, the
    more it matters. `own` is a vector that the client brought."""

    description: str
    priority: int = 0
    deadline: datetime | None = None
    parent_id: UUID | None = None
    blocked_by: Sequence[UUID] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    event_time: datetime | None = None
    source: str = "agent"
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalView:
    """A goal with those around it, as far as the owner sees them: what it is part of, its parts, what it waits for
    (the closed ones, too) and what waits for it.

    The most pressing first; `truncated` where there are more than MOST_RELATED in all.
    """

    goal: Goal
    parent: Goal | None
    children: Sequence[Goal]
    blockers: Sequence[Goal]
    waiters: Sequence[Goal]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """A goal that has ended, and the ids of those that it held up, and nothing else does."""

    goal: Goal
    unblocked: Sequence[UUID]


def add_goal(owner: Owner, draft: GoalDraft, *, embedded: Embedded, now: datetime) -> Goal:
    """Add a goal, active, or blocked where it waits for another.

    Embed the description first (`embed_texts`), outside transactions. Raises Unprocessable for a parent or a blocker
    that there is not, or that is somebody else's, for a blocker that is closed, and for values out of range.
    """
    check_values({"description": draft.description, "priority": draft.priority, "deadline": draft.deadline})
    blockers = list(dict.fromkeys(draft.blocked_by))
    goal = Goal(
        id=draft.id,
        kind=Kind.GOAL,
        text=draft.description,
        status=(Status.BLOCKED if blockers else Status.ACTIVE).value,
        priority=draft.priority,
        deadline=draft.deadline,
        event_time=draft.event_time or now,
        source=draft.source,
        metadata=draft.metadata,
    )
    parents = [] if draft.parent_id is None else [draft.parent_id]
    with transaction.atomic():
        links = [GoalLink(goal.id, SUBGOAL_OF, other) for other in parents]
        links += [GoalLink(goal.id, BLOCKED_BY, other) for other in blockers]
        if links:
            take_turn(owner.account_id)
            others = lock_linkable(owner, holder(owner), [*parents, *blockers], now=now)
            refuse_closed([others[other] for other in blockers])
        own = {draft.id: draft.own} if draft.own is not None else {}
        store_memories(owner, [goal], embedded=embedded, own=own, now=now)
        insert_goal_links(owner.account_id, links)
    goal.parent_id = draft.parent_id
    return goal


def check_values(values: Mapping[str, Any]) -> None:
    """Raises Unprocessable."""
    if "description" in values and not values["description"].strip():
        raise Unprocessable("a goal has a description")
    if abs(values.get("priority", 0)) > LARGEST_PRIORITY:
        raise Unprocessable(f"a priority lies between -{LARGEST_PRIORITY} and {LARGEST_PRIORITY}")
    deadline = values.get("deadline")
    if deadline is not None and deadline.tzinfo is None:
        raise Unprocessable("a deadline has a time zone")


def listed_goals(owner: Owner, *, now: datetime) -> QuerySet[Goal]:
    """Those of the owner's channel and of `_global`, with `due`: the deadline, NEVER for none."""
    rows: Any = visible_goals(owner, now=now)
    found: QuerySet[Goal] = rows.in_channels(owner).annotate(due=Coalesce("deadline", Value(NEVER)))
    return found


def active_goals(owner: Owner, *, now: datetime) -> QuerySet[Goal]:
    """The open ones, blocked ones among them: those that matter most first, of these the first that are due."""
    rows: QuerySet[Any] = listed_goals(owner, now=now).filter(status__in=Goal.OPEN)
    return rows.order_by("-priority", "due", "id")


def get_goal(owner: Owner, goal_id: UUID, *, now: datetime) -> GoalView:
    """A goal with those around it. Raises NotFound."""
    goal = find_goal(owner, goal_id, now=now)
    around = links_of(owner.account_id, SUBGOAL_OF, BLOCKED_BY).filter(Q(source_id=goal.id) | Q(target_id=goal.id))
    # its parent above all, and what it waits for
    own_first = Case(When(source_id=goal.id, then=0), default=1)
    found: list[Link] = list(around.order_by(own_first, "-type", "id")[: MOST_RELATED + 1])
    links = found[:MOST_RELATED]
    others = {link.target_id if link.source_id == goal.id else link.source_id for link in links}
    known = {other.id: other for other in visible_goals(owner, now=now).filter(id__in=others)} if others else {}

    def related(to: str, link_type: str) -> list[Goal]:
        ends = ("source_id", "target_id") if to == "source" else ("target_id", "source_id")
        ids = [getattr(link, ends[1]) for link in links if (link.type, getattr(link, ends[0])) == (link_type, goal.id)]
        return sorted((known[other] for other in ids if other in known), key=pressing_first)

    return GoalView(
        goal=goal,
        parent=next(iter(related("source", SUBGOAL_OF)), None),
        children=related("target", SUBGOAL_OF),
        blockers=related("source", BLOCKED_BY),
        waiters=related("target", BLOCKED_BY),
        truncated=len(found) > MOST_RELATED,
    )


def pressing_first(goal: Goal) -> tuple[int, datetime, UUID]:
    """The order of lists, for sorting."""
    return -goal.priority, goal.deadline or NEVER, goal.id


def find_goals(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    own: OwnVector | None = None,
    statuses: Collection[str] = Goal.OPEN,
    now: datetime,
) -> GoalsFound:
    """The goals nearest to `text`, or to the client's own vector: the open ones, or those of other statuses."""
    query = replace(make_query(text, top_k=top_k, own=own), types=tuple(map(str, statuses)))
    found = search_goals(owner, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k, memory_type="semantic")
    return found


def change_goal(
    owner: Owner,
    goal_id: UUID,
    *,
    changes: Mapping[str, Any],
    embedded: Embedded,
    own: OwnVector | None = None,
    expected: Versions = None,
    now: datetime,
) -> Goal:
    """Give a goal other values, of CHANGEABLE; `parent` is the id of a goal, or None. What says the same, changes
    nothing.

    Embed another description first. Raises NotFound, Forbidden, StaleVersion, Unprocessable.
    """
    if refused := set(changes) - CHANGEABLE:
        raise Unprocessable(f"cannot be changed: {', '.join(sorted(refused))}")
    check_values(changes)
    with transaction.atomic():
        if "parent" in changes:
            take_turn(owner.account_id)
        goal = lock_goal(owner, goal_id, expected=expected, now=now)
        wanted = {"text" if name == "description" else name: value for name, value in changes.items()}
        parent = wanted.pop("parent", goal.parent_id)
        columns = {name: value for name, value in wanted.items() if is_other(goal, name, value)}
        if parent != goal.parent_id:
            move_goal(owner, goal, parent, now=now)
        elif not columns:
            return goal
        if (text := columns.pop("text", None)) is not None:
            goal.version -= 1  # `save_goal` counts one change
            reword_memories(owner, [Rewording(row=goal, text=text, own=own)], embedded=embedded, now=now)
        save_goal(goal, now=now, **columns)
        texts = texts_kept(owner, [] if text is None else [text])
        record_goals(owner, "update", [goal], metadata={"columns": sorted(changes)} | texts)
    return goal


def is_other(goal: Goal, name: str, value: Any) -> bool:
    """Whether the goal has something else in this column."""
    stored = getattr(goal, name)
    if name == "metadata":
        return comparable_json(stored) != comparable_json(value)
    return bool(stored != value)


def move_goal(owner: Owner, goal: Goal, parent_id: UUID | None, *, now: datetime) -> None:
    """Give a locked goal another parent, or none, in the account's turn. Raises Unprocessable."""
    links_of(owner.account_id, SUBGOAL_OF).filter(source_id=goal.id).delete()
    if parent_id is not None:
        link = GoalLink(goal.id, SUBGOAL_OF, parent_id)
        lock_linkable(owner, holder_of(goal), [parent_id], now=now)
        refuse_ring(owner.account_id, [link])
        insert_goal_links(owner.account_id, [link])
    goal.parent_id = parent_id


def block_goal(owner: Owner, goal_id: UUID, *, by: UUID, expected: Versions = None, now: datetime) -> Goal:
    """Have a goal wait for another one. Once it does, nothing changes.

    Raises NotFound, Forbidden, StaleVersion; Conflict for a goal that is closed; Unprocessable for a blocker that there
    is not, that is closed, or that waits for the goal itself, and for the goal itself.
    """
    link = GoalLink(goal_id, BLOCKED_BY, by)
    with transaction.atomic():
        take_turn(owner.account_id)
        goal = find_goal(owner, goal_id, now=now)
        if by == goal_id:
            raise Unprocessable("a goal does not wait for itself")
        # both at once, in the order of their ids
        blocker = lock_linkable(owner, holder_of(goal), [goal_id, by], now=now)[by]
        goal = lock_goal(owner, goal_id, expected=expected, now=now)
        if goal.completed_at is not None:
            raise Conflict("the goal is closed: nothing blocks it any more")
        if links_of(owner.account_id, BLOCKED_BY).filter(source_id=goal_id, target_id=by).exists():
            return goal
        refuse_closed([blocker])
        refuse_ring(owner.account_id, [link])
        insert_goal_links(owner.account_id, [link])
        save_goal(goal, now=now, status=Status.BLOCKED.value)
        record_goals(owner, "block", [goal])
    return goal


def unblock_goal(owner: Owner, goal_id: UUID, *, by: UUID, expected: Versions = None, now: datetime) -> Goal:
    """Have a goal wait for another one no longer; active once it waits for none that is open.

    Where it does not wait for it, nothing changes. Raises NotFound, Forbidden, StaleVersion.
    """
    with transaction.atomic():
        take_turn(owner.account_id)
        goal = lock_goal(owner, goal_id, expected=expected, now=now)
        links = links_of(owner.account_id, BLOCKED_BY).filter(source_id=goal_id)
        gone, _ = links.filter(target_id=by).delete()
        if not gone:
            return goal
        is_live = Q(target__expires_at=None) | Q(target__expires_at__gt=now)
        waits = links.filter(IS_WAITED_FOR & is_live).exists()
        status = goal.status if goal.completed_at else (Status.BLOCKED if waits else Status.ACTIVE).value
        save_goal(goal, now=now, status=status)
        record_goals(owner, "unblock", [goal])
    return goal


def complete_goal(
    owner: Owner, goal_id: UUID, *, status: str, result: str = "", expected: Versions = None, now: datetime
) -> Completed:
    """Close a goal, `completed` or `abandoned`, whether it is blocked or not; what is below it stays as it is.

    Closing it again with the same status and result changes nothing. Raises NotFound, Forbidden, StaleVersion; Conflict
    where it was closed otherwise; Unprocessable for another status.
    """
    if status not in OPERATIONS:
        raise Unprocessable("a goal ends completed or abandoned")
    with transaction.atomic():
        goal, waiting = lock_for_end(owner, goal_id, expected=expected, now=now)
        if goal.completed_at is not None:
            if (goal.status, goal.result) != (status, result):
                raise Conflict(f"the goal is closed already: {goal.status}")
            return Completed(goal=goal, unblocked=[])
        save_goal(goal, now=now, status=str(status), result=result, completed_at=now)
        record_goals(owner, OPERATIONS[status], [goal])
        return Completed(goal=goal, unblocked=release(owner, waiting, now=now))


def delete_goal(owner: Owner, goal_id: UUID, *, expected: Versions = None, now: datetime) -> list[UUID]:
    """Delete a goal for good, and how it hangs together with others; the ids of those that nothing holds up any more.

    What was below it has no parent then, and work episodes say no more what it was. Raises NotFound, Forbidden,
    StaleVersion.
    """
    with transaction.atomic():
        mentions = hold_mentions(owner, [goal_id])
        take_turn(owner.account_id)
        lock_around(owner, goal_id, mentions)
        goal, waiting = lock_for_end(owner, goal_id, expected=expected, now=now)
        return erase_locked(owner, goal, waiting, now=now)


def lock_around(owner: Owner, goal_id: UUID, episode_ids: Collection[UUID]) -> None:
    """Lock a goal that is to be erased, in the account's turn, with what hangs on it and the episodes that name it, in
    one order; nothing where none does."""
    if not episode_ids:
        return
    hanging = links_of(owner.account_id, SUBGOAL_OF, BLOCKED_BY).filter(target_id=goal_id)
    wanted = {goal_id, *episode_ids, *hanging.values_list("source_id", flat=True)}
    rows = Memory.objects.filter(account_id=owner.account_id, id__in=wanted).order_by("id")
    list(rows.select_for_update(of=("self",)).values_list("id", flat=True))


def erase_locked(owner: Owner, goal: Goal, waiting: Collection[UUID], *, now: datetime) -> list[UUID]:
    """As `delete_goal` says, in the account's turn, the goal and those `waiting` for it locked."""
    below = list(links_of(owner.account_id, SUBGOAL_OF).filter(target_id=goal.id).values_list("source_id"))
    orphans = Memory.objects.filter(account_id=owner.account_id, id__in=[child for (child,) in below])
    locked = list(orphans.order_by("id").select_for_update(no_key=True).values_list("id", flat=True))
    retell_without(owner, [goal.id], now=now)
    writer.delete_memories([goal.id])
    Memory.objects.filter(id__in=locked).update(version=F("version") + 1, updated_at=now)
    record_goals(owner, "delete", [goal])
    return release(owner, waiting, now=now)


def lock_for_end(owner: Owner, goal_id: UUID, *, expected: Versions, now: datetime) -> tuple[Goal, Collection[UUID]]:
    """A goal that the owner may change, and the ids of what waits for it, all locked. Raises as `lock_goal`."""
    take_turn(owner.account_id)
    # all at once, in the order of their ids
    locked = lock_with_waiters(owner.account_id, [goal_id])
    goal = lock_goal(owner, goal_id, expected=expected, now=now)
    return goal, locked.keys() - {goal_id}


def release(owner: Owner, goal_ids: Collection[UUID], *, now: datetime) -> list[UUID]:
    """Let those of the locked goals go on that no open goal holds up; which these are, in order."""
    settled = settle(owner, goal_ids, now=now)
    return sorted(goal_id for goal_id, status in settled.items() if status == Status.ACTIVE)
