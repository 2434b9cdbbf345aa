"""Links from statements to earlier ones that they replace ("We moved to Braga" after "We live in Porto").

Statements are spoken turns, notes and others: `KindSpec.replaces` says which kinds are compared. Links are made when
they get their vectors, in the same transaction: each new one is compared with the nearest of the same agent, user and
channel, among the latest MAX_STATEMENTS. The weight of a REPLACES link is the probability that the later statement
replaces the earlier one (`extraction.replacement`), and less where facts tell that the earlier one says more
(`replaced_evidence`). Recalls order and mark memories by these links.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Q, QuerySet
from numpy.typing import NDArray
from psycopg.pq import Format

from memory.extraction.replacement import (
    MAX_COMPARED_CHARACTERS,
    MAX_NEIGHBOURS,
    Pair,
    PairColumns,
    Saying,
    make_saying,
    may_replace,
    may_state,
    replacement_probability,
)
from memory.kinds import Kind, spec_of
from memory.models import Conversation, Link, MemoryRow, Turn
from memory.models.statements import VECTOR_HEAD_BYTES, Ids, binary_cursor
from memory.scoring import POSSIBLE_REPLACEMENT, SURE_REPLACEMENT
from memory.services.claims import take_shares
from memory.services.embedding.serving import serving_model
from memory.services.memories.links import REPLACES, NewLink, insert_links
from memory.services.replaced_evidence import add_links, weaken_partial_replacements
from memory_project.batches import batched

MAX_STATEMENTS = 2_000
"""Latest statements of an agent with which a new one is compared."""
MAX_PAIRS = 8
"""Nearest statements that may be replaced by one."""
LEAST_SIMILARITY = 0.2
"""Cosine of statements on the same thing, at least: where little was said, the nearest may be about something else.

No replacement in `docs/sample/updates.json`, `plain-updates.json` and `restatements.json` is less alike.
"""
MAX_FEW = 3
"""Statements whose nearest ones PostgreSQL finds; of more, all vectors are read and compared here."""
NEAREST_SAID = f"""(
    SELECT DISTINCT ON (near.id) near.* FROM said AS new CROSS JOIN LATERAL (
        SELECT other.* FROM said AS other
        WHERE (other.agent_id, other.user_id, other.channel, other.width)
            = (new.agent_id, new.user_id, new.channel, new.width)
        ORDER BY other.id <> new.id, other.vector <#> new.vector LIMIT {MAX_NEIGHBOURS} + 1
    ) AS near WHERE new.id = ANY(%(ids)s::uuid[])
)"""  # noqa: S608 (a constant)
"""Those of `said` that are compared, and their nearest ones of the same agent, user and channel."""
PLACES_AT_ONCE = 64
"""Statements compared in one product of vectors: their neighbours' vectors take 12 MB at 1,536 dimensions."""
SPOKEN_ROLES = ("user", "assistant")
TURNS_AT_ONCE = 500
"""Turns of a former conversation that are compared by one statement."""

SAYINGS = f"""
SELECT id, coalesce(name, ''), conversation_id, event_time, left(text, {MAX_COMPARED_CHARACTERS}),
    coalesce(role, '') = 'assistant' FROM memories
WHERE account_id = %(account_id)s AND id = ANY(%(ids)s::uuid[])
"""  # noqa: S608 (composed of constants alone)
# in one order, and after a wait for those who delete only what is still there
KEEP_ROWS = "SELECT id FROM memories WHERE account_id = %s AND id = ANY(%s::uuid[]) ORDER BY id FOR KEY SHARE"
UUID_BYTES = 16


