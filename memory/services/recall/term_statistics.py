"""Word statistics: the rows of each term are folded into one, account by account, in the order of terms.

Writers of memories only append rows, and the sum of a term's rows is what counts. Folding is one DELETE and INSERT in
one statement: a reader sees the rows before or the row after, writers never wait, and of two folds that run
simultaneously each adds up only what it deleted itself.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from memory.models.statements import fetch_rows

# every change of an account's memories, an edit too, appends a row for the empty term, which counts the memories
# themselves and is folded last
CHANGED_ACCOUNT_SQL = """
SELECT id FROM accounts WHERE (%(after)s::uuid IS NULL OR id > %(after)s) AND (%(only)s::uuid IS NULL OR id = %(only)s)
    AND 1 < (SELECT count(*) FROM (
        SELECT FROM memory_terms WHERE account_id = accounts.id AND term = '' LIMIT 2
    ) AS counts)
ORDER BY id LIMIT 1"""

NEXT_TERMS_SQL = """
    -- empty, and so is `next`, if the row is gone
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
    -- the last term may have more rows after these; an array, since a planner without statistics joins by a loop
    many AS MATERIALIZED (
        SELECT array_agg(term) AS terms FROM (
            SELECT term FROM next GROUP BY term HAVING count(*) > 1 OR term = (SELECT last FROM ends)
            UNION ALL SELECT '' FROM ends, mark WHERE NOT goes_on
        ) AS several
    )"""

FOLD_SQL = f"""
WITH {NEXT_TERMS_SQL},
    gone AS (
        DELETE FROM memory_terms WHERE account_id = %(account_id)s AND term = ANY(
            (SELECT terms FROM many)::text[] || ARRAY(SELECT term FROM mark WHERE docs = 0 AND tokens = 0)
        ) RETURNING term, docs, tokens
    ),
    -- the last one is kept as the mark even if it adds up to nothing: the next batch deletes it
    kept AS (
        INSERT INTO memory_terms (account_id, term, docs, tokens)
        SELECT %(account_id)s, term, sum(docs), sum(tokens) FROM gone
        GROUP BY term HAVING sum(docs) <> 0 OR sum(tokens) <> 0 OR term = (SELECT last FROM ends WHERE goes_on)
        RETURNING id, term
    )
SELECT examined, (SELECT id FROM kept WHERE term = last AND goes_on),
    (SELECT count(*) FROM gone) - (SELECT count(*) FROM kept)
FROM ends"""  # noqa: S608 - a constant with parameters

PREVIEW_SQL = f"""
WITH {NEXT_TERMS_SQL},
    found AS (
        SELECT count(*) - (sum(docs) <> 0 OR sum(tokens) <> 0)::int AS fewer FROM memory_terms
        WHERE account_id = %(account_id)s AND term = ANY((SELECT terms FROM many)::text[]) GROUP BY term
    )
SELECT examined,
    (SELECT max(id) FROM memory_terms WHERE account_id = %(account_id)s AND term = last AND goes_on),
    (SELECT coalesce(sum(fewer), 0) FROM found)::bigint
FROM ends"""  # noqa: S608 - a constant with parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldResult:
    """Rows examined, how many fewer there are, and the row to continue after.

    `mark` is a row's id and not a term, since a term is a word of somebody's text. 0: the account is done, or the row
    that the batch was to begin after is gone; then the account still counts as changed, and the next run folds the
    rest.
    """

    examined: int
    fewer: int
    mark: int


def find_changed_account(*, after: UUID | None, only: UUID | None) -> UUID | None:
    """Return the next account by id whose memories changed since its last fold, or None; `only` limits it to one."""
    found = fetch_rows(CHANGED_ACCOUNT_SQL, {"after": after, "only": only})
    return found[0][0] if found else None


def fold_terms(account_id: UUID, *, after: int, size: int, dry_run: bool = False) -> FoldResult:
    """Replace all rows of each term by one row, or none if they add up to nothing. One statement.

    It does so for the next `size` rows of terms after the term of row `after` (0: from the first term). A dry run
    changes nothing.
    """
    values: dict[str, Any] = {"account_id": account_id, "after": after, "size": size}
    [(examined, mark, fewer)] = fetch_rows(PREVIEW_SQL if dry_run else FOLD_SQL, values)
    return FoldResult(examined=examined, fewer=fewer, mark=mark or 0)
