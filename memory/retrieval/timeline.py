"""The timeline (X16): memories of all kinds by the time when they happened.

One statement. It reads the next page of each kind, which the index on account, kind and time has in order, merges them,
and reads only the rows of the merged page in full. So a page costs the same however long the past is. More rows are
read if few pass: for a rare filter, or an agent that takes part in many conversations but not recently.

Visibility is that of lists: `visible_to`, nothing quarantined or expired, reasoning as far as the account allows it,
and facts that are believed. Buried memories are listed although no search finds them.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.kinds import Audience, Kind, all_kinds, spec_of
from memory.models import Memory, PersistentContext
from memory.models.memory import model_of
from memory.owner import Owner
from memory.retrieval.statements import STAND_INS, NumberedStatement, OwnerShape, Sql, owner_shape, where_sql
from memory.retrieval.visibility import (
    ALLOWED_TIERS,
    IN_READABLE_CONTEXT,
    has_contexts,
    readable_contexts_cte,
    reasoning_is_allowed,
    reasoning_kinds,
)

SUMMARY_CHARACTERS = 500
MIN_TIME = datetime(1, 1, 1, tzinfo=UTC)
MAX_TIME = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

BELIEVED = "recorded_at IS NOT NULL AND retracted_at IS NULL"

ARCHIVED_CONTEXTS = ", array_agg(id) FILTER (WHERE archived) AS shut"

STATUS = """CASE WHEN memories.status = 'active' AND memories.valid_to <= %(now)s THEN 'ended'
    WHEN memories.status = 'superseded' AND memories.valid_to > %(now)s THEN 'active' ELSE memories.status END"""
"""The status of a fact or a goal; `ended` for a fact that is over. Null for other kinds.

A fact that is superseded from a later day on is `active` until then, as in a recall.
"""

# the index uses the bound on the time alone
OF_KIND = """(SELECT id, event_time FROM memories
    WHERE {rows} AND event_time >= %(since)s AND event_time < %(until)s
        AND event_time {within} %(at)s AND (event_time, id) {beyond} (%(at)s, %(id)s::uuid)
    ORDER BY event_time {way}, id {way} LIMIT %(limit)s)"""

PAGE = """WITH {ctes}
    page AS MATERIALIZED (
        SELECT id FROM ({kinds}) AS found ORDER BY event_time {way}, id {way} LIMIT %(limit)s
    )
    SELECT memories.id, kind, event_time, left(text, {characters}) AS summary,
        char_length(text) > {characters} AS truncated,
        coalesce(importance, salience) AS importance, {status} AS status, access_count, last_accessed, channel,
        {archived} AS archived, conversation_id, agent_id, user_id, metadata
    FROM page JOIN memories ON memories.account_id = %(account_id)s AND memories.id = page.id
    ORDER BY event_time {way}, memories.id {way}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineFilter:
    """A part of the timeline from `since` (inclusive) to `until` (exclusive), of these kinds, or all if none are given.

    `archived` None means both. An empty channel or conversation means any.
    """

    kinds: Collection[Kind] = ()
    channel: str = ""
    conversation_id: str = ""
    archived: bool | None = False
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineItem:
    """A memory on the timeline. `summary` is the beginning of its text, `truncated` True if there is more.

    `status` is that of a fact or a goal. `importance` (0 to 1) is that of a context entry, and the salience of other
    kinds. Entries of an archived context count as archived.
    """

    id: UUID
    kind: str
    event_time: datetime
    summary: str
    truncated: bool
    status: str | None
    importance: float
    access_count: int
    last_accessed: datetime | None
    channel: str
    archived: bool
    conversation_id: str
    agent_id: str
    user_id: str
    metadata: dict[str, Any]

    @property
    def item_key(self) -> str:
        """The key of this memory in the injection ledger."""
        return f"{self.kind}:{self.id}"


