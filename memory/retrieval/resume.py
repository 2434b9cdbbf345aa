"""What work left behind, read for whoever goes on with it: one statement for each kind of it, however much there is.

Everything starts at `visible_to`; with a user, what is that user's or nobody's in particular. Of long texts the
beginning and the end are read: errors stand at the end of what tools print.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, F, OuterRef, Q, Value, When
from django.db.models.expressions import RawSQL
from django.db.models.fields import TextField
from django.db.models.functions import Concat, Left, Length, Right
from django.db.models.lookups import GreaterThan

from memory.models import (
    Artifact,
    CompressionLevel,
    Conversation,
    Fact,
    Goal,
    Kind,
    Link,
    Memory,
    Turn,
    TurnRecord,
    TurnSlot,
    WorkEpisode,
)
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.models.work_episodes import told_data
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper
from memory.retrieval.statements import STAND_IN, OwnerShape, Sql, Statement, bind_owner, numbered, shape_of, where_of

LONGEST_LINEAGE = 50
MOST_TURNS = 400
MOST_RECORDS = 100
MOST_APART = 20
"""Of records before those that are open, and as many that are blocked."""
LOOKED_THROUGH = 1_000
"""Records of the lineage, and of each goal."""
MOST_EPISODES = 40
MOST_GOALS = 200
MOST_ARTIFACTS = 40
MOST_FACTS = 40
READ_CHARACTERS = 2_000
"""Of the beginning of a text, and of its end."""

# the chain goes through conversations in which the agent takes no part, and brings none of them along
LINE = """
WITH RECURSIVE line (conversation_id, continues, depth) AS (
    SELECT conversation_id, continues, 0 FROM ({first}) AS first
    UNION ALL
    SELECT former.conversation_id, former.continues, line.depth + 1 FROM line CROSS JOIN LATERAL (
        SELECT conversation_id, continues FROM conversations
        WHERE account_id = %(account_id)s AND conversation_id = line.continues LIMIT 1
    ) AS former
    WHERE line.depth < %(longest)s
) CYCLE conversation_id SET is_again USING been
SELECT accounts.reasoning_tier, (
    SELECT array_agg(conversations.conversation_id ORDER BY line.depth)
    FROM line JOIN conversations ON conversations.conversation_id = line.conversation_id
    WHERE NOT line.is_again AND {visible}
) AS conversations
FROM accounts WHERE id = %(account_id)s
"""
NAMED = "SELECT conversation_id, continues FROM conversations WHERE {visible} AND conversation_id = %(conversation_id)s"
LATEST = """
SELECT conversation_id, continues FROM conversations
WHERE {visible} AND NOT archived AND (%(user_id)s = '' OR user_id IN ('', %(user_id)s))
    AND (%(channel)s = '_global' OR channel IN ('_global', %(channel)s))
