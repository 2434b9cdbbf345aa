"""Statistics of words: the many rows of one term folded into one, account by account, in the order of terms.

Those who write memories only ever append, and the sum is what counts. So folding is a DELETE and an INSERT in one
statement: whoever reads sees the rows before or the row after, whoever appends meanwhile waits for nobody, and of two
who fold at once each adds up what it deleted itself.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection

# every change of an account's memories, an edit too, appends a row to the count of the memories themselves, the empty
# term, which is folded last
CHANGED = """
SELECT id FROM accounts WHERE (%(after)s::uuid IS NULL OR id > %(after)s) AND (%(only)s::uuid IS NULL OR id = %(only)s)
    AND 1 < (SELECT count(*) FROM (
        SELECT FROM memory_terms WHERE account_id = accounts.id AND term = '' LIMIT 2
    ) AS counts)
ORDER BY id LIMIT 1"""

NEXT = """
    -- nothing, and so nothing next, where the row went away
    mark AS MATERIALIZED (
        SELECT term, docs, tokens FROM memory_terms WHERE id = %(after)s AND account_id = %(account_id)s
        UNION ALL SELECT '', 1, 0 WHERE %(after)s = 0
    ),
    next AS MATERIALIZED (
        SELECT term FROM memory_terms WHERE account_id = %(account_id)s AND term > (SELECT term FROM mark)
        ORDER BY term LIMIT %(size)s
    ),
    ends AS MATERIALIZED (
        SELECT count(*) AS examined, max(term) AS last, count(*) = %(size)s AS goes_on FROM next
    ),
    -- of the last one there may be more behind it; as an array, or a planner without statistics joins them by a loop
    many AS MATERIALIZED (
        SELECT array_agg(term) AS terms FROM (
            SELECT term FROM next GROUP BY term HAVING count(*) > 1 OR term = (SELECT last FROM ends)
            UNION ALL SELECT '' FROM ends, mark WHERE NOT goes_on
        ) AS several
    )"""

FOLD = f"""
WITH {NEXT},
    gone AS (
        DELETE FROM memory_terms WHERE account_id = %(account_id)s AND term = ANY(
            (SELECT terms FROM many)::text[] || ARRAY(SELECT term FROM mark WHERE docs = 0 AND tokens = 0)
        ) RETURNING term, docs, tokens
    ),
    -- the last one is a mark even where it comes to nothing: it goes with the next stretch
    kept AS (
        INSERT INTO memory_terms (account_id, term, docs, tokens)
        SELECT %(account_id)s, term, sum(docs), sum(tokens) FROM gone
        GROUP BY term HAVING sum(docs) <> 0 OR sum(tokens) <> 0 OR term = (SELECT last FROM ends WHERE goes_on)
        RETURNING id, term
    )
SELECT examined, (SELECT id FROM kept WHERE term = last AND goes_on),
    (SELECT count(*) FROM gone) - (SELECT count(*) FROM kept)
FROM ends"""  # noqa: S608 - a constant with parameters

REHEARSE = f"""
WITH {NEXT},
    found AS (
        SELECT count(*) - (sum(docs) <> 0 OR sum(tokens) <> 0)::int AS fewer FROM memory_terms
        WHERE account_id = %(account_id)s AND term = ANY((SELECT terms FROM many)::text[]) GROUP BY term
    )
SELECT examined,
    (SELECT max(id) FROM memory_terms WHERE account_id = %(account_id)s AND term = last AND goes_on),
    (SELECT coalesce(sum(fewer), 0) FROM found)::bigint
FROM ends"""  # noqa: S608 - a constant with parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Terms of an account behind that of a row (0: from the first on), as many rows as `size`."""

    account_id: UUID
    after: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """Rows looked at, and by how many they became fewer. `mark` is the row to go on behind.

    It is a row's id, since a term is a word of somebody's text. 0: the account is done, or the row is gone that this
    stretch was to begin behind; then the account counts as changed, and the next run folds the rest.
    """

    examined: int
    fewer: int
    mark: int


def changed_account(*, after: UUID | None, only: UUID | None) -> UUID | None:
    """The next account, by id, whose memories changed since its terms were folded; among all, or this one only."""
    with connection.cursor() as cursor:
        cursor.execute(CHANGED, {"after": after, "only": only})
        found = cursor.fetchone()
    return found[0] if found else None


def fold_terms(stretch: Stretch) -> Folded:
    """Make one row of all rows of each term of the stretch, none of those that come to nothing. One statement."""
    return run(FOLD, stretch)


def rehearse_folding(stretch: Stretch) -> Folded:
    """What `fold_terms` would do; changes nothing."""
    return run(REHEARSE, stretch)


def run(statement: str, stretch: Stretch) -> Folded:
    values: dict[str, Any] = {"account_id": stretch.account_id, "after": stretch.after, "size": stretch.size}
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        examined, mark, fewer = cursor.fetchone()
    return Folded(examined=examined, fewer=fewer, mark=mark or 0)
