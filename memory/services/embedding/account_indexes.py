"""Indexes over the vectors of large accounts: decides which should exist, creates and drops them.

An account gets one for each model and width with more rows than are searched exactly (`MEMORY_EXACT_SEARCH_ROWS`), and
keeps it until it has less than half as many. All its agents share it (`retrievers.vector`). It is an index on the
account's partition of `memory_vectors`. The planner examines every index of the partition for each of its statements,
and each insert compares its row with the predicates of all, so a partition has at most 16, for its largest accounts;
the others are searched exactly. An account loses its index only to one that is a quarter larger, so that two of similar
size do not alternate.

While the embedding model is changed, that of the next model has as many places of its own. Its indexes are built once
all vectors are there, which is faster than inserting each vector into them. Those of a model whose vectors are being
dropped go first.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence, Set
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

from psycopg import sql

from memory import conf
from memory.models import ServingModelState
from memory.models.embedding_state import STATE_ID
from memory.providers.embeddings import is_nested
from memory.retrieval.retrievers.vector import INDEX_PREFIX, index_name
from memory.services.account_walk import throttled
from memory.services.embedding.vector_index import (
    BuiltIndex,
    Hnsw,
    IndexedVectors,
    IndexMethod,
    IndexProgress,
    build_index,
    build_lock,
    drop_indexes,
    find_partitions,
    run_query,
)

MAX_INDEXES = 16
"""Indexes of a partition. They lengthen planning by 0.1 ms. 64 partitions have room for all of 400 large accounts."""
RENEW_SECONDS = 1.0
SHRINK_FACTOR = 2
"""An account keeps its index until it is this many times smaller than the threshold."""
INDEXED_ADVANTAGE = 1.25
"""Factor on the rows of accounts that have an index already."""

# counts by the index on the owner first, so that rows are read of large accounts only
FIND_LARGE_ACCOUNTS = """
SELECT large.account_id, large.model, sized.width, sized.partition, sized.rows FROM (
    SELECT account_id, model FROM memory_vectors GROUP BY account_id, model HAVING count(*) > %s
) AS large CROSS JOIN LATERAL (
    SELECT width, min(tableoid) AS partition, count(*) AS rows FROM memory_vectors AS own
    WHERE own.account_id = large.account_id AND own.model = large.model AND own.live
    GROUP BY width HAVING count(*) > %s
) AS sized"""

# the account of an index is in its predicate
FIND_INDEXES = """
SELECT relname, indisvalid, substring(pg_get_expr(indpred, indrelid) FROM $$account_id = '([^']+)'$$)::uuid
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
JOIN pg_inherits ON inhrelid = indrelid AND inhparent = 'memory_vectors'::regclass
WHERE starts_with(relname, %s)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountVectors(IndexedVectors):
    """An account's vectors of one model and width."""

    account_id: UUID

    @property
    def is_nested(self) -> bool:
        return is_nested(self.model)

    @property
    def name_prefix(self) -> str:
        """The whole name of the index, by which searches look it up."""
        return index_name(self.account_id, model=self.model, width=self.width, is_nested=self.is_nested)

    def name_for(self, _method: IndexMethod) -> str:
        return self.name_prefix

    def partitions(self) -> list[str]:
        return find_partitions(self.account_id)

    def part_name(self, name: str, _partition: str) -> str:
        """Return the name itself: there is one part."""
        return name

    def condition(self) -> sql.Composed:
        return sql.SQL("account_id = {} AND model = {} AND width = {} AND live").format(
            sql.Literal(self.account_id), sql.Literal(self.model), sql.Literal(self.width)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexChange:
    """An index to create over these vectors, or to drop if `vectors` is None."""

    name: str
    account_id: UUID
    vectors: AccountVectors | None


def find_index_changes(account_id: UUID | None = None) -> Sequence[IndexChange]:
    """Return the changes to make, in one account or in all, ordered by name. Reads the owners of all vectors."""
    existing = {name: (is_valid, account) for name, is_valid, account in run_query(FIND_INDEXES, INDEX_PREFIX)}
    serving = {name for name, (is_valid, _) in existing.items() if is_valid}
    kept = rank_largest_accounts(serving)
    # the remains of a killed build are also dropped by the next build of the same index
    made = [
        IndexChange(name=name, account_id=vectors.account_id, vectors=vectors)
        for name, vectors in kept.items()
        if name not in serving
    ]
    dropped = [
        IndexChange(name=name, account_id=account, vectors=None)
        for name, (_, account) in existing.items()
        if name not in kept
    ]
    changes = [change for change in (*made, *dropped) if account_id in (None, change.account_id)]
    return sorted(changes, key=lambda change: change.name)


def rank_largest_accounts(serving: Set[str]) -> dict[str, AccountVectors]:
    """Return the vectors that should have an index, by its name, given the names of valid indexes."""
    least = conf.EXACT_SEARCH_ROWS // SHRINK_FACTOR
    change = find_model_change()
    weights: defaultdict[tuple[int, bool], dict[tuple[str, AccountVectors], float]] = defaultdict(dict)
    for account_id, model, width, partition, rows in run_query(FIND_LARGE_ACCOUNTS, least, least):
        vectors = AccountVectors(account_id=account_id, model=model, width=width)
        name, group = vectors.name_prefix, (partition, model == change.next)
        if model == change.dropped:
            continue
        if name in serving:
            weights[group][name, vectors] = INDEXED_ADVANTAGE * rows
        elif rows > conf.EXACT_SEARCH_ROWS and model != change.incomplete:
            weights[group][name, vectors] = rows
    return dict(chain.from_iterable(map(rank_in_partition, weights.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """Names of models that are being changed: the next one, if its vectors are incomplete, and one that is dropped."""

    next: str = ""
    incomplete: str = ""
    dropped: str = ""


def find_model_change() -> ModelChange:
    row = ServingModelState.objects.filter(id=STATE_ID).first()
    if row is None:
        return ModelChange()
    phase, name = row.phase, row.next["name"] if row.next else ""
    if phase == ServingModelState.Phase.ABORT:
        return ModelChange(dropped=name)
    is_dropped = phase == ServingModelState.Phase.DROP and row.former is not None
    incomplete = name if phase == ServingModelState.Phase.WALK else ""
    return ModelChange(next=name, incomplete=incomplete, dropped=row.former["name"] if is_dropped else "")


def rank_in_partition(weights: Mapping[tuple[str, AccountVectors], float]) -> list[tuple[str, AccountVectors]]:
    return sorted(weights, key=lambda each: (-weights[each], each[0]))[:MAX_INDEXES]


def carry_out(change: IndexChange, *, renew: Callable[[], None]) -> None:
    """Apply a change, and renew the lease meanwhile: a build may take many minutes. Raises as `apply_index_change`."""
    renew = throttled(renew, seconds=RENEW_SECONDS)
    with closing(apply_index_change(change)) as steps:
        for _progress in steps:
            renew()


def apply_index_change(change: IndexChange) -> Generator[IndexProgress, None, BuiltIndex | None]:
    """Create or drop the index without blocking traffic; yields the progress of a build.

    Raises Conflict while another build is running.
    """
    if change.vectors is not None:
        return (yield from build_index(change.vectors, Hnsw()))
    with build_lock():
        drop_indexes([change.name])
    return None
