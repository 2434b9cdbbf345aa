"""Finding near-duplicates and merging them: each new memory looks up equivalent texts; nothing is compared with all.

Merged are believed facts, entries of contexts, learnings and strategies. Turns and their slots are not,
since what was said twice was said twice; nor are summaries, goals and artifacts, each of which belongs to something
that happened; entities have a merge of their own (`entities.merge`).

Both memories have one holder, kind, channel, context and trust; facts are about the same entities and times, entries
have the same types and value, strategies the same type of task and tools (`compare`). They mean the same to
MEMORY_DUPLICATE_SIMILARITY, and their texts say the same (`texts`, `paraphrases`), whatever the vectors say. The loser
is archived and linked to the survivor, which takes over what it had; staff can undo that (`merge`). A memory that is
stored again after it was merged is known as the survivor (`resolve`). The key of a merged entry is an alias of the
survivor (`contexts.aliases`).

Equivalent texts have one hash (`normalized_text_hash`), by which they are found among any number of memories.
Paraphrases are found by comparing the vector of each new memory with up to MAX_COMPARED_VECTORS others of the same
holder, kind and place; the vector index of large accounts would miss some of them.

A memory that becomes a duplicate without a new vector (a fact gets another entity, a memory another holder) is not
looked at again.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DatabaseError

from memory import conf
from memory.models import Memory, Vector
from memory.models.statements import binary_cursor, execute_statement, fetch_rows
from memory.owner import Owner
from memory.services.account_walk import Batch, BatchReport, group_by_account, read_account_page, walk_accounts
from memory.services.duplicates.compare import MemoryPair, filter_duplicate_pairs, rank_pair, read_merge_candidates
from memory.services.duplicates.merge import MergeResult, merge_pair
from memory.services.duplicates.texts import deduplicated_kinds, normalized_text_hash
from memory.services.embedding.serving import serving_model

logger = logging.getLogger(__name__)

ACTOR = "job:deduplicate"
MAX_NEIGHBOURS = 50
"""Rows that each row is compared with: beyond them are more of the same, which are looked up in their turn."""

MAX_COMPARED_VECTORS = 20_000
"""Vectors of a holder's channel or context that the vector of each row is compared with, to find paraphrases."""

# few new rows are found by time, many in the order of ids: the planner sees the values, and chooses
SELECT_FRESH = """
SELECT memories.account_id, memories.id
FROM memories JOIN memory_vectors ON memory_vectors.account_id = memories.account_id
    AND memory_vectors.memory_id = memories.id AND memory_vectors.model = %(model)s AND passage = 0
WHERE memories.account_id = %(account)s AND memories.id > %(memory)s AND memories.kind = ANY (%(kinds)s) AND live
    AND (%(since)s::timestamptz IS NULL OR memory_vectors.created_at >= %(since)s)
ORDER BY memories.id LIMIT %(size)s"""

# skips rows whose text changed in the meantime
UPDATE_HASHES = """
UPDATE memories SET wording = hashed.wording
FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::bigint[]) AS hashed (account_id, id, text, wording)
WHERE memories.account_id = hashed.account_id AND memories.id = hashed.id AND memories.text = hashed.text"""

LOWEST_ID = UUID(int=0)

SELECT_SIMILAR = """
WITH fresh AS MATERIALIZED (
    SELECT memories.id, memories.kind, wording, memories.agent_id, memories.user_id, memories.channel,
        memories.context_id, width, vector
    FROM memories JOIN memory_vectors ON memory_vectors.account_id = memories.account_id
        AND memory_vectors.memory_id = memories.id AND memory_vectors.model = %(model)s AND passage = 0
    WHERE memories.account_id = %(account)s AND memories.id = ANY (%(ids)s) AND live
)
SELECT fresh.id, near.id, 1 - near.distance, near.created_at
FROM fresh CROSS JOIN LATERAL (
    (SELECT memories.id, memory_vectors.created_at, memory_vectors.vector <=> fresh.vector AS distance
    FROM memories JOIN memory_vectors ON memory_vectors.account_id = memories.account_id
        AND memory_vectors.memory_id = memories.id AND memory_vectors.model = %(model)s AND passage = 0
    WHERE memories.account_id = %(account)s AND memories.wording = fresh.wording
        AND memories.user_id = fresh.user_id AND (fresh.user_id <> '' OR memories.agent_id = fresh.agent_id)
        AND memories.kind = fresh.kind AND memories.channel = fresh.channel
        AND memories.context_id IS NOT DISTINCT FROM fresh.context_id AND memories.id <> fresh.id
        AND live AND width = fresh.width
    LIMIT %(neighbours)s)
    UNION
    (SELECT held.memory_id, held.created_at, held.vector <=> fresh.vector AS distance FROM (
        SELECT memory_id, created_at, vector FROM memory_vectors
        WHERE account_id = %(account)s AND kind = fresh.kind AND model = %(model)s AND user_id = fresh.user_id
            AND (fresh.user_id <> '' OR agent_id = fresh.agent_id) AND channel = fresh.channel
            AND context_id IS NOT DISTINCT FROM fresh.context_id AND memory_id <> fresh.id
            AND live AND width = fresh.width AND passage = 0
        LIMIT %(compared)s
    ) AS held ORDER BY distance LIMIT %(neighbours)s)
) AS near
WHERE near.distance <= %(furthest)s
ORDER BY near.distance, fresh.id, near.id"""


