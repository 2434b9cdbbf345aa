"""Distribute the tables of a migrated database over the machines of a Citus installation, by account.

`plan_distribution` reads the catalogue and returns the steps that are missing, so that a run that was stopped goes on
where it was. Which tables belong to accounts is read from the catalogue as well: they have the column `account_id` and
are none of `INSTALLATION_TABLES`. Foreign keys are written down in `distribution_references` before they are dropped.
Functions of triggers that Citus refuses, or that do not do their work on a worker, are replaced while their bodies
still have the pattern that stands beside them: one which a later migration gives a form for both is left alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from memory_project.postgresql.options import SESSION_SETTINGS
from memory_project.tenancy import INSTALLATION_TABLES, LOCAL_TABLES

CHECK_USERS = """
CREATE OR REPLACE FUNCTION memory_check_users() RETURNS trigger LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    named record;
BEGIN
    FOR named IN SELECT DISTINCT w.account_id, w.user_id::text FROM written w WHERE w.user_id <> '' LOOP
        PERFORM memory_refuse_if_erased(named.account_id, named.user_id)
        FROM accounts a WHERE a.id = named.account_id AND a.has_erasures;
    END LOOP;
    RETURN NULL;
END $$
"""
"""Checks inserted rows for erased users. The rows of a statement's trigger cannot be joined with a table."""

REFUSE_RINGS = """
CREATE OR REPLACE FUNCTION memory_refuse_rings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('goal links', 0) # hashtextextended(NEW.account_id::text, 0));
    IF EXISTS (
        WITH RECURSIVE ahead AS (
            SELECT NEW.target_id AS id
            UNION
            SELECT l.target_id FROM memory_links l JOIN ahead ON l.source_id = ahead.id
            WHERE l.account_id = NEW.account_id AND l.type = NEW.type
        )
        SELECT FROM ahead WHERE id = NEW.source_id
    ) THEN
        RAISE EXCEPTION 'goals in a ring: constraint "goal_links_without_rings"' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$
"""
"""Refuses goals in a ring. The account's row has a copy on every machine, which a worker would lock over connections of
its own, and wait for itself; its links are all on one machine, where an advisory lock is enough."""

REPLACED_FUNCTIONS = {
    "memory_check_users": ("JOIN accounts", CHECK_USERS),
    "memory_refuse_rings": ("FROM accounts", REFUSE_RINGS),
}
"""The pattern and the new statement of each function."""

FIND_BODY = "SELECT prosrc FROM pg_proc WHERE oid = to_regproc(%s)"

DELEGATED_FUNCTIONS = ("memory_erase_audit_payloads(uuid, uuid[])", "memory_erase_audit_names(uuid, uuid[])")
"""Functions of one account, the argument `account`, that run on its machine: a setting that they make holds there."""

FIND_DELEGATION = """
SELECT 1 FROM pg_dist_object
WHERE classid = 'pg_proc'::regclass AND objid = to_regprocedure(%s) AND distribution_argument_index IS NOT NULL
"""


FIRST_TABLE = "memories"
"""The table next to whose rows those of all others are kept."""

NOTES = "distribution_references"
"""The table of the foreign keys that are dropped, while the command is at work."""

SETTINGS = {
    "citus.enable_unsafe_triggers": "on",
    "citus.allow_nested_distributed_execution": "on",
    "citus.propagate_set_commands": "local",
}
"""Settings of every session with the database: its triggers stay within an account, and SET LOCAL reaches workers."""

MAKE_NOTES = f"""
CREATE TABLE IF NOT EXISTS {NOTES} (name text, place text, rule text NOT NULL, PRIMARY KEY (place, name))
"""

# composed of names of tables alone, here and below
TABLES = f"""
CREATE TEMPORARY VIEW tables_to_distribute AS
SELECT c.oid, c.relname AS name, c.relname = '{FIRST_TABLE}' AS is_first, d.logicalrelid IS NOT NULL AS is_done,
    a.attname IS NOT NULL AND c.relname <> ALL (%(installation)s) AND c.relname !~ '^(auth|django|otp)_'
        AS has_accounts
FROM pg_class c
LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'account_id' AND NOT a.attisdropped
LEFT JOIN pg_dist_partition d ON d.logicalrelid = c.oid
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relname <> ALL (%(local)s)
    AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.objid = c.oid AND e.deptype = 'e')
"""  # noqa: S608