ORDER BY coalesce(last_turn_at, started_at) DESC, id DESC LIMIT 1
"""

# whole trees: from these goals up, and from there down
TREES = """
WITH RECURSIVE above (id) AS (
    SELECT unnest(%s::uuid[])
    UNION SELECT links.target_id FROM memory_links AS links JOIN above ON links.source_id = above.id
    WHERE links.account_id = %s AND links.type = %s
), tree (id) AS (
    SELECT id FROM above
    UNION SELECT links.source_id FROM memory_links AS links JOIN tree ON links.target_id = tree.id
    WHERE links.account_id = %s AND links.type = %s
) SELECT id FROM tree LIMIT %s
"""
# no part without what it is a part of
WITH_ROOTS = """
WITH RECURSIVE above (id) AS (
    ({chosen})
    UNION SELECT links.target_id FROM memory_links AS links JOIN above ON links.source_id = above.id
    WHERE links.account_id = %s AND links.type = %s
) SELECT id FROM above LIMIT %s
"""

# OFFSET 0 keeps each step within its records: the planner might read all slots of all accounts instead
SLOTS = """
WITH of_line AS MATERIALIZED (
    SELECT found.* FROM unnest(%(conversations)s::text[]) AS line (conversation_id) CROSS JOIN LATERAL (
        SELECT id, number, status, goal_id, event_time, reasoning_tier, level FROM turn_records
        WHERE {records} AND turn_records.conversation_id = line.conversation_id ORDER BY number DESC LIMIT %(seen)s
    ) AS found LIMIT %(seen)s
), of_goals AS MATERIALIZED (
    SELECT found.* FROM unnest(%(goal_ids)s::uuid[]) AS goal (id) CROSS JOIN LATERAL (
        SELECT turn_records.id, number, status, goal_id, event_time, reasoning_tier, level FROM turn_records
        WHERE {records} AND turn_records.goal_id = goal.id ORDER BY event_time DESC LIMIT %(seen)s
    ) AS found LIMIT %(seen)s
), own AS MATERIALIZED (
    SELECT * FROM (SELECT * FROM of_line UNION SELECT * FROM of_goals) AS found WHERE level < %(merged)s
), blocked AS (
    SELECT own.id FROM own JOIN of_line ON of_line.id = own.id CROSS JOIN LATERAL (
        SELECT turn_slots.data FROM turn_slots
        WHERE turn_slots.record_id = own.id AND turn_slots.slot = 'reasoning' OFFSET 0
    ) AS reasoning
    WHERE own.reasoning_tier IN ('structured_rationale', 'raw_trace')
        AND json_typeof(reasoning.data -> 'rationale' -> 'blockers') = 'array'
        AND json_array_length(reasoning.data -> 'rationale' -> 'blockers') > 0
    ORDER BY own.event_time DESC, own.number DESC LIMIT %(most_apart)s
), chosen AS MATERIALIZED (
    (SELECT id FROM own ORDER BY event_time DESC, number DESC, id LIMIT %(most)s)
    UNION (SELECT own.id FROM own JOIN of_line ON of_line.id = own.id WHERE own.status = 'open'
        ORDER BY own.event_time DESC, own.number DESC LIMIT %(most_apart)s)
    UNION SELECT id FROM blocked
)
SELECT memories.id, memories.kind, memories.conversation_id, memories.channel, memories.event_time,
    CASE WHEN length(memories.text) > 2 * %(read)s::int
        THEN left(memories.text, %(read)s::int) || chr(10) || right(memories.text, %(read)s::int)
        ELSE memories.text END AS text,
    told.slot, told.tier, told.data, own.id AS record_id, own.number, own.status, own.goal_id,
    own.event_time AS recorded_at
FROM chosen JOIN own ON own.id = chosen.id CROSS JOIN LATERAL (
    SELECT memory_ptr_id, slot, tier, CASE WHEN slot = 'reasoning' THEN data END AS data FROM turn_slots
    WHERE turn_slots.record_id = own.id OFFSET 0
) AS told CROSS JOIN LATERAL (
    SELECT * FROM memories WHERE memories.id = told.memory_ptr_id AND {slots} OFFSET 0
) AS memories
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The conversations that are resumed, the latest first, and how much of reasoning the account tells."""

    conversations: Sequence[str]
    allowed: ReasoningTier


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What all that is read here has; `text` without the middle of a long one."""

    id: UUID
    kind: Kind
    text: str
    conversation_id: str
    channel: str
    event_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidTurn(Remembered):
    index: int
    role: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotOfTurn(Remembered):
    """`data` is that of reasoning; what calls and results hold is in the text."""

    slot: str
    tier: str
    data: dict[str, Any]
    record_id: UUID
    number: int
    status: str
    goal_id: UUID | None
    recorded_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeOfWork(Remembered):
    """`number` is that of its last record."""

    data: dict[str, Any]
    status: str
    number: int
    goal_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GoalOfWork(Remembered):
    """`parent_ids` has one at most; `blocker_ids` are those that it waits for, closed ones among them.

    `is_own`: of the owner's agent, or of its user; not of nobody in particular, added by another agent.
    """

    is_own: bool
    status: str
    priority: int
    deadline: datetime | None
    completed_at: datetime | None
    result: str
    parent_ids: Sequence[UUID] = field(default=())
    blocker_ids: Sequence[UUID] = field(default=())

    @property
    def is_open(self) -> bool:
        return self.completed_at is None


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactOfWork(Remembered):
    uri: str
    artifact_type: str
    title: str
    digest: str
    revision: int
    label: str
    goal_id: UUID | None


def read_line(owner: Owner, conversation_id: str, *, now: datetime) -> Line:
    """The conversation, or without an id the one that the owner wrote to last, and those that it continues."""
    values = {**bind_owner(owner, now=now), "conversation_id": conversation_id, "longest": LONGEST_LINEAGE}
    _columns, [(tier, conversations)] = compose_line(owner, NAMED if conversation_id else LATEST).read(values)
    return Line(conversations=conversations or [], allowed=ReasoningTier(tier))


def compose_line(owner: Owner, first: str) -> Statement:
    visible = where_of(Conversation.objects.visible_to(shape_of(owner).owner), prefix="v")
    text = LINE.format(first=first.format(visible=visible.text), visible=visible.text)
    return numbered(Sql(text=text, parameters=visible.parameters))


