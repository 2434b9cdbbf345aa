"""Streaming replicas of the database: which of them may answer, and the thread's connection while one does.

A thread of the process asks each replica every second how far it has replayed the log, and compares that with where
the primary was at which time. So lag is measured by the clock of this process alone, and an idle primary makes no lag.
An export asks them itself, once (`find_replica`).
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import environ
import psycopg
from django.conf import settings
from django.db import connections

from memory_project.postgresql.hangs import watched_connection

logger = logging.getLogger(__name__)

PRIMARY = "default"
POOL_TIMEOUT_SECONDS = 1.0
"""Seconds that a request waits for a connection to a replica before the primary answers it."""
CHECK_SECONDS = 1.0
PATIENCE_SECONDS = 5.0
"""A replica that was not checked for so long is left out: it, or the primary, does not answer."""
CONNECT_SECONDS = 2
MAX_SAMPLES = 4_000
MAX_WAIT_SECONDS = 5.0
"""Seconds that an export waits for a replica to have all that was written before."""
POLL_SECONDS = 0.1

FIND_WRITTEN = "SELECT pg_current_wal_insert_lsn()"
FIND_FLUSHED = "SELECT pg_current_wal_flush_lsn()"
FIND_REPLAYED = "SELECT pg_is_in_recovery(), pg_last_wal_replay_lsn()"


def replica_databases(urls: Sequence[str], primary: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the entries of DATABASES of these replicas, `replica_1` and so on, each with a pool of its own."""
    return {
        f"replica_{number}": replica_database(url, f"replica_{number}", primary) for number, url in enumerate(urls, 1)
    }


