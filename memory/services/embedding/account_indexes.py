"""Indexes over the vectors of large accounts: which of them there should be, and making and dropping one.

An account has one for each model and width of which it has more rows than are searched exactly
(`MEMORY_EXACT_SEARCH_ROWS`), and keeps it until it has less than half as many. All its agents share it
(`retrieval.vectors`). Every statement on vectors has the planner look at every index, so there are at most 50, of the
largest; accounts beyond those are searched exactly. One that has an index gives it up to another that is a quarter
larger, so that two of a size do not take it in turns.
"""

from collections.abc import Generator, Sequence, Set
from dataclasses import dataclass
from uuid import UUID

from psycopg import sql

from memory import conf
from memory.providers.embeddings import is_nested
from memory.retrieval.vectors import INDEX_PREFIX, expression_of_index, indexed_width, name_of_index
from memory.services.embedding.vector_index import (
    BuiltIndex,
    Hnsw,
    Indexed,
    IndexProgress,
    Method,
    build_index,
    build_lock,
    drop_indexes,
    run_query,
)

MOST_INDEXES = 50
KEPT_SHARE = 2
"""Times that an account may shrink below what makes it large, and keep its index."""
RANK_OF_INDEXED = 1.25
"""Times its rows, for what has an index already."""

# by the index on the owner first: the rows themselves are only read of accounts that are large
LARGE = """
SELECT large.account_id, large.model, sized.width, sized.rows FROM (
    SELECT account_id, model FROM memory_vectors GROUP BY account_id, model HAVING count(*) > %s
) AS large CROSS JOIN LATERAL (
    SELECT width, count(*) AS rows FROM memory_vectors AS own
    WHERE own.account_id = large.account_id AND own.model = large.model AND own.live
    GROUP BY width HAVING count(*) > %s
) AS sized"""

# whose an index is stands in its predicate
EXISTING = """
SELECT relname, indisvalid, substring(pg_get_expr(indpred, indrelid) FROM $$account_id = '([^']+)'$$)::uuid
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = 'memory_vectors'::regclass AND starts_with(relname, %s)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountVectors(Indexed):
    """An account's vectors of one model and width."""

    account_id: UUID

    @property
    def name_prefix(self) -> str:
        """The whole name: searches look the index up by it."""
        return name_of_index(self.account_id, model=self.model, width=self.width, is_nested=is_nested(self.model))

    def name_for(self, _method: Method) -> str:
        return self.name_prefix

    @property
    def expression(self) -> str:
        return expression_of_index(self.width, is_nested=is_nested(self.model))

    @property
    def indexed_width(self) -> int:
        return indexed_width(self.width, is_nested=is_nested(self.model))

    def condition(self) -> sql.Composed:
        return sql.SQL("account_id = {} AND model = {} AND width = {} AND live").format(
            sql.Literal(self.account_id), sql.Literal(self.model), sql.Literal(self.width)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An index to make of these vectors, or to drop where there are none."""

    name: str
    account_id: UUID
    vectors: AccountVectors | None


def find_changes(account_id: UUID | None = None) -> Sequence[Change]:
    """What is to be done, in one account or in all, ordered by name. Reads the owners of all vectors."""
    existing = {name: (is_valid, account) for name, is_valid, account in run_query(EXISTING, INDEX_PREFIX)}
    serving = {name for name, (is_valid, _) in existing.items() if is_valid}
    kept = rank_largest(serving)
    # what a killed build left is dropped by the next build of the same, too
    made = [
        Change(name=name, account_id=vectors.account_id, vectors=vectors)
        for name, vectors in kept.items()
        if name not in serving
    ]
    dropped = [
        Change(name=name, account_id=account, vectors=None)
        for name, (_, account) in existing.items()
        if name not in kept
    ]
    changes = [change for change in (*made, *dropped) if account_id in (None, change.account_id)]
    return sorted(changes, key=lambda change: change.name)


def rank_largest(serving: Set[str]) -> dict[str, AccountVectors]:
    """Those that should have an index, by its name, where these serve already."""
    least = conf.EXACT_SEARCH_ROWS // KEPT_SHARE
    weights = {}
    for account_id, model, width, rows in run_query(LARGE, least, least):
        vectors = AccountVectors(account_id=account_id, model=model, width=width)
        name = vectors.name_prefix
        if name in serving:
            weights[name, vectors] = RANK_OF_INDEXED * rows
        elif rows > conf.EXACT_SEARCH_ROWS:
            weights[name, vectors] = rows
    return dict(sorted(weights, key=lambda each: (-weights[each], each[0]))[:MOST_INDEXES])


def make_change(change: Change) -> Generator[IndexProgress, None, BuiltIndex | None]:
    """Do it, beside live traffic; yields how far a build is. Raises Conflict while another build is on."""
    if change.vectors is not None:
        return (yield from build_index(change.vectors, Hnsw()))
    with build_lock():
        drop_indexes([change.name])
    return None
