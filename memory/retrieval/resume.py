"""Reads for resuming work: turns, records, work episodes, goals, artifacts and facts, in one statement for each kind.

Every statement starts at `visible_to`; with a user, it reads rows of that user and of no user. Of long texts the
beginning and the end are read, since errors stand at the end of what tools print.
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

from memory.kinds import Kind
from memory.models import (
    Artifact,
    CompressionLevel,
    Conversation,
    Fact,
    Goal,
    Link,
    Memory,
    Turn,
    TurnRecord,
    TurnSlot,
    WorkEpisode,
)
from memory.models.goals import BLOCKED_BY, SUBGOAL_OF
from memory.models.turn_records import data_within_tier
from memory.owner import Owner
from memory.reasoning import ReasoningTier, is_deeper
from memory.retrieval.query_analysis import LINEAGE_CTE
from memory.retrieval.statements import STAND_INS, NumberedStatement, OwnerShape, Sql, owner_shape, where_sql

MAX_TURNS = 400
MAX_RECORDS = 100
MAX_OPEN_RECORDS = 20
"""Older records that are open, and as many that are blocked."""
MAX_SCANNED_RECORDS = 1_000
"""Records that are read of the lineage, and of each goal."""
MAX_EPISODES = 40
MAX_GOALS = 200
MAX_ARTIFACTS = 40
MAX_FACTS = 40
READ_CHARACTERS = 2_000
"""Characters of the beginning of a long text, and of its end."""

# the chain passes through conversations in which the agent takes no part, without returning them
LINEAGE = f"""
WITH RECURSIVE {LINEAGE_CTE}
SELECT accounts.reasoning_tier, (
    SELECT array_agg(conversations.conversation_id ORDER BY line.depth)
    FROM line JOIN conversations ON conversations.conversation_id = line.conversation_id
    WHERE NOT line.is_again AND {{visible}}
) AS conversations
FROM accounts WHERE id = %(account_id)s
"""
NAMED_CONVERSATION = (
    "SELECT conversation_id, continues FROM conversations WHERE {visible} AND conversation_id = %(conversation_id)s"
)
LATEST_CONVERSATION = """
SELECT conversation_id, continues FROM conversations
WHERE {visible} AND NOT archived AND (%(user_id)s = '' OR user_id IN ('', %(user_id)s))
    AND (%(channel)s = '_global' OR channel IN ('_global', %(channel)s))
ORDER BY coalesce(last_turn_at, started_at) DESC, id DESC LIMIT 1
"""

# whole trees: from these goals up to the roots, and down from there
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
# goals with everything that they are part of
WITH_ROOTS = """
WITH RECURSIVE above (id) AS (
    ({chosen})
    UNION SELECT links.target_id FROM memory_links AS links JOIN above ON links.source_id = above.id
    WHERE links.account_id = %s AND links.type = %s
) SELECT id FROM above LIMIT %s
"""

# OFFSET 0 keeps each step within its records; the planner might read all slots of all accounts instead
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
        SELECT data FROM memories WHERE account_id = %(account_id)s AND kind = 'turn_slot'
            AND memories.record_id = own.id AND slot = 'reasoning' OFFSET 0
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
SELECT slots.*, own.id AS record_id, own.number, own.status, own.goal_id, own.event_time AS recorded_at
FROM chosen JOIN own ON own.id = chosen.id CROSS JOIN LATERAL (
    SELECT id, kind, conversation_id, channel, event_time, agent_id,
        CASE WHEN length(text) > 2 * %(read)s::int
            THEN left(text, %(read)s::int) || chr(10) || right(text, %(read)s::int) ELSE text END AS text,
        slot, tier, CASE WHEN slot = 'reasoning' THEN data END AS data
    FROM memories WHERE memories.kind = 'turn_slot' AND memories.record_id = own.id AND {slots} OFFSET 0
) AS slots
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedLineage:
    """The conversations to resume, latest first, and the deepest tier of reasoning that the account allows."""

    conversations: Sequence[str]
    allowed: ReasoningTier


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedMemory:
    """A memory that is read for resuming work. `text` lacks the middle of a long text."""

    id: UUID
    kind: Kind
    text: str
    conversation_id: str
    channel: str
    event_time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedTurn(ResumedMemory):
    index: int
    role: str
    name: str
    agent_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedSlot(ResumedMemory):
    """A slot of a structured turn. `data` is that of reasoning; the text holds calls and results."""

    slot: str
    tier: str
    data: dict[str, Any]
    record_id: UUID
    number: int
    status: str
    goal_id: UUID | None
    recorded_at: datetime
    agent_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedEpisode(ResumedMemory):
    """`number` is that of its last record."""

    data: dict[str, Any]
    status: str
    number: int
    goal_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedGoal(ResumedMemory):
    """A goal. `parent_ids` has at most one; `blocker_ids` includes closed goals.

    `is_own` is True for a goal of the owner's agent or user, False for one of the account's.
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
class ResumedArtifact(ResumedMemory):
    uri: str
    artifact_type: str
    title: str
    digest: str
    revision: int
    label: str
    goal_id: UUID | None


