"""Indexes over vectors, built without blocking traffic: HNSW for a model (A9), or IVFFlat as documented alternative.

There is one partial index for each model and width, over the cast that `retrievers.vector` orders by. PostgreSQL builds
no index concurrently on a partitioned table, so an index consists of parts, one on each partition of `memory_vectors`:
its name, `_p` and the partition's number. A build uses a new name, and the old index is dropped once all parts of the
new one are valid, so an index is always available. A cancelled or killed build leaves parts, some of which PostgreSQL
may mark invalid; the next build removes them. Indexes of large accounts (`account_indexes`) are built by the same
steps, on the account's partition.
"""

import hashlib
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol
from uuid import UUID, uuid4

from django.db import DatabaseError, connection
from psycopg import sql

from memory.errors import Conflict, Unprocessable
from memory.retrieval.retrievers.vector import index_expression, indexed_width
from memory_project.postgresql.locks import try_advisory_lock
from memory_project.postgresql.roles import owner_connection

BUILD_LOCK_ID = 0x766563746F72  # "vector": builds on one table wait for each other anyway, so one lock is enough
POLL_SECONDS = 0.2
ROWS_PER_LIST = 50
# cancels only the build itself
CANCEL_BUILD = """
SELECT pg_cancel_backend(pid) FROM pg_stat_activity
WHERE pid = %s AND state = 'active' AND starts_with(query, 'CREATE INDEX')"""
MIN_BUILD_MEMORY_KB, MAX_BUILD_MEMORY_KB = 65_536, 1_048_576

FIND_PARTITIONS = r"""
SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid CROSS JOIN LATERAL
    CAST(regexp_match(pg_get_expr(relpartbound, inhrelid), 'modulus (\d+), remainder (\d+)') AS int[]) AS hash
WHERE inhparent = 'memory_vectors'::regclass
    AND (%s::uuid IS NULL OR satisfies_hash_partition(inhparent, hash[1], hash[2], %s::uuid))
ORDER BY 1"""

FIND_PARTS = """
SELECT relname, split_part(relname, '_p', 1) AS name, indisvalid
FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
JOIN pg_inherits ON inhrelid = indrelid AND inhparent = 'memory_vectors'::regclass"""


class IndexMethod(Protocol):
    """A way to index vectors."""

    name: ClassVar[str]

    def options(self) -> str:
        """Return the storage parameters for WITH (…)."""

    def check_rows(self, rows: int) -> None:
        """Raise Unprocessable, with the reason, if an index over that many rows would be useless."""

    def row_bytes(self, width: int) -> int:
        """Return an upper bound of the memory that a row takes during the build."""

    def scaled(self, share: float) -> "IndexMethod":
        """Return the method for a partition with this share of the rows, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hnsw:
    """A graph of neighbours (Malkov & Yashunin 2016). It grows with the rows, so it may be built on an empty table.

    With pgvector's own `ef_construction`, 64, few links lead into groups of texts that differ from all others, and
    searches miss them (`docs/decisions/exact-search.md`).
    """

    name: ClassVar[str] = "hnsw"
    m: int = 16
    ef_construction: int = 200

    def __post_init__(self) -> None:
        if not 2 <= self.m <= 100:
            raise Unprocessable(f"m must be between 2 and 100, not {self.m}")
        if not max(4, 2 * self.m) <= self.ef_construction <= 1000:
            raise Unprocessable(f"ef_construction must be between twice m and 1000, not {self.ef_construction}")

    def options(self) -> str:
        return f"m = {self.m}, ef_construction = {self.ef_construction}"

    def check_rows(self, rows: int) -> None:
        """Accept any number of rows."""

    def row_bytes(self, width: int) -> int:
        """Count the vector, its neighbours (twice m at the bottom, a few above), and bookkeeping for both."""
        return 2 * width + 36 * self.m + 512

    def scaled(self, share: float) -> "Hnsw":
        """Return the method itself: a graph does not depend on the number of rows."""
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class IvfFlat:
    """Lists around centroids that are computed once, during the build: later rows do not move them."""

    name: ClassVar[str] = "ivfflat"
    lists: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.lists <= 32_768:
            raise Unprocessable(f"lists must be between 1 and 32768, not {self.lists}")

    def options(self) -> str:
        return f"lists = {self.lists}"

    def check_rows(self, rows: int) -> None:
        """Require 50 rows for each centroid, as k-means samples.

        With fewer rows centroids are random, and searches miss neighbours.
        """
        if rows < self.lists * ROWS_PER_LIST:
            raise Unprocessable(
                f"{self.lists} lists need at least {self.lists * ROWS_PER_LIST:,} vectors to find their centroids in, "
                f"and there are {rows:,}: use fewer lists, or hnsw, which needs none"
            )

    def row_bytes(self, width: int) -> int:
        return 2 * width + 512

    def scaled(self, share: float) -> "IvfFlat":
        """Return the method with this share of the lists, at least one."""
        return IvfFlat(lists=max(round(self.lists * share), 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedVectors:
    """Vectors of one model and width, to be indexed."""

    model: str
    width: int

    @property
    def name_prefix(self) -> str:
        digest = hashlib.sha256(f"{self.width}:{self.model}".encode()).hexdigest()[:12]
        return f"vectors_nearest_{digest}_"

    @property
    def is_nested(self) -> bool:
        """True if the index has only the first dimensions of each vector, those of a nested model."""
        return False

    @property
    def expression(self) -> str:
        """The expression that searches order by."""
        return index_expression(self.width, is_nested=self.is_nested)

    def condition(self) -> sql.Composed:
        """Return the condition on the rows in the index."""
        return sql.SQL("model = {} AND width = {}").format(sql.Literal(self.model), sql.Literal(self.width))

    def name_for(self, method: IndexMethod) -> str:
        return f"{self.name_prefix}{method.name}_{uuid4().hex[:6]}"

    def partitions(self) -> list[str]:
        """Return the names of the partitions in which the vectors are."""
        return find_partitions()

    def part_name(self, name: str, partition: str) -> str:
        """Return the name of the part of the index `name` on a partition."""
        return f"{name}{partition.removeprefix('memory_vectors')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """The progress of a build: PostgreSQL's name of the phase, and the finished share of it, 0 to 1."""

    phase: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltIndex:
    """A finished build, and the names of the indexes that it replaced or removed."""

    name: str
    rows: int
    size_bytes: int
    seconds: float
    dropped: Sequence[str]


