"""Indexes over vectors, built beside live traffic: a model's (A9) by HNSW, or IVFFlat as the documented alternative.

One partial index for each model and width, made over the cast that `retrieval.vectors` orders by. A build takes a
name of its own, and what served before is dropped once the new one is valid: there is no moment without an index. A
build that was cancelled or killed leaves an index that PostgreSQL calls invalid; the next build removes it. Those of
large accounts (`services.account_indexes`) are built by the same steps.
"""

import hashlib
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol
from uuid import uuid4

from django.db import DatabaseError, connection
from psycopg import sql

from memory.errors import Conflict, Unprocessable
from memory.retrieval.vectors import expression_of_index

LOCK = 0x766563746F72  # "vector": builds on one table wait for each other anyway, so one lock is enough
POLL_SECONDS = 0.2
ROWS_PER_LIST = 50
# nothing else of it is: a lock that was not given up would stay on a connection that others are given
CANCEL_BUILD = """
SELECT pg_cancel_backend(pid) FROM pg_stat_activity
WHERE pid = %s AND state = 'active' AND starts_with(query, 'CREATE INDEX')"""
MIN_BUILD_MEMORY_KB, MAX_BUILD_MEMORY_KB = 65_536, 1_048_576


class Method(Protocol):
    """A way to index vectors."""

    name: ClassVar[str]

    def options(self) -> str:
        """What stands in WITH (…)."""

    def check_rows(self, rows: int) -> None:
        """Raise Unprocessable, with the reason, when an index over that many rows would find nothing worth having."""

    def row_bytes(self, width: int) -> int:
        """What a row takes in memory while the index is built, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hnsw:
    """A graph of neighbours (Malkov & Yashunin 2016). Grows with the rows, so it may be built over none."""

    name: ClassVar[str] = "hnsw"
    m: int = 16
    ef_construction: int = 64

    def __post_init__(self) -> None:
        if not 2 <= self.m <= 100:
            raise Unprocessable(f"m must be from 2 to 100, not {self.m}")
        if not max(4, 2 * self.m) <= self.ef_construction <= 1000:
            raise Unprocessable(f"ef_construction must be from twice m to 1000, not {self.ef_construction}")

    def options(self) -> str:
        return f"m = {self.m}, ef_construction = {self.ef_construction}"

    def check_rows(self, rows: int) -> None:
        """Any number will do."""

    def row_bytes(self, width: int) -> int:
        """The vector, its neighbours (twice m at the bottom, a few above), and what is known of both."""
        return 2 * width + 36 * self.m + 512


@dataclass(frozen=True, slots=True, kw_only=True)
class IvfFlat:
    """Lists around centroids that are found once, at the build: rows that come later do not move them."""

    name: ClassVar[str] = "ivfflat"
    lists: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.lists <= 32_768:
            raise Unprocessable(f"lists must be from 1 to 32768, not {self.lists}")

    def options(self) -> str:
        return f"lists = {self.lists}"

    def check_rows(self, rows: int) -> None:
        """k-means draws 50 rows for each centroid: with fewer, a centroid is chance, and searches miss what is near."""
        if rows < self.lists * ROWS_PER_LIST:
            raise Unprocessable(
                f"{self.lists} lists need at least {self.lists * ROWS_PER_LIST:,} vectors to find their centroids in, "
                f"and there are {rows:,}: use fewer lists, or hnsw, which needs none"
            )

    def row_bytes(self, width: int) -> int:
        return 2 * width + 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What an index is over: vectors of one model and width."""

    model: str
    width: int

    @property
    def name_prefix(self) -> str:
        digest = hashlib.sha256(f"{self.width}:{self.model}".encode()).hexdigest()[:12]
        return f"vectors_nearest_{digest}_"

    @property
    def expression(self) -> str:
        """What searches order by."""
        return expression_of_index(self.width, is_nested=False)

    @property
    def indexed_width(self) -> int:
        return self.width

    def condition(self) -> sql.Composed:
        """Of the rows that it is over."""
        return sql.SQL("model = {} AND width = {}").format(sql.Literal(self.model), sql.Literal(self.width))

    def name_for(self, method: Method) -> str:
        return f"{self.name_prefix}{method.name}_{uuid4().hex[:6]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """Where a build stands: PostgreSQL's name of the phase, and the share of it that is done, 0 to 1."""

    phase: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIndex:
    """A finished build, and the names of the indexes that it replaced or cleared away."""

    name: str
    rows: int
    size_bytes: int
    seconds: float
    dropped: Sequence[str]


def widths_of(model: str) -> list[int]:
    """The widths that vectors of the model have, over all accounts."""
    return [row[0] for row in run_query("SELECT DISTINCT width FROM memory_vectors WHERE model = %s ORDER BY 1", model)]


def count_vectors(indexed: Indexed) -> int:
    statement = sql.SQL("SELECT count(*) FROM memory_vectors WHERE {}").format(indexed.condition())
    return int(run_query(statement)[0][0])


def names_of_indexes(indexed: Indexed, *, valid: bool) -> list[str]:
    """Ours over `indexed`: those that serve, or those that a killed build left behind."""
    statement = """
        SELECT relname FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
        WHERE indrelid = 'memory_vectors'::regclass AND starts_with(relname, %s) AND indisvalid = %s ORDER BY 1"""
    return [row[0] for row in run_query(statement, indexed.name_prefix, valid)]


