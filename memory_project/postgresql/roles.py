"""The two roles of a database: the application's, by which all is read and written, and the owner of the tables.

`DATABASE_URL` names the application's role. It may read and write rows, but change neither tables nor the audit log, to
which it only adds. `DATABASE_OWNER_URL` names the owner, who migrates, builds indexes, drops old days of the audit log,
and makes and restores backups. Without it, the application's role is the owner.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import environ
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, ProgrammingError, connections, transaction
from psycopg import sql

CONNECTION_PARTS = ("USER", "PASSWORD", "HOST", "PORT")

OWN_TABLES = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition
    AND c.relname NOT LIKE 'memory\\_audit\\_%' AND c.relname <> 'django_migrations'
    AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname
"""
AUDIT_TABLES = """
SELECT c.relname FROM pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    AND c.relname LIKE 'memory\\_audit\\_%'
ORDER BY c.relname
"""
READ_PARTITIONS = """
SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = to_regclass('memory_vectors') AND c.relkind = 'r' ORDER BY c.relname
"""
"""The partitions of vectors, which recalls name (`memory.retrieval.kept_plans`)."""
ADDED_TO = ("memory_audit_log", "memory_audit_late")
"""Tables that the application's role adds entries to. A trigger moves those of the second to the first."""

GRANTS = (
    "GRANT USAGE ON SCHEMA {schema} TO {role}",
    "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {role}",
    "GRANT SELECT ON django_migrations TO {role}",
    "REVOKE ALL ON {audit} FROM {role}",
    "GRANT SELECT, INSERT ON {added_to} TO {role}",
)
GRANT_PARTITIONS = "GRANT SELECT ON {partitions} TO {role}"

FIND_ROLE = "SELECT 1 FROM pg_roles WHERE rolname = %s"


def owner_settings() -> dict[str, Any] | None:
    """Return the settings that differ in connections of the owner; None where it is the application's role."""
    if not settings.DATABASE_OWNER_URL:
        return None
    given = environ.Env.db_url_config(settings.DATABASE_OWNER_URL)
    found = {name: given.get(name, "") for name in CONNECTION_PARTS}
    return None if found["USER"] == settings.DATABASES[DEFAULT_DB_ALIAS]["USER"] else found


@contextmanager
def owner_connection() -> Iterator[None]:
    """Run the statements of this thread in the block as the owner of the tables, on a connection of its own.

    Changes nothing where the application's role is the owner. Raises TransactionManagementError in a transaction, whose
    changes that connection would not see.
    """
    given, usual = owner_settings(), connections[DEFAULT_DB_ALIAS]
    if given is None or usual.settings_dict["USER"] == given["USER"]:
        yield
        return
    if usual.in_atomic_block:
        raise transaction.TransactionManagementError("the owner of the tables takes no part in a transaction of others")
    own: Any = usual.copy()
    own.settings_dict |= given
    own.settings_dict["OPTIONS"].pop("pool", None)
    connections[DEFAULT_DB_ALIAS] = own
    try:
        yield
    finally:
        connections[DEFAULT_DB_ALIAS] = usual
        own.close()


@owner_connection()
def create_application_role() -> None:
    """Make the application's role with the password of `DATABASE_URL`, unless it exists or is the owner.

    An existing role keeps its password. Raises ImproperlyConfigured where the owner may create no roles.
    """
    if owner_settings() is None:
        return
    connection, given = connections[DEFAULT_DB_ALIAS], settings.DATABASES[DEFAULT_DB_ALIAS]
    with connection.cursor() as cursor:
        cursor.execute(FIND_ROLE, [given["USER"]])
        if cursor.fetchone():
            return
        statement = sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(given["USER"]))
        if given["PASSWORD"]:
            # hashed here, since the server's log may have the statement
            hashed = cursor.connection.pgconn.encrypt_password(
                given["PASSWORD"].encode(), given["USER"].encode(), b"scram-sha-256"
            )
            statement += sql.SQL(" PASSWORD {}").format(sql.Literal(hashed.decode()))
        try:
            cursor.execute(statement.as_string(cursor.connection))
        except ProgrammingError as err:
            raise ImproperlyConfigured(
                f"There is no role {given['USER']}, which DATABASE_URL names, and the role in DATABASE_OWNER_URL may "
                "not create it. Create it with LOGIN as a superuser."
            ) from err


@owner_connection()
def grant_rights() -> None:
    """Give the application's role its rights to the tables that are there now, and take from it what it must not have.

    Does nothing where it is the owner, and before there is an audit log.
    """
    if owner_settings() is None:
        return
    with transaction.atomic(), connections[DEFAULT_DB_ALIAS].cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        (schema,) = cursor.fetchone()
        cursor.execute(AUDIT_TABLES)
        audit = [name for (name,) in cursor.fetchall()]
        cursor.execute(OWN_TABLES)
        tables = [name for (name,) in cursor.fetchall()]
        cursor.execute(READ_PARTITIONS)
        partitions = [name for (name,) in cursor.fetchall()]
        if not {*ADDED_TO} <= {*audit}:
            return
        named = {
            "schema": sql.Identifier(schema),
            "role": sql.Identifier(settings.DATABASES[DEFAULT_DB_ALIAS]["USER"]),
            "tables": join_names(tables),
            "audit": join_names(audit),
            "added_to": join_names(ADDED_TO),
            "partitions": join_names(partitions),
        }
        for statement in (*GRANTS, *([GRANT_PARTITIONS] if partitions else [])):
            cursor.execute(sql.SQL(statement).format(**named).as_string(cursor.connection))


def join_names(names: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, names))