class FreshMemory(NamedTuple):
    """A memory with a new vector."""

    account_id: UUID
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class SimilarPair:
    """Two memories with similar vectors. `similarity` is 1 - cosine distance.

    `vector_at` is when the vector of the second one was stored.
    """

    memory_id: UUID
    other_id: UUID
    similarity: float
    vector_at: datetime

    @property
    def ids(self) -> MemoryPair:
        return self.memory_id, self.other_id


def read_fresh_memories(batch: Batch, *, since: datetime | None) -> list[FreshMemory]:
    """Return the memories of the batch that have a vector of the current model, by account and id.

    The vectors were stored `since` then, by the database's clock; None: at any time.
    """
    model = serving_model().name

    def read(account_id: UUID, memory: str, room: int) -> list[FreshMemory]:
        given = {
            "model": model,
            "since": since,
            "kinds": sorted(deduplicated_kinds()),
            "account": account_id,
            "memory": UUID(memory) if memory else LOWEST_ID,
            "size": room,
        }
        return list(map(FreshMemory._make, fetch_rows(SELECT_FRESH, given)))

    vectors = Vector.objects.whole().filter(model=model, kind__in=sorted(deduplicated_kinds()))
    fresh = vectors if since is None else vectors.filter(created_at__gte=since)
    after = batch.cursor.replace(":", "/")
    return walk_accounts(fresh, read, after=after, limit=batch.size, account_id=batch.account_id)


def find_similar_pairs(rows: Sequence[FreshMemory]) -> list[SimilarPair]:
    """Return the memories that rows of one account are similar to by DUPLICATE_SIMILARITY, the most similar first.

    They have the same holder, channel and context. One statement.
    """
    given: dict[str, Any] = {
        "account": rows[0].account_id,
        "model": serving_model().name,
        "ids": [row.id for row in rows],
        "neighbours": MAX_NEIGHBOURS,
        "compared": MAX_COMPARED_VECTORS,
        "furthest": 1 - conf.DUPLICATE_SIMILARITY,
    }
    with binary_cursor() as cursor:
        cursor.execute(SELECT_SIMILAR, given)
        pairs = [
            SimilarPair(memory_id=one, other_id=other, similarity=float(similarity), vector_at=vector_at)
            for one, other, similarity, vector_at in cursor.fetchall()
        ]
    return sorted(pairs, key=lambda pair: (-pair.similarity, *pair.ids))


def store_missing_hashes(size: int, *, account_id: UUID | None) -> int:
    """Store the hashes of up to `size` memories that have none. Returns how many had none."""
    unhashed = Memory.objects.filter(wording=None, kind__in=sorted(deduplicated_kinds()))
    page = read_account_page(unhashed.only("account", "kind", "text"), after="", limit=size, account_id=account_id)
    if page.rows:
        columns = [(row.account_id, row.id, row.text, normalized_text_hash(row.kind, row.text)) for row in page.rows]
        execute_statement(UPDATE_HASHES, list(map(list, zip(*columns, strict=True))))
    return len(page.rows)