def read_turns(owner: Owner, line: Line, *, now: datetime) -> list[SaidTurn]:
    """The last turns of the lineage, in the order in which they were said."""
    rows: Any = Turn.objects.visible_to(owner, Kind.TURN).filter(conversation_id__in=line.conversations)
    latest = rows.order_by("-event_time", "-index", "id")
    found = [SaidTurn(**row) for row in told_rows(latest, owner, "index", "role", "name", most=MOST_TURNS, now=now)]
    depth = {conversation: place for place, conversation in enumerate(line.conversations)}
    return sorted(found, key=lambda turn: (-depth[turn.conversation_id], turn.index))


def told_rows(rows: Any, owner: Owner, *columns: str, most: int, now: datetime, **others: Any) -> list[dict[str, Any]]:
    """So many rows that searches may find, with a text of bounded length; `others` are expressions by name."""
    ends = Concat(Left("text", READ_CHARACTERS), Value("\n"), Right("text", READ_CHARACTERS), output_field=TextField())
    told = Case(When(is_long=True, then=ends), default=F("text"))
    found = found_rows(rows, owner, now=now).alias(is_long=GreaterThan(Length("text"), 2 * READ_CHARACTERS))
    shared = ("id", "kind", "conversation_id", "channel", "event_time")
    named = found.values(*shared, *columns, told=told, **others)[:most]
    return [{"text": row.pop("told"), **row, "kind": Kind(row["kind"])} for row in named]


def found_rows(rows: Any, owner: Owner, *, now: datetime) -> Any:
    of_user = Q(user_id__in=("", owner.user_id)) if owner.user_id else Q()
    return rows.filter(of_user).recallable(now)


def read_slots(owner: Owner, line: Line, goal_ids: Collection[UUID], *, now: datetime) -> list[SlotOfTurn]:
    """The slots of the last records of the lineage and of these goals, and of those before them in the lineage that are
    open or blocked; the first record first."""
    given = {"conversations": list(line.conversations), "goal_ids": list(goal_ids), "seen": LOOKED_THROUGH}
    bounds = {"most": MOST_RECORDS, "most_apart": MOST_APART, "read": READ_CHARACTERS}
    names, rows = compose_slots(shape_of(owner)).read({**bind_owner(owner, now=now), **given, **bounds})
    found = [dict(zip(names, row, strict=True)) for row in rows]
    slots = [SlotOfTurn(**{**row, "kind": Kind.TURN_SLOT, "data": row["data"] or {}}) for row in found]
    places = {slot: place for place, slot in enumerate(TurnSlot.Slot.values)}
    return sorted(slots, key=lambda each: (each.recorded_at, each.number, places[each.slot]))


@lru_cache(maxsize=16)
def compose_slots(shape: OwnerShape) -> Statement:
    """The statement for owners of this shape."""
    of_user = Q(user_id__in=("", shape.owner.user_id)) if shape.has_user else Q()
    records = where_of(TurnRecord.objects.visible_to(shape.owner).filter(of_user), prefix="r")
    visible: Any = Memory.objects.visible_to(shape.owner, Kind.TURN_SLOT)
    slots = where_of(found_rows(visible, shape.owner, now=STAND_IN["now"]), prefix="s")
    parameters = {**records.parameters, **slots.parameters, "merged": CompressionLevel.MERGED.value}
    return numbered(Sql(text=SLOTS.format(records=records.text, slots=slots.text), parameters=parameters))


def read_work_episodes(owner: Owner, line: Line, goal_ids: Collection[UUID], *, now: datetime) -> list[EpisodeOfWork]:
    """Those of the lineage and of these goals, the first one first, with what the account tells of their reasoning."""
    rows: Any = WorkEpisode.objects.visible_to(owner, Kind.WORK_EPISODE)
    # apart, since one condition on both would be looked up in no index
    of_line = rows.filter(conversation_id__in=line.conversations).order_by().values("id")
    of_goals = rows.filter(for_goal_id__in=goal_ids).order_by().values("id")
    latest = rows.filter(id__in=of_line.union(of_goals) if goal_ids else of_line).order_by(
        "-event_time", "-last_number", "id"
    )
    columns = ("data", "status", "tier")
    found = told_rows(
        latest, owner, *columns, most=MOST_EPISODES, now=now, goal_id=F("for_goal_id"), number=F("last_number")
    )
    return [episode_of_work(row, line.allowed) for row in reversed(found)]


def episode_of_work(row: dict[str, Any], allowed: ReasoningTier) -> EpisodeOfWork:
    """Where its text tells a deeper tier of reasoning than that, its data alone is told, as far as it may be."""
    tier = row.pop("tier")
    row["data"] = told_data(row["data"], tier=tier, allowed=allowed)
    row["text"] = "" if is_deeper(tier, allowed) else row["text"]
    return EpisodeOfWork(**row)


