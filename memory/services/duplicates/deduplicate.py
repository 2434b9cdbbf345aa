"""Near-duplicates (P11): memories that mean the same to MEMORY_DUPLICATE_SIMILARITY, and say the same, become one.

Facts that are believed, entries of contexts without a key, learnings and strategies. Not the log (turns, and their
slots), since what was said twice was said twice; not summaries, goals and artifacts, each of which is of something
that happened; entities have their own merging (`entity_merges`).

Only within one place: one holder, kind, channel and context, and as far trusted; facts of the same entities and the
same time, entries of the same types and value, strategies for the same type of task by the same tools
(`duplicate_subjects`). Only what says the same, whatever the vectors say (`duplicate_texts`); by that it is found, for
each memory whose vector is new (`duplicate_search`). Archived, linked and united, and undone by staff
(`duplicate_merges`); whoever is told again what was merged finds the one that stands for it (`duplicate_standing`).

What comes to be of one place without a new vector (a fact gets another entity, a memory another holder) is not looked
at again.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import DatabaseError, connection

from memory import conf
from memory.models.binary import binary_cursor
from memory.models.memory import WORDED
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.services.duplicates.compare import ranked, read_subjects, same_pairs
from memory.services.duplicates.merge import Merged, merge_pair
from memory.services.duplicates.texts import word_unworded

NEIGHBOURS = 50
"""That each row is compared with: beyond them are more of the same, and their own turn comes."""

# few new ones are found by their time, many in the order of ids: the planner knows, as values stand in the statement
FRESH = """
SELECT memory_vectors.account_id, memory_id
FROM memories JOIN memory_vectors ON memory_id = memories.id AND memory_vectors.model = %(model)s
WHERE (memories.account_id, memories.id) > (%(account)s, %(memory)s) AND memories.account_id <= %(last)s
    AND memories.kind = ANY (%(kinds)s) AND live
    AND (%(since)s::timestamptz IS NULL OR memory_vectors.created_at >= %(since)s)
ORDER BY memories.account_id, memories.id LIMIT %(size)s"""

FIRST = UUID(int=0)
LAST = UUID(int=2**128 - 1)

NEAREST = """
WITH asked AS MATERIALIZED (
    SELECT memories.id, memories.kind, wording, memories.agent_id, memories.user_id, memories.channel,
        memories.context_id, width, vector
    FROM memories JOIN memory_vectors ON memory_id = memories.id AND model = %(model)s
    WHERE memories.account_id = %(account)s AND memories.id = ANY (%(ids)s) AND live
)
SELECT asked.id, near.id, 1 - near.distance, near.created_at
FROM asked CROSS JOIN LATERAL (
    SELECT memories.id, memory_vectors.created_at, memory_vectors.vector <=> asked.vector AS distance
    FROM memories JOIN memory_vectors ON memory_id = memories.id AND model = %(model)s
    WHERE memories.account_id = %(account)s AND memories.wording = asked.wording
        AND memories.user_id = asked.user_id AND (asked.user_id <> '' OR memories.agent_id = asked.agent_id)
        AND memories.kind = asked.kind AND memories.channel = asked.channel
        AND memories.context_id IS NOT DISTINCT FROM asked.context_id AND memories.id <> asked.id
        AND live AND width = asked.width
    LIMIT %(neighbours)s
) AS near
WHERE near.distance <= %(furthest)s
ORDER BY near.distance, asked.id, near.id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """A memory to be looked at."""

    account_id: UUID
    id: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """Two memories of one place that mean nearly the same; `similarity` is 1 - cosine distance.

    `vector_at` is when the vector of the second was made."""

    memory_id: UUID
    other_id: UUID
    similarity: float
    vector_at: datetime


def fresh_rows(*, model: str, since: datetime | None, after: str, account_id: UUID | None, size: int) -> list[Fresh]:
    """The next memories with a vector of the model that was made since then; all of them for None.

    By account and id; `after` is the `cursor_of` the last one, or empty.
    """
    account, _, memory = after.partition(":")
    given = {
        "model": model,
        "since": since,
        "kinds": [str(kind) for kind in WORDED],
        "account": UUID(account) if account else account_id or FIRST,
        "memory": UUID(memory) if memory else FIRST,
        "last": account_id or LAST,
        "size": size,
    }
    with connection.cursor() as cursor:
        cursor.execute(FRESH, given)
        return [Fresh(account_id=account_id, id=memory_id) for account_id, memory_id in cursor.fetchall()]


def cursor_of(row: Fresh) -> str:
    return f"{row.account_id}:{row.id}"


def nearest(rows: Iterable[Fresh], *, model: str) -> list[Near]:
    """Those that each of the rows is similar to by at least DUPLICATE_SIMILARITY, in its place; the most similar first.

    Only what is worded alike. One statement for the rows of an account.
    """
    by_account: dict[UUID, list[UUID]] = {}
    for row in rows:
        by_account.setdefault(row.account_id, []).append(row.id)
    found = [near for account_id, ids in by_account.items() for near in nearest_in(account_id, ids=ids, model=model)]
    return sorted(found, key=lambda near: (-near.similarity, near.memory_id, near.other_id))


def nearest_in(account_id: UUID, *, ids: Sequence[UUID], model: str) -> list[Near]:
    given: dict[str, Any] = {
        "account": account_id,
        "model": model,
        "ids": list(ids),
        "neighbours": NEIGHBOURS,
        "furthest": 1 - conf.DUPLICATE_SIMILARITY,
    }
    with binary_cursor() as cursor:
        cursor.execute(NEAREST, given)
        return [
            Near(memory_id=one, other_id=other, similarity=float(similarity), vector_at=vector_at)
            for one, other, similarity, vector_at in cursor.fetchall()
        ]