@dataclass(slots=True, kw_only=True)
class RunningBuild:
    """A build in another thread: the server's process, when it is known, and the share of finished partitions."""

    pid: "Future[int]" = field(default_factory=Future)
    partitions: int = 1
    finished: int = 0


def find_partitions(account_id: UUID | None = None) -> list[str]:
    """Return the names of the partitions of `memory_vectors`, or of the one that holds the account's rows."""
    return [row[0] for row in run_query(FIND_PARTITIONS, account_id, account_id)]


def find_widths(model: str) -> list[int]:
    """Return the widths of a model's vectors, over all accounts."""
    return [row[0] for row in run_query("SELECT DISTINCT width FROM memory_vectors WHERE model = %s ORDER BY 1", model)]


def count_vectors(indexed: IndexedVectors) -> dict[str, int]:
    """Return the numbers of vectors by the names of their partitions."""
    statement = sql.SQL("SELECT tableoid::regclass::text, count(*) FROM memory_vectors WHERE {} GROUP BY 1")
    return dict(run_query(statement.format(indexed.condition())))


def find_index_names(indexed: IndexedVectors, *, valid: bool) -> list[str]:
    """Return the names of our indexes over `indexed`: those with a valid part on each partition, or remains."""
    statement = f"""
        SELECT name FROM ({FIND_PARTS}) AS part WHERE starts_with(name, %s) GROUP BY name
        HAVING (count(*) FILTER (WHERE indisvalid) = %s) = %s ORDER BY 1"""  # noqa: S608
    return [row[0] for row in run_query(statement, indexed.name_prefix, len(indexed.partitions()), valid)]


def build_index(indexed: IndexedVectors, method: IndexMethod) -> Generator[IndexProgress, None, BuiltIndex]:
    """Build without blocking traffic, then drop the old indexes; yields progress several times a second.

    Closing the generator, or an interruption, cancels the build. Raises Conflict if another build is running,
    Unprocessable if the method refuses that many rows.
    """
    running = RunningBuild()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="vector-index") as executor:
        build = executor.submit(build_in_thread, indexed, method, running)
        try:
            while not wait([build], timeout=POLL_SECONDS).done:
                yield from read_progress(running)
        finally:
            while not build.done():
                cancel_build(running.pid.result())
                wait([build], timeout=POLL_SECONDS)
    return build.result()


@owner_connection()
def cancel_build(pid: int) -> None:
    """Cancel the statement of a build, and nothing else, in the server's process with this id."""
    run_query(CANCEL_BUILD, pid)


@owner_connection()
def build_in_thread(indexed: IndexedVectors, method: IndexMethod, running: RunningBuild) -> BuiltIndex:
    """Build on a connection of its own, publishing its process id as soon as it is known."""
    try:
        publish_process_id(running.pid)
        with build_lock():
            return replace_index(indexed, method, running)
    finally:
        connection.close()


def publish_process_id(pid: "Future[int]") -> None:
    """Set the process id, or the error, because another thread waits for it."""
    try:
        pid.set_result(run_query("SELECT pg_backend_pid()")[0][0])
    except DatabaseError as err:
        pid.set_exception(err)
        raise


