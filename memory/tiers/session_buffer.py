"""A session's buffer in Redis: a list of its latest turns ordered by number. Each call is one script.

An entry is `<number> <bytes of JSON up to its end> <turn id> <JSON>`, so that a script knows order and size from the
ends of the list. Turns may arrive in any order and are inserted where they belong; a reader sees the latest run of
consecutive turns. Lists and goal of a session expire together, and every call renews them.

A `SessionTurn` is a turn as sessions show it, an `AgentMessage` with its place in the log; a `BufferEntry` is a turn as
a buffer stores it, within the limits of a buffer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from memory import conf
from memory.models import Conversation, Turn
from memory.tiers.base import from_json, to_json
from memory_project.redis import SessionRef, script, session_key

WITHHELD = "(withheld)"
"""The content of a quarantined turn in a session. Its number stays, so that no turn seems to be missing."""

LISTS = ("turns", "thoughts", "active_goal", "saved")
"""Keys that expire together, in the order of a script's KEYS; `saved` marks a session saved and not lost since."""

RENEW = """
for _, key in ipairs(KEYS) do
    redis.call('EXPIRE', key, ARGV[1])
end
"""

ENTRIES = """
local turns = KEYS[1]

-- returns the number, bytes up to its end, turn id, and offset of its JSON
local function read(entry)
    local index, upto, id, at = string.match(entry, '^(%d+) (%d+) (%S+) ()')
    return tonumber(index), tonumber(upto), id, at
end

-- removes the turns from this number on, and returns them by number
local function pop_from(first)
    local popped = {}
    while true do
        local entry = redis.call('LINDEX', turns, -1)
        local index, _, id, at = nil, nil, nil, nil
        if entry then
            index, _, id, at = read(entry)
        end
        if not index or index < first then
            return popped
        end
        redis.call('RPOP', turns)
        popped[index] = {id, string.sub(entry, at)}
    end
end

local function push(by_number)
    local order, upto = {}, 0
    for index in pairs(by_number) do
        order[#order + 1] = index
    end
    table.sort(order)
    local newest = redis.call('LINDEX', turns, -1)
    if newest then
        upto = select(2, read(newest))
    end
    for _, index in ipairs(order) do
        local id, json = by_number[index][1], by_number[index][2]
        upto = upto + #json
        redis.call('RPUSH', turns, string.format('%.0f %.0f %s ', index, upto, id) .. json)
    end
end

-- removes the oldest beyond the bounds; the newest goes only if it is below the first number
local function drop_oldest(first, messages, bytes)
    redis.call('LTRIM', turns, -messages, -1)
    local newest = redis.call('LINDEX', turns, -1)
    while newest do
        local last, total = read(newest)
        local oldest = redis.call('LINDEX', turns, 0)
        local index, upto, _, at = read(oldest)
        local size = total - upto + #oldest - at + 1
        if index >= first and (size <= bytes or index == last) then
            return
        end
        redis.call('LPOP', turns)
        newest = redis.call('LINDEX', turns, -1)
    end
end

-- returns the turns in ARGV from this position on, by number, and the lowest and highest number
local function given_from(position)
    local given = {}
    for i = position, #ARGV, 3 do
        given[tonumber(ARGV[i])] = {ARGV[i + 1], ARGV[i + 2]}
    end
    return given, tonumber(ARGV[position]), tonumber(ARGV[#ARGV - 2])
end
"""

# ARGV: seconds to live, first number, max messages, max bytes, then number, id and JSON of each turn
APPEND = (
    ENTRIES
    + """
local given, least = given_from(5)
local stored = pop_from(least)
for index, turn in pairs(given) do
    if stored[index] and stored[index][1] ~= turn[1] then
        -- the numbers belong to another history: start again with what the log has now
        redis.call('DEL', turns)
        stored = {}
        break
    end
end
local before, follows = redis.call('LINDEX', turns, -1), least <= tonumber(ARGV[2])
if before then
    follows = follows or read(before) == least - 1
end
for index, turn in pairs(given) do
    -- the stored turn wins, because it may have been corrected
    stored[index] = stored[index] or turn
end
push(stored)
drop_oldest(tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))
"""
    + RENEW
    + "return follows and 1 or 0"
)

# ARGV as for APPEND
REPLACE = (
    ENTRIES
    + """
local given, _, greatest = given_from(5)
local newer = pop_from(greatest + 1)
redis.call('DEL', turns)
push(given)
push(newer)
drop_oldest(tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))
"""
    + RENEW
)

# ARGV: seconds to live, first number, max messages, max bytes
TRIM = ENTRIES + "drop_oldest(tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))" + RENEW

# ARGV: seconds to live, limit
LATEST = RENEW + "return redis.call('LRANGE', KEYS[1], -tonumber(ARGV[2]), -1)"

CLEAR = "return redis.call('UNLINK', KEYS[1])"


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMessage:
    """A message of a session. `content` as it was sent: a text, parts, or None with tool calls."""

    role: str
    content: Any
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTurn(AgentMessage):
    """A turn in a buffer: a message with its place in the log."""

    id: UUID
    index: int
    agent_id: str
    text: str
    payload: dict[str, Any] | None
    timestamp: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferEntry:
    """A turn in a buffer: its number, its id, and its JSON, whose UTF-8 bytes are limited."""

    index: int
    turn_id: str
    json: str

    @property
    def size_bytes(self) -> int:
        return len(self.json.encode("utf-8"))


