"""What happened to a goal and for it, over all conversations, in order of time: names and times of what a page shows.

One statement a page. A place in the timeline is a time and an id, so a page costs the same wherever it begins.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection

from memory.models import Goal
from memory_project.admin_lists import read_uuid

PAGE_ENTRIES = 50


class Sort(StrEnum):
    """What an entry is."""

    TURN = "turn"
    EPISODE = "episode"
    ARTIFACT = "artifact"
    SET = "set"
    BLOCKED = "blocked"
    PART = "part"
    DUE = "due"
    ENDED = "ended"


EVENTS = (Sort.SET, Sort.BLOCKED, Sort.PART, Sort.DUE, Sort.ENDED)
"""What happened to the goal itself; `blocked` and `part` are named by their links, the others by the goal."""

ROWS: dict[Sort, str] = {
    # what is merged stands beneath its episode
    Sort.TURN: """SELECT r.event_time AS at, r.id FROM turn_records r
        WHERE r.account_id = %(account_id)s AND r.goal_id = %(goal_id)s AND r.episode_id IS NULL""",
    # one that another was made of stands beneath that
    Sort.EPISODE: """SELECT m.event_time AS at, m.id
        FROM work_episodes w JOIN memories m ON m.id = w.memory_ptr_id
        WHERE m.account_id = %(account_id)s AND w.for_goal_id = %(goal_id)s AND NOT EXISTS (
            SELECT FROM memory_links l JOIN work_episodes later ON later.memory_ptr_id = l.source_id
            WHERE l.account_id = m.account_id AND l.target_id = m.id AND l.type = 'DERIVED_FROM')""",
    # what a turn for the goal produced stands in its card
    Sort.ARTIFACT: """SELECT m.event_time AS at, m.id FROM artifacts a JOIN memories m ON m.id = a.memory_ptr_id
        WHERE m.account_id = %(account_id)s AND a.for_goal_id = %(goal_id)s AND NOT EXISTS (
            SELECT FROM turn_records r WHERE r.id = a.record_id AND r.goal_id = %(goal_id)s)""",
    Sort.SET: """SELECT m.event_time AS at, m.id FROM memories m
        WHERE m.account_id = %(account_id)s AND m.id = %(goal_id)s""",
    Sort.BLOCKED: """SELECT l.created_at AS at, l.id FROM memory_links l
        WHERE l.account_id = %(account_id)s AND l.source_id = %(goal_id)s AND l.type = 'BLOCKED_BY'""",
    Sort.PART: """SELECT l.created_at AS at, l.id FROM memory_links l
        WHERE l.account_id = %(account_id)s AND l.target_id = %(goal_id)s AND l.type = 'SUBGOAL_OF'""",
    Sort.DUE: """SELECT g.deadline AS at, g.memory_ptr_id AS id FROM goals g
        WHERE g.memory_ptr_id = %(goal_id)s AND g.deadline <= %(now)s""",
    Sort.ENDED: """SELECT g.completed_at AS at, g.memory_ptr_id AS id FROM goals g
        WHERE g.memory_ptr_id = %(goal_id)s AND g.completed_at IS NOT NULL""",
}

# each part cut to a page before they are put together
PART = """(SELECT '{sort}' AS sort, at, id FROM ({rows}) {sort}_rows
    WHERE {bound} ORDER BY at {order}, id {order} LIMIT %(limit)s)"""

BOUNDS = {"before": ("(at, id) < (%(at)s, %(id)s)", "DESC"), "after": ("(at, id) > (%(at)s, %(id)s)", "ASC")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a timeline, between its entries."""

    at: datetime
    id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}_{self.id}"


END = Place(at=datetime.max.replace(tzinfo=UTC), id=UUID(int=2**128 - 1))
BEGINNING = Place(at=datetime.min.replace(tzinfo=UTC), id=UUID(int=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Something of a timeline; `id` is that of its row."""

    sort: Sort
    at: datetime
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """A page of a timeline, the earliest first; `earlier` and `later` say where its neighbours begin."""

    entries: Sequence[Entry]
    earlier: Place | None = None
    later: Place | None = None

    def ids(self, sort: Sort) -> list[UUID]:
        return [entry.id for entry in self.entries if entry.sort == sort]


def read_place(text: str) -> Place | None:
    """As `str` of a place wrote it; None for nonsense."""
    at, _, id_ = text.partition("_")
    row_id = read_uuid(id_)
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        return None
    return Place(at=moment, id=row_id) if row_id is not None and moment.tzinfo is not None else None


def read_stretch(
    goal: Goal, sorts: Sequence[Sort], *, now: datetime, before: Place | None = None, after: Place | None = None
) -> Stretch:
    """The page that ends before a place, or begins after one; without either, the last one."""
    if after is not None:
        found = read_entries(goal, sorts, bound="after", place=after, now=now)
        more, kept = len(found) > PAGE_ENTRIES, found[:PAGE_ENTRIES]
        is_later, is_earlier = more, after != BEGINNING
    else:
        found = read_entries(goal, sorts, bound="before", place=before or END, now=now)
        more, kept = len(found) > PAGE_ENTRIES, found[:PAGE_ENTRIES][::-1]
        is_later, is_earlier = before is not None, more
    if not kept:
        return Stretch(entries=())
    return Stretch(
        entries=kept,
        earlier=Place(at=kept[0].at, id=kept[0].id) if is_earlier else None,
        later=Place(at=kept[-1].at, id=kept[-1].id) if is_later else None,
    )


def read_entries(goal: Goal, sorts: Sequence[Sort], *, bound: str, place: Place, now: datetime) -> list[Entry]:
    """A page and one, from the place on."""
    condition, order = BOUNDS[bound]
    parts = [PART.format(sort=sort.value, rows=ROWS[sort], bound=condition, order=order) for sort in sorts]
    statement = f"{' UNION ALL '.join(parts)} ORDER BY at {order}, id {order} LIMIT %(limit)s"
    values: dict[str, Any] = {"account_id": goal.account_id, "goal_id": goal.pk, "now": now}
    with connection.cursor() as cursor:
        cursor.execute(statement, {**values, "at": place.at, "id": place.id, "limit": PAGE_ENTRIES + 1})
        return [Entry(sort=Sort(sort), at=at, id=row_id) for sort, at, row_id in cursor.fetchall()]
