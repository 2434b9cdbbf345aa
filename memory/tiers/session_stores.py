"""The buffer of a session's latest messages, in three makes behind one interface (SESSION_STORE_TYPE).

- `memory`: in this process, gone with it: for experiments in a single process;
- `redis`: in Redis, gone with it or after SESSION_TTL_HOURS;
- `hybrid`: in Redis, and read again from the log where Redis has lost it or lags behind: the default.

Whatever the store, every turn is a row of the log first; a buffer is only the quick way to the latest ones. A turn
never changes its number; what it says changes only where staff corrects, quarantines or releases it. Whoever does so
clears the buffer after the commit, and the hybrid store then reads the log.

A buffer's texts are not compared with the log's: that would be a query more on each read. So it says again what was
taken out where Redis comes back as an older copy of itself (a restored file, a replica that lagged), and where the
process that stored the turns with which a buffer begins (with `memory` and `redis`, any turns) is held up between its
commit and its word to the buffer for as long as a correction takes: until it is cleared again, or the session expires.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast
from uuid import UUID

from django.db import transaction
from django.db.models import F, Func, IntegerField, Q, QuerySet, Sum, Value, Window
from django.db.models.functions import Coalesce
from redis.exceptions import RedisError

from memory import conf
from memory.models import Conversation, Turn
from memory.tiers.session_buffer import RedisBuffer
from memory.tiers.session_turns import (
    Entry,
    SessionTurn,
    bounded,
    fitting_entries,
    latest_stretch,
    place_of,
    session_turn,
    turn_of,
)
from memory_project.measures import HIT, MISS, SESSION_BUFFERS

__all__ = ["SessionStore", "SessionTurn", "place_of", "session_store", "session_turn"]

logger = logging.getLogger(__name__)

MOST_SESSIONS = 1_000
"""Buffers that the store in this process keeps; the one that was not used for longest goes first."""

READ = ("index", "role", "name", "agent_id", "text", "payload", "event_time", "quarantined", "version")
"""Columns of a row that becomes a turn of a buffer."""


class SessionStore(Protocol):
    """Where buffers live. Turns are numbered without gaps; a buffer is always a stretch of them up to the latest.

    At most BUFFER_MESSAGES turns and BUFFER_BYTES (the latest stays whatever its size), from the conversation's
    `buffer_from` on. Appending what the buffer has already changes nothing. Stores in Redis raise RedisError.
    """

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        """Add turns, in order of index. Where turns before them are missing, the buffer begins with these until the
        missing ones arrive."""

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        """The latest `limit` turns of the buffer, oldest first."""

    def trim(self, conversation: Conversation) -> None:
        """Forget the turns before `buffer_from`."""

    def clear(self, conversation: Conversation) -> None:
        """Forget the buffer."""


@dataclass(slots=True)
class HeldBuffer:
    """A buffer in this process: its entries, oldest first, and when it expires on the store's clock."""

    entries: list[Entry]
    expires_at: float