logger = logging.getLogger(__name__)

ACTOR = "job:deduplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What to look through: at most `size` memories behind `after`, of one account or of all, whose vectors were made
    `since` then, by the database's clock; None: whenever."""

    now: datetime
    since: datetime | None
    size: int
    after: str = ""
    account_id: UUID | None = None
    renew: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicated:
    """How many memories were looked at, merged (or would be), and could not be; `cursor` is empty at the end."""

    examined: int
    merged: int
    failed: int
    cursor: str
    figures: Mapping[str, int]


def deduplicate(stretch: Stretch) -> Deduplicated:
    """Merge the duplicates of the next memories, each pair in a transaction of its own; killed anywhere and run again,
    nothing is merged twice."""
    if not stretch.after:
        word_all(stretch)
    rows = next_rows(stretch)
    merged: list[Merged] = []
    failed = 0
    for _account, of_account in groupby(rows, key=lambda row: row.account_id):
        done, missed = merge_all(list(of_account), stretch)
        merged, failed = merged + done, failed + missed
    return Deduplicated(
        examined=len(rows),
        merged=len(merged),
        failed=failed,
        cursor=next_cursor(rows, stretch),
        figures=figures_of(merged),
    )


def word_all(stretch: Stretch) -> None:
    """What has no wording is found by nothing: all have one before the first is looked for."""
    while word_unworded(stretch.size, account_id=stretch.account_id):
        stretch.renew()


def look_for_duplicates(stretch: Stretch) -> Deduplicated:
    """What `deduplicate` would do, more or less: what a merge brings about is not reckoned with, nor is found what has
    no wording yet. Changes nothing."""
    rows = next_rows(stretch)
    figures: Counter[str] = Counter()
    for account_id, of_account in groupby(rows, key=lambda row: row.account_id):
        pairs = nearest(list(of_account), model=embedding_provider().model)
        subjects = read_subjects(account_id, {each for near in pairs for each in pair_of(near)}, now=stretch.now)
        same = same_pairs(subjects, [pair_of(near) for near in pairs])
        losers: dict[UUID, str] = {}
        for near in pairs:
            if pair_of(near) in same:
                loser = ranked(*(subjects[each] for each in pair_of(near)))[1]
                # another one that is new has its own turn
                if loser.id == near.memory_id or (stretch.since is not None and near.vector_at < stretch.since):
                    losers[loser.id] = f"{loser.row.kind}_merged"
        figures.update(losers.values())
    merged = sum(figures.values())
    return Deduplicated(examined=len(rows), merged=merged, failed=0, cursor=next_cursor(rows, stretch), figures=figures)


def next_rows(stretch: Stretch) -> list[Fresh]:
    return fresh_rows(
        model=embedding_provider().model,
        since=stretch.since,
        after=stretch.after,
        account_id=stretch.account_id,
        size=stretch.size,
    )


def next_cursor(rows: Sequence[Fresh], stretch: Stretch) -> str:
    return cursor_of(rows[-1]) if len(rows) == stretch.size else ""


def merge_all(rows: Sequence[Fresh], stretch: Stretch) -> tuple[list[Merged], int]:
    """Of rows of one account, and how many pairs failed. What stays is looked at again: its nearest have gone."""
    merged: list[Merged] = []
    failed: set[frozenset[UUID]] = set()
    waiting = list(rows)
    while waiting:
        done = merge_round(waiting, stretch, failed=failed)
        merged += done
        gone = {each.loser_id for each in done}
        by_id = {row.id: row for row in waiting}
        models = {each.survivor_id: by_id.get(each.survivor_id) or by_id[each.loser_id] for each in reversed(done)}
        waiting = [replace(row, id=memory_id) for memory_id, row in models.items() if memory_id not in gone]
    return merged, len(failed)


def merge_round(rows: Sequence[Fresh], stretch: Stretch, *, failed: set[frozenset[UUID]]) -> list[Merged]:
    """Merge the rows with what they are nearest to, the most similar first. What fails is added to `failed`."""
    account_id = rows[0].account_id
    pairs = {frozenset(pair_of(near)): near for near in nearest(rows, model=embedding_provider().model)}
    ids = {each for pair in pairs for each in pair}
    subjects = read_subjects(account_id, ids, now=stretch.now)
    same = same_pairs(subjects, [pair_of(near) for key, near in pairs.items() if key not in failed])
    merged: list[Merged] = []
    gone: set[UUID] = set()
    for key, near in pairs.items():
        if pair_of(near) not in same or key & gone:
            continue
        stretch.renew()
        try:
            owner = Owner(account_id=account_id, channel=subjects[near.memory_id].row.channel, actor=ACTOR)
            done = merge_pair(owner, pair_of(near), similarity=near.similarity, now=stretch.now)
        except DatabaseError as err:
            logger.warning("memory %s was not merged: %s", near.memory_id, type(err).__name__)
            failed.add(key)
            continue
        if done is not None:
            merged.append(done)
            gone.add(done.loser_id)
    return merged


def pair_of(near: Near) -> tuple[UUID, UUID]:
    return near.memory_id, near.other_id


def figures_of(merged: Sequence[Merged]) -> dict[str, int]:
    """By kind, and what there is more of than before."""
    figures = Counter(f"{each.kind}_merged" for each in merged)
    for name, counts in (
        ("links_made", [each.links for each in merged]),
        ("fact_versions_made", [each.versions for each in merged]),
        ("access_log_lines", [each.lines for each in merged]),
    ):
        figures[name] += sum(counts)
    return {name: count for name, count in figures.items() if count}
