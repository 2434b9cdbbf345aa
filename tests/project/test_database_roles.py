"""The application's role in PostgreSQL reads and writes rows, and neither changes the audit log nor the database."""

import os
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.conf import LazySettings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection, transaction
from psycopg.errors import InsufficientPrivilege

from memory.audit import record_audit
from memory.models import Account
from memory.owner import Owner
from memory.retrieval.query_analysis import analyze_query
from memory.services.embedding.vector_index import find_partitions
from memory_project.embedded.postgres import APPLICATION_ROLE
from memory_project.postgresql.roles import create_application_role, grant_rights, owner_connection
from tests.memory.audits import run_deferred_trigger
from tests.memory.crowds import AGENT_ROWS, crowd
from tests.memory.gatherings import asked, gathered, recall_context

pytestmark = pytest.mark.django_db(transaction=True)

QUESTION = asked("word3 word77", angle=0.3)


@pytest.fixture
def application(settings: LazySettings) -> Iterator["psycopg.Connection[Any]"]:
    """A session of the application's role, after it got its rights as by `manage.py migrate`."""
    database = connection.settings_dict["NAME"]
    settings.DATABASE_OWNER_URL = os.environ["DATABASE_URL"]
    settings.DATABASES["default"]["USER"], owner = APPLICATION_ROLE, settings.DATABASES["default"]["USER"]
    url = os.environ["DATABASE_URL"].replace("//memory@/memory?", f"//{APPLICATION_ROLE}@/{database}?")
    try:
        grant_rights()
        with psycopg.connect(url, autocommit=True) as session:
            yield session
    finally:
        settings.DATABASES["default"]["USER"] = owner


def add_entry(account: Account) -> None:
    with transaction.atomic():
        record_audit(Owner(account_id=account.id), operation="store", memory_type="episodic", query_text="an oven")
        run_deferred_trigger()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memory_audit_log SET operation = 'other'",
        "DELETE FROM memory_audit_log",
        "TRUNCATE memory_audit_log",
        "DELETE FROM memory_audit_late",
        "ALTER TABLE memory_audit_log DISABLE TRIGGER ALL",
        "SET session_replication_role = replica",
        "DROP EXTENSION vector",
        "CREATE SCHEMA of_its_own",
        "CREATE TABLE of_its_own (id int)",
        "DROP TABLE memories",
        "DELETE FROM django_migrations",
        "SELECT pg_read_file('PG_VERSION')",
        "COPY accounts TO '/tmp/accounts'",
        "COPY accounts TO PROGRAM 'true'",
        "SET ROLE memory",
    ],
)
def test_the_application_may_not(application: "psycopg.Connection[Any]", statement: str) -> None:
    with pytest.raises(InsufficientPrivilege):
        application.execute(statement.encode())


def test_the_application_creates_no_extension(application: "psycopg.Connection[Any]") -> None:
    url = os.environ["DATABASE_URL"].replace("//memory@/memory?", f"//{APPLICATION_ROLE}@/postgres?")

    with psycopg.connect(url, autocommit=True) as elsewhere, pytest.raises(InsufficientPrivilege):
        elsewhere.execute("CREATE EXTENSION vector")


def test_the_application_writes_no_partition_of_the_audit_log(
    application: "psycopg.Connection[Any]", account: Account
) -> None:
    add_entry(account)
    found = application.execute("SELECT DISTINCT tableoid::regclass::text FROM memory_audit_log").fetchall()

    assert found
    for (partition,) in found:
        with pytest.raises(InsufficientPrivilege):
            application.execute(f"DELETE FROM {partition}".encode())


def test_the_application_reads_and_writes_rows(application: "psycopg.Connection[Any]", account: Account) -> None:
    changed = application.execute("UPDATE accounts SET name = 'renamed' WHERE id = %s", [account.id])

    assert changed.rowcount == 1
    assert application.execute("SELECT count(*) FROM memories").fetchone() == (0,)


@pytest.mark.usefixtures("application")
def test_a_recall_by_the_application_keeps_its_plan(account: Account) -> None:
    """Its statement names the partition of the account's vectors, which has rights of its own."""
    agent, *_ = crowd(account, rows=AGENT_ROWS)
    [partition] = find_partitions(account.id)

    def recall() -> tuple[str, set[UUID]]:
        analysis = analyze_query(agent, QUESTION, recall_context(agent))
        found = gathered(agent, QUESTION, analysis, "lexical", "vector")
        return analysis.partition, {each.id for each in found.candidates}

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}")
        read, found = recall()
        cursor.execute(f"RESET ROLE; REVOKE SELECT ON {partition} FROM {APPLICATION_ROLE}")
        cursor.execute(f"SET LOCAL ROLE {APPLICATION_ROLE}")
        unread, found_too = recall()

    assert (read, unread) == (partition, "")
    assert found == found_too != set()


def test_the_application_adds_entries_and_erases_their_texts(
    application: "psycopg.Connection[Any]", account: Account
) -> None:
    add_entry(account)
    [(entry_id,)] = application.execute("SELECT id FROM memory_audit_log").fetchall()

    erased = application.execute("SELECT memory_erase_audit_payloads(%s, %s)", [account.id, [entry_id]]).fetchone()

    assert erased == (1,)
    assert application.execute("SELECT operation, query_text FROM memory_audit_log").fetchall() == [("store", "")]


def test_a_connection_of_the_owner_is_the_usual_one_where_no_other_role_is_named() -> None:
    usual = connection.settings_dict

    with owner_connection():
        assert connection.settings_dict is usual


@pytest.fixture
def roles(settings: LazySettings) -> Iterator[tuple[str, str]]:
    """An owner that may create no roles, and the name of a role of the application that does not exist."""
    database = connection.settings_dict["NAME"]
    plain, missing = f"{database}_plain_owner", f"{database}_missing_application"
    settings.DATABASE_OWNER_URL = os.environ["DATABASE_URL"].replace("//memory@", f"//{plain}@")
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE ROLE {plain} LOGIN")
    usual, settings.DATABASES["default"]["USER"] = settings.DATABASES["default"]["USER"], missing
    try:
        yield plain, missing
    finally:
        settings.DATABASES["default"]["USER"] = usual
        with connection.cursor() as cursor:
            cursor.execute(f"DROP ROLE IF EXISTS {missing}")
            cursor.execute(f"DROP ROLE {plain}")


def find_roles(*names: str) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolname FROM pg_roles WHERE rolname = ANY(%s)", [list(names)])
        return {name for (name,) in cursor.fetchall()}


def test_a_missing_role_that_the_owner_may_not_create_is_named(roles: tuple[str, str]) -> None:
    plain, missing = roles

    with pytest.raises(ImproperlyConfigured, match=rf"There is no role {missing}, .* Create it with LOGIN"):
        create_application_role()

    assert find_roles(plain, missing) == {plain}


def test_an_owner_that_may_create_roles_makes_the_one_of_the_application(roles: tuple[str, str]) -> None:
    plain, missing = roles
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER ROLE {plain} CREATEROLE")

    create_application_role()
    create_application_role()

    assert find_roles(plain, missing) == {plain, missing}