FIND_TABLES = """
SELECT name, has_accounts FROM tables_to_distribute WHERE NOT is_done
ORDER BY has_accounts, name <> 'accounts', NOT is_first, name
"""

FIND_REFERENCES = """
SELECT k.conrelid::regclass::text, quote_ident(k.conname), pg_get_constraintdef(k.oid) FROM pg_constraint k
JOIN tables_to_distribute ours ON ours.oid = k.conrelid
LEFT JOIN tables_to_distribute theirs ON theirs.oid = k.confrelid
WHERE k.contype = 'f' AND k.conparentid = 0 AND NOT (ours.is_done AND coalesce(theirs.is_done, true)) ORDER BY 1, 2
"""

# of no extension; a function of a trigger follows its table by itself
FIND_FUNCTIONS = """
SELECT p.oid::regprocedure::text FROM pg_proc p
WHERE p.pronamespace = current_schema()::regnamespace AND p.prorettype <> 'trigger'::regtype AND p.prokind = 'f'
    AND NOT EXISTS (SELECT FROM pg_depend e WHERE e.objid = p.oid AND e.deptype = 'e')
    AND NOT EXISTS (SELECT FROM pg_dist_object o WHERE o.classid = 'pg_proc'::regclass AND o.objid = p.oid)
ORDER BY p.oid
"""

FIND_WORDS = """
SELECT format('%%I.%%I', n.nspname, c.cfgname) FROM pg_ts_config c JOIN pg_namespace n ON n.oid = c.cfgnamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')
    AND NOT EXISTS (SELECT FROM pg_dist_object o WHERE o.classid = 'pg_ts_config'::regclass AND o.objid = c.oid)
ORDER BY c.oid
"""


class DistributionError(Exception):
    """The database cannot be distributed; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """The address of a PostgreSQL server, as the others reach it."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributionStep:
    """Statements, each with its parameters, that commit together."""

    action: str
    subject: str
    statements: tuple[tuple[str, tuple[Any, ...]], ...]


def make_step(action: str, subject: str, *statements: str, parameters: tuple[Any, ...] = ()) -> DistributionStep:
    """Return a step of statements, the first of which has the parameters."""
    rest = tuple((statement, ()) for statement in statements[1:])
    return DistributionStep(action=action, subject=subject, statements=((statements[0], parameters), *rest))


def parse_machine(text: str) -> Machine:
    """Return the machine of `host:port`; the port may be left out. Raises ValueError."""
    host, _, port = text.strip().rpartition(":") if ":" in text else (text.strip(), "", "5432")
    if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
        raise ValueError(f"{text!r} is no address: write host:port")
    return Machine(host=host, port=int(port))


def plan_distribution(coordinator: Machine, workers: Sequence[Machine]) -> list[DistributionStep]:
    """Return the steps that are missing, in their order. Raises DistributionError."""
    require_citus()
    query("DROP VIEW IF EXISTS tables_to_distribute")
    query(TABLES, {"installation": list(INSTALLATION_TABLES), "local": [*LOCAL_TABLES, NOTES]})
    return [
        *plan_machines(coordinator, workers),
        *plan_settings(),
        *plan_objects(),
        *plan_tables(),
        *plan_delegations(),
        *plan_references(),
    ]


def run_step(step: DistributionStep) -> None:
    """Run one step."""
    with transaction.atomic():
        for name, value in {**SETTINGS, "citus.multi_shard_modify_mode": "sequential"}.items():
            query(f"SET LOCAL {name} = '{value}'")
        for statement, parameters in step.statements:
            query(statement, parameters or None)


def require_citus() -> None:
    """Raise DistributionError unless the database has the extension and the tables."""
    if not query("SELECT 1 FROM pg_extension WHERE extname = 'citus'"):
        raise DistributionError(
            "The database has no extension citus. Load it on every machine (shared_preload_libraries) and run "
            "CREATE EXTENSION citus in the databases of the coordinator and of each worker."
        )
    if not has_table(FIRST_TABLE):
        raise DistributionError("The database has no tables yet: run manage.py migrate first.")


def plan_settings() -> Iterator[DistributionStep]:
    """Give sessions with all machines their settings, those of searches too: Citus passes them on to the workers."""
    (database,) = query("SELECT quote_ident(current_database())")[0]
    for name, value in {**SETTINGS, **SESSION_SETTINGS}.items():
        yield make_step("set", name, f"ALTER DATABASE {database} SET {name} = '{value}'")


