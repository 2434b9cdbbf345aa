"""The audit log's way from a read into the table: a bounded stream in Redis, which a job empties.

push ──▶ stream (AUDIT_READ_LINES at most) ──next_lines──▶ rows ──forget──▶ gone
  └─ no room, or no Redis: the caller writes    └─ refused by the table ──▶ stream of the refused, the last
     the row itself                                AUDIT_READ_LINES of them
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from uuid import UUID

from redis import RedisError

from memory import conf
from memory_project.redis import SHARED_KEYS, client, script

logger = logging.getLogger(__name__)

STREAM = SHARED_KEYS["audit_reads"]
REFUSED = SHARED_KEYS["refused_audit_reads"]
"""Nothing reads it but who looks what was wrong with them."""

# stream; most lines, account, entry. Whether there was room
PUSH = """
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then
    return 0
end
redis.call('XADD', KEYS[1], '*', 'account', ARGV[2], 'entry', ARGV[3])
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLine:
    """One line of the stream, under its place there; its entry as it was pushed, in JSON."""

    place: str
    account_id: UUID
    entry: Mapping[str, Any]


def push(account_id: UUID, entry: str) -> bool:
    """Send an entry (JSON); whether it was taken. Raises nothing. One round trip.

    A line of which Redis did not tell whether it took it may be in the stream all the same.
    """
    try:
        return bool(script(PUSH)(keys=[STREAM], args=[conf.AUDIT_READ_LINES, str(account_id), entry]))
    except RedisError as err:
        logger.warning("a read is audited without Redis: %s", type(err).__name__)
        return False


def waiting() -> int:
    """How many lines are not yet rows."""
    return int(client().xlen(STREAM))


def next_lines(size: int, *, after: str, account_id: UUID | None) -> tuple[list[ReadLine], str]:
    """The account's among the next `size` lines, and the cursor behind them, "" when these were the last."""
    start = f"({after}" if after else "-"
    found = cast("list[tuple[str, dict[str, str]]]", client().xrange(STREAM, min=start, count=size))
    lines = [
        ReadLine(place=place, account_id=UUID(fields["account"]), entry=json.loads(fields["entry"]))
        for place, fields in found
    ]
    cursor = found[-1][0] if len(found) == size else ""
    return [line for line in lines if account_id in (None, line.account_id)], cursor


def forget(lines: Sequence[ReadLine], *, aside: Sequence[ReadLine] = ()) -> None:
    """Delete lines that are rows now, or never will be: those are kept `aside`."""
    with client().pipeline() as commands:
        for line in aside:
            fields: dict[Any, Any] = {"account": str(line.account_id), "entry": json.dumps(line.entry)}
            commands.xadd(REFUSED, fields, maxlen=conf.AUDIT_READ_LINES)
        commands.xdel(STREAM, *[line.place for line in lines])
        commands.execute()