class MemoryStore:
    """Buffers in this process. `clock` tells seconds."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._buffers: OrderedDict[UUID, HeldBuffer] = OrderedDict()

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        given = {entry.index: entry for entry in fitting_entries(turns)}
        if not given:
            return
        with self._lock:
            held = {entry.index: entry for entry in self._entries(conversation)}
            if any(held[index].turn_id != given[index].turn_id for index in held.keys() & given.keys()):
                # another history under the same numbers: what the log has now counts
                held = {}
            self._hold(conversation, [entry for _, entry in sorted((given | held).items())])

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        with self._lock:
            entries = self._entries(conversation)
            if entries:
                self._hold(conversation, entries)
        stretch = latest_stretch(entries, first=conversation.buffer_from)
        return [turn_of(entry) for entry in stretch[max(0, len(stretch) - limit) :]]

    def trim(self, conversation: Conversation) -> None:
        with self._lock:
            self._hold(conversation, self._entries(conversation))

    def clear(self, conversation: Conversation) -> None:
        with self._lock:
            self._buffers.pop(conversation.id, None)

    def _entries(self, conversation: Conversation) -> list[Entry]:
        buffer = self._buffers.get(conversation.id)
        return buffer.entries if buffer is not None and buffer.expires_at > self._clock() else []

    def _hold(self, conversation: Conversation, entries: Sequence[Entry]) -> None:
        kept = bounded(entry for entry in reversed(entries) if entry.index >= conversation.buffer_from)
        expires_at = self._clock() + conf.SESSION_TTL_HOURS * 3_600
        self._buffers[conversation.id] = HeldBuffer(kept, expires_at)
        self._buffers.move_to_end(conversation.id)
        while len(self._buffers) > MOST_SESSIONS:
            self._buffers.popitem(last=False)


class RedisStore:
    """Buffers in Redis and nowhere else."""

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        buffer_of(conversation).append(turns, first=conversation.buffer_from)

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        if limit < 1:
            return []
        return [turn_of(entry) for entry in buffer_of(conversation).latest(limit, first=conversation.buffer_from)]

    def trim(self, conversation: Conversation) -> None:
        buffer_of(conversation).trim(first=conversation.buffer_from)

    def clear(self, conversation: Conversation) -> None:
        buffer_of(conversation).clear()


class HybridStore:
    """Buffers in Redis, made again from the log where they are not what the conversation's row says.

    `recent` wants a row that was read a moment ago. It compares the turns' numbers with the row's counts: a buffer
    that lags, is ahead, has a hole or is too short is read from the log, also where BUFFER_BYTES cut it. An ended
    conversation has no buffer: it is read from the log, and none is made.
    """

    def append(self, conversation: Conversation, turns: Sequence[SessionTurn]) -> None:
        """Raises RedisError; the turns are missed by the next reader then."""
        if not buffer_of(conversation).append(turns, first=conversation.buffer_from):
            refill(conversation)

    def recent(self, conversation: Conversation, limit: int) -> list[SessionTurn]:
        """From the log alone where Redis does not answer."""
        limit = min(limit, conf.BUFFER_MESSAGES)
        if limit < 1:
            return []
        if conversation.ended_at is not None:
            return latest_turns(conversation, limit)
        try:
            found = buffer_of(conversation).latest(limit, first=conversation.buffer_from)
        except RedisError as err:
            logger.warning("session of conversation %s read from the log: %s", conversation.id, type(err).__name__)
            SESSION_BUFFERS.labels(MISS).inc()
            return latest_turns(conversation, limit)
        wanted = range(max(conversation.buffer_from, conversation.turn_count - limit), conversation.turn_count)
        is_whole = numbers_of(found) == list(wanted)
        SESSION_BUFFERS.labels(HIT if is_whole else MISS).inc()
        if is_whole:
            return [turn_of(entry) for entry in found]
        turns = latest_turns(conversation, limit)
        # what fits of the latest turns is what a whole buffer would have of them
        if numbers_of(found) != numbers_of(fitting_entries(turns)):
            refill(conversation)
        return turns

    def trim(self, conversation: Conversation) -> None:
        """Only tidies up: reads leave out what is before `buffer_from` anyway, so that a dead Redis is no error."""
        try:
            buffer_of(conversation).trim(first=conversation.buffer_from)
        except RedisError as err:
            logger.warning("session of conversation %s not trimmed: %s", conversation.id, type(err).__name__)

    def clear(self, conversation: Conversation) -> None:
        buffer_of(conversation).clear()


def buffer_of(conversation: Conversation) -> RedisBuffer:
    return RedisBuffer(place_of(conversation))


def numbers_of(entries: Sequence[Entry]) -> list[int]:
    return [entry.index for entry in entries]


def latest_turns(conversation: Conversation, limit: int) -> list[SessionTurn]:
    """The latest turns of the log from `buffer_from` on, oldest first."""
    latest = rows_of(conversation, limit).order_by("-index")[:limit]
    return [session_turn(turn) for turn in latest][::-1]


def rows_of(conversation: Conversation, limit: int) -> QuerySet[Turn]:
    # bounded below as well: with old statistics PostgreSQL may sort all of a long log
    first = max(conversation.buffer_from, conversation.turn_count - limit)
    rows: Any = Turn.objects.filter(account_id=conversation.account_id, log=conversation, index__gte=first)
    return cast("QuerySet[Turn]", rows.only(*READ))


def rows_for_buffer(conversation: Conversation) -> Sequence[Turn]:
    """The latest rows until they fill a buffer, oldest first; longer texts beyond that are not read."""
    bytes_of_text = Func(F("text"), function="octet_length", output_field=IntegerField())
    bytes_of_payload = Func(F("payload"), function="pg_column_size", output_field=IntegerField())
    # never more than in the buffer: where the row has \u00fc, six bytes, that has a letter of two
    size = bytes_of_text + Coalesce(bytes_of_payload, Value(0)) / Value(3)
    rows = rows_of(conversation, conf.BUFFER_MESSAGES).annotate(
        size_bytes=size, upto_bytes=Window(Sum(size), order_by=F("index").desc())
    )
    fitting = rows.filter(Q(upto_bytes__lte=conf.BUFFER_BYTES) | Q(upto_bytes=F("size_bytes")))
    return list(fitting.order_by("-index")[: conf.BUFFER_MESSAGES])[::-1]


def refill(conversation: Conversation) -> None:
    """Make the buffer what the log says now: after the commit, if this transaction wrote some of it."""
    rows = rows_for_buffer(conversation)
    transaction.on_commit(lambda: replace_buffer(conversation, rows))


def replace_buffer(conversation: Conversation, rows: Sequence[Turn]) -> None:
    """Where the log was corrected while it was read, clear the buffer: it must not bring back what was taken out."""
    entries = fitting_entries([session_turn(row) for row in rows])
    try:
        buffer_of(conversation).replace(entries, first=conversation.buffer_from)
        if is_out_of_date(conversation, rows):
            buffer_of(conversation).clear()
    except RedisError as err:
        logger.warning("session of conversation %s not refilled: %s", conversation.id, type(err).__name__)


def is_out_of_date(conversation: Conversation, rows: Sequence[Turn]) -> bool:
    """Whether the log now has other turns, or none, or other versions of them, or the conversation has ended."""
    if not rows:
        return False
    kept: Any = Turn.objects.filter(account_id=conversation.account_id, log=conversation, log__ended_at=None)
    current = kept.filter(index__gte=rows[0].index).values_list("index", "id", "version")
    return not {(row.index, row.id, row.version) for row in rows} <= set(current)


STORES: dict[str, SessionStore] = {"memory": MemoryStore(), "redis": RedisStore(), "hybrid": HybridStore()}


def session_store() -> SessionStore:
    """The one that SESSION_STORE_TYPE names."""
    return STORES[conf.SESSION_STORE_TYPE]
