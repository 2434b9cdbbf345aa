"""The live ledger in Redis: a hash a conversation, item key to value, without expiry. Every call is one round trip.

Raises `redis.ConnectionError` or `redis.TimeoutError` when Redis is down, and the database's OperationalError only
where a lost ledger has to be restored first. A mark whose answer got lost on the way may be told `first=False` when
it is sent again: it was stored, and the ledger does not keep who asked.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import redis

from ledger.journal import ledger_keys, restore
from ledger.models import AGENT_ID_LENGTH, CONVERSATION_ID_LENGTH, ITEM_KEY_LENGTH, VALUE_LENGTH
from memory_project.redis import Place, script
from memory_project.redis import scan_conversations as scan_conversations_with

KEY_NAME = "ledger"
DEFAULT_VALUE = "injected"
RESTORE_TRIES = 3

# each script: ledger, epoch, restored, journal; account, conversation, agent, then its own arguments
UNLESS_LOST = """
if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('SISMEMBER', KEYS[3], KEYS[1]) == 0 then
    return false
end
"""

JOURNALLING = (
    UNLESS_LOST
    + """
local function journal(event, item, value)
    redis.call('XADD', KEYS[4], '*', 'account', ARGV[1], 'conversation', ARGV[2], 'agent', ARGV[3],
        'event', event, 'item', item, 'value', value)
end
"""
)

GET_ALL = f"{UNLESS_LOST} return redis.call('HGETALL', KEYS[1])"

CHECK = f"{UNLESS_LOST} return {{redis.call('HGET', KEYS[1], ARGV[4])}}"

MARK = (
    JOURNALLING
    + """
local outcomes = {}
for i = 4, #ARGV, 2 do
    local first = redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
    if first == 1 then
        journal('marked', ARGV[i], ARGV[i + 1])
    end
    outcomes[#outcomes + 1] = first
    outcomes[#outcomes + 1] = redis.call('HGET', KEYS[1], ARGV[i])
end
return outcomes
"""
)

EVICT = (
    JOURNALLING
    + """
local evicted = redis.call('HDEL', KEYS[1], ARGV[4])
if evicted == 1 then
    journal('evicted', ARGV[4], '')
end
return evicted
"""
)

END = (
    JOURNALLING
    + """
local ended = redis.call('DEL', KEYS[1])
if ended == 1 then
    journal('ended', '', '')
end
return ended
"""
)


class LedgersKeepGettingLost(redis.ConnectionError):
    """Redis lost its data again while a ledger was being restored, several times over. As good as down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The value that stays, and whether this call put it there."""

    value: str
    first: bool


def get_all(place: Place) -> dict[str, str]:
    """Everything injected into the conversation, item key to value; empty where it is unknown."""
    flat: list[str] = _run(GET_ALL, place)
    return dict(sorted(zip(flat[::2], flat[1::2], strict=True)))


def check(place: Place, item_key: str) -> str | None:
    """The value that the item was marked with; None while it has not been injected."""
    (value,) = _run(CHECK, place, _text(item_key, ITEM_KEY_LENGTH, "an item key"))
    return None if value is None else str(value)


def mark(place: Place, item_key: str, value: str = DEFAULT_VALUE, *, agent_id: str = "") -> Mark:
    """Record an injection. Atomic, so two agents cannot both be first; the first value stays."""
    return mark_many(place, {item_key: value}, agent_id=agent_id)[item_key]


def mark_many(place: Place, values: Mapping[str, str], *, agent_id: str = "") -> dict[str, Mark]:
    """Record several injections in one step, item key to value."""
    pairs: list[str] = []
    for item_key, value in values.items():
        pairs += (_text(item_key, ITEM_KEY_LENGTH, "an item key"), _text(value, VALUE_LENGTH, "a value"))
    outcomes = _run(MARK, place, *pairs, agent_id=agent_id)
    firsts, stayed = outcomes[::2], outcomes[1::2]
    return {
        item_key: Mark(value=value, first=bool(first))
        for item_key, first, value in zip(values, firsts, stayed, strict=True)
    }


def evict(place: Place, item_key: str, *, agent_id: str = "") -> bool:
    """Take an item out, so that it may be injected again; False where it was not in."""
    return bool(_run(EVICT, place, _text(item_key, ITEM_KEY_LENGTH, "an item key"), agent_id=agent_id))


def end(place: Place, *, agent_id: str = "") -> bool:
    """The conversation has ended, and its ledger with it; False where there was none."""
    return bool(_run(END, place, agent_id=agent_id))


def scan_conversations(account_id: UUID, cursor: int) -> tuple[list[str], int]:
    """One page of conversations that have a ledger; from cursor 0 until it is 0 again. Pages may repeat ids."""
    return scan_conversations_with(KEY_NAME, account_id=account_id, cursor=cursor)


def _run(source: str, place: Place, *args: str, agent_id: str = "") -> Any:
    """Run the script; where this Redis has lost the ledger, restore it first."""
    conversation_id = _text(place.conversation_id, CONVERSATION_ID_LENGTH, "a conversation id")
    agent = agent_id and _text(agent_id, AGENT_ID_LENGTH, "an agent id")
    shared = (str(place.account_id), conversation_id, agent)
    for _ in range(RESTORE_TRIES):
        answer = script(source)(keys=ledger_keys(place), args=[*shared, *args])
        if answer is not None:
            return answer
        restore(place)
    raise LedgersKeepGettingLost("Redis keeps losing its data")


def _text(text: str, length: int, what: str) -> str:
    """`text`, when PostgreSQL will take it into the journal; else ValueError: nothing else may get into the stream."""
    if not 1 <= len(text) <= length or "\x00" in text:
        raise ValueError(f"{what} has 1 to {length} characters and no NUL")
    text.encode("utf-8")
    return text
