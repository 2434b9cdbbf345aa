"""How goals hang together (X6): SUBGOAL_OF and BLOCKED_BY, in no ring, and the status that follows from them.

Whatever makes or takes such links, or closes a goal, first takes its turn in the account, as the database's own guard
against rings does; then it locks the goals, in the order of their ids.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple, NoReturn
from uuid import UUID

from django.db import IntegrityError, connection
from django.db.models import Q

from memory.audit import record
from memory.errors import Conflict, Unprocessable
from memory.models import Goal, Link
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.owner import Owner

NO_PARENT_RING = "this would close a ring: a goal would be a subgoal of itself"
NO_WAITING_RING = "this would close a ring: a goal would wait for itself"

# the same as in the database's guard (migration 0008)
TAKE_TURN = "SELECT pg_advisory_xact_lock(hashtextextended('goals of ' || %s, 0))"

REACHES = """
WITH RECURSIVE ahead AS (
    SELECT unnest(%(targets)s::uuid[]) AS id
    UNION
    SELECT l.target_id FROM memory_links l JOIN ahead ON l.source_id = ahead.id
    WHERE l.account_id = %(account_id)s AND l.type = %(type)s
)
SELECT EXISTS (SELECT FROM ahead WHERE id = %(source)s)
"""

# the open ones among the goals become what their blockers make them; those that were something else come back
SETTLE = """
WITH wanted AS (
    SELECT g.memory_ptr_id AS id, CASE WHEN EXISTS (
        SELECT FROM memory_links l JOIN memories m ON m.id = l.target_id JOIN goals b ON b.memory_ptr_id = m.id
        WHERE l.account_id = %(account_id)s AND l.source_id = g.memory_ptr_id AND l.type = 'BLOCKED_BY'
            AND b.completed_at IS NULL AND NOT m.archived AND NOT m.quarantined
            AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
    ) THEN 'blocked' ELSE 'active' END AS status
    FROM goals g WHERE g.memory_ptr_id = ANY(%(ids)s) AND g.completed_at IS NULL
), changed AS (
    UPDATE goals g SET status = wanted.status FROM wanted
    WHERE g.memory_ptr_id = wanted.id AND g.status <> wanted.status
    RETURNING g.memory_ptr_id AS id, g.status
)
UPDATE memories m SET version = m.version + 1, updated_at = %(now)s FROM changed
WHERE m.id = changed.id AND m.account_id = %(account_id)s RETURNING m.id, changed.status
"""

IS_WAITED_FOR = Q(target__goal__status__in=Goal.OPEN, target__archived=False, target__quarantined=False)
"""Of a BLOCKED_BY link: what it leads to is open, and has not been marked away. It may have expired."""


class GoalLink(NamedTuple):
    """A relation between two goals before it is stored."""

    source_id: UUID
    type: str
    target_id: UUID


def take_turn(account_id: UUID) -> None:
    """Wait for those who are changing how the account's goals hang together, until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(TAKE_TURN, [str(account_id)])


def lock_with_waiters(account_id: UUID, goal_ids: Collection[UUID]) -> dict[UUID, Goal]:
    """These goals and all that wait for one of them, whoever sees them, until the transaction ends."""
    waiting = links_of(account_id, BLOCKED_BY).filter(target_id__in=goal_ids).values("source_id")
    return lock_rows(account_id, Q(id__in=list(goal_ids)) | Q(id__in=waiting))


def lock_rows(account_id: UUID, which: Q) -> dict[UUID, Goal]:
    rows: Any = Goal.objects.filter(which, account_id=account_id).order_by("id")
    locked: list[Goal] = list(rows.select_for_update(no_key=True, of=("memory_ptr", "self")))
    return {goal.id: goal for goal in locked}


def links_of(account_id: UUID, *types: str) -> Any:
    return Link.objects.filter(account_id=account_id, type__in=types)


def refuse_ring(account_id: UUID, links: Sequence[GoalLink]) -> None:
    """Raise Unprocessable where one of these links of one goal and type would lead back to it."""
    if not links:
        return
    values: dict[str, Any] = {
        "account_id": account_id,
        "type": links[0].type,
        "source": links[0].source_id,
        "targets": [link.target_id for link in links],
    }
    with connection.cursor() as cursor:
        cursor.execute(REACHES, values)
        if cursor.fetchone() == (True,):
            raise Unprocessable(NO_PARENT_RING if links[0].type == SUBGOAL_OF else NO_WAITING_RING)


def insert_goal_links(account_id: UUID, links: Sequence[GoalLink]) -> None:
    """Store them, in the caller's transaction, which is lost where the database refuses one.

    Raises Unprocessable for a ring, Conflict for a second parent.
    """
    rows = [Link(account_id=account_id, **link._asdict()) for link in links]
    try:
        Link.objects.bulk_create(rows)
    except IntegrityError as err:
        raise_refusal(err)


def raise_refusal(err: IntegrityError) -> NoReturn:
    constraint = getattr(getattr(err.__cause__, "diag", None), "constraint_name", None)
    if constraint == "goal_links_without_rings":
        raise Unprocessable("this would close a ring of goals") from err
    if constraint in ("goal_has_one_parent", "link_once"):
        raise Conflict("somebody else has linked the goal at the same time: read it again") from err
    raise err


def settle(owner: Owner, goal_ids: Collection[UUID], *, now: datetime) -> dict[UUID, str]:
    """Make the open ones among these goals blocked or active, as their open blockers have it, each at its next version.

    Comes back with those that are something else now, and what; the audit log tells of them, too. Lock them first.
    """
    if not goal_ids:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(SETTLE, {"account_id": owner.account_id, "ids": list(goal_ids), "now": now})
        changed: dict[UUID, str] = dict(cursor.fetchall())
    for operation, status in (("block", Goal.Status.BLOCKED), ("unblock", Goal.Status.ACTIVE)):
        affected = sorted(goal_id for goal_id, is_now in changed.items() if is_now == status)
        if affected:
            record(owner, operation=operation, memory_type="semantic", affected_ids=affected)
    return changed


def settle_waiters(owner: Owner, goal_ids: Collection[UUID], *, now: datetime) -> None:
    """After goals were archived, quarantined, or taken out of it: what waits for them is blocked, or is not, as they
    have it now. In the caller's transaction. Nobody waits for those that are gone.
    """
    take_turn(owner.account_id)
    settle(owner, lock_with_waiters(owner.account_id, goal_ids).keys(), now=now)