def is_statement(row: MemoryRow) -> bool:
    """Return True if a memory may state something that replaces, or is replaced by, another statement."""
    is_said = not isinstance(row, Turn) or row.role in SPOKEN_ROLES
    return bool(spec_of(row.kind).replaces) and is_said and may_state(row.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedStatements:
    """Two statements, one of which may replace the other."""

    newer_id: UUID
    older_id: UUID
    pair: Pair


def link_replaced_statements(account_id: UUID, ids: Sequence[UUID], *, kind: str, model: str) -> None:
    """Link these memories of a kind, which have vectors of this model, to those that they replace or are replaced by.

    Six SQL statements at most, four of them only if something is replaced.
    """
    links = find_replacements(account_id, ids, kind=kind, model=model)
    insert_links(account_id, keep_ends(account_id, links))
    if kind == Kind.TURN and any(link.weight >= SURE_REPLACEMENT for link in links):
        weaken_partial_replacements(account_id, ids)


def keep_ends(account_id: UUID, links: Sequence[NewLink]) -> list[NewLink]:
    """Return the links whose ends are there, and keep these from being deleted until the transaction ends."""
    if not links:
        return []
    ends = {end for link in links for end in (link.source_id, link.target_id)}
    with binary_cursor() as cursor:
        parameters: list[Any] = [account_id, Ids(ends)]
        cursor.execute(KEEP_ROWS, parameters)
        kept = {memory_id for (memory_id,) in cursor.fetchall()}
    return [link for link in links if {link.source_id, link.target_id} <= kept]


def find_replacements(account_id: UUID, ids: Sequence[UUID], *, kind: str, model: str) -> list[NewLink]:
    """Return the links that `link_replaced_statements` makes. Two SQL statements at most."""
    links = []
    for compared in compare_statements(account_id, ids, kind=kind, model=model, least=POSSIBLE_REPLACEMENT):
        probability = replacement_probability(compared.pair)
        if probability >= POSSIBLE_REPLACEMENT:
            link = NewLink(source_id=compared.newer_id, type=REPLACES, target_id=compared.older_id, weight=probability)
            links.append(link)
    return links


def relink_replaced_statements(account_id: UUID, rows: Sequence[MemoryRow], *, model: str) -> None:
    """Link those of the memories that have vectors of this model anew, and take the links of all others away.

    Call it when a text or the time of a statement has changed. The ends of new links are kept before former links are
    deleted, in the order in which those who delete memories lock.
    """
    by_kind = group_statements(rows)
    if not by_kind:
        return
    embedded = {row.id for row in rows if row.embed_after is None}
    links = []
    for kind, ids in by_kind.items():
        if found := [memory_id for memory_id in ids if memory_id in embedded]:
            links += find_replacements(account_id, found, kind=kind, model=model)
    links = keep_ends(account_id, links)
    every = [memory_id for ids in by_kind.values() for memory_id in ids]
    ends = Q(source_id__in=every) | Q(target_id__in=every)
    Link.objects.filter(ends, account_id=account_id, type=REPLACES).delete()
    insert_links(account_id, links)
    if any(link.weight >= SURE_REPLACEMENT for link in links):
        weaken_partial_replacements(account_id, every)


def group_statements(rows: Iterable[MemoryRow]) -> dict[str, list[UUID]]:
    """Return the ids of the memories that may be replaced, by kind."""
    by_kind = defaultdict(list)
    for row in rows:
        if spec_of(row.kind).replaces:
            by_kind[row.kind].append(row.id)
    return by_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedConversations:
    """The numbers of conversations of former versions that were compared, and of links that this made."""

    conversations: int
    links: int


def link_former_conversations(
    *, limit: int, account_id: UUID | None, renew: Callable[[], None] = lambda: None
) -> LinkedConversations:
    """Link the turns of conversations that were stored before turns were compared, each in a transaction of its own.

    At most `limit` conversations, each account with its share. A conversation is found again until it was compared.
    """
    due = former_conversations().only("id", "account_id")
    found = take_shares(due, lambda rows, share: rows.order_by("id")[:share], limit=limit, account_id=account_id)
    done = links = 0
    for each in found:
        with transaction.atomic():
            rows = former_conversations().filter(account_id=each.account_id, id=each.id)
            if rows.select_for_update(skip_locked=True, no_key=True).exists():
                links += link_turns_of(each)
                rows.update(replacements_due=False)
                done += 1
        renew()
    return LinkedConversations(conversations=done, links=links)


def former_conversations() -> QuerySet[Conversation]:
    return Conversation.objects.filter(replacements_due=True)


def link_turns_of(conversation: Conversation) -> int:
    account_id, model = conversation.account_id, serving_model().name
    spoken = Turn.objects.filter(account_id=account_id, log=conversation, role__in=SPOKEN_ROLES)
    turns = [turn.id for turn in spoken.only("role", "text").order_by("index") if is_statement(turn)]
    links = []
    for some in batched(turns, TURNS_AT_ONCE):
        links += find_replacements(account_id, some, kind=Kind.TURN, model=model)
    return add_links(account_id, links)


def compare_statements(
    account_id: UUID, ids: Sequence[UUID], *, kind: str, model: str, least: float = 0.0
) -> Iterator[ComparedStatements]:
    """Yield each of these memories of a kind with those nearest to it, if both may state something.

    At most two SQL statements.

    Leaves out pairs whose probability is certainly below `least`.
    """
    memories, near = find_nearest_statements(account_id, ids, kind=kind, model=model)
    if not len(near):
        return
    by_place = {place: UUID(bytes=memories[place]) for place in np.unique(near[:, :2]).tolist()}
    found = read_sayings(account_id, set(by_place.values()))
    # of two with one time the one that was stored first is the earlier one
    ordered = sorted(found, key=lambda memory_id: (found[memory_id].at, memory_id.int))
    sayings = [found[memory_id] for memory_id in ordered]
    places = {memory_id: place for place, memory_id in enumerate(ordered)}
    among = np.full(len(memories), -1)
    among[list(by_place)] = [places.get(memory_id, -1) for memory_id in by_place.values()]
    ends = among[near[:, :2]]
    stated = (ends >= 0).all(axis=1)
    if not stated.any():
        return
    ends, numbers = ends[stated], near[stated, 2:]
    pairs = PairColumns(ends.min(axis=1), ends.max(axis=1), *numbers.T)
    kept = may_replace(sayings, pairs, least=least)
    for older, newer, rank, nearer, neighbours in np.stack(pairs, axis=1)[kept].tolist():
        pair = Pair(older=sayings[older], newer=sayings[newer], rank=rank, nearer=nearer, neighbours=neighbours)
        yield ComparedStatements(newer_id=ordered[newer], older_id=ordered[older], pair=pair)


@lru_cache
def latest_vectors(kinds: frozenset[str], *, are_few: bool) -> str:
    """Return the statement that reads the latest statements of these kinds, with their vectors.

    If the memories to compare `are_few`, it reads only them and those nearest to them: one new turn of an agent with
    2,000 takes 9 instead of 19 ms. For many, comparing in PostgreSQL takes longer than reading all.

    Ids and vectors come as their bytes: thousands of values would take longer to read one by one. The latest of each
    kind are found by the index on agents, whatever their number. OFFSET 0: each vector is looked up, since a planner
    without statistics would compare each memory with all vectors, 13 seconds for 1,000 turns of 10,000.
    """
    names = ", ".join(f"('{kind}')" for kind in sorted(kinds))
    roles = ", ".join(f"'{role}'" for role in SPOKEN_ROLES)
    return f"""
        WITH holder AS MATERIALIZED (
            SELECT DISTINCT agent_id, user_id, channel FROM memories
            WHERE account_id = %(account_id)s AND id = ANY(%(ids)s::uuid[])
        ),
        said AS (
            SELECT holder.agent_id, holder.user_id, holder.channel, latest.id, own.width, own.vector
            FROM holder CROSS JOIN LATERAL (
                SELECT of_kind.id FROM (VALUES {names}) AS wanted (kind) CROSS JOIN LATERAL (
                    SELECT id, event_time FROM memories
                    WHERE account_id = %(account_id)s AND kind = wanted.kind AND agent_id = holder.agent_id
                        AND user_id = holder.user_id AND channel = holder.channel
                        AND (wanted.kind <> 'turn' OR role IN ({roles})) AND NOT (archived OR quarantined OR buried)
                    ORDER BY event_time DESC LIMIT {MAX_STATEMENTS}
                ) AS of_kind ORDER BY of_kind.event_time DESC LIMIT {MAX_STATEMENTS}
            ) AS latest CROSS JOIN LATERAL (
                SELECT width, vector FROM memory_vectors
                WHERE account_id = %(account_id)s AND memory_id = latest.id AND model = %(model)s AND passage = 0
                OFFSET 0
            ) AS own
        )
        SELECT width, string_agg(uuid_send(id), ''), string_agg(halfvec_send(vector), '')
        FROM {NEAREST_SAID if are_few else "said"} AS compared
        GROUP BY agent_id, user_id, channel, width"""  # noqa: S608 (constants and names of kinds)


def find_nearest_statements(
    account_id: UUID, ids: Sequence[UUID], *, kind: str, model: str
) -> tuple[list[bytes], NDArray[np.intp]]:
    """Return memories, and the MAX_PAIRS nearest of each of `ids` among the latest of its agent, user and channel.

    Memories are ids as bytes, since most of them are not looked at again. Each pair is a row: the places of both among
    the memories, and `rank`, `nearer` and `neighbours` as a `Pair` has them.
    """
    with binary_cursor(results=Format.BINARY) as cursor:
        parameters: dict[str, Any] = {"account_id": account_id, "ids": Ids(ids), "model": model}
        cursor.execute(latest_vectors(spec_of(kind).replaces, are_few=len(ids) <= MAX_FEW), parameters)
        rows = cursor.fetchall()
    wanted = {memory_id.bytes for memory_id in ids}
    memories: list[bytes] = []
    pairs = [np.empty((0, 5), dtype=np.intp)]
    for width, joined, vectors in rows:
        latest = [joined[at : at + UUID_BYTES] for at in range(0, len(joined), UUID_BYTES)]
        sent = np.frombuffer(vectors, dtype=np.uint8).reshape(len(latest), -1)[:, VECTOR_HEAD_BYTES:]
        numbers = np.ascontiguousarray(sent).view(">f2").reshape(len(latest), width).astype(np.float32)
        near = nearest_rows(numbers, [place for place, each in enumerate(latest) if each in wanted])
        near[:, :2] += len(memories)
        pairs.append(near)
        memories += latest
    return memories, np.concatenate(pairs)


def nearest_rows(vectors: NDArray[np.float32], places: Sequence[int]) -> NDArray[np.intp]:
    """Return, for the row at each place, at most MAX_PAIRS rows nearest to it, best first: those of LEAST_SIMILARITY.

    Each is a row of five: the place, the row near it, its rank, how many neighbours are nearer to it than the row at
    the place is, and among how many neighbours they were counted.
    """
    count = min(MAX_NEIGHBOURS, len(vectors) - 1)
    found = [np.empty((0, 5), dtype=np.intp)]
    for start in range(0, len(places) if count else 0, PLACES_AT_ONCE):
        some = np.asarray(places[start : start + PLACES_AT_ONCE])
        likeness = vectors[some] @ vectors.T
        likeness[np.arange(len(some)), some] = -np.inf
        nearest = np.argpartition(likeness, -count, axis=1)[:, -count:]
        order = np.argsort(-np.take_along_axis(likeness, nearest, axis=1), axis=1, kind="stable")
        nearest = np.take_along_axis(nearest, order, axis=1)
        best = nearest[:, :MAX_PAIRS]
        among = vectors[best] @ vectors[nearest].transpose(0, 2, 1)
        itself = np.arange(best.shape[1])
        among[:, itself, itself] = -np.inf
        own = np.take_along_axis(likeness, best, axis=1)
        nearer = (among > own[:, :, None]).sum(axis=2)
        row, rank = np.nonzero(own >= LEAST_SIMILARITY)
        counted = np.full(len(row), count)
        found.append(np.stack((some[row], best[row, rank], rank, nearer[row, rank], counted), axis=1))
    return np.concatenate(found)


def read_sayings(account_id: UUID, ids: Collection[UUID]) -> dict[UUID, Saying]:
    """Return what those of the memories say that may state something. What is of no conversation is one of its own."""
    with binary_cursor(results=Format.BINARY) as cursor:
        parameters: dict[str, Any] = {"account_id": account_id, "ids": Ids(ids)}
        cursor.execute(SAYINGS, parameters)
        sayings = {
            memory_id: make_saying(
                text,
                speaker=name,
                conversation_id=conversation_id or str(memory_id),
                at=at,
                is_by_assistant=is_by_assistant,
            )
            for memory_id, name, conversation_id, at, text, is_by_assistant in cursor.fetchall()
        }
    return {memory_id: saying for memory_id, saying in sayings.items() if may_state(saying.text)}
