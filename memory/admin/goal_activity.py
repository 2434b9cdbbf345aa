"""The activity of a goal: what happened to it and what was done for it, over all conversations, in order of time.

One statement finds the ids and times of a page's entries. A cursor is a time and an id, so that each page costs the
same. The entries are then read kind by kind, and only if the user may see that kind.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.http import HttpRequest
from django.utils.http import urlencode

from memory.admin.artifact_cards import ArtifactCard, read_artifacts
from memory.admin.conversation_timeline import EventCursor, parse_cursor
from memory.admin.goal_trees import GoalSummary, goal_columns, goal_summary
from memory.admin.text import mark_invisible
from memory.admin.turn_cards import TurnCard, VisibleModels, read_turn_cards
from memory.admin.work_cards import WorkCard, read_work_cards
from memory.models import Goal, Link
from memory.models.statements import fetch_rows

PAGE_ENTRIES = 50
MAX_RESULT_CHARACTERS = 10_000
ANCHOR = "activity"
"""The anchor of the activity on the goal's page."""


class EntryKind(StrEnum):
    TURN = "turn"
    EPISODE = "episode"
    ARTIFACT = "artifact"
    SET = "set"
    BLOCKED = "blocked"
    PART = "part"
    DUE = "due"
    ENDED = "ended"


EVENTS = (EntryKind.SET, EntryKind.BLOCKED, EntryKind.PART, EntryKind.DUE, EntryKind.ENDED)
"""Events of the goal itself. The id of BLOCKED and PART is that of their link, the id of the others is the goal's."""

ROWS: dict[EntryKind, str] = {
    # turns that were merged are shown with their episode
    EntryKind.TURN: """SELECT r.event_time AS at, r.id FROM turn_records r
        WHERE r.account_id = %(account_id)s AND r.goal_id = %(goal_id)s AND r.episode_id IS NULL""",
    # an episode that another one was made of is shown with that one
    EntryKind.EPISODE: """SELECT m.event_time AS at, m.id
        FROM memories m
        WHERE m.account_id = %(account_id)s AND m.kind = 'work_episode' AND m.for_goal_id = %(goal_id)s AND NOT EXISTS (
            SELECT FROM memory_links l JOIN memories later ON later.account_id = l.account_id AND later.id = l.source_id
            WHERE l.account_id = m.account_id AND l.target_id = m.id AND l.type = 'DERIVED_FROM'
                AND later.kind = 'work_episode')""",
    # what a turn for the goal produced is shown with that turn
    EntryKind.ARTIFACT: """SELECT m.event_time AS at, m.id FROM memories m
        WHERE m.account_id = %(account_id)s AND m.kind = 'artifact' AND m.for_goal_id = %(goal_id)s AND NOT EXISTS (
            SELECT FROM turn_records r
            WHERE r.account_id = m.account_id AND r.id = m.source_record_id AND r.goal_id = %(goal_id)s)""",
    EntryKind.SET: """SELECT m.event_time AS at, m.id FROM memories m
        WHERE m.account_id = %(account_id)s AND m.id = %(goal_id)s""",
    EntryKind.BLOCKED: """SELECT l.created_at AS at, l.id FROM memory_links l
        WHERE l.account_id = %(account_id)s AND l.source_id = %(goal_id)s AND l.type = 'BLOCKED_BY'""",
    EntryKind.PART: """SELECT l.created_at AS at, l.id FROM memory_links l
        WHERE l.account_id = %(account_id)s AND l.target_id = %(goal_id)s AND l.type = 'SUBGOAL_OF'""",
    EntryKind.DUE: """SELECT m.deadline AS at, m.id FROM memories m
        WHERE m.account_id = %(account_id)s AND m.id = %(goal_id)s AND m.deadline <= %(now)s""",
    EntryKind.ENDED: """SELECT m.completed_at AS at, m.id FROM memories m
        WHERE m.account_id = %(account_id)s AND m.id = %(goal_id)s AND m.completed_at IS NOT NULL""",
}

