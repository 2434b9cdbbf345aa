"""The buffer of a session's latest messages: three implementations behind one interface (SESSION_STORE_TYPE).

- `memory`: in this process, and lost with it; for experiments in a single process.
- `redis`: in Redis, lost with it or after SESSION_TTL_HOURS.
- `hybrid` (default): in Redis, and read again from the log if Redis has lost it or lags behind.

With every store, a turn is first a row of the log; a buffer is only a fast way to the latest turns. A turn never
changes its number; its content changes only when staff correct, quarantine or release it. They clear the buffer after
the commit, and the hybrid store then reads the log.

A buffer's texts are not compared with the log's, which would cost a query for each read. So removed text can reappear
when Redis comes back as an older copy of itself (a restored file, a lagging replica), and when the process that stored
the first turns of a buffer (with `memory` and `redis`: any turns) is delayed between its commit and its write to the
buffer for as long as a correction takes. It stays until the buffer is cleared again or the session expires.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from django.db import transaction
from django.db.models import F, Func, IntegerField, Q, QuerySet, Sum, Value, Window
from django.db.models.functions import Coalesce
from redis.exceptions import RedisError

from memory import conf
from memory.models import Conversation, Turn
from memory.tiers.session_buffer import (
    BufferEntry,
    RedisBuffer,
    SessionTurn,
    fitting_entries,
    latest_contiguous,
    limit_entries,
    session_ref,
    session_turn,
    turn_from_entry,
)
from memory_project.measures import HIT, MISS, SESSION_BUFFERS

__all__ = ["SessionStore", "SessionTurn", "session_ref", "session_store", "session_turn"]

logger = logging.getLogger(__name__)

MAX_SESSIONS = 1_000
"""Buffers kept by the store in this process; the least recently used one is dropped first."""

TURN_COLUMNS = ("index", "role", "name", "agent_id", "text", "payload", "event_time", "quarantined", "version")
"""Columns of a row that becomes a turn of a buffer."""


class SessionStore(Protocol):
    """A store of buffers. Turns are numbered without gaps; a buffer always holds consecutive turns up to the latest.

    It holds at most BUFFER_MESSAGES turns and BUFFER_BYTES (the latest turn stays whatever its size), from the
    conversation's `buffer_from` on. Appending turns that the buffer has changes nothing. Stores in Redis raise
    RedisError.
    """

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        """Add turns, in order of index.

        If turns before them are missing, the buffer begins with these until the missing ones arrive.
        """

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        """Return the latest `limit` turns of the buffer, oldest first."""

    def trim(self, conversation: Conversation) -> None:
        """Delete the turns before `buffer_from`."""

    def clear(self, conversation: Conversation) -> None:
        """Delete the buffer."""


@dataclass(slots=True)
class InProcessBuffer:
    """A buffer in this process: its entries, oldest first, and its expiry on the store's clock."""

    entries: list[BufferEntry]
    expires_at: float