TimelineCursor = tuple[datetime, UUID]
"""Time and id of a memory, which are its position on the timeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineShape:
    """The properties of a request that decide the text of the statement."""

    owner: OwnerShape
    kinds: tuple[Kind, ...]
    archived: bool | None
    has_channel: bool
    has_conversation: bool
    newest_first: bool


def read_timeline(
    owner: Owner,
    filters: TimelineFilter,
    *,
    beyond: TimelineCursor | None = None,
    newest_first: bool = True,
    limit: int,
    now: datetime,
) -> Sequence[TimelineItem]:
    """Return at most `limit` memories that the owner sees after `beyond`, ordered by time, then by id.

    With a `user_id`, only memories of that user and of no user. All channels unless one is given. One statement.
    """
    shape = TimelineShape(
        owner=replace(owner_shape(owner), has_channel=False),
        kinds=tuple(sorted(set(filters.kinds) or all_kinds())),
        archived=filters.archived,
        has_channel=bool(filters.channel),
        has_conversation=bool(filters.conversation_id),
        newest_first=newest_first,
    )
    at, after_id = beyond or ((MAX_TIME, UUID(int=2**128 - 1)) if newest_first else (MIN_TIME, UUID(int=0)))
    values = {
        "channel": filters.channel,
        "conversation_id": filters.conversation_id,
        "since": filters.since or MIN_TIME,
        "until": filters.until or MAX_TIME,
        "at": at,
        "id": after_id,
        "limit": limit,
    }
    return [TimelineItem(**row) for row in build_timeline_statement(shape).read_dicts(owner, values, now=now)]


@lru_cache(maxsize=256)
def build_timeline_statement(shape: TimelineShape) -> NumberedStatement:
    way, beyond = ("DESC", "<") if shape.newest_first else ("ASC", ">")
    contexts = PersistentContext.objects.visible_to(shape.owner.owner)
    ctes = readable_contexts_cte(contexts, shape.kinds, columns=ARCHIVED_CONTEXTS)
    branches = [branch for kind in shape.kinds for branch in kind_branches(shape, kind)]
    kinds = [OF_KIND.format(rows=branch.text, way=way, beyond=beyond, within=f"{beyond}=") for branch in branches]
    text = PAGE.format(
        ctes=f"{ALLOWED_TIERS if reasoning_kinds() & set(shape.kinds) else ''} {ctes.text}",
        kinds=" UNION ALL ".join(kinds),
        way=way,
        archived=archived_sql(in_context=has_contexts(shape.kinds)),
        characters=SUMMARY_CHARACTERS,
        status=STATUS,
    )
    parameters: dict[str, Any] = dict(ctes.parameters)
    for branch in branches:
        parameters |= branch.parameters
    return Sql(text=text, parameters=parameters).numbered()


def archived_sql(*, in_context: bool) -> str:
    """Return the condition that a row is archived, by itself or with its context."""
    with_context = " OR coalesce(context_id = ANY((SELECT shut FROM readable)::uuid[]), false)"
    return f"(archived{with_context})" if in_context else "archived"


def kind_branches(shape: TimelineShape, kind: Kind) -> list[Sql]:
    """Return the conditions on memories of one kind: each matches rows that an index has in the order of the page."""
    owner = shape.owner.owner
    if spec_of(kind).audience is Audience.KNOWLEDGE and owner.agent_id and not owner.user_id:
        # no index has the rows of two agents in the order of time
        return [
            kind_rows_sql(shape, kind, of=Q(agent_id=agent), mark=mark)
            for agent, mark in ((owner.agent_id, "o"), ("", "a"))
        ]
    return [kind_rows_sql(shape, kind, of=Q(), mark="")]


def kind_rows_sql(shape: TimelineShape, kind: Kind, *, of: Q, mark: str) -> Sql:
    """Return the condition on memories of one kind that also meet `of`. `mark` keeps its parameters apart."""
    owner, in_context = shape.owner.owner, has_contexts([kind])
    # readable contexts are listed once, as a CTE
    seen = replace(owner, agent_id="") if in_context else owner
    unexpired = Q(expires_at=None) | Q(expires_at__gt=STAND_INS["now"])
    rows = Memory.objects.visible_to(seen, kind).filter(of, unexpired, quarantined=False)
    if owner.user_id:
        rows = rows.filter(user_id__in=("", owner.user_id))
    where = where_sql(rows, prefix=f"{kind.value}_{mark}")
    further = filter_conditions(shape, kind, in_context=in_context)
    return Sql(text=" AND ".join([where.text, *further]), parameters=where.parameters)


def filter_conditions(shape: TimelineShape, kind: Kind, *, in_context: bool) -> Iterator[str]:
    """Yield the conditions of the request and of the kind itself."""
    if shape.has_channel:
        yield "channel = %(channel)s"
    if shape.has_conversation:
        yield "conversation_id = %(conversation_id)s"
    if in_context:
        yield IN_READABLE_CONTEXT
    if shape.archived is not None:
        yield f"{'' if shape.archived else 'NOT '}{archived_sql(in_context=in_context)}"
    if spec_of(kind).has_beliefs:
        yield BELIEVED.format(table=model_of(kind)._meta.db_table)
    if kind in reasoning_kinds():
        yield reasoning_is_allowed(table="memories")
