"""Audited reads on their way into the table: a bounded stream in Redis, which a job empties.

push ──▶ stream (AUDIT_READ_LINES at most) ──read──▶ rows ──delete──▶ gone
  └─ no room, or no Redis: the caller writes    └─ refused by the table ──▶ stream of refused lines, the last
     the row itself                                AUDIT_READ_LINES of them
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from redis import RedisError

from memory import conf
from memory_project.redis import SHARED_KEYS, client, read_stream, script

logger = logging.getLogger(__name__)

STREAM = SHARED_KEYS["audit_reads"]
REFUSED = SHARED_KEYS["refused_audit_reads"]
"""Lines that the table refused, for operators who look for the cause."""

# KEYS: stream; ARGV: max lines, account, entry. Returns 1 if there was room
PUSH = """
if redis.call('XLEN', KEYS[1]) >= tonumber(ARGV[1]) then
    return 0
end
redis.call('XADD', KEYS[1], '*', 'account', ARGV[2], 'entry', ARGV[3])
return 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLine:
    """A line of the stream: its id in the stream, and the entry as it was pushed."""

    stream_id: str
    account_id: UUID
    entry: Mapping[str, Any]


def push_audit_read(account_id: UUID, entry: str) -> bool:
    """Push an entry (JSON) and return True if it was accepted. Raises nothing. One round trip.

    If Redis does not confirm a line, it may be in the stream nevertheless.
    """
    try:
        return bool(script(PUSH)(keys=[STREAM], args=[conf.AUDIT_READ_LINES, str(account_id), entry]))
    except RedisError as err:
        logger.warning("a read is audited without Redis: %s", type(err).__name__)
        return False


def count_waiting_reads() -> int:
    """Return the number of lines that are not yet rows."""
    return int(client().xlen(STREAM))


def read_audit_lines(size: int, *, after: str, account_id: UUID | None) -> tuple[list[ReadLine], str]:
    """Return the account's lines among the next `size`, and the cursor after them ("" at the end of the stream)."""
    found, cursor = read_stream(STREAM, size, after=after, account_id=account_id)
    lines = [
        ReadLine(stream_id=stream_id, account_id=UUID(fields["account"]), entry=json.loads(fields["entry"]))
        for stream_id, fields in found
    ]
    return lines, cursor


def delete_audit_lines(lines: Sequence[ReadLine], *, aside: Sequence[ReadLine] = ()) -> None:
    """Delete lines that are rows now, and move those in `aside` to the stream of refused lines."""
    with client().pipeline() as commands:
        for line in aside:
            fields: dict[Any, Any] = {"account": str(line.account_id), "entry": json.dumps(line.entry)}
            commands.xadd(REFUSED, fields, maxlen=conf.AUDIT_READ_LINES)
        commands.xdel(STREAM, *[line.stream_id for line in lines])
        commands.execute()