class MemoryStore:
    """Buffers in this process. `clock` returns seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buffers: OrderedDict[UUID, InProcessBuffer] = OrderedDict()

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        given = {entry.index: entry for entry in fitting_entries(turns)}
        if not given:
            return
        with self._lock:
            held = {entry.index: entry for entry in self._entries(conversation)}
            if any(held[index].turn_id != given[index].turn_id for index in held.keys() & given.keys()):
                # the numbers belong to another history: start again with what the log has now
                held = {}
            self._store(conversation, [entry for _, entry in sorted((given | held).items())])

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        with self._lock:
            entries = self._entries(conversation)
            if entries:
                self._store(conversation, entries)
        latest = latest_contiguous(entries, first=conversation.buffer_from)
        return [turn_from_entry(entry) for entry in latest[max(0, len(latest) - limit) :]]

    def trim(self, conversation: Conversation) -> None:
        with self._lock:
            self._store(conversation, self._entries(conversation))

    def clear(self, conversation: Conversation) -> None:
        with self._lock:
            self._buffers.pop(conversation.id, None)

    def _entries(self, conversation: Conversation) -> list[BufferEntry]:
        buffer = self._buffers.get(conversation.id)
        return buffer.entries if buffer is not None and buffer.expires_at > self._clock() else []

    def _store(self, conversation: Conversation, entries: Sequence[BufferEntry]) -> None:
        kept = limit_entries(entry for entry in reversed(entries) if entry.index >= conversation.buffer_from)
        expires_at = self._clock() + conf.SESSION_TTL_HOURS * 3_600
        self._buffers[conversation.id] = InProcessBuffer(kept, expires_at)
        self._buffers.move_to_end(conversation.id)
        while len(self._buffers) > MAX_SESSIONS:
            self._buffers.popitem(last=False)


class RedisStore:
    """Buffers in Redis only."""

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        redis_buffer(conversation).append(turns, first=conversation.buffer_from)

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        if limit < 1:
            return []
        return [
            turn_from_entry(entry) for entry in redis_buffer(conversation).latest(limit, first=conversation.buffer_from)
        ]

    def trim(self, conversation: Conversation) -> None:
        redis_buffer(conversation).trim(first=conversation.buffer_from)

    def clear(self, conversation: Conversation) -> None:
        redis_buffer(conversation).clear()


class HybridStore(RedisStore):
    """Buffers in Redis, rebuilt from the log if they do not match the conversation's row.

    `recent` needs a freshly read row. It compares the turns' numbers with the row's counts: a buffer that lags, is
    ahead, has a gap or is too short is read from the log, also if BUFFER_BYTES cut it. An ended conversation has no
    buffer: it is read from the log, and none is created.
    """

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        """Add turns. Raises RedisError; the next reader finds the turns in the log then."""
        if not redis_buffer(conversation).append(turns, first=conversation.buffer_from):
            refill_buffer(conversation)

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        """Return the latest turns, from the log if Redis does not answer."""
        limit = min(limit, conf.BUFFER_MESSAGES)
        if limit < 1:
            return []
        if conversation.ended_at is not None:
            return latest_turns(conversation, limit)
        try:
            found = redis_buffer(conversation).latest(limit, first=conversation.buffer_from)
        except RedisError as err:
            logger.warning("session of conversation %s read from the log: %s", conversation.id, type(err).__name__)
            SESSION_BUFFERS.labels(MISS).inc()
            return latest_turns(conversation, limit)
        wanted = range(max(conversation.buffer_from, conversation.turn_count - limit), conversation.turn_count)
        is_whole = turn_numbers(found) == list(wanted)
        SESSION_BUFFERS.labels(HIT if is_whole else MISS).inc()
        if is_whole:
            return [turn_from_entry(entry) for entry in found]
        turns = latest_turns(conversation, limit)
        # a complete buffer would have exactly those of the latest turns that fit
        if turn_numbers(found) != turn_numbers(fitting_entries(turns)):
            refill_buffer(conversation)
        return turns

    def trim(self, conversation: Conversation) -> None:
        """Delete old turns. A failing Redis is no error, because reads skip turns before `buffer_from` anyway."""
        try:
            super().trim(conversation)
        except RedisError as err:
            logger.warning("session of conversation %s not trimmed: %s", conversation.id, type(err).__name__)


def redis_buffer(conversation: Conversation) -> RedisBuffer:
    return RedisBuffer(session_ref(conversation))


def turn_numbers(entries: Sequence[BufferEntry]) -> list[int]:
    return [entry.index for entry in entries]


def latest_turns(conversation: Conversation, limit: int) -> list[SessionTurn]:
    """Return the latest turns of the log from `buffer_from` on, oldest first."""
    latest = log_rows(conversation, limit).order_by("-index")[:limit]
    return [session_turn(turn) for turn in latest][::-1]


def log_rows(conversation: Conversation, limit: int) -> QuerySet[Turn]:
    # a lower bound as well: with outdated statistics PostgreSQL may sort all of a long log
    first = max(conversation.buffer_from, conversation.turn_count - limit)
    rows = Turn.objects.filter(account_id=conversation.account_id, log=conversation, index__gte=first)
    return rows.only(*TURN_COLUMNS)


def rows_for_buffer(conversation: Conversation) -> Sequence[Turn]:
    """Return the latest rows that fill a buffer, oldest first, without reading longer texts beyond that."""
    bytes_of_text = Func(F("text"), function="octet_length", output_field=IntegerField())
    bytes_of_payload = Func(F("payload"), function="pg_column_size", output_field=IntegerField())
    # must not exceed the size in the buffer: a payload stores \u00fc in six bytes, the buffer the letter in two
    size = bytes_of_text + Coalesce(bytes_of_payload, Value(0)) / Value(3)
    rows = log_rows(conversation, conf.BUFFER_MESSAGES).annotate(
        size_bytes=size, upto_bytes=Window(Sum(size), order_by=F("index").desc())
    )
    fitting = rows.filter(Q(upto_bytes__lte=conf.BUFFER_BYTES) | Q(upto_bytes=F("size_bytes")))
    return list(fitting.order_by("-index")[: conf.BUFFER_MESSAGES])[::-1]


def refill_buffer(conversation: Conversation) -> None:
    """Rebuild the buffer from the log, after the commit if this transaction wrote some of it."""
    rows = rows_for_buffer(conversation)
    transaction.on_commit(lambda: replace_buffer(conversation, rows))


def replace_buffer(conversation: Conversation, rows: Sequence[Turn]) -> None:
    """Replace the buffer, or clear it if the log was corrected meanwhile, so that removed text does not come back."""
    entries = fitting_entries([session_turn(row) for row in rows])
    try:
        redis_buffer(conversation).replace(entries, first=conversation.buffer_from)
        if is_buffer_outdated(conversation, rows):
            redis_buffer(conversation).clear()
    except RedisError as err:
        logger.warning("session of conversation %s not refilled: %s", conversation.id, type(err).__name__)


def is_buffer_outdated(conversation: Conversation, rows: Sequence[Turn]) -> bool:
    """Return True if the log now has other turns or versions than these rows, or the conversation has ended."""
    if not rows:
        return False
    kept = Turn.objects.filter(account_id=conversation.account_id, log=conversation, log__ended_at=None)
    current = kept.filter(index__gte=rows[0].index).values_list("index", "id", "version")
    return not {(row.index, row.id, row.version) for row in rows} <= set(current)


STORES: dict[str, SessionStore] = {"memory": MemoryStore(), "redis": RedisStore(), "hybrid": HybridStore()}


def session_store() -> SessionStore:
    """Return the store that SESSION_STORE_TYPE names."""
    return STORES[conf.SESSION_STORE_TYPE]