def replace_index(indexed: IndexedVectors, method: IndexMethod, running: RunningBuild) -> BuiltIndex:
    started = time.monotonic()
    rows = count_vectors(indexed)
    method.check_rows(sum(rows.values()))
    former, name = find_index_names(indexed, valid=True), indexed.name_for(method)
    if name in former:
        raise Conflict(f"The index {name} has been built by somebody else in the meantime.")
    dropped = drop_indexes(find_index_names(indexed, valid=False))
    row_bytes = method.row_bytes(indexed_width(indexed.width, is_nested=indexed.is_nested))
    with build_settings(max(rows.values(), default=0) * row_bytes):
        try:
            build_parts(name, indexed, method, rows, running)
        except DatabaseError:
            drop_indexes([name])
            raise
    dropped += drop_indexes(former)
    return BuiltIndex(
        name=name,
        rows=sum(rows.values()),
        size_bytes=sum(run_query("SELECT pg_relation_size(%s::regclass)", part)[0][0] for part in find_parts([name])),
        seconds=time.monotonic() - started,
        dropped=dropped,
    )


def build_parts(
    name: str, indexed: IndexedVectors, method: IndexMethod, rows: Mapping[str, int], running: RunningBuild
) -> None:
    """Build the part on each partition, given the numbers of their rows. The empty ones get rows later."""
    partitions = indexed.partitions()
    running.partitions = len(partitions)
    for partition in partitions:
        share = rows.get(partition, 0) / max(sum(rows.values()), 1)
        execute_outside_transaction(create_statement(name, partition, indexed, method.scaled(share)))
        running.finished += 1


@owner_connection()
def drop_all_indexes(indexed: IndexedVectors) -> list[str]:
    """Drop our indexes over `indexed`, valid or not, without blocking traffic, and return their names.

    Searches are exact afterwards. Raises Conflict while a build is running.
    """
    with build_lock():
        return drop_indexes([*find_index_names(indexed, valid=True), *find_index_names(indexed, valid=False)])


@owner_connection()
def drop_indexes(names: Sequence[str]) -> list[str]:
    for part in find_parts(names):
        execute_outside_transaction(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(part)))
    return list(names)


def find_parts(names: Sequence[str]) -> list[str]:
    """Return the names of the parts of these indexes."""
    statement = f"SELECT relname FROM ({FIND_PARTS}) AS part WHERE name = ANY (%s) ORDER BY 1"  # noqa: S608
    return [row[0] for row in run_query(statement, list(names))]


def create_statement(name: str, partition: str, indexed: IndexedVectors, method: IndexMethod) -> sql.Composed:
    """Return the CREATE INDEX statement of a part of the index `name`.

    It is over the very expression of `retrievers.vector`: the planner compares them.
    """
    return sql.SQL(
        "CREATE INDEX CONCURRENTLY {name} ON {partition} USING {method} "
        "({expression} halfvec_cosine_ops) WITH ({options}) WHERE {condition}"
    ).format(
        name=sql.Identifier(indexed.part_name(name, partition)),
        partition=sql.Identifier(partition),
        method=sql.Identifier(method.name),
        expression=sql.SQL(indexed.expression),  # contains no user input
        options=sql.SQL(method.options()),
        condition=indexed.condition(),
    )


@contextmanager
def build_lock() -> Iterator[None]:
    """Keep other builds out until the end of the block. Raises Conflict while there is one."""
    with try_advisory_lock(BUILD_LOCK_ID) as is_free:
        if not is_free:
            raise Conflict("A vector index is being built or dropped already: wait for it to end.")
        yield


@contextmanager
def build_settings(needed_bytes: int) -> Iterator[None]:
    """Allow memory for the whole graph, within bounds: HNSW takes several times as long without.

    A build whose client was killed is cancelled within seconds instead of being finished in vain.
    """
    memory_kb = min(max(needed_bytes // 1024, MIN_BUILD_MEMORY_KB), MAX_BUILD_MEMORY_KB)
    wanted = {"maintenance_work_mem": f"{memory_kb}kB", "client_connection_check_interval": "2s"}
    for name, value in wanted.items():
        run_query("SELECT set_config(%s, %s, false)", name, value)
    try:
        yield
    finally:
        for name in wanted:
            execute_outside_transaction(sql.SQL("RESET {}").format(sql.Identifier(name)))


def read_progress(running: RunningBuild) -> Iterator[IndexProgress]:
    """Yield the progress, or nothing before the build has begun. HNSW counts blocks, IVFFlat tuples."""
    if not running.pid.done():
        return
    statement = """
        SELECT phase, coalesce(greatest(
            blocks_done::float8 / nullif(blocks_total, 0), tuples_done::float8 / nullif(tuples_total, 0)), 0)
        FROM pg_stat_progress_create_index WHERE pid = %s"""
    for phase, share in run_query(statement, running.pid.result()):
        yield IndexProgress(phase=phase, share=min((running.finished + share) / running.partitions, 1.0))


def run_query(statement: str | sql.Composable, *parameters: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        text = statement if isinstance(statement, str) else statement.as_string(cursor.connection)
        cursor.execute(text, parameters or None)
        return list(cursor.fetchall())


def execute_outside_transaction(statement: sql.Composable) -> None:
    """Run a statement that PostgreSQL refuses inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(statement.as_string(cursor.connection))
