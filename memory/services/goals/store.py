"""Reading, locking, linking and saving goals, and the status that follows from their links.

SUBGOAL_OF and BLOCKED_BY links form no cycles. Code that adds or removes such links, or closes a goal, first takes the
lock of the account's goal graph, as the database's own guard against cycles does; then it locks the goals, in the order
of their ids.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from django.db import IntegrityError
from django.db.models import Case, Exists, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.functions import Coalesce

from memory.audit import record_audit
from memory.errors import Conflict, Unprocessable, require_found
from memory.models import Goal, Kind, Link
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.models.memory import MemoryQuerySet
from memory.models.statements import execute_statement, fetch_rows
from memory.owner import Owner
from memory.retrieval.kind_searches import GOALS, GoalResults
from memory.retrieval.search import search_kind
from memory.services.accounts.access import ExpectedVersions, check_author, check_version
from memory.services.entities.resolve import holder_of_row
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import embed_search_query, record_search
from memory_project.postgresql.constraints import broken_constraint

PARENT_CYCLE = "this link would close a cycle: a goal would be a subgoal of itself"
BLOCKER_CYCLE = "this link would close a cycle: a goal would wait for itself"

# the same lock as in the database's guard (migration 0023)
LOCK_GOAL_GRAPH = "SELECT FROM accounts WHERE id = %s FOR NO KEY UPDATE"

REACHES = """
WITH RECURSIVE ahead AS (
    SELECT unnest(%(targets)s::uuid[]) AS id
    UNION
    SELECT l.target_id FROM memory_links l JOIN ahead ON l.source_id = ahead.id
    WHERE l.account_id = %(account_id)s AND l.type = %(type)s
)
SELECT EXISTS (SELECT FROM ahead WHERE id = %(source)s)
"""

# sets open goals to blocked or active as `blocking_goals` require, and returns those that changed
RECOMPUTE_STATUS = """
WITH wanted AS (
    SELECT g.id, CASE WHEN EXISTS (
        SELECT FROM memory_links l JOIN memories b ON b.account_id = l.account_id AND b.id = l.target_id
        WHERE l.account_id = g.account_id AND l.source_id = g.id AND l.type = 'BLOCKED_BY'
            AND b.kind = 'goal' AND b.status <> 'completed' AND NOT b.archived AND NOT b.quarantined
            AND (b.expires_at IS NULL OR b.expires_at > %(now)s)
    ) THEN 'blocked' ELSE 'active' END AS status
    FROM memories g
    WHERE g.account_id = %(account_id)s AND g.id = ANY(%(ids)s) AND g.kind = 'goal' AND g.completed_at IS NULL
)
UPDATE memories m SET status = wanted.status, version = m.version + 1, updated_at = %(now)s FROM wanted
WHERE m.account_id = %(account_id)s AND m.id = wanted.id AND m.status <> wanted.status RETURNING m.id, m.status
"""


class GoalLink(NamedTuple):
    """A link between two goals before it is stored."""

    source_id: UUID
    type: str
    target_id: UUID


def lock_goal_graph(account_id: UUID) -> None:
    """Serialize changes to the account's goal links by locking the account's row until the transaction ends."""
    execute_statement(LOCK_GOAL_GRAPH, [account_id])


def lock_with_waiters(account_id: UUID, goal_ids: Collection[UUID]) -> dict[UUID, Goal]:
    """Lock these goals and all that wait for one of them, until the transaction ends. Returns them by id.

    Goals that no caller may see are locked as well.
    """
    waiting = links_between_goals(account_id, BLOCKED_BY).filter(target_id__in=goal_ids).values("source_id")
    return lock_goal_rows(account_id, Q(id__in=list(goal_ids)) | Q(id__in=waiting))


def lock_goal_rows(account_id: UUID, which: Q) -> dict[UUID, Goal]:
    rows = Goal.objects.filter(which, account_id=account_id).order_by("id").select_for_update(no_key=True)
    return {goal.id: goal for goal in rows}


def links_between_goals(account_id: UUID, *types: str) -> Any:
    return Link.objects.filter(account_id=account_id, type__in=types)


def open_goals(account_id: UUID) -> MemoryQuerySet[Goal]:
    """Return the open goals of an account, archived, quarantined and expired ones included."""
    return Goal.objects.filter(account_id=account_id, completed_at=None)


def blocking_goals(account_id: UUID, *, now: datetime) -> MemoryQuerySet[Goal]:
    """Return the goals of an account that block those that wait for them: live ones that are not completed.

    An abandoned goal goes on blocking, because what others waited for was not done.
    """
    return Goal.objects.filter(account_id=account_id).exclude(status=Goal.Status.COMPLETED).live(now)


def refuse_blocked_completion(owner: Owner, goal: Goal, *, now: datetime) -> None:
    """Raise Conflict, with the ids of the blockers that the owner may see, if the goal waits for a blocking goal."""
    links = links_between_goals(owner.account_id, BLOCKED_BY).filter(source_id=goal.id)
    blockers = blocking_goals(owner.account_id, now=now).filter(id__in=links.values("target_id"))
    statuses = dict(blockers.order_by("id").values_list("id", "status"))
    if not statuses:
        return
    visible = visible_goals(owner, now=now).filter(id__in=statuses).values_list("id", flat=True)
    named = [f"{other} ({statuses[other]})" for other in sorted(visible)[:MAX_NAMED_BLOCKERS]]
    if hidden := len(statuses) - len(named):
        named.append(f"{hidden} other{'s' if hidden > 1 else ''}" if named else f"{hidden} that you may not see")
    raise Conflict(
        f"the goal waits for goals that are not completed: {', '.join(named)}. Complete them, unblock this goal, or "
        "complete it all the same with force"
    )


def refuse_goal_cycle(account_id: UUID, link: GoalLink) -> None:
    """Raise Unprocessable if the link would lead from a goal back to itself, along links of its type."""
    ends: dict[str, Any] = {"source": link.source_id, "targets": [link.target_id]}
    if fetch_rows(REACHES, ends | {"account_id": account_id, "type": link.type}) == [(True,)]:
        raise Unprocessable(PARENT_CYCLE if link.type == SUBGOAL_OF else BLOCKER_CYCLE)


def insert_goal_links(account_id: UUID, links: Sequence[GoalLink]) -> None:
    """Store links in the caller's transaction, which is lost if the database refuses one.

    Raises Unprocessable for a cycle, Conflict for a second parent and for a link that exists.
    """
    rows = [Link(account_id=account_id, **link._asdict()) for link in links]
    try:
        Link.objects.bulk_create(rows)
    except IntegrityError as err:
        constraint = broken_constraint(err)
        if constraint == "goal_links_without_rings":
            raise Unprocessable("this link would close a cycle of goals") from err
        if constraint in ("goal_has_one_parent", "link_once"):
            raise Conflict("the goal was linked by another request at the same time: read it again") from err
        raise


def recompute_status(owner: Owner, goal_ids: Collection[UUID], *, now: datetime) -> dict[UUID, str]:
    """Set the open ones among these locked goals to blocked or active, as their blockers require.

    Returns the goals that changed, with their statuses; they get a new version, and the audit log records them.
    """
    if not goal_ids:
        return {}
    changed: dict[UUID, str] = dict(
        fetch_rows(RECOMPUTE_STATUS, {"account_id": owner.account_id, "ids": list(goal_ids), "now": now})
    )
    for operation, status in (("block", Goal.Status.BLOCKED), ("unblock", Goal.Status.ACTIVE)):
        affected = sorted(goal_id for goal_id, is_now in changed.items() if is_now == status)
        if affected:
            record_audit(owner, operation=operation, memory_type="semantic", affected_ids=affected)
    return changed


def recompute_waiters(owner: Owner, goal_ids: Collection[UUID], *, now: datetime) -> None:
    """Recompute the goals that wait for these, after these were archived, quarantined or restored.

    Runs in the caller's transaction. Deleted goals block nothing.
    """
    lock_goal_graph(owner.account_id)
    recompute_status(owner, lock_with_waiters(owner.account_id, goal_ids).keys(), now=now)


def visible_goals(owner: Owner, *, now: datetime) -> QuerySet[Goal]:
    """Return all goals that the owner may see, in every channel and of every status, each with its `parent_id`.

    The id of a parent that the owner may not see is None.
    """
    seen: Any = Goal.objects.visible_to(owner, Kind.GOAL)
    # the account by its value: by a reference to the outer row, a distributed database does not find the machine
    parents = Link.objects.filter(account_id=owner.account_id, source_id=OuterRef("pk"), type=SUBGOAL_OF)
    parents = parents.filter(Exists(seen.filter(id=OuterRef("target_id"))))
    rows: Any = seen.live(now)
    return cast("QuerySet[Goal]", rows.annotate(parent_id=Subquery(parents.values("target_id"))))


def find_goal(owner: Owner, goal_id: UUID, *, now: datetime) -> Goal:
    return require_found(visible_goals(owner, now=now).filter(id=goal_id).first(), "goal")


def lock_goal(owner: Owner, goal_id: UUID, *, expected: ExpectedVersions = None, now: datetime) -> Goal:
    """Lock a goal that the owner may change, until the transaction ends. Raises NotFound, Forbidden, StaleVersion."""
    rows = visible_goals(owner, now=now).filter(id=goal_id)
    goal = require_found(rows.select_for_update(no_key=True).first(), "goal")
    check_author(owner, goal, what="goal")
    check_version(goal.version, expected)
    return goal


def lock_linkable_goals(owner: Owner, held_by: str, goal_ids: Collection[UUID], *, now: datetime) -> dict[UUID, Goal]:
    """Lock goals that a goal of this holder may be linked to, until the transaction ends. Returns them by id.

    Raises Unprocessable for goals that do not exist or belong to another holder.
    """
    visible = visible_goals(owner, now=now).filter(id__in=goal_ids).values("id")
    locked = lock_goal_rows(owner.account_id, Q(id__in=visible))
    if set(goal_ids) - set(locked):
        raise Unprocessable("there is no such goal to link to")
    if any(holder_of_row(goal) != held_by for goal in locked.values()):
        raise Unprocessable("a goal can be linked only to goals of the same user, or of the same agent without a user")
    return locked


def refuse_closed_blockers(blockers: Sequence[Goal]) -> None:
    """Raise Unprocessable if one of the blockers is closed."""
    if any(goal.completed_at is not None for goal in blockers):
        raise Unprocessable("a closed goal blocks nothing: choose an open one")


def save_goal(goal: Goal, *, now: datetime, **columns: Any) -> None:
    """Save columns of a locked goal with its next version."""
    for name, value in columns.items():
        setattr(goal, name, value)
    goal.version, goal.updated_at = goal.version + 1, now
    rows = Goal.objects.filter(account_id=goal.account_id, id=goal.id)
    rows.update(**columns, version=goal.version, updated_at=now)


def record_goals(owner: Owner, operation: str, goals: Sequence[Goal], **columns: Any) -> None:
    record_audit(
        owner, operation=operation, memory_type="semantic", affected_ids=[goal.id for goal in goals], **columns
    )


MAX_NAMED_BLOCKERS = 10
"""Blockers whose ids an error message contains."""

MAX_RELATED_GOALS = 200
"""Related goals that are returned with one goal."""

NO_DEADLINE = datetime.max.replace(tzinfo=UTC)
"""Sort value for goals without a deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalView:
    """A goal with its related goals, as far as the owner sees them, in the order of `goal_sort_key`.

    `blockers` includes closed ones; `truncated` is True where there are more than MAX_RELATED_GOALS in all.
    """

    goal: Goal
    parent: Goal | None
    children: Sequence[Goal]
    blockers: Sequence[Goal]
    waiters: Sequence[Goal]
    truncated: bool