def read_resumed_lineage(owner: Owner, conversation_id: str, *, now: datetime) -> ResumedLineage:
    """Return the conversation, or without an id the one that the owner wrote to last, and those that it continues."""
    visible = where_sql(Conversation.objects.visible_to(owner_shape(owner).owner), prefix="v")
    first = (NAMED_CONVERSATION if conversation_id else LATEST_CONVERSATION).format(visible=visible.text)
    text = LINEAGE.format(first=first, visible=visible.text)
    statement = Sql(text=text, parameters=visible.parameters).numbered()
    [row] = statement.read_dicts(owner, {"conversation_id": conversation_id}, now=now)
    return ResumedLineage(conversations=row["conversations"] or [], allowed=ReasoningTier(row["reasoning_tier"]))


def read_resumed_turns(owner: Owner, lineage: ResumedLineage, *, now: datetime) -> list[ResumedTurn]:
    """Return the last turns of the lineage, in the order in which they were said."""
    rows = Turn.objects.visible_to(owner, Kind.TURN).filter(conversation_id__in=lineage.conversations)
    latest = rows.order_by("-event_time", "-index", "id")
    bounded = read_bounded_rows(latest, owner, "index", "role", "name", "agent_id", limit=MAX_TURNS, now=now)
    found = [ResumedTurn(**row) for row in bounded]
    depth = {conversation: place for place, conversation in enumerate(lineage.conversations)}
    return sorted(found, key=lambda turn: (-depth[turn.conversation_id], turn.index))


def read_bounded_rows(
    rows: Any, owner: Owner, *columns: str, limit: int, now: datetime, **others: Any
) -> list[dict[str, Any]]:
    """Return rows that searches may find, with a text of bounded length. `others` are expressions by name."""
    ends = Concat(Left("text", READ_CHARACTERS), Value("\n"), Right("text", READ_CHARACTERS), output_field=TextField())
    bounded = Case(When(is_long=True, then=ends), default=F("text"))
    found = recallable_rows(rows, owner, now=now).alias(is_long=GreaterThan(Length("text"), 2 * READ_CHARACTERS))
    shared = ("id", "kind", "conversation_id", "channel", "event_time")
    named = found.values(*shared, *columns, bounded=bounded, **others)[:limit]
    return [{"text": row.pop("bounded"), **row, "kind": Kind(row["kind"])} for row in named]


def recallable_rows(rows: Any, owner: Owner, *, now: datetime) -> Any:
    of_user = Q(user_id__in=("", owner.user_id)) if owner.user_id else Q()
    return rows.filter(of_user).recallable(now)


def read_resumed_slots(
    owner: Owner, lineage: ResumedLineage, goal_ids: Collection[UUID], *, now: datetime
) -> list[ResumedSlot]:
    """Return the slots of the last records of these, and of older open or blocked ones, in chronological order."""
    given = {"conversations": list(lineage.conversations), "goal_ids": list(goal_ids), "seen": MAX_SCANNED_RECORDS}
    bounds = {"most": MAX_RECORDS, "most_apart": MAX_OPEN_RECORDS, "read": READ_CHARACTERS}
    found = build_slots_statement(owner_shape(owner)).read_dicts(owner, given | bounds, now=now)
    slots = [ResumedSlot(**{**row, "kind": Kind.TURN_SLOT, "data": row["data"] or {}}) for row in found]
    places = {slot: place for place, slot in enumerate(TurnSlot.Slot.values)}
    return sorted(slots, key=lambda each: (each.recorded_at, each.number, places[each.slot]))


@lru_cache(maxsize=16)
def build_slots_statement(shape: OwnerShape) -> NumberedStatement:
    of_user = Q(user_id__in=("", shape.owner.user_id)) if shape.has_user else Q()
    records = where_sql(TurnRecord.objects.visible_to(shape.owner).filter(of_user), prefix="r")
    visible = Memory.objects.visible_to(shape.owner, Kind.TURN_SLOT)
    slots = where_sql(recallable_rows(visible, shape.owner, now=STAND_INS["now"]), prefix="s")
    parameters = {**records.parameters, **slots.parameters, "merged": CompressionLevel.MERGED.value}
    return Sql(text=SLOTS.format(records=records.text, slots=slots.text), parameters=parameters).numbered()


def read_resumed_episodes(
    owner: Owner, lineage: ResumedLineage, goal_ids: Collection[UUID], *, now: datetime
) -> list[ResumedEpisode]:
    """Return the work episodes of the lineage and of these goals, in chronological order.

    Reasoning of a deeper tier than the account allows is dropped from the data, and then the text as well.
    """
    rows = WorkEpisode.objects.visible_to(owner, Kind.WORK_EPISODE)
    # two queries, since no index serves one condition on both
    of_line = rows.filter(conversation_id__in=lineage.conversations).order_by().values("id")
    of_goals = rows.filter(for_goal_id__in=goal_ids).order_by().values("id")
    latest = rows.filter(id__in=of_line.union(of_goals) if goal_ids else of_line).order_by(
        "-event_time", "-last_number", "id"
    )
    columns = ("data", "status", "tier")
    found = read_bounded_rows(
        latest, owner, *columns, limit=MAX_EPISODES, now=now, goal_id=F("for_goal_id"), number=F("last_number")
    )
    for row in found:
        tier = row.pop("tier")
        row["data"] = data_within_tier(row["data"], tier=tier, allowed=lineage.allowed)
        row["text"] = "" if is_deeper(tier, lineage.allowed) else row["text"]
    return [ResumedEpisode(**row) for row in reversed(found)]