# each part is cut to a page before the parts are combined
PART_OF_PAGE = """(SELECT '{kind}' AS kind, at, id FROM ({rows}) {kind}_rows
    WHERE {bound} ORDER BY at {order}, id {order} LIMIT %(limit)s)"""

BOUNDS = {"before": ("(at, id) < (%(at)s, %(id)s)", "DESC"), "after": ("(at, id) > (%(at)s, %(id)s)", "ASC")}


END = EventCursor(at=datetime.max.replace(tzinfo=UTC), id=UUID(int=2**128 - 1))
BEGINNING = EventCursor(at=datetime.min.replace(tzinfo=UTC), id=UUID(int=0))


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityEntry:
    kind: EntryKind
    at: datetime
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityPage:
    """A page of a timeline, earliest entry first, and the cursors at which the neighbouring pages begin."""

    entries: Sequence[ActivityEntry]
    earlier: EventCursor | None = None
    later: EventCursor | None = None

    def ids(self, kind: EntryKind) -> list[UUID]:
        return [entry.id for entry in self.entries if entry.kind == kind]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalEvent:
    """An event of the goal itself. `other` is the goal that it concerns, if any."""

    label: str
    other: GoalSummary | None = None
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivityCard:
    """An entry of the activity: exactly one of the last four fields is set. `day` is set if a new day begins."""

    at: datetime
    day: date | None
    turn: TurnCard | None = None
    work: WorkCard | None = None
    artifact: ArtifactCard | None = None
    event: GoalEvent | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalActivity:
    """A page of the activity, and the addresses of its neighbours; `is_part` if there is more than this page."""

    cards: Sequence[ActivityCard]
    earlier: str
    later: str
    is_part: bool


def read_activity_page(
    goal: Goal,
    kinds: Sequence[EntryKind],
    *,
    now: datetime,
    before: EventCursor | None = None,
    after: EventCursor | None = None,
) -> ActivityPage:
    """Return the page that ends before a cursor or begins after one; without a cursor the last page."""
    if after is not None:
        found = read_entries(goal, kinds, bound="after", cursor=after, now=now)
        has_more, kept = len(found) > PAGE_ENTRIES, found[:PAGE_ENTRIES]
        is_later, is_earlier = has_more, after != BEGINNING
    else:
        found = read_entries(goal, kinds, bound="before", cursor=before or END, now=now)
        has_more, kept = len(found) > PAGE_ENTRIES, found[:PAGE_ENTRIES][::-1]
        is_later, is_earlier = before is not None, has_more
    if not kept:
        return ActivityPage(entries=())
    return ActivityPage(
        entries=kept,
        earlier=EventCursor(at=kept[0].at, id=kept[0].id) if is_earlier else None,
        later=EventCursor(at=kept[-1].at, id=kept[-1].id) if is_later else None,
    )


def read_entries(
    goal: Goal, kinds: Sequence[EntryKind], *, bound: str, cursor: EventCursor, now: datetime
) -> list[ActivityEntry]:
    """Return the entries from the cursor on, up to one more than a page."""
    condition, order = BOUNDS[bound]
    parts = [PART_OF_PAGE.format(kind=kind.value, rows=ROWS[kind], bound=condition, order=order) for kind in kinds]
    statement = f"{' UNION ALL '.join(parts)} ORDER BY at {order}, id {order} LIMIT %(limit)s"
    values: dict[str, Any] = {"account_id": goal.account_id, "goal_id": goal.pk, "now": now}
    found = fetch_rows(statement, {**values, "at": cursor.at, "id": cursor.id, "limit": PAGE_ENTRIES + 1})
    return [ActivityEntry(kind=EntryKind(kind), at=at, id=row_id) for kind, at, row_id in found]


