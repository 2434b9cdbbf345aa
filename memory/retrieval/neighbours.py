"""What was said right before and after the turns that a recall found: the passages around them (B2).

The fourth statement of a `/context`, which a `/recall` does not make: whose neighbours are wanted is known once
everything is scored, which the third statement comes before; and to read those of every candidate beforehand would be
ten times the texts.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.gathering import COLUMNS, OF_TURNS
from memory.retrieval.queries import Query, Scope
from memory.retrieval.statements import OwnerShape, Sql, Statement, bind_owner, numbered, shape_of
from memory.retrieval.visibility import walls_of

REACH = 1
"""Turns before a found one, and after it."""


def read_neighbours(owner: Owner, found: Sequence[Candidate], query: Query, *, now: datetime) -> list[Candidate]:
    """The turns next to those among `found`, without these, as far as the owner sees them and the question's filters
    let them through. One statement; none where no turn was found.
    """
    wanted = spots_around([each for each in found if each.kind == Kind.TURN and is_open_around(each, query)])
    if not wanted:
        return []
    statement = compose(shape_of(owner))
    values = {
        **bind_owner(owner, now=now),
        "conversations": [conversation for conversation, _ in wanted],
        "indexes": [index for _, index in wanted],
        "without": list(query.without),
        "since": query.since,
        "until": query.until,
    }
    columns, rows = statement.read(values)
    named = [dict(zip(columns, row, strict=True)) | {"kind": Kind.TURN} for row in rows]
    return [Candidate(**row, ways=frozenset(), bm25=0.0, similarity=None) for row in named]


def is_open_around(turn: Candidate, query: Query) -> bool:
    """Whoever asks for the last turns alone wants none of those before them."""
    is_narrow = Scope.TURN in query.scopes and Scope.SESSION not in query.scopes
    return not (is_narrow and turn.conversation_id == query.conversation_id)


def spots_around(turns: Sequence[Candidate]) -> list[tuple[str, int]]:
    """Conversation and index of what is next to these turns, and none of them."""
    own = {(turn.conversation_id, turn.index) for turn in turns}
    steps = [step for step in range(-REACH, REACH + 1) if step]
    around = [(turn.conversation_id, (turn.index or 0) + step) for turn in turns for step in steps]
    return [spot for spot in dict.fromkeys(around) if spot not in own and spot[1] >= 0]


@lru_cache(maxsize=64)
def compose(shape: OwnerShape) -> Statement:
    walls = walls_of(shape, (Kind.TURN.value,))
    # each one by its indexes, whatever the planner takes their number for
    text = f"""
        WITH {walls.ctes} wanted AS MATERIALIZED (
            SELECT turns.* FROM unnest(%(conversations)s::text[], %(indexes)s::int[]) AS spot (conversation_id, "index")
            JOIN conversations ON conversations.account_id = %(account_id)s
                AND conversations.conversation_id = spot.conversation_id
            CROSS JOIN LATERAL (
                SELECT memory_ptr_id, "index", role, name FROM turns
                WHERE turns.log_id = conversations.id AND turns.index = spot.index OFFSET 0
            ) AS turns
        )
        SELECT {", ".join((*COLUMNS, *OF_TURNS))} FROM wanted AS turns CROSS JOIN LATERAL (
            SELECT * FROM memories WHERE memories.id = turns.memory_ptr_id AND {walls.rows}
            AND NOT memories.id = ANY(%(without)s::uuid[])
            AND event_time >= coalesce(%(since)s::timestamptz, '-infinity')
            AND event_time < coalesce(%(until)s::timestamptz, 'infinity') OFFSET 0
        ) AS memories"""
    return numbered(Sql(text=text, parameters=walls.parameters))
