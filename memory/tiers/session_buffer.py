"""A session's buffer in Redis: a list of its latest turns ordered by number. Each call is one script.

An entry is `<number> <bytes of JSON up to its end> <turn id> <JSON>`, so that a script knows order and size from the
ends of the list. Turns may arrive in any order and are inserted where they belong; a reader sees the latest run of
consecutive turns. Lists and goal of a session expire together, and every call renews them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from memory import conf
from memory.tiers.session_turns import BufferEntry, SessionTurn, fitting_entries, latest_contiguous
from memory_project.redis import SessionRef, script, session_key

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
local function take_from(first)
    local taken = {}
    while true do
        local entry = redis.call('LINDEX', turns, -1)
        local index, _, id, at = nil, nil, nil, nil
        if entry then
            index, _, id, at = read(entry)
        end
        if not index or index < first then
            return taken
        end
        redis.call('RPOP', turns)
        taken[index] = {id, string.sub(entry, at)}
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
local stored = take_from(least)
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
local newer = take_from(greatest + 1)
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


def run_list_script(source: str, session: SessionRef, *args: str | int) -> Any:
    """Run a script over LISTS; their seconds to live are its first argument, before `args`."""
    keys = [session_key(session, name) for name in LISTS]
    return script(source)(keys=keys, args=[conf.SESSION_TTL_HOURS * 3_600, *args])


def flatten_entries(entries: Iterable[BufferEntry]) -> list[str | int]:
    return [part for entry in entries for part in (entry.index, entry.turn_id, entry.json)]
