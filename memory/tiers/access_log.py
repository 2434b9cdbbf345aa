"""Access log lines on their way from a read into the table: a bounded stream in Redis, and counts of lost lines.

    push ──one script──▶ stream (ACCESS_LOG_LINES at most) ──report_losses, read──▶ rows ──delete──▶ gone
              └─no room─▶ counts by account and context ──report_losses──▶ stream, as lines of action `lost`

A line that Redis did not accept is counted in this process, and the count is sent with the next successful push. If
Redis does not confirm a line, it may be both in the stream and counted as lost, never neither. Two losses are not
counted: lines in a Redis that lost its data, and counts in a process that died before it could send them (LOST_LINES
has them as long as the server runs).
"""

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import cast
from uuid import UUID, uuid5

import prometheus_client
from redis import RedisError

from memory import conf
from memory.owner import Owner
from memory_project.ids import uuid7
from memory_project.redis import SHARED_KEYS, client, read_stream, script

logger = logging.getLogger(__name__)

STREAM = SHARED_KEYS["access_log"]
LOST = SHARED_KEYS["access_lost"]
LOST_ACTION = "lost"

LOST_LINES = prometheus_client.Counter(
    "memory_access_log_lost_lines", "Access log lines lost because the stream was full or Redis failed.", registry=None
)

# KEYS: stream, lost; ARGV: max lines, account, agent, actor, action, time, number of counts, then `account:context` and
# count of each, then id, context and entry of each line. Returns the number of lines for which there was no room
PUSH = """
local room = tonumber(ARGV[1]) - redis.call('XLEN', KEYS[1])
local lines_at, lost = 8 + 2 * tonumber(ARGV[7]), 0
for i = 8, lines_at - 1, 2 do
    redis.call('HINCRBY', KEYS[2], ARGV[i], ARGV[i + 1])
end
for i = lines_at, #ARGV, 3 do
    if room > 0 then
        redis.call('XADD', KEYS[1], '*', 'id', ARGV[i], 'account', ARGV[2], 'context', ARGV[i + 1],
            'entry', ARGV[i + 2], 'agent', ARGV[3], 'actor', ARGV[4], 'action', ARGV[5], 'at', ARGV[6])
        room = room - 1
    else
        redis.call('HINCRBY', KEYS[2], ARGV[2] .. ':' .. ARGV[i + 1], 1)
        lost = lost + 1
    end
end
return lost
"""

# KEYS: stream, lost; ARGV: a new id, the time. Turns the counts into lines; there are at most as many as contexts
REPORT_LOSSES = """
local flat = redis.call('HGETALL', KEYS[2])
for i = 1, #flat, 2 do
    local account, context = string.match(flat[i], '^(.-):(.+)$')
    redis.call('XADD', KEYS[1], '*', 'id', ARGV[1], 'account', account, 'context', context,
        'entry', '', 'agent', '', 'actor', '', 'action', 'lost', 'at', ARGV[2], 'count', flat[i + 1])
end
redis.call('DEL', KEYS[2])
return #flat / 2
"""

EntryReference = tuple[UUID, UUID]
"""The ids of a context and of an entry in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessLine:
    """A line of the stream, with its id in the stream. A line of action `lost` has a count and no entry."""

    stream_id: str
    id: UUID
    account_id: UUID
    context_id: UUID
    entry_id: UUID | None
    agent_id: str
    actor: str
    action: str
    count: int
    accessed_at: datetime


class UnreportedLosses:
    """Counts of lines that this process lost, by `account:context`, until a push sends them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()

    def pop_all(self) -> Counter[str]:
        """Remove and return all counts; the caller sends them or adds them again."""
        if not self._counts:
            return Counter()
        with self._lock:
            taken, self._counts = self._counts, Counter()
        return taken

    def add(self, counts: Counter[str]) -> None:
        with self._lock:
            self._counts.update(counts)


UNREPORTED = UnreportedLosses()


def push_access_lines(owner: Owner, touched: Sequence[EntryReference], *, action: str, now: datetime) -> None:
    """Push a line for each entry, in one round trip. Raises nothing: lines that Redis does not accept count as lost."""
    losses = UNREPORTED.pop_all()
    shared = (owner.account_id, owner.agent_id, owner.actor, action, now.isoformat())
    counts = [part for pair in losses.items() for part in pair]
    lines = [str(part) for context_id, entry_id in touched for part in (uuid7(), context_id, entry_id)]
    args = [conf.ACCESS_LOG_LINES, *map(str, shared), len(losses), *counts, *lines]
    try:
        lost = int(script(PUSH)(keys=[STREAM, LOST], args=args))
    except RedisError as err:
        UNREPORTED.add(losses + Counter(f"{owner.account_id}:{context_id}" for context_id, _ in touched))
        logger.warning("%d lines of the access log are lost: %s", len(touched), type(err).__name__)
        lost = len(touched)
    if lost:
        LOST_LINES.inc(lost)


def count_waiting_access_lines() -> int:
    """Return the number of lines that are not yet rows."""
    return int(client().xlen(STREAM))


def count_loss_lines(account_id: UUID | None = None) -> int:
    """Return the number of lines that `report_losses` would add."""
    fields = cast("list[str]", client().hkeys(LOST))
    return sum(1 for field in fields if account_id is None or field.startswith(f"{account_id}:"))


def report_losses(now: datetime) -> int:
    """Turn the counts of lost lines into lines of action `lost`, atomically, and return their number."""
    return int(script(REPORT_LOSSES)(keys=[STREAM, LOST], args=[str(uuid7()), now.isoformat()]))


def read_access_lines(size: int, *, after: str, account_id: UUID | None) -> tuple[list[AccessLine], str]:
    """Return the account's lines among the next `size`, and the cursor after them ("" at the end of the stream)."""
    found, cursor = read_stream(STREAM, size, after=after, account_id=account_id)
    return [parse_access_line(stream_id, fields) for stream_id, fields in found], cursor


def parse_access_line(stream_id: str, fields: dict[str, str]) -> AccessLine:
    line_id, action = UUID(fields["id"]), fields["action"]
    return AccessLine(
        stream_id=stream_id,
        # lines from the same `report_losses` share an id
        id=uuid5(line_id, fields["context"]) if action == LOST_ACTION else line_id,
        account_id=UUID(fields["account"]),
        context_id=UUID(fields["context"]),
        entry_id=UUID(fields["entry"]) if fields["entry"] else None,
        agent_id=fields["agent"],
        actor=fields["actor"],
        action=action,
        count=int(fields.get("count", 1)),
        accessed_at=datetime.fromisoformat(fields["at"]),
    )


def delete_access_lines(lines: Sequence[AccessLine]) -> None:
    """Delete lines that are rows now."""
    client().xdel(STREAM, *[line.stream_id for line in lines])
