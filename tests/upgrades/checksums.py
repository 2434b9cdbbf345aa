"""Checksums of the columns of all tables, which a migration must not change."""

import psycopg
from psycopg import sql

# of no installation: what is sealed in the dumps of this folder
ENCRYPTION_KEY = "j8r05zZT8RQq-Eeo-XzQRTxUXSoQrcoWQ72nqvHcVxE="

Checksums = dict[str, dict[str, str]]
"""Checksums by table and column."""

TABLES = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attname),
    (SELECT array_agg(k.attname::text ORDER BY k.attname) FROM pg_index i
        JOIN pg_attribute k ON k.attrelid = c.oid AND k.attnum = ANY(i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
GROUP BY c.oid, c.relname
"""


def read_checksums(connection: psycopg.Connection, former: Checksums | None = None) -> Checksums:
    """Return the checksums of all columns, or of those that `former` has and that still exist.

    Rows are ordered by their keys, as they were at first: a key that becomes longer changes no order.
    """
    found: Checksums = {}
    for table, columns, key in connection.execute(TABLES).fetchall():
        if former is not None and table not in former:
            continue
        chosen = [name for name in columns if former is None or name in former[table]]
        found[table] = read_checksums_of(connection, table, chosen, key or columns)
    return found


def read_checksums_of(connection: psycopg.Connection, table: str, columns: list[str], key: list[str]) -> dict[str, str]:
    """Return the checksum of each column: a digest of the sorted digests of its values, each with the row's id."""
    identity = "id" if "id" in columns else key[0]
    digest = "md5(coalesce(string_agg(d, '' ORDER BY d), '')) FROM (SELECT md5({0}::text || '|' || {1}::text) AS d"
    checksums = {}
    for column in columns:
        statement = sql.SQL(f"SELECT count(d) || ' ' || {digest} FROM {{2}}) each_row").format(
            sql.Identifier(identity), sql.Identifier(column), sql.Identifier(table)
        )
        row = connection.execute(statement).fetchone()
        checksums[column] = row[0] if row else ""
    return checksums