def read_goals(
    owner: Owner, goal_ids: Collection[UUID], worked_on: Collection[UUID], *, now: datetime
) -> list[GoalOfWork]:
    """These, then open ones as they press: of the trees that were worked on first, then the owner's own. Then those
    that were closed last. Each with its parent and blockers, and with all that it is a part of."""
    rows: Any = Goal.objects.visible_to(owner, Kind.GOAL).in_channels(owner)
    pressing = found_rows(rows, owner, now=now).order_by(*pressing_order(owner, goal_ids, worked_on))
    chosen, values = pressing.values("id")[:MOST_GOALS].query.sql_with_params()
    bounds = (owner.account_id, SUBGOAL_OF, 2 * MOST_GOALS)
    columns = ("agent_id", "user_id", "status", "priority", "deadline", "completed_at", "result")
    found = told_rows(
        rows.filter(id__in=RawSQL(WITH_ROOTS.format(chosen=chosen), (*values, *bounds))),  # noqa: S611 - a constant with parameters
        owner,
        *columns,
        most=2 * MOST_GOALS,
        now=now,
        parent_ids=targets_of(owner, SUBGOAL_OF),
        blocker_ids=targets_of(owner, BLOCKED_BY),
    )
    return [goal_of_work(row, owner) for row in found]


def pressing_order(owner: Owner, goal_ids: Collection[UUID], worked_on: Collection[UUID]) -> list[Any]:
    of_owner = Q(agent_id=owner.agent_id) | (Q(user_id=owner.user_id) if owner.user_id else Q())
    order: list[Any] = [Case(When(of_owner, then=0), default=1), F("deadline").asc(nulls_last=True), "-priority", "id"]
    if near := [*goal_ids, *worked_on]:
        of_account = (owner.account_id, SUBGOAL_OF)
        trees = RawSQL(TREES, (near, *of_account, *of_account, 2 * MOST_GOALS))  # noqa: S611 - as above
        order.insert(0, Case(When(id__in=trees, then=0), default=1))
    order.insert(0, F("completed_at").desc(nulls_first=True))
    if goal_ids:
        # an empty list would leave a constant, and that would be the number of a column
        order.insert(0, Case(When(id__in=list(goal_ids), then=0), default=1))
    return order


def goal_of_work(row: dict[str, Any], owner: Owner) -> GoalOfWork:
    agent_id, user_id = row.pop("agent_id"), row.pop("user_id")
    # without a user nothing is seen but what the agent added, or all of the account
    is_own = not owner.user_id or user_id == owner.user_id or agent_id == owner.agent_id
    return GoalOfWork(is_own=is_own, **row)


def targets_of(owner: Owner, type_: str) -> ArraySubquery:
    links = Link.objects.filter(account_id=owner.account_id, source_id=OuterRef("id"), type=type_)
    return ArraySubquery(links.order_by("-weight", "id").values("target_id")[:MOST_GOALS])


def read_artifacts(
    owner: Owner, goal_ids: Collection[UUID], record_ids: Collection[UUID], *, now: datetime
) -> list[ArtifactOfWork]:
    """Latest revisions of what these goals and records brought, the newest first."""
    of_work = Q(for_goal_id__in=goal_ids) | Q(record_id__in=record_ids)
    artifacts: Any = Artifact.objects.visible_to(owner, Kind.ARTIFACT)
    rows = artifacts.filter(of_work, is_latest=True)
    columns = ("uri", "artifact_type", "title", "digest", "revision", "label")
    newest = rows.order_by("-event_time", "-id")
    found = told_rows(newest, owner, *columns, most=MOST_ARTIFACTS, now=now, goal_id=F("for_goal_id"))
    return [ArtifactOfWork(**row) for row in found]


def read_user_facts(owner: Owner, *, now: datetime) -> list[Remembered]:
    """What is true of the owner's user by what is believed now, the best known first; nothing without a user."""
    if not owner.user_id:
        return []
    rows: Any = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).filter(user_id=owner.user_id)
    believed = rows.filter(
        Q(valid_from=None) | Q(valid_from__lte=now),
        Q(valid_to=None) | Q(valid_to__gt=now),
        status=Fact.Status.ACTIVE,
        retracted_at=None,
    )
    best = believed.order_by("-pinned", "-confidence", "-event_time", "id")
    return [Remembered(**row) for row in told_rows(best, owner, most=MOST_FACTS, now=now)]