def goals_in_channels(owner: Owner, *, now: datetime) -> QuerySet[Goal]:
    """Return the visible goals of the owner's channel and of `_global`, with `due`: the deadline or NO_DEADLINE."""
    rows: Any = visible_goals(owner, now=now)
    return cast("QuerySet[Goal]", rows.in_channels(owner).annotate(due=Coalesce("deadline", Value(NO_DEADLINE))))


def active_goals(owner: Owner, *, now: datetime) -> QuerySet[Goal]:
    """Return the open goals, including blocked ones, by descending priority, then by deadline."""
    rows: QuerySet[Any] = goals_in_channels(owner, now=now).filter(status__in=Goal.OPEN)
    return rows.order_by("-priority", "due", "id")


def get_goal(owner: Owner, goal_id: UUID, *, now: datetime) -> GoalView:
    """Return a goal with its related goals. Raises NotFound."""
    goal = find_goal(owner, goal_id, now=now)
    around = links_between_goals(owner.account_id, SUBGOAL_OF, BLOCKED_BY).filter(
        Q(source_id=goal.id) | Q(target_id=goal.id)
    )
    # the limit must not cut off its parent and its blockers
    own_first = Case(When(source_id=goal.id, then=0), default=1)
    found: list[Link] = list(around.order_by(own_first, "-type", "id")[: MAX_RELATED_GOALS + 1])
    links = found[:MAX_RELATED_GOALS]
    others = {link.target_id if link.source_id == goal.id else link.source_id for link in links}
    known = {other.id: other for other in visible_goals(owner, now=now).filter(id__in=others)} if others else {}

    def related(to: str, link_type: str) -> list[Goal]:
        ends = ("source_id", "target_id") if to == "source" else ("target_id", "source_id")
        ids = [getattr(link, ends[1]) for link in links if (link.type, getattr(link, ends[0])) == (link_type, goal.id)]
        return sorted((known[other] for other in ids if other in known), key=goal_sort_key)

    return GoalView(
        goal=goal,
        parent=next(iter(related("source", SUBGOAL_OF)), None),
        children=related("target", SUBGOAL_OF),
        blockers=related("source", BLOCKED_BY),
        waiters=related("target", BLOCKED_BY),
        truncated=len(found) > MAX_RELATED_GOALS,
    )


def goal_sort_key(goal: Goal) -> tuple[int, datetime, UUID]:
    """Return the sort key of lists: descending priority, deadline, id."""
    return -goal.priority, goal.deadline or NO_DEADLINE, goal.id


def find_goals(
    owner: Owner,
    *,
    text: str,
    top_k: int,
    own: ClientVector | None = None,
    statuses: Collection[str] = Goal.OPEN,
    now: datetime,
) -> GoalResults:
    """Return the goals nearest to `text`, or to the client's own vector: the open ones, or those of other statuses."""
    query = replace(embed_search_query(text, top_k=top_k, own=own), types=tuple(map(str, statuses)))
    found = search_kind(owner, GOALS, query, now=now)
    record_search(owner, text, found.hits, top_k=top_k, memory_type="semantic")
    return found