def deduplicate(batch: Batch, *, since: datetime | None, now: datetime) -> BatchReport:
    """Merge the duplicates of the next memories, each pair in a transaction of its own.

    After an interruption, running it again merges nothing twice.
    """
    # memories without a hash are found by nothing
    while not batch.cursor and store_missing_hashes(batch.size, account_id=batch.account_id):
        batch.renew()
    rows = read_fresh_memories(batch, since=since)
    merged: list[MergeResult] = []
    failed = 0
    for of_account in group_by_account(rows).values():
        done, missed = merge_until_stable(of_account, renew=batch.renew, now=now)
        merged, failed = merged + done, failed + missed
    return BatchReport(
        examined=len(rows),
        changed=len(merged),
        failed=failed,
        cursor=next_cursor(rows, batch),
        figures=count_merges(merged),
    )


def preview_duplicates(batch: Batch, *, since: datetime | None, now: datetime) -> BatchReport:
    """Return approximately what `deduplicate` would do, and change nothing.

    Consequences of merges are not considered, and memories without a text hash are found by their vectors only.
    """
    rows = read_fresh_memories(batch, since=since)
    figures: Counter[str] = Counter()
    for account_id, of_account in group_by_account(rows).items():
        pairs = find_similar_pairs(of_account)
        candidates = read_merge_candidates(account_id, {each for pair in pairs for each in pair.ids}, now=now)
        duplicates = filter_duplicate_pairs(candidates, [pair.ids for pair in pairs])
        losers: dict[UUID, str] = {}
        for pair in pairs:
            if pair.ids in duplicates:
                loser = rank_pair(*(candidates[each] for each in pair.ids))[1]
                # a loser that is another fresh memory is counted in its own turn
                if loser.id == pair.memory_id or (since is not None and pair.vector_at < since):
                    losers[loser.id] = f"{loser.row.kind}_merged"
        figures.update(losers.values())
    changed = sum(figures.values())
    return BatchReport(examined=len(rows), changed=changed, cursor=next_cursor(rows, batch), figures=figures)


def next_cursor(rows: Sequence[FreshMemory], batch: Batch) -> str:
    return f"{rows[-1].account_id}:{rows[-1].id}" if len(rows) == batch.size else ""


def merge_until_stable(
    rows: Sequence[FreshMemory], *, renew: Callable[[], None], now: datetime
) -> tuple[list[MergeResult], int]:
    """Merge the duplicates of rows of one account. Returns the merges, and how many pairs failed.

    Survivors are looked up again, since their most similar memories are gone.
    """
    merged: list[MergeResult] = []
    failed: set[frozenset[UUID]] = set()
    waiting = list(rows)
    while waiting:
        done = merge_round(waiting, failed=failed, renew=renew, now=now)
        merged += done
        gone = {each.loser_id for each in done}
        by_id = {row.id: row for row in waiting}
        survivors = {each.survivor_id: by_id.get(each.survivor_id) or by_id[each.loser_id] for each in reversed(done)}
        waiting = [row._replace(id=memory_id) for memory_id, row in survivors.items() if memory_id not in gone]
    return merged, len(failed)


def merge_round(
    rows: Sequence[FreshMemory], *, failed: set[frozenset[UUID]], renew: Callable[[], None], now: datetime
) -> list[MergeResult]:
    """Merge the rows with their most similar memories, the most similar first. Failed pairs are added to `failed`."""
    account_id = rows[0].account_id
    pairs = {frozenset(pair.ids): pair for pair in find_similar_pairs(rows)}
    candidates = read_merge_candidates(account_id, {each for key in pairs for each in key}, now=now)
    duplicates = filter_duplicate_pairs(candidates, [pair.ids for key, pair in pairs.items() if key not in failed])
    merged: list[MergeResult] = []
    gone: set[UUID] = set()
    for key, pair in pairs.items():
        if pair.ids not in duplicates or key & gone:
            continue
        renew()
        try:
            owner = Owner(account_id=account_id, channel=candidates[pair.memory_id].row.channel, actor=ACTOR)
            done = merge_pair(owner, pair.ids, similarity=pair.similarity, now=now)
        except DatabaseError as err:
            logger.warning("memory %s was not merged: %s", pair.memory_id, type(err).__name__)
            failed.add(key)
            continue
        if done is not None:
            merged.append(done)
            gone.add(done.loser_id)
    return merged


def count_merges(merged: Sequence[MergeResult]) -> dict[str, int]:
    """Return counts of merged memories by kind, and of rows that were created."""
    figures: Counter[str] = Counter()
    for each in merged:
        made = {"links_made": each.links, "fact_versions_made": each.versions, "access_log_lines": each.lines}
        figures.update({f"{each.kind}_merged": 1, **made})
    return {name: count for name, count in figures.items() if count}
