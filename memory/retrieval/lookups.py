"""Look-ups about candidates after the search: links among them, full texts, and the turns next to them.

Each is one statement about memories that the owner has been found to see; adjacent turns are filtered for the owner.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from django.conf import settings

from memory.kinds import Kind
from memory.models import Memory
from memory.models.statements import Ids
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.gathering import COLUMNS
from memory.retrieval.plans import LinkBetween
from memory.retrieval.queries import Query, Scope
from memory.retrieval.statements import NumberedStatement, OwnerShape, Sql, owner_shape
from memory.retrieval.visibility import visibility_filter
from memory.scoring import SURE_REPLACEMENT

MAX_LINKS = 2_000
ADJACENT_TURNS = 1
"""Turns before a found one, and after it."""

LINKS_BETWEEN = Sql(
    # OFFSET 0: each memory is looked up by the index, however many links the planner expects
    text="""SELECT linked.source_id, linked.target_id, linked.type, linked.weight
        FROM unnest(%(ids)s::uuid[]) AS near (id) CROSS JOIN LATERAL (
            SELECT * FROM memory_links WHERE account_id = %(account_id)s AND source_id = near.id
            AND target_id = ANY(%(ids)s::uuid[]) OFFSET 0
        ) AS linked ORDER BY linked.weight DESC, linked.id LIMIT %(most)s""",
    parameters={},
).numbered(plans_once=True)

FULL_TEXTS = Sql(
    # the length of a text is known without reading it
    text="""SELECT id, text FROM (
            SELECT id, text, sum(octet_length(text)) OVER (ORDER BY array_position(%(ids)s::uuid[], id))
                - octet_length(text) AS bytes_before
            FROM memories WHERE account_id = %(account_id)s AND id = ANY(%(ids)s::uuid[])
        ) AS wanted WHERE bytes_before < %(max_bytes)s""",
    parameters={},
).numbered(plans_once=True)


def read_links_between(owner: Owner, ids: Collection[UUID]) -> Sequence[LinkBetween]:
    """Return the links among these memories by descending weight. The owner must be known to see them."""
    if len(ids) < 2:
        return []
    _columns, rows = LINKS_BETWEEN.read({"account_id": owner.account_id, "ids": Ids(ids), "most": MAX_LINKS})
    return [
        LinkBetween(source=source, target=target, type=type_, weight=weight) for source, target, type_, weight in rows
    ]


def load_full_texts(owner: Owner, candidates: Sequence[Candidate]) -> None:
    """Replace the cut texts of candidates by their full texts, best first, until they fill an answer.

    The owner must be known to see them. Those after that keep the beginnings of their texts, and stay cut.
    No claim is long enough to be cut, so a fact as it was believed earlier keeps the text of that time.
    """
    cut = {each.id: each for each in candidates if each.is_cut}
    if not cut:
        return
    _columns, rows = FULL_TEXTS.read(
        {"account_id": owner.account_id, "ids": list(cut), "max_bytes": settings.ANSWER_LIMIT_BYTES}
    )
    for memory_id, text in rows:
        cut[memory_id].text, cut[memory_id].is_cut = text, False


def read_adjacent_turns(owner: Owner, found: Sequence[Candidate], query: Query, *, now: datetime) -> list[Candidate]:
    """Return the turns next to found ones (B2) that the owner sees and the question's filters allow.

    Those that another turn surely replaced say which one, and when it was said.

    This is the fourth statement of a `/context`, which a `/recall` does not need. It cannot be part of the third, which
    runs before everything is scored, and reading the adjacent turns of every candidate beforehand would be ten times
    the text.
    """
    wanted = adjacent_spots([each for each in found if each.kind == Kind.TURN and allows_adjacent_turns(each, query)])
    if not wanted:
        return []
    statement = build_adjacent_turns_statement(owner_shape(owner))
    values = {
        "conversations": [conversation for conversation, _ in wanted],
        "indexes": [index for _, index in wanted],
        "without": list(query.without),
        "since": query.since,
        "until": query.until,
        "as_of": query.as_of,
    }
    plain = {"kind": Kind.TURN, "ways": frozenset(), "bm25": 0.0, "similarity": None}
    return [Candidate(**row | plain) for row in statement.read_dicts(owner, values, now=now)]


def allows_adjacent_turns(turn: Candidate, query: Query) -> bool:
    """Return False if the client asked for the current turn of this conversation and not for what was said before."""
    is_narrow = Scope.TURN in query.scopes and Scope.SESSION not in query.scopes
    return not (is_narrow and turn.conversation_id == query.conversation_id)


def adjacent_spots(turns: Sequence[Candidate]) -> list[tuple[str, int]]:
    """Return conversation and index of the turns next to these, without these."""
    own = {(turn.conversation_id, turn.index) for turn in turns}
    steps = [step for step in range(-ADJACENT_TURNS, ADJACENT_TURNS + 1) if step]
    around = [(turn.conversation_id, (turn.index or 0) + step) for turn in turns for step in steps]
    return [spot for spot in dict.fromkeys(around) if spot not in own and spot[1] >= 0]


def locate_entries(owner: Owner, ids: Sequence[UUID]) -> list[tuple[UUID, UUID]]:
    """Return pairs of context id and memory id, as the access log takes them. At most one statement."""
    if not ids:
        return []
    rows = Memory.objects.filter(account_id=owner.account_id, id__in=ids)
    return list(rows.values_list("context_id", "id"))


@lru_cache(maxsize=64)
def build_adjacent_turns_statement(shape: OwnerShape) -> NumberedStatement:
    visible = visibility_filter(shape, (Kind.TURN.value,))
    # OFFSET 0: each turn is looked up by the indexes, however many the planner expects
    text = f"""
        WITH {visible.ctes} wanted AS MATERIALIZED (
            SELECT conversations.id AS log_id, spot.index
            FROM unnest(%(conversations)s::text[], %(indexes)s::int[]) AS spot (conversation_id, "index")
            JOIN conversations ON conversations.account_id = %(account_id)s
                AND conversations.conversation_id = spot.conversation_id
        )
        SELECT turns.*, later.id AS superseded_by, later.event_time AS superseded_at FROM wanted CROSS JOIN LATERAL (
            SELECT {", ".join(COLUMNS)} FROM memories
            WHERE memories.account_id = %(account_id)s AND memories.kind = 'turn'
                AND memories.log_id = wanted.log_id AND memories.index = wanted.index AND {visible.rows}
                AND NOT memories.id = ANY(%(without)s::uuid[])
                AND event_time >= coalesce(%(since)s::timestamptz, '-infinity')
                AND event_time < coalesce(%(until)s::timestamptz, 'infinity') OFFSET 0
        ) AS turns LEFT JOIN LATERAL (
            SELECT newer.id, newer.event_time FROM memory_links AS replaces CROSS JOIN LATERAL (
                SELECT id, event_time FROM memories
                WHERE memories.account_id = %(account_id)s AND memories.id = replaces.source_id AND {visible.rows}
                    AND event_time <= coalesce(%(as_of)s::timestamptz, 'infinity') OFFSET 0
            ) AS newer
            WHERE replaces.account_id = %(account_id)s AND replaces.target_id = turns.id
                AND replaces.type = 'REPLACES' AND replaces.weight >= {SURE_REPLACEMENT}
            ORDER BY replaces.weight DESC, replaces.id LIMIT 1
        ) AS later ON true"""
    return Sql(text=text, parameters=visible.parameters).numbered(plans_once=True)