def read_resumed_goals(
    owner: Owner, goal_ids: Collection[UUID], worked_on: Collection[UUID], *, now: datetime
) -> list[ResumedGoal]:
    """Return these goals, then open ones by urgency, then those that were closed last, with all their ancestors.

    Open goals of the trees that were worked on come first, then the owner's own. Each has its parent and blockers.
    """
    rows = Goal.objects.visible_to(owner, Kind.GOAL).in_channels(owner)
    urgent = recallable_rows(rows, owner, now=now).order_by(*urgency_order(owner, goal_ids, worked_on))
    chosen, values = urgent.values("id")[:MAX_GOALS].query.sql_with_params()
    bounds = (owner.account_id, SUBGOAL_OF, 2 * MAX_GOALS)
    columns = ("agent_id", "user_id", "status", "priority", "deadline", "completed_at", "result")
    found = read_bounded_rows(
        rows.filter(id__in=RawSQL(WITH_ROOTS.format(chosen=chosen), (*values, *bounds))),  # noqa: S611 - a constant with parameters
        owner,
        *columns,
        limit=2 * MAX_GOALS,
        now=now,
        parent_ids=link_targets(owner, SUBGOAL_OF),
        blocker_ids=link_targets(owner, BLOCKED_BY),
    )
    for row in found:
        agent_id, user_id = row.pop("agent_id"), row.pop("user_id")
        # an owner without agent and user acts for the account
        is_of_user = bool(owner.user_id) and user_id == owner.user_id
        row["is_own"] = is_of_user or agent_id == owner.agent_id or not (owner.agent_id or owner.user_id)
    return [ResumedGoal(**row) for row in found]


def urgency_order(owner: Owner, goal_ids: Collection[UUID], worked_on: Collection[UUID]) -> list[Any]:
    of_owner = Q(agent_id=owner.agent_id) | (Q(user_id=owner.user_id) if owner.user_id else Q())
    order: list[Any] = [Case(When(of_owner, then=0), default=1), F("deadline").asc(nulls_last=True), "-priority", "id"]
    if near := [*goal_ids, *worked_on]:
        of_account = (owner.account_id, SUBGOAL_OF)
        trees = RawSQL(TREES, (near, *of_account, *of_account, 2 * MAX_GOALS))  # noqa: S611 - as above
        order.insert(0, Case(When(id__in=trees, then=0), default=1))
    order.insert(0, F("completed_at").desc(nulls_first=True))
    if goal_ids:
        # an empty list would leave a constant, which ORDER BY reads as the number of a column
        order.insert(0, Case(When(id__in=list(goal_ids), then=0), default=1))
    return order


def link_targets(owner: Owner, type_: str) -> ArraySubquery:
    links = Link.objects.filter(account_id=owner.account_id, source_id=OuterRef("id"), type=type_)
    return ArraySubquery(links.order_by("-weight", "id").values("target_id")[:MAX_GOALS])


def read_resumed_artifacts(
    owner: Owner, goal_ids: Collection[UUID], record_ids: Collection[UUID], *, now: datetime
) -> list[ResumedArtifact]:
    """Return the latest revisions of the artifacts of these goals and records, newest first."""
    of_work = Q(for_goal_id__in=goal_ids) | Q(source_record_id__in=record_ids)
    artifacts: Any = Artifact.objects.visible_to(owner, Kind.ARTIFACT)
    rows = artifacts.filter(of_work, is_latest=True)
    columns = ("uri", "artifact_type", "title", "digest", "revision", "label")
    newest = rows.order_by("-event_time", "-id")
    found = read_bounded_rows(newest, owner, *columns, limit=MAX_ARTIFACTS, now=now, goal_id=F("for_goal_id"))
    return [ResumedArtifact(**row) for row in found]


def read_user_facts(owner: Owner, *, now: datetime) -> list[ResumedMemory]:
    """Return the facts about the owner's user that are true and believed now, most certain first."""
    if not owner.user_id:
        return []
    rows = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).filter(user_id=owner.user_id)
    believed = rows.filter(
        Q(valid_from=None) | Q(valid_from__lte=now),
        Q(valid_to=None) | Q(valid_to__gt=now),
        status=Fact.Status.ACTIVE,
        retracted_at=None,
    )
    best = believed.order_by("-pinned", "-confidence", "-event_time", "id")
    return [ResumedMemory(**row) for row in read_bounded_rows(best, owner, limit=MAX_FACTS, now=now)]
