"""The access log's way from a read into the table: a bounded stream in Redis, and beside it the counts of what it lost.

    push ──one script──▶ stream (ACCESS_LOG_LINES at most) ──settle, next_lines──▶ rows ──forget──▶ gone
              └─no room─▶ counts by account and context ──settle──▶ stream, as lines of action `lost`

A line that Redis did not take is counted in this process, and its count goes along with the next push that works. When
Redis does not tell whether it took a line, that line may be both there and counted as lost, never neither. What is not
counted is what nobody knows of any more: lines in a Redis that lost its data, and counts in a process that died before
it could tell (LOST_LINES has them as long as its server runs).
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
from memory_project.redis import SHARED_KEYS, client, script

logger = logging.getLogger(__name__)

STREAM = SHARED_KEYS["access_log"]
LOST = SHARED_KEYS["access_lost"]
LOST_ACTION = "lost"

LOST_LINES = prometheus_client.Counter(
    "memory_access_log_lost_lines", "Lines of the access log that found no room, or no Redis.", registry=None
)

# stream, lost; most lines, account, agent, actor, action, time, number of counts, then place and count of each,
# then id, context and entry of each line. Returns how many lines found no room
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

# stream, lost; a new id, the time. The counts are lines of the stream then, bounded by how many contexts there are
SETTLE = """
local flat = redis.call('HGETALL', KEYS[2])
for i = 1, #flat, 2 do
    local account, context = string.match(flat[i], '^(.-):(.+)$')
    redis.call('XADD', KEYS[1], '*', 'id', ARGV[1], 'account', account, 'context', context,
        'entry', '', 'agent', '', 'actor', '', 'action', 'lost', 'at', ARGV[2], 'count', flat[i + 1])
end
redis.call('DEL', KEYS[2])
return #flat / 2
"""

Touched = tuple[UUID, UUID]
"""A context, and an entry of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the stream, under its place there. Of action `lost`, it has a count and no entry."""

    place: str
    id: UUID
    account_id: UUID
    context_id: UUID
    entry_id: UUID | None
    agent_id: str
    actor: str
    action: str
    count: int
    accessed_at: datetime


class UntoldLosses:
    """How many lines this process lost, by `account:context`, until a push has taken them along."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counts: Counter[str] = Counter()

    def take(self) -> Counter[str]:
        """All of them; the caller tells them or puts them back."""
        if not self._counts:
            return Counter()
        with self._lock:
            taken, self._counts = self._counts, Counter()
        return taken

    def put(self, counts: Counter[str]) -> None:
        with self._lock:
            self._counts.update(counts)


UNTOLD = UntoldLosses()


def push(owner: Owner, touched: Sequence[Touched], *, action: str, now: datetime) -> None:
    """Send a line for each entry, in one round trip. Raises nothing: what Redis does not take is counted as lost."""
    untold = UNTOLD.take()
    shared = (owner.account_id, owner.agent_id, owner.actor, action, now.isoformat())
    told = [part for pair in untold.items() for part in pair]
    lines = [str(part) for context_id, entry_id in touched for part in (uuid7(), context_id, entry_id)]
    args = [conf.ACCESS_LOG_LINES, *map(str, shared), len(untold), *told, *lines]
    try:
        lost = int(script(PUSH)(keys=[STREAM, LOST], args=args))
    except RedisError as err:
        UNTOLD.put(untold + Counter(f"{owner.account_id}:{context_id}" for context_id, _ in touched))
        logger.warning("%d lines of the access log are lost: %s", len(touched), type(err).__name__)
        lost = len(touched)
    if lost:
        LOST_LINES.inc(lost)


def waiting() -> int:
    """How many lines are not yet rows."""
    return int(client().xlen(STREAM))


def count_settled(account_id: UUID | None = None) -> int:
    """How many lines `settle` would make."""
    places = cast("list[str]", client().hkeys(LOST))
    return sum(1 for place in places if account_id is None or place.startswith(f"{account_id}:"))


def settle(now: datetime) -> int:
    """Turn the counts of lost lines into lines of action `lost`, at once, so that none is told twice; how many."""
    return int(script(SETTLE)(keys=[STREAM, LOST], args=[str(uuid7()), now.isoformat()]))


def next_lines(size: int, *, after: str, account_id: UUID | None) -> tuple[list[Line], str]:
    """The account's among the next `size` lines, and the cursor behind them, "" when these were the last."""
    start = f"({after}" if after else "-"
    found = cast("list[tuple[str, dict[str, str]]]", client().xrange(STREAM, min=start, count=size))
    lines = [line_of(place, fields) for place, fields in found]
    cursor = found[-1][0] if len(found) == size else ""
    return [line for line in lines if account_id in (None, line.account_id)], cursor


def line_of(place: str, fields: dict[str, str]) -> Line:
    line_id, action = UUID(fields["id"]), fields["action"]
    return Line(
        place=place,
        # those that were settled together share one
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


def forget(lines: Sequence[Line]) -> None:
    """Delete lines that are rows now."""
    client().xdel(STREAM, *[line.place for line in lines])
