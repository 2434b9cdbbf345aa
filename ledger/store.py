"""The live ledger in Redis: one hash per conversation, item key to value, without expiry.

Every call is one round trip. Calls raise `redis.ConnectionError` or `redis.TimeoutError` when Redis is down, and the
database's OperationalError only if a lost ledger must be restored first. A mark or eviction that is sent again because
its answer was lost returns the first answer (`memory_project.redis.ONCE`).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import redis

from ledger.journal import ledger_keys, restore_ledger
from ledger.journal_scripts import DIFFERENCES
from ledger.models import AGENT_ID_LENGTH, CONVERSATION_ID_LENGTH, ITEM_KEY_LENGTH, VALUE_LENGTH
from memory_project.redis import ONCE, ConversationRef, once_arguments, script

KEY_NAME = "ledger"
DEFAULT_VALUE = "injected"
RESTORE_TRIES = 3

# KEYS of each script: ledger, epoch, restored, journal; ARGV: account, conversation, agent, then its own arguments
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

# notes a digit for each item: 1 if this write was the first
MARK = (
    ONCE
    + JOURNALLING
    + """
local outcomes, noted = {}, {}
for i = 4, #ARGV, 2 do
    local first
    if was_done then
        first = tonumber(string.sub(was_done, #noted + 1, #noted + 1))
    else
        first = redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1])
        if first == 1 then
            journal('marked', ARGV[i], ARGV[i + 1])
        end
    end
    noted[#noted + 1] = first
    outcomes[#outcomes + 1] = first
    -- it may have been evicted since
    outcomes[#outcomes + 1] = redis.call('HGET', KEYS[1], ARGV[i]) or ARGV[i + 1]
end
if not was_done then
    note_done(table.concat(noted))
end
return outcomes
"""
)

EVICT = (
    ONCE
    + JOURNALLING
    + """
if was_done then
    return tonumber(was_done)
end
local evicted = redis.call('HDEL', KEYS[1], ARGV[4])
if evicted == 1 then
    journal('evicted', ARGV[4], '')
end
note_done(evicted)
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

# its own arguments: the number of items that rows were added for, these, then items and values by all rows
FOLLOW_JOURNAL = (
    JOURNALLING
    + """
local first, rows = 5 + tonumber(ARGV[4]), {}
for i = first, #ARGV, 2 do
    rows[ARGV[i]] = ARGV[i + 1]
end
for i = 5, first - 1 do
    if rows[ARGV[i]] then
        redis.call('HSETNX', KEYS[1], ARGV[i], rows[ARGV[i]])
    end
end
"""
    + DIFFERENCES
    + "return 1"
)


class LedgerRestoreFailed(redis.ConnectionError):
    """Redis lost its data again, several times, while a ledger was being restored. Treat it as down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """The value in the ledger, and whether this call stored it."""

    value: str
    first: bool


def get_all(conversation: ConversationRef) -> dict[str, str]:
    """Return every injected item of the conversation, item key to value; empty for an unknown conversation."""
    flat: list[str] = _run(GET_ALL, conversation)
    return dict(sorted(zip(flat[::2], flat[1::2], strict=True)))


def check(conversation: ConversationRef, item_key: str) -> str | None:
    """Return the value that the item was marked with, or None if it has not been injected."""
    (value,) = _run(CHECK, conversation, _text(item_key, ITEM_KEY_LENGTH, "an item key"))
    return None if value is None else str(value)


def mark(conversation: ConversationRef, item_key: str, value: str = DEFAULT_VALUE, *, agent_id: str = "") -> Mark:
    """Record an injection; the first value stays. Atomic: two agents cannot both be first."""
    return mark_many(conversation, {item_key: value}, agent_id=agent_id)[item_key]


def mark_many(conversation: ConversationRef, values: Mapping[str, str], *, agent_id: str = "") -> dict[str, Mark]:
    """Record several injections atomically; `values` maps item keys to values."""
    pairs: list[str] = []
    for item_key, value in values.items():
        pairs += (_text(item_key, ITEM_KEY_LENGTH, "an item key"), _text(value, VALUE_LENGTH, "a value"))
    outcomes = _run(MARK, conversation, *pairs, agent_id=agent_id)
    firsts, stayed = outcomes[::2], outcomes[1::2]
    return {
        item_key: Mark(value=value, first=bool(first))
        for item_key, first, value in zip(values, firsts, stayed, strict=True)
    }


def evict(conversation: ConversationRef, item_key: str, *, agent_id: str = "") -> bool:
    """Remove an item, so that it may be injected again. Return False if it was not in the ledger."""
    return bool(_run(EVICT, conversation, _text(item_key, ITEM_KEY_LENGTH, "an item key"), agent_id=agent_id))


def end_ledger(conversation: ConversationRef, *, agent_id: str = "") -> bool:
    """Delete the ledger of a conversation that has ended. Return False if there was none."""
    return bool(_run(END, conversation, agent_id=agent_id))


def follow_journal(conversation: ConversationRef, rows: Mapping[str, str], *, added: Collection[str]) -> None:
    """Mark those of the `added` items that the ledger by its rows has, where rows were added to the journal.

    Other marks and evictions stay as they are, and are journalled again where the rows say otherwise. The journal must
    have been flushed.
    """
    pairs = [text for pair in rows.items() for text in pair]
    _run(FOLLOW_JOURNAL, conversation, str(len(added)), *added, *pairs)


def _run(source: str, conversation: ConversationRef, *args: str, agent_id: str = "") -> Any:
    """Run the script, restoring the ledger first if this Redis has lost it."""
    conversation_id = _text(conversation.conversation_id, CONVERSATION_ID_LENGTH, "a conversation id")
    agent = agent_id and _text(agent_id, AGENT_ID_LENGTH, "an agent id")
    shared = (str(conversation.account_id), conversation_id, agent)
    keys = ledger_keys(conversation)
    once_keys, *once_seconds = once_arguments(keys[0]) if source.startswith(ONCE) else ([],)
    for _ in range(RESTORE_TRIES):
        answer = script(source)(keys=[*keys, *once_keys], args=[*shared, *args, *once_seconds])
        if answer is not None:
            return answer
        restore_ledger(conversation)
    raise LedgerRestoreFailed("Redis keeps losing its data")


def _text(text: str, length: int, what: str) -> str:
    """Return `text` if the journal's columns can hold it; raise ValueError otherwise.

    Nothing else may enter the stream, because it could never become a row.
    """
    if not 1 <= len(text) <= length or "\x00" in text:
        raise ValueError(f"{what} has 1 to {length} characters and no NUL")
    text.encode("utf-8")
    return text
