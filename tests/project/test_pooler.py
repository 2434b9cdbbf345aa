"""The service behind PgBouncer in transaction mode: a real one, with three sessions for all connections."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import environ
import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from memory.models import Account, Conversation, Memory
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory_project.postgresql.options import check_role_settings, web_settings
from tests.pooler import needs_pgbouncer, pooler
from tests.web_server import WebServer, database_url, serve

pytestmark = needs_pgbouncer

TINY = {"EMBEDDING_PROVIDER": "tiny", "MEMORY_ALLOW_TINY_EMBEDDINGS": "1"}


@pytest.fixture
def server(pooler_url: str) -> Iterator[WebServer]:
    with serve({"DATABASE_POOLER_URL": pooler_url, "MEMORY_WEB_THREADS": "12"}) as server:
        yield server


@pytest.fixture
def key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


def test_every_session_has_the_settings_of_searches_and_limits(pooler_url: str) -> None:
    with psycopg.connect(pooler_url, prepare_threshold=None) as session:
        session.execute("SELECT '[1]'::vector")
        found = {name: session.execute("SELECT current_setting(%s)", [name]).fetchone() for name in web_settings()}

    assert found["hnsw.iterative_scan"] == ("relaxed_order",)
    assert (found["jit"], found["lock_timeout"], found["statement_timeout"]) == (("off",), ("3s",), ("30s",))


def test_a_server_does_not_start_behind_a_role_without_them(transactional_db: None, settings: object) -> None:
    with connection.cursor() as cursor, pooler() as url:
        cursor.execute(f'ALTER ROLE CURRENT_USER IN DATABASE "{connection.settings_dict["NAME"]}" RESET ALL')
        settings.DATABASE_POOLER_URL = url  # type: ignore[attr-defined]

        with pytest.raises(ImproperlyConfigured, match=r"lacks the settings idle_.*hnsw\.ef_search.*manage.py migrate"):
            check_role_settings()


def test_requests_repeated_under_one_key_are_all_answered_with_the_first_answer(server: WebServer, key: str) -> None:
    def send(number: int) -> tuple[int, bytes]:
        name = f"note {number % 6}"
        body = json.dumps({"agent_id": "assistant", "text": name}).encode()
        got = server.request(
            "POST", "/api/v1/memories", key=key, body=body, headers={"Idempotency-Key": name.replace(" ", "-")}
        )
        return got.status, got.body

    first = [send(number) for number in range(6)]
    with ThreadPoolExecutor(12) as threads:
        again = list(threads.map(send, range(72)))

    assert {status for status, _ in first} == {201}
    assert again == first * 12
    assert Memory.objects.filter(kind="note").count() == 6


def test_simultaneous_requests_under_one_key_write_once(server: WebServer, key: str) -> None:
    body = json.dumps({"agent_id": "assistant", "text": "Ana prefers window seats."}).encode()

    def send(_: int) -> int:
        return server.request("POST", "/api/v1/memories", key=key, body=body, headers={"Idempotency-Key": "one"}).status

    with ThreadPoolExecutor(12) as threads:
        statuses = set(threads.map(send, range(24)))

    assert (statuses - {201, 409}, Memory.objects.filter(kind="note").count()) == (set(), 1)
    assert send(0) == 201


def test_rows_are_read_in_chunks_with_and_without_a_transaction(pooler_url: str, key: str) -> None:
    pooled = connection.copy()
    given = environ.Env.db_url_config(pooler_url)
    pooled.settings_dict |= {**given, "OPTIONS": {"pool": False, **given["OPTIONS"]}, "IS_POOLED": True}
    read = "SELECT name FROM accounts"
    try:
        with pooled.chunked_cursor() as alone:
            alone.execute(read)
            assert (getattr(alone, "name", ""), alone.fetchall()) == ("", [("workshop",)])
        with pooled.cursor() as begin:
            begin.execute("BEGIN")
            pooled.in_atomic_block = True
            with pooled.chunked_cursor() as named:
                named.execute(read)
                assert (named.name != "", named.fetchall()) == (True, [("workshop",)])
    finally:
        pooled.in_atomic_block = False
        pooled.close()


def test_turns_are_stored_and_recalled(server: WebServer, key: str) -> None:
    turns = [{"role": "user", "content": f"I moved to Lisbon in March, {number}."} for number in range(300)]
    body = json.dumps({"agent_id": "assistant", "turns": turns}).encode()
    assert server.request("POST", "/api/v1/conversations/move/turns", key=key, body=body).status == 201

    asked = json.dumps({"agent_id": "assistant", "query": "Lisbon", "top_k": 3}).encode()
    found = server.request("POST", "/api/v1/recall", key=key, body=asked)

    assert len(json.loads(found.body)["results"]) == 3
    assert Conversation.objects.count() == 1


def test_requests_that_repeat_their_statements_are_all_answered(server: WebServer, key: str) -> None:
    body = json.dumps({"agent_id": "assistant", "text": "Ana prefers window seats."}).encode()
    assert server.request("POST", "/api/v1/memories", key=key, body=body).status == 201
    asked = json.dumps({"agent_id": "assistant", "query": "window seats"}).encode()

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(lambda _: server.request("POST", "/api/v1/recall", key=key, body=asked), range(40)))

    assert {answer.status for answer in answers} == {200}


@pytest.fixture
def plain_database(transactional_db: None) -> Iterator[str]:
    """An empty database of a role that is no superuser, in which one has made the extension."""
    name = f"{connection.settings_dict['NAME']}_plain"
    with connection.cursor() as cursor:
        cursor.execute("CREATE ROLE plain LOGIN")
        cursor.execute(f'CREATE DATABASE "{name}" OWNER plain')
        url = database_url().replace(f"/{connection.settings_dict['NAME']}?", f"/{name}?")
        with psycopg.connect(url) as session:
            session.execute("CREATE EXTENSION vector")
        try:
            yield url.replace("//memory@", "//plain@")
        finally:
            cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
            cursor.execute("DROP ROLE plain")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_role_that_is_no_superuser_migrates_and_serves_behind_the_pooler(plain_database: str) -> None:
    database = urlsplit(plain_database).path.strip("/")
    with pooler(role="plain", database=database) as url:
        own = {"DATABASE_URL": plain_database, "DATABASE_POOLER_URL": url}
        manage("migrate", "--verbosity", "0", environ=own)
        key = json.loads(manage("bootstrap", environ=own))["api_key"]
        with serve(own) as server:
            body = json.dumps({"agent_id": "assistant", "text": "Ana prefers window seats."}).encode()
            stored = server.request("POST", "/api/v1/memories", key=key, body=body)
            asked = json.dumps({"agent_id": "assistant", "query": "window seats"}).encode()
            found = server.request("POST", "/api/v1/recall", key=key, body=asked)
            ready = server.request("GET", "/health/ready")

    assert (stored.status, ready.status) == (201, 200)
    assert json.loads(found.body)["results"][0]["text"] == "Ana prefers window seats."


def manage(*arguments: str, environ: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        env=os.environ | TINY | environ,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return done.stdout
