"""Indexes over the vectors of large accounts: which of them there should be, and making and dropping one.

An account has one for each model and width of which it has more rows than are searched exactly
(`MEMORY_EXACT_SEARCH_ROWS`), and keeps it until it has less than half as many. All its agents share it
(`retrieval.vectors`). Every statement on vectors has the planner look at every index, so there are at most 50, of the
largest; accounts beyond those are searched exactly.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from uuid import UUID

from psycopg import sql

from memory import conf
from memory.providers.embeddings import is_nested
from memory.retrieval.vectors import INDEX_PREFIX, expression_of_index, indexed_width, name_of_index
from memory.services.vector_index import (
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

# by the index on the owner first: the rows themselves are only read of accounts that are large
LARGE = """
SELECT large.account_id, large.model, sized.width, sized.rows FROM (
    SELECT account_id, model FROM memory_vectors WHERE account_id = coalesce(%s::uuid, account_id)
    GROUP BY account_id, model HAVING count(*) > %s
) AS large CROSS JOIN LATERAL (
    SELECT width, count(*) AS rows FROM memory_vectors AS own
    WHERE own.account_id = large.account_id AND own.model = large.model AND own.live
    GROUP BY width HAVING count(*) > %s
) AS sized ORDER BY sized.rows DESC, 1, 2, 3 LIMIT %s"""

# whose an index is stands in its predicate
EXISTING = """
SELECT relname, indisvalid FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
WHERE indrelid = 'memory_vectors'::regclass AND starts_with(relname, %s)
    AND strpos(pg_get_expr(indpred, indrelid), coalesce(%s::uuid::text, '')) > 0"""


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
    vectors: AccountVectors | None


def find_changes(account_id: UUID | None = None) -> tuple[int, Sequence[Change]]:
    """How many large accounts there are (each model and width counts), and what is to be done, ordered by name."""
    least = conf.EXACT_SEARCH_ROWS // KEPT_SHARE
    rows_of = {
        AccountVectors(account_id=account, model=model, width=width): rows
        for account, model, width, rows in run_query(LARGE, account_id, least, least, MOST_INDEXES)
    }
    kept = {vectors.name_prefix: vectors for vectors in rows_of}
    existing = dict(run_query(EXISTING, INDEX_PREFIX, account_id))
    # what a killed build left is dropped by the next build of the same, too
    made = [
        Change(name=name, vectors=vectors)
        for name, vectors in kept.items()
        if rows_of[vectors] > conf.EXACT_SEARCH_ROWS and not existing.get(name)
    ]
    named = {change.name for change in made}
    dropped = [
        Change(name=name, vectors=None)
        for name, is_valid in existing.items()
        if name not in named and not (name in kept and is_valid)
    ]
    return len(rows_of), sorted([*made, *dropped], key=lambda change: change.name)


def make_change(change: Change) -> Generator[IndexProgress, None, BuiltIndex | None]:
    """Do it, beside live traffic; yields how far a build is. Raises Conflict while another build is on."""
    if change.vectors is not None:
        return (yield from build_index(change.vectors, Hnsw()))
    with build_lock():
        drop_indexes([change.name])
    return None