def read_activity(request: HttpRequest, goal: Goal, *, now: datetime) -> GoalActivity:
    """Return the page that the address asks for, by default the last one."""
    visible = VisibleModels.of(request)
    seen = (
        (EntryKind.TURN, visible.turns),
        (EntryKind.EPISODE, visible.episodes),
        (EntryKind.ARTIFACT, visible.artifacts),
    )
    kinds = [*(kind for kind, is_visible in seen if is_visible), *EVENTS]
    before, after = (parse_cursor(request.GET.get(name, "")) for name in ("before", "after"))
    if "beginning" in request.GET:
        after = BEGINNING
    page = read_activity_page(goal, kinds, now=now, before=before, after=after)
    return GoalActivity(
        cards=list(build_cards(page, read_entry_rows(goal, page, visible))),
        earlier=neighbour_url(before=page.earlier),
        later=neighbour_url(after=page.later),
        is_part=page.earlier is not None or page.later is not None,
    )


def neighbour_url(**cursors: EventCursor | None) -> str:
    """Return the address of a neighbouring page, or "" if there is none."""
    query = {name: str(cursor) for name, cursor in cursors.items() if cursor is not None}
    return f"?{urlencode(query)}#{ANCHOR}" if query else ""


def read_entry_rows(
    goal: Goal, page: ActivityPage, visible: VisibleModels
) -> dict[EntryKind, Mapping[Any, TurnCard | WorkCard | ArtifactCard | GoalEvent]]:
    """Return what the entries of a page show, by kind and id."""
    account_id = goal.account_id
    artifact_ids = page.ids(EntryKind.ARTIFACT)
    linked = read_linked_goals(account_id, [*page.ids(EntryKind.BLOCKED), *page.ids(EntryKind.PART)])
    return {
        EntryKind.TURN: read_turn_cards(account_id, page.ids(EntryKind.TURN), visible),
        EntryKind.EPISODE: read_work_cards(account_id, page.ids(EntryKind.EPISODE), visible),
        EntryKind.ARTIFACT: read_artifacts(account_id, artifact_ids=artifact_ids) if artifact_ids else {},
        EntryKind.BLOCKED: {id_: GoalEvent(label="Blocked by", other=ends[1]) for id_, ends in linked.items()},
        EntryKind.PART: {id_: GoalEvent(label="Subgoal added", other=ends[0]) for id_, ends in linked.items()},
        EntryKind.SET: {goal.pk: GoalEvent(label="Goal set")},
        EntryKind.DUE: {goal.pk: GoalEvent(label="Deadline passed")},
        EntryKind.ENDED: {goal.pk: GoalEvent(label=goal.get_status_display(), text=format_result(goal))},
    }


def read_linked_goals(account_id: UUID, link_ids: Sequence[UUID]) -> dict[UUID, tuple[GoalSummary, GoalSummary]]:
    """Return the goals at both ends of links, by link."""
    if not link_ids:
        return {}
    links = Link.objects.filter(account_id=account_id, pk__in=link_ids)
    rows = links.values_list("id", *goal_columns("source"), *goal_columns("target"))
    return {row[0]: (goal_summary(*row[1:4]), goal_summary(*row[4:])) for row in rows}


def format_result(goal: Goal) -> str:
    return mark_invisible(goal.result[:MAX_RESULT_CHARACTERS])


def build_cards(
    page: ActivityPage, rows: Mapping[EntryKind, Mapping[Any, TurnCard | WorkCard | ArtifactCard | GoalEvent]]
) -> Iterator[ActivityCard]:
    """Yield the cards in order. An entry whose row was deleted in the meantime is left out."""
    names = {EntryKind.TURN: "turn", EntryKind.EPISODE: "work", EntryKind.ARTIFACT: "artifact"}
    last_day: date | None = None
    for entry in page.entries:
        shown: Any = rows[entry.kind].get(entry.id)
        if shown is not None:
            day = entry.at.date()
            field = names.get(entry.kind, "event")
            yield ActivityCard(at=entry.at, day=day if day != last_day else None, **{field: shown})
            last_day = day
