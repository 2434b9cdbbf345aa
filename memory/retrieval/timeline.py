"""The timeline (X16): what is remembered of all kinds, by the time when it happened.

One statement. Each kind is asked for its own next page, which the index on account, kind and time has in order; these
are merged, and only the rows of the page that comes of it are read whole. So a page costs a page, however long the
past is. What hardly anything passes has more of it looked through: a rare filter, or an agent that takes part in many
conversations, none of them lately.

The wall is that of lists: `visible_to`, nothing quarantined or expired, of reasoning what the account allows, of facts
those that are believed. What is buried, no search finds, but lists have it.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.models import Kind, Memory, PersistentContext
from memory.models.memory import OF_CONTEXTS
from memory.owner import Owner
from memory.retrieval.statements import STAND_IN, OwnerShape, Sql, Statement, bind_owner, numbered, shape_of, where_of
from memory.retrieval.visibility import ALLOWED, REASONING, TOLD

SUMMARY_CHARACTERS = 500
FIRST = datetime(1, 1, 1, tzinfo=UTC)
LAST = datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

BELIEVED = """(SELECT own.recorded_at IS NOT NULL AND own.retracted_at IS NULL FROM facts AS own
    WHERE own.memory_ptr_id = memories.id)"""

READABLE = """readable AS MATERIALIZED (
    SELECT array_agg(id) AS ids, array_agg(id) FILTER (WHERE archived) AS shut
    FROM persistent_contexts WHERE {where}),"""

# the bound on the time alone is what the index takes
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
        coalesce((SELECT importance FROM context_entries AS own WHERE own.memory_ptr_id = memories.id), salience)
            AS importance,
        access_count, last_accessed, channel, {archived} AS archived, conversation_id, agent_id, user_id, metadata
    FROM page JOIN memories ON memories.id = page.id ORDER BY event_time {way}, memories.id {way}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Which part of the past: `since` inclusive, `until` exclusive; of these kinds only, if any are named.

    `archived` None: either. An empty channel or conversation is any.
    """

    kinds: Collection[Kind] = ()
    channel: str = ""
    conversation_id: str = ""
    archived: bool | None = False
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A memory on the timeline. `summary` is how its text begins; `truncated` says that there is more of it.

    `importance` (0 to 1) is a context entry's own, and the salience of other kinds. What is in an archived context is
    archived with it.
    """

    id: UUID
    kind: str
    event_time: datetime
    summary: str
    truncated: bool
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
        """Its name in the injection ledger."""
        return f"{self.kind}:{self.id}"


Place = tuple[datetime, UUID]
"""Time and id of a memory: where it stands on the timeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What of a request decides the statement's text."""

    owner: OwnerShape
    kinds: tuple[Kind, ...]
    archived: bool | None
    has_channel: bool
    has_conversation: bool
    newest_first: bool


def read_timeline(
    owner: Owner,
    stretch: Stretch,
    *,
    beyond: Place | None = None,
    newest_first: bool = True,
    limit: int,
    now: datetime,
) -> Sequence[Remembered]:
    """At most `limit` memories that the owner sees, in the order of their times (draws by id), those after `beyond`.

    With a `user_id`, that user's and nobody's. All channels, unless the stretch names one. One statement.
    """
    shape = Shape(
        owner=replace(shape_of(owner), has_channel=False),
        kinds=tuple(sorted(set(stretch.kinds) or Kind)),
        archived=stretch.archived,
        has_channel=bool(stretch.channel),
        has_conversation=bool(stretch.conversation_id),
        newest_first=newest_first,
    )
    at, after_id = beyond or ((LAST, UUID(int=2**128 - 1)) if newest_first else (FIRST, UUID(int=0)))
    values = bind_owner(owner, now=now) | {
        "channel": stretch.channel,
        "conversation_id": stretch.conversation_id,
        "since": stretch.since or FIRST,
        "until": stretch.until or LAST,
        "at": at,
        "id": after_id,
        "limit": limit,
    }
    columns, rows = compose(shape).read(values)
    return [Remembered(**dict(zip(columns, row, strict=True))) for row in rows]


@lru_cache(maxsize=256)
def compose(shape: Shape) -> Statement:
    """The statement for requests of this shape."""
    way, beyond = ("DESC", "<") if shape.newest_first else ("ASC", ">")
    ctes = contexts_of(shape)
    branches = [rows_of(shape, kind) for kind in shape.kinds]
    kinds = [OF_KIND.format(rows=branch.text, way=way, beyond=beyond, within=f"{beyond}=") for branch in branches]
    text = PAGE.format(
        ctes=f"{ALLOWED if REASONING & set(shape.kinds) else ''} {ctes.text}",
        kinds=" UNION ALL ".join(kinds),
        way=way,
        archived=put_away(in_context=bool(OF_CONTEXTS & set(shape.kinds))),
        characters=SUMMARY_CHARACTERS,
    )
    parameters: dict[str, Any] = dict(ctes.parameters)
    for branch in branches:
        parameters |= branch.parameters
    return numbered(Sql(text=text, parameters=parameters))


def contexts_of(shape: Shape) -> Sql:
    """The lists of contexts that may be read, and of those among them that are archived."""
    if not OF_CONTEXTS & set(shape.kinds):
        return Sql(text="", parameters={})
    where = where_of(PersistentContext.objects.visible_to(shape.owner.owner), prefix="c")
    return Sql(text=READABLE.format(where=where.text), parameters=where.parameters)


def put_away(*, in_context: bool) -> str:
    """Whether a row is archived: by itself, or with its context."""
    with_context = " OR coalesce(context_id = ANY((SELECT shut FROM readable)::uuid[]), false)"
    return f"(archived{with_context})" if in_context else "archived"


def rows_of(shape: Shape, kind: Kind) -> Sql:
    """The condition on memories of one kind."""
    owner, in_context = shape.owner.owner, kind in OF_CONTEXTS
    # who may read the context is asked of the list, once
    seen = replace(owner, agent_id="") if in_context else owner
    unexpired = Q(expires_at=None) | Q(expires_at__gt=STAND_IN["now"])
    rows = Memory.objects.visible_to(seen, kind).filter(unexpired, quarantined=False)
    if owner.user_id:
        rows = rows.filter(user_id__in=("", owner.user_id))
    where = where_of(rows, prefix=kind.value)
    further = conditions_of(shape, kind, in_context=in_context)
    return Sql(text=" AND ".join([where.text, *further]), parameters=where.parameters)


def conditions_of(shape: Shape, kind: Kind, *, in_context: bool) -> Iterator[str]:
    """What the request asks for, and what the kind itself."""
    if shape.has_channel:
        yield "channel = %(channel)s"
    if shape.has_conversation:
        yield "conversation_id = %(conversation_id)s"
    if in_context:
        yield "context_id = ANY((SELECT ids FROM readable)::uuid[])"
    if shape.archived is not None:
        yield f"{'' if shape.archived else 'NOT '}{put_away(in_context=in_context)}"
    if kind == Kind.FACT:
        yield BELIEVED
    if kind in REASONING:
        yield TOLD.format(table="memories", memory_id="memories.id")