def session_ref(conversation: Conversation) -> SessionRef:
    return SessionRef(
        account_id=conversation.account_id,
        user_id=conversation.user_id,
        channel=conversation.channel,
        conversation_id=conversation.conversation_id,
    )


def session_turn(turn: Turn) -> SessionTurn:
    """Return the row as a session shows it: of a quarantined turn only its number, role and agent."""
    is_withheld = turn.quarantined
    return SessionTurn(
        id=turn.id,
        index=turn.index,
        role=turn.role,
        name="" if is_withheld else turn.name,
        agent_id=turn.agent_id,
        content=WITHHELD if is_withheld else turn.content,
        text=WITHHELD if is_withheld else turn.text,
        payload=None if is_withheld else turn.payload,
        timestamp=turn.event_time,
    )


def buffer_entry(turn: SessionTurn) -> BufferEntry:
    """Return the turn as JSON, with its content only if text and payload do not contain it."""
    kept: dict[str, Any] = {
        "role": turn.role,
        "name": turn.name,
        "agent_id": turn.agent_id,
        "text": turn.text,
        "payload": turn.payload,
        "timestamp": turn.timestamp.isoformat(),
    }
    if turn.content is not (turn.payload or {}).get("content", turn.text):
        kept["content"] = turn.content
    return BufferEntry(index=turn.index, turn_id=str(turn.id), json=to_json(kept))


def turn_from_entry(entry: BufferEntry) -> SessionTurn:
    """Return the turn of an entry; the inverse of `buffer_entry`."""
    kept = from_json(entry.json)
    payload = kept["payload"]
    return SessionTurn(
        id=UUID(entry.turn_id),
        index=entry.index,
        role=kept["role"],
        name=kept["name"],
        agent_id=kept["agent_id"],
        content=kept["content"] if "content" in kept else (payload or {}).get("content", kept["text"]),
        text=kept["text"],
        payload=payload,
        timestamp=datetime.fromisoformat(kept["timestamp"]),
    )


def fitting_entries(turns: Sequence[SessionTurn]) -> list[BufferEntry]:
    """Return the latest of `turns` (ordered by index) that fit into a buffer. Few others are serialized."""
    return limit_entries(buffer_entry(turn) for turn in reversed(turns))


def limit_entries(latest_first: Iterable[BufferEntry]) -> list[BufferEntry]:
    """Return the first entries within BUFFER_MESSAGES and BUFFER_BYTES, oldest first; always at least one."""
    kept: list[BufferEntry] = []
    size_bytes = 0
    for entry in islice(latest_first, conf.BUFFER_MESSAGES):
        size_bytes += entry.size_bytes
        if kept and size_bytes > conf.BUFFER_BYTES:
            break
        kept.append(entry)
    return kept[::-1]


def latest_contiguous(entries: Iterable[BufferEntry], *, first: int) -> list[BufferEntry]:
    """Return the latest consecutive entries, from number `first` on; turns still on their way leave gaps."""
    latest: list[BufferEntry] = []
    for entry in sorted(entries, key=lambda entry: entry.index, reverse=True):
        if entry.index < first or (latest and entry.index != latest[-1].index - 1):
            break
        latest.append(entry)
    return latest[::-1]


class RedisBuffer:
    """The buffer of one session."""

    def __init__(self, session: SessionRef) -> None:
        self._session = session

    def append(self, turns: Sequence[SessionTurn], *, first: int) -> bool:
        """Insert turns by number; the buffer starts at number `first`. Return False if turns before them are missing.

        If a number has another turn already, the buffer is replaced by these turns.
        """
        entries = fitting_entries(turns)
        if not entries:
            return True
        if len(entries) < len(turns):
            first = max(first, entries[0].index)
        return bool(self._run(APPEND, first, conf.BUFFER_MESSAGES, conf.BUFFER_BYTES, *flatten_entries(entries)))

    def replace(self, entries: Sequence[BufferEntry], *, first: int) -> None:
        """Replace the buffer by these entries, keeping newer turns that arrived in the meantime."""
        if entries:
            self._run(REPLACE, first, conf.BUFFER_MESSAGES, conf.BUFFER_BYTES, *flatten_entries(entries))

    def latest(self, limit: int, *, first: int) -> list[BufferEntry]:
        """Return the latest consecutive turns from number `first` on, at most `limit` (1 or more), oldest first."""
        stored: list[str] = self._run(LATEST, limit)
        parts = [entry.split(" ", 3) for entry in stored]
        entries = [BufferEntry(index=int(index), turn_id=turn_id, json=json) for index, _, turn_id, json in parts]
        return latest_contiguous(entries, first=first)

    def trim(self, *, first: int) -> None:
        """Delete the turns before number `first`."""
        self._run(TRIM, first, conf.BUFFER_MESSAGES, conf.BUFFER_BYTES)

    def clear(self) -> None:
        self._run(CLEAR)

    def _run(self, source: str, *args: str | int) -> Any:
        return run_list_script(source, self._session, *args)


def run_list_script(source: str, session: SessionRef, *args: str | int, keys: Sequence[str] = ()) -> Any:
    """Run a script over LISTS, then `keys`; the lists' seconds to live are its first argument, before `args`."""
    lists = [session_key(session, name) for name in LISTS]
    return script(source)(keys=[*lists, *keys], args=[conf.SESSION_TTL_HOURS * 3_600, *args])


def flatten_entries(entries: Iterable[BufferEntry]) -> list[str | int]:
    return [part for entry in entries for part in (entry.index, entry.turn_id, entry.json)]
