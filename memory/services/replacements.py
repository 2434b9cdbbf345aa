"""Links from turns to the earlier turns whose statements they replace ("We moved to Braga" after "We live in Porto").

They are made when turns get their vectors, in the same transaction: each new turn is compared with the nearest turns of
the same agent, user and channel, among the latest MAX_TURNS. The weight of a REPLACES link is the probability that the
later statement replaces the earlier one (`extraction.replacement`). Recalls order and mark turns by these links.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.extraction.replacement import (
    MAX_COMPARED_CHARACTERS,
    Pair,
    Saying,
    make_saying,
    may_state,
    replacement_probability,
)
from memory.models import Link, Turn
from memory.models.statements import binary_cursor
from memory.scoring import PROBABLE_REPLACEMENT
from memory.services.memories.store import REPLACES, NewLink, insert_links

MAX_TURNS = 2_000
"""Latest turns of an agent with which a new one is compared."""
MAX_NEIGHBOURS = 30
MAX_PAIRS = 8
"""Nearest turns that may be replaced by one turn."""
SPOKEN_ROLES = ("user", "assistant")

# the latest turns first: by the index on agents, whatever their number
NEAREST_TURNS = f"""
WITH added AS MATERIALIZED (
    SELECT id, agent_id, user_id, channel FROM memories
    WHERE account_id = %(account_id)s AND kind = 'turn' AND id = ANY(%(ids)s::uuid[])
), holder AS MATERIALIZED (
    SELECT DISTINCT agent_id, user_id, channel FROM added
), compared AS MATERIALIZED (
    SELECT latest.id, latest.agent_id, latest.user_id, latest.channel, latest.name, latest.conversation_id,
        latest.event_time, latest.text, own.vector
    FROM holder CROSS JOIN LATERAL (
        SELECT id, agent_id, user_id, channel, name, conversation_id, event_time,
            left(text, {MAX_COMPARED_CHARACTERS}) AS text
        FROM memories
        WHERE account_id = %(account_id)s AND kind = 'turn' AND agent_id = holder.agent_id
            AND user_id = holder.user_id AND channel = holder.channel AND role = ANY(%(roles)s::text[])
            AND NOT (archived OR quarantined OR buried)
        ORDER BY event_time DESC LIMIT {MAX_TURNS}
    ) AS latest JOIN memory_vectors AS own
        ON own.account_id = %(account_id)s AND own.memory_id = latest.id AND own.model = %(model)s AND own.passage = 0
), near AS MATERIALIZED (
    SELECT added.id AS added_id, nearest.*
    FROM added JOIN compared AS new ON new.id = added.id
    CROSS JOIN LATERAL (
        SELECT other.id, other.vector, other.vector <=> new.vector AS distance,
            row_number() OVER (ORDER BY other.vector <=> new.vector, other.id) - 1 AS rank
        FROM compared AS other
        WHERE other.id <> new.id AND other.agent_id = new.agent_id AND other.user_id = new.user_id
            AND other.channel = new.channel
        ORDER BY distance, other.id LIMIT {MAX_NEIGHBOURS}
    ) AS nearest
)
SELECT new.id, new.name, new.conversation_id, new.event_time, new.text,
    old.id, old.name, old.conversation_id, old.event_time, old.text, near.rank, (
        SELECT count(*) FROM near AS other
        WHERE other.added_id = near.added_id AND other.id <> near.id
            AND (other.vector <=> near.vector) < near.distance
    ) AS nearer
FROM near JOIN compared AS new ON new.id = near.added_id JOIN compared AS old ON old.id = near.id
WHERE near.rank < {MAX_PAIRS}
ORDER BY new.id, near.rank
"""  # noqa: S608 (composed of constants alone)


def is_comparable(turn: Turn) -> bool:
    """Return True if a turn may state something that replaces, or is replaced by, another statement."""
    return turn.role in SPOKEN_ROLES and may_state(turn.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTurns:
    """Two turns, one of which may replace the other."""

    newer_id: UUID
    older_id: UUID
    pair: Pair


def link_replaced_turns(account_id: UUID, turn_ids: Sequence[UUID], *, model: str) -> None:
    """Link these turns, which have vectors of this model, to those that they replace or that replace them.

    Two statements, or one if nothing is replaced.
    """
    links = []
    for compared in compare_turns(account_id, turn_ids, model=model):
        probability = replacement_probability(compared.pair)
        if probability >= PROBABLE_REPLACEMENT:
            link = NewLink(source_id=compared.newer_id, type=REPLACES, target_id=compared.older_id, weight=probability)
            links.append(link)
    insert_links(account_id, links)


def relink_replaced_turns(account_id: UUID, turn_ids: Sequence[UUID], *, model: str) -> None:
    """Link turns whose texts may have changed, after deleting the links of their former texts."""
    if turn_ids:
        ends = Q(source_id__in=turn_ids) | Q(target_id__in=turn_ids)
        Link.objects.filter(ends, account_id=account_id, type=REPLACES).delete()
        link_replaced_turns(account_id, turn_ids, model=model)


def compare_turns(account_id: UUID, turn_ids: Sequence[UUID], *, model: str) -> Iterator[ComparedTurns]:
    """Yield each of these turns with the turns nearest to it, if both may state something. One statement."""
    parameters: dict[str, Any] = {
        "account_id": account_id,
        "ids": list(turn_ids),
        "model": model,
        "roles": list(SPOKEN_ROLES),
    }
    with binary_cursor() as cursor:
        cursor.execute(NEAREST_TURNS, parameters)
        rows = cursor.fetchall()
    for row in rows:
        (older_id, older), (newer_id, newer) = sorted(map(read_turn, (row[:5], row[5:10])), key=lambda said: said[1].at)
        if may_state(older.text) and may_state(newer.text):
            pair = Pair(older=older, newer=newer, rank=row[10], nearer=row[11])
            yield ComparedTurns(newer_id=newer_id, older_id=older_id, pair=pair)


def read_turn(columns: Sequence[Any]) -> tuple[UUID, Saying]:
    turn_id, name, conversation_id, at, text = columns
    return turn_id, make_saying(text, speaker=name, conversation_id=conversation_id, at=at)