def build_index(indexed: Indexed, method: Method) -> Generator[IndexProgress, None, BuiltIndex]:
    """Build beside live traffic, then drop what served before; yields how far it is, several times a second.

    Closing the generator, or an interruption, cancels the build; what is dropped then is dropped first. Raises
    Conflict when another build is on, Unprocessable when the method refuses that many rows.
    """
    pid: Future[int] = Future()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="vector-index") as executor:
        build = executor.submit(build_in_thread, indexed, method, pid)
        try:
            while not wait([build], timeout=POLL_SECONDS).done:
                yield from read_progress(pid)
        finally:
            while not build.done():
                run_query(CANCEL_BUILD, pid.result())
                wait([build], timeout=POLL_SECONDS)
    return build.result()


def build_in_thread(indexed: Indexed, method: Method, pid: "Future[int]") -> BuiltIndex:
    """On a connection of its own, which says its process id as soon as it is known."""
    try:
        tell_process_id(pid)
        with build_lock():
            return replace_index(indexed, method)
    finally:
        connection.close()


def tell_process_id(pid: "Future[int]") -> None:
    """Or why there is none: somebody may wait for it."""
    try:
        pid.set_result(run_query("SELECT pg_backend_pid()")[0][0])
    except DatabaseError as err:
        pid.set_exception(err)
        raise


def replace_index(indexed: Indexed, method: Method) -> BuiltIndex:
    started = time.monotonic()
    rows = count_vectors(indexed)
    method.check_rows(rows)
    former, name = names_of_indexes(indexed, valid=True), indexed.name_for(method)
    if name in former:
        raise Conflict(f"{name} has been built meanwhile.")
    dropped = drop_indexes(names_of_indexes(indexed, valid=False))
    with build_settings(rows * method.row_bytes(indexed.indexed_width)):
        try:
            execute(create_statement(name, indexed, method))
        except DatabaseError:
            drop_indexes([name])
            raise
    dropped += drop_indexes(former)
    size_bytes = run_query("SELECT pg_relation_size(%s::regclass)", name)[0][0]
    seconds = time.monotonic() - started
    return BuiltIndex(name=name, rows=rows, size_bytes=size_bytes, seconds=seconds, dropped=dropped)


def drop_all_indexes(indexed: Indexed) -> list[str]:
    """Drop ours over `indexed`, valid or not, beside live traffic; searches are exact from then on. Returns names.

    Raises Conflict while a build is on.
    """
    with build_lock():
        return drop_indexes([*names_of_indexes(indexed, valid=True), *names_of_indexes(indexed, valid=False)])


def drop_indexes(names: Sequence[str]) -> list[str]:
    for name in names:
        execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))
    return list(names)


def create_statement(name: str, indexed: Indexed, method: Method) -> sql.Composed:
    """Over the very expression that `retrieval.vectors` orders by, or the planner would not know it again."""
    return sql.SQL(
        "CREATE INDEX CONCURRENTLY {name} ON memory_vectors USING {method} "
        "({expression} halfvec_cosine_ops) WITH ({options}) WHERE {condition}"
    ).format(
        name=sql.Identifier(name),
        method=sql.Identifier(method.name),
        expression=sql.SQL(indexed.expression),  # of our own words and numbers
        options=sql.SQL(method.options()),
        condition=indexed.condition(),
    )


@contextmanager
def build_lock() -> Iterator[None]:
    """Held by the session: a client that dies gives it up only when the server has noticed, and stopped building."""
    if not run_query("SELECT pg_try_advisory_lock(%s)", LOCK)[0][0]:
        raise Conflict("A vector index is being built or dropped already: wait for it to end.")
    try:
        yield
    finally:
        run_query("SELECT pg_advisory_unlock(%s)", LOCK)


@contextmanager
def build_settings(needed_bytes: int) -> Iterator[None]:
    """Room for the whole graph, within bounds: built out of memory, HNSW takes several times as long.

    And a build whose client was killed is given up within seconds instead of being finished for nobody.
    """
    memory_kb = min(max(needed_bytes // 1024, MIN_BUILD_MEMORY_KB), MAX_BUILD_MEMORY_KB)
    wanted = {"maintenance_work_mem": f"{memory_kb}kB", "client_connection_check_interval": "2s"}
    for name, value in wanted.items():
        run_query("SELECT set_config(%s, %s, false)", name, value)
    try:
        yield
    finally:
        for name in wanted:
            execute(sql.SQL("RESET {}").format(sql.Identifier(name)))


def read_progress(pid: "Future[int]") -> Iterator[IndexProgress]:
    """One, or none while the build has not begun. HNSW counts blocks, IVFFlat tuples."""
    if not pid.done():
        return
    statement = """
        SELECT phase, coalesce(greatest(
            blocks_done::float8 / nullif(blocks_total, 0), tuples_done::float8 / nullif(tuples_total, 0)), 0)
        FROM pg_stat_progress_create_index WHERE pid = %s"""
    for phase, share in run_query(statement, pid.result()):
        yield IndexProgress(phase=phase, share=min(share, 1.0))


def run_query(statement: str | sql.Composable, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        text = statement if isinstance(statement, str) else statement.as_string(cursor.connection)
        cursor.execute(text, parameters or None)
        return list(cursor.fetchall())


def execute(statement: sql.Composable) -> None:
    """A statement that PostgreSQL refuses inside a transaction: call it outside of `atomic()`."""
    with connection.cursor() as cursor:
        cursor.execute(statement.as_string(cursor.connection))