def replica_database(url: str, alias: str, primary: Mapping[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] = environ.Env.db_url_config(url)
    pool = primary["OPTIONS"]["pool"] | {
        "connection_class": watched_connection(alias),
        "min_size": 0,
        "timeout": POOL_TIMEOUT_SECONDS,
    }
    options = given.get("OPTIONS", {}) | {
        name: value for name, value in primary["OPTIONS"].items() if name in SHARED_OPTIONS
    }
    own = {"ENGINE": primary["ENGINE"], "CONN_HEALTH_CHECKS": True, "OPTIONS": options | {"pool": pool}}
    # a test database has another name, and is made for the primary alone
    return given | own | {"TEST": {"MIRROR": PRIMARY}}


SHARED_OPTIONS = (
    "connect_timeout",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_count",
    "tcp_user_timeout",
    "options",
)
"""Options of the primary's connections that those of replicas have, too."""


def parse_position(text: str) -> int:
    """Return a position in the log (`16/B374D848`) as a number."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) + int(low, 16)


@dataclass(slots=True, kw_only=True)
class Replica:
    """A replica, as far as this process knows it."""

    alias: str
    replayed: int = 0
    """Position in the log up to which it has replayed."""
    as_of: float | None = None
    """Moment, on this process's clock, up to which it is known to have everything."""
    checked_at: float = 0.0
    problem: str = "not checked yet"
    ended: threading.Event = field(default_factory=threading.Event)
    """Ends the checks."""
    _samples: "deque[tuple[float, int]]" = field(default_factory=lambda: deque(maxlen=MAX_SAMPLES))

    def is_usable(self) -> bool:
        """Return whether it answers, and is not further behind than it may be."""
        now = time.monotonic()
        if self.problem or self.as_of is None or now > self.checked_at + PATIENCE_SECONDS:
            return False
        return now <= self.as_of + settings.REPLICA_MAX_LAG_SECONDS

    def lag_seconds(self) -> float | None:
        """Return how far it was behind when it was last asked; None if that is not known."""
        return None if self.as_of is None else max(0.0, self.checked_at - self.as_of)

    def describe(self) -> str:
        """Return "ok", or why it is left out."""
        if self.is_usable():
            return "ok"
        if self.problem:
            return self.problem
        if time.monotonic() > self.checked_at + PATIENCE_SECONDS:
            return "does not answer"
        return "lags"

    def note_position(self, flushed: int, replayed: int, *, asked_at: float) -> None:
        """Note where the primary was at a moment, and how far the replica had come after it."""
        self._samples.append((asked_at, flushed))
        while self._samples and self._samples[0][1] <= replayed:
            self.as_of = self._samples.popleft()[0]
        self.replayed, self.checked_at = replayed, time.monotonic()
        if self.problem:
            logger.info("%s answers: lists and searches read from it", self.alias)
        self.problem = ""

    def leave_out(self, error: Exception) -> None:
        """Leave it out until a check succeeds."""
        if not self.problem:
            logger.warning("%s is left out: %s", self.alias, type(error).__name__)
        self.problem = f"not reachable ({type(error).__name__})"

    def has_replayed(self, position: int) -> bool:
        """Return whether it has this position; if the last check cannot tell, ask it. Raises `django.db.Error`."""
        if self.replayed < position:
            with connections[self.alias].cursor() as cursor:
                cursor.execute(FIND_REPLAYED)
                self.replayed = read_replayed(cursor.fetchone())
        return self.replayed >= position


def read_replayed(row: Any) -> int:
    """Return the replayed position; 0 for a server that is no replica (any more), whose rows are nobody's copy."""
    is_replica, replayed = row
    return parse_position(replayed) if is_replica and replayed else 0


def open_session(alias: str) -> "psycopg.Connection[Any]":
    """Open a connection outside the pool."""
    parameters: dict[str, Any] = connections[alias].get_connection_params()
    parameters |= {"connect_timeout": CONNECT_SECONDS, "autocommit": True}
    parameters.pop("pool", None)
    return watched_connection(alias).connect(**parameters)


def find_replica() -> str | None:
    """Return a replica that has all that was written before the call, None for the primary. It waits for one a little.

    For work that takes long and is rare: each replica is asked now, and none is watched.
    """
    if not settings.DATABASE_REPLICA_URLS:
        return None
    with connections[PRIMARY].cursor() as cursor:
        cursor.execute(FIND_WRITTEN)
        written = parse_position(cursor.fetchone()[0])
    candidates = [f"replica_{number}" for number in range(1, len(settings.DATABASE_REPLICA_URLS) + 1)]
    deadline = time.monotonic() + MAX_WAIT_SECONDS
    while candidates:
        positions = {alias: ask_position(alias) for alias in candidates}
        if found := [alias for alias in candidates if positions[alias] >= written]:
            return found[0]
        if time.monotonic() >= deadline:
            break
        # those that do not answer are not waited for
        candidates = [alias for alias in candidates if positions[alias]]
        time.sleep(POLL_SECONDS)
    return None


def ask_position(alias: str) -> int:
    """Return how far a replica has replayed; 0 if it does not answer or is no replica."""
    try:
        with open_session(alias) as session:
            return read_replayed(session.execute(FIND_REPLAYED).fetchone())
    except (psycopg.Error, OSError) as err:
        logger.warning("%s is left out: %s", alias, type(err).__name__)
        return 0


class ReplicaMonitor:
    """Checks one replica until it is ended, in a thread, by two connections of its own."""

    def __init__(self, replica: Replica) -> None:
        self.replica = replica
        self._sessions: dict[str, psycopg.Connection[Any]] = {}

    def run(self) -> None:
        while not self.replica.ended.is_set():
            self.check()
            self.replica.ended.wait(CHECK_SECONDS)
        self.close()

    def check(self) -> None:
        try:
            asked_at = time.monotonic()
            flushed = parse_position(self._ask(PRIMARY, FIND_FLUSHED)[0])
            replayed = read_replayed(self._ask(self.replica.alias, FIND_REPLAYED))
            if replayed == 0:
                raise psycopg.OperationalError("it is no replica")
        except (psycopg.Error, OSError) as err:
            self.close()
            self.replica.leave_out(err)
        else:
            self.replica.note_position(flushed, replayed, asked_at=asked_at)

    def _ask(self, alias: str, statement: str) -> Any:
        if alias not in self._sessions:
            self._sessions[alias] = open_session(alias)
        row = self._sessions[alias].execute(statement).fetchone()
        return tuple(row or ())

    def close(self) -> None:
        for session in self._sessions.values():
            session.close()
        self._sessions.clear()


@cache
def replicas() -> tuple[Replica, ...]:
    """Return the configured replicas, which are checked from the first call on. Call it in processes that answer."""
    found = tuple(Replica(alias=f"replica_{number}") for number in range(1, len(settings.DATABASE_REPLICA_URLS) + 1))
    for replica in found:
        run = ReplicaMonitor(replica).run
        threading.Thread(target=run, name=f"check-{replica.alias}", daemon=True).start()
    return found


class _Thread(threading.local):
    """The thread's connection to the primary within `reading_from`, where a replica's may have taken its place."""

    primary: Any = None


THREAD = _Thread()


@contextmanager
def reading_from(alias: str) -> Iterator[None]:
    """Send all statements of this thread to one database until the end of the block. A replica refuses writes."""
    former: Any = connections[PRIMARY]
    outer = THREAD.primary
    THREAD.primary = outer or former
    connections[PRIMARY] = THREAD.primary if alias == PRIMARY else connections[alias]
    try:
        yield
    finally:
        connections[PRIMARY] = former
        THREAD.primary = outer
