"""Our store under the names of langgraph's stores, for langgraph's own tests. Copied next to them as conftest.py."""

import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from agent_memory_client import Client
from agent_memory_integrations.langgraph import AgentMemoryStore
from langgraph.store import memory
from psycopg.rows import dict_row

from tests.embed_test_utils import CharacterEmbeddings  # type: ignore[import-not-found]  # copied next to it

DEFAULT_URI = "postgres://nowhere/postgres"
VECTOR_TYPES = ["vector", "halfvec"]
connect = psycopg.connect


class ServedStore(AgentMemoryStore):
    """Our store, opened as `PostgresStore` and `InMemoryStore` are."""

    MIGRATIONS: list[str] = []

    def __init__(self, *, index: Any = None, ttl: Any = None, context: str = "") -> None:
        name = context or uuid4().hex
        super().__init__(Client(), context=name, index=index or False, ttl=ttl, embedding_model=name)

    @classmethod
    @contextmanager
    def from_conn_string(
        cls, conn_string: str, *, index: Any = None, ttl: Any = None, **_options: Any
    ) -> Iterator[Any]:
        yield cls(index=index, ttl=ttl, context=conn_string.rpartition("/")[2].partition("?")[0])

    def setup(self) -> None: ...

    def start_ttl_sweeper(self) -> None: ...

    def stop_ttl_sweeper(self) -> None: ...

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        with connect(os.environ["DATABASE_URL"], autocommit=True, row_factory=dict_row) as connection:
            yield TranslatedCursor(connection.cursor(), self._context.ensure_id())


class TranslatedCursor:
    """Runs statements on the table of `PostgresStore` on ours: tests look at rows, and age them."""

    def __init__(self, cursor: Any, context_id: str) -> None:
        self._cursor = cursor
        self._condition = f"context_id = '{context_id}' AND key = %s || '/' || %s"

    def execute(self, statement: str, parameters: Any = ()) -> None:
        if "DROP TABLE" in statement:
            return
        statement = statement.replace("UPDATE store", "UPDATE memories").replace("FROM store", "FROM memories")
        self._cursor.execute(statement.replace("prefix = %s AND key = %s", self._condition), parameters)

    def fetchone(self) -> Any:
        return self._cursor.fetchone()


class NoConnection:
    """Stands for connections on which tests create databases."""

    @classmethod
    @contextmanager
    def connect(cls, *_args: Any, **_options: Any) -> Iterator["NoConnection"]:
        yield cls()

    def execute(self, statement: str) -> None: ...


def skip_internals(*_args: Any) -> None:
    pytest.skip("tests a function of PostgresStore")


def replace_stores() -> None:
    """Make the modules that langgraph's tests import hold our store."""
    package, base = types.ModuleType("langgraph.store.postgres"), types.ModuleType("langgraph.store.postgres.base")
    package.PostgresStore = ServedStore  # type: ignore[attr-defined]
    base._escape_like_literal = base._namespace_match_pattern = skip_internals  # type: ignore[attr-defined]
    sys.modules |= {package.__name__: package, base.__name__: base}
    memory.InMemoryStore = ServedStore  # type: ignore[assignment,misc]
    psycopg.Connection = NoConnection  # type: ignore[assignment,misc]


replace_stores()


@pytest.fixture
def fake_embeddings() -> CharacterEmbeddings:
    return CharacterEmbeddings(dims=500)