def plan_machines(coordinator: Machine, workers: Sequence[Machine]) -> Iterator[DistributionStep]:
    """Add the machines that the coordinator does not know."""
    known = {(host, port) for host, port in query("SELECT nodename, nodeport FROM pg_dist_node")}
    if not query("SELECT 1 FROM pg_dist_node WHERE groupid = 0"):
        place = (coordinator.host, coordinator.port)
        yield make_step(
            "name coordinator", str(coordinator), "SELECT citus_set_coordinator_host(%s, %s)", parameters=place
        )
    for worker in workers:
        place = (worker.host, worker.port)
        if place not in known:
            yield make_step("add worker", str(worker), "SELECT citus_add_node(%s, %s)", parameters=place)


def plan_objects() -> Iterator[DistributionStep]:
    """Copy what was made before the extension, and what no table names.

    A configuration of words follows a table that names it, and stays when that table is dropped. Functions choose
    theirs by the language of a row, so a table is made for this only.
    """
    if words := [name for (name,) in query(FIND_WORDS)]:
        columns = ", ".join(
            f"words_{number} tsvector DEFAULT to_tsvector('{name}'::regconfig, '')" for number, name in enumerate(words)
        )
        yield make_step(
            "copy words",
            ", ".join(words),
            f"CREATE TABLE distribution_words (account_id uuid, {columns})",
            "SELECT create_distributed_table('distribution_words', 'account_id')",
            "DROP TABLE distribution_words",
        )
    for (function,) in query(FIND_FUNCTIONS):
        yield make_step("copy function", function, "SELECT create_distributed_function(%s)", parameters=(function,))
    for name, (pattern, statement) in REPLACED_FUNCTIONS.items():
        if any(pattern in body for (body,) in query(FIND_BODY, [name])):
            yield make_step("replace function", name, statement)


def plan_tables() -> Iterator[DistributionStep]:
    """Write down and drop foreign keys, then distribute each table: those of the installation first."""
    if tables := query(FIND_TABLES):
        yield make_step("make table", NOTES, MAKE_NOTES)
    for table, name, definition in query(FIND_REFERENCES):
        yield make_step(
            "drop reference",
            f"{table}.{name}",
            f"INSERT INTO {NOTES} VALUES (%s, %s, %s)",  # noqa: S608
            f"ALTER TABLE {table} DROP CONSTRAINT {name}",
            parameters=(name, table, definition),
        )
    for name, has_accounts in tables:
        if not has_accounts:
            yield make_step("copy table", name, "SELECT create_reference_table(%s)", parameters=(name,))
            continue
        others = "" if name == FIRST_TABLE else f", colocate_with => '{FIRST_TABLE}'"
        statement = f"SELECT create_distributed_table(%s, 'account_id'{others})"
        yield make_step("distribute table", name, statement, parameters=(name,))


def plan_delegations() -> Iterator[DistributionStep]:
    """Have functions that work for one account run on its machine, in transactions as well."""
    for function in DELEGATED_FUNCTIONS:
        if not query(FIND_DELEGATION, [function]):
            statement = f"SELECT create_distributed_function(%s, 'account', '{FIRST_TABLE}', true)"
            yield make_step("delegate function", function, statement, parameters=(function,))


def plan_references() -> Iterator[DistributionStep]:
    """Add the foreign keys again, of this run and of one that was stopped, and drop the notes."""
    noted = []
    if has_table(NOTES):
        noted = query(f"SELECT place, name, rule FROM {NOTES} ORDER BY 1, 2")  # noqa: S608
    missing = [*noted, *query(FIND_REFERENCES)]
    for table, name, definition in missing:
        yield make_step(
            "add reference",
            f"{table}.{name}",
            f"DELETE FROM {NOTES} WHERE place = %s AND name = %s",  # noqa: S608
            f"ALTER TABLE {table} ADD CONSTRAINT {name} {definition}",
            parameters=(table, name),
        )
    if has_table(NOTES) or missing:
        yield make_step("drop table", NOTES, f"DROP TABLE {NOTES}")


def has_table(name: str) -> bool:
    return bool(query("SELECT 1 FROM pg_class WHERE oid = to_regclass(%s)", [name]))


def query(statement: str, parameters: Any = None) -> list[tuple[Any, ...]]:
    """Run a statement and return its rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []
