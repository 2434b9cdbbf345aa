"""A session's buffer in Redis: a list of its latest turns in order of their numbers, each call one script.

An entry is `<number> <bytes of JSON up to its end> <turn id> <JSON>`, so that a script knows order and size from
the ends of the list. Turns may arrive in any order: each finds its place, and a reader sees the latest stretch without
a hole in it. Lists and goal of a session live and expire together; every call renews them.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from memory import conf
from memory.tiers.session_turns import Entry, SessionTurn, fitting_entries, latest_stretch
from memory_project.redis import SessionPlace, script, session_key

LISTS = ("turns", "thoughts", "active_goal", "saved")
"""What expires together, in the order of a script's keys; `saved` is there while a saved session has not been lost."""

RENEW = """
for _, key in ipairs(KEYS) do
    redis.call('EXPIRE', key, ARGV[1])
end
"""

ENTRIES = """
local turns = KEYS[1]

-- number, bytes up to its end, turn id, where its JSON begins
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

-- removes the oldest beyond the bounds; the newest goes only where it is below the first number
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

-- the turns in the arguments from this position on, by number, and the least and greatest number
local function given_from(position)
    local given = {}
    for i = position, #ARGV, 3 do
        given[tonumber(ARGV[i])] = {ARGV[i + 1], ARGV[i + 2]}
    end
    return given, tonumber(ARGV[position]), tonumber(ARGV[#ARGV - 2])
end
"""

# seconds to live, first number, most messages, most bytes, then number, id and JSON of each turn
APPEND = (
    ENTRIES
    + """
local given, least = given_from(5)
local stored = take_from(least)
for index, turn in pairs(given) do
    if stored[index] and stored[index][1] ~= turn[1] then
        -- another history under the same numbers: what the log has now counts
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
    -- it may say by now what a correction made of it
    stored[index] = stored[index] or turn
end
push(stored)
drop_oldest(tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))
"""
    + RENEW
    + "return follows and 1 or 0"
)

# as of APPEND
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

# seconds to live, first number, most messages, most bytes
TRIM = ENTRIES + "drop_oldest(tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]))" + RENEW

# seconds to live, limit
LATEST = RENEW + "return redis.call('LRANGE', KEYS[1], -tonumber(ARGV[2]), -1)"

CLEAR = "return redis.call('UNLINK', KEYS[1])"


class RedisBuffer:
    """The buffer of one session."""

    def __init__(self, place: SessionPlace) -> None:
        self._place = place

    def append(self, turns: Sequence[SessionTurn], *, first: int) -> bool:
        """Put turns in their places; the buffer begins at number `first`. False where turns before them are missing.

        Where a number has another turn already, the buffer begins anew with these.
        """
        entries = fitting_entries(turns)
        if not entries:
            return True
        if len(entries) < len(turns):
            first = max(first, entries[0].index)
        return bool(self._run(APPEND, first, conf.BUFFER_MESSAGES, conf.BUFFER_BYTES, *flat(entries)))

    def replace(self, entries: Sequence[Entry], *, first: int) -> None:
        """Make the buffer this stretch, and what came after it meanwhile."""
        if entries:
            self._run(REPLACE, first, conf.BUFFER_MESSAGES, conf.BUFFER_BYTES, *flat(entries))

    def latest(self, limit: int, *, first: int) -> list[Entry]:
        """The latest stretch from number `first` on, of at most `limit` turns (1 or more), oldest first."""
        stored: list[str] = self._run(LATEST, limit)
        parts = [entry.split(" ", 3) for entry in stored]
        entries = [Entry(index=int(index), turn_id=turn_id, json=json) for index, _, turn_id, json in parts]
        return latest_stretch(entries, first=first)

    def trim(self, *, first: int) -> None:
        """Forget the turns before number `first`."""
        self._run(TRIM, first, conf.BUFFER_MESSAGES, conf.BUFFER_BYTES)

    def clear(self) -> None:
        self._run(CLEAR)

    def _run(self, source: str, *args: str | int) -> Any:
        return run_on_lists(source, self._place, *args)


def run_on_lists(source: str, place: SessionPlace, *args: str | int) -> Any:
    """Run a script over the LISTS; its first argument is their seconds to live, before `args`."""
    keys = [session_key(place, name) for name in LISTS]
    return script(source)(keys=keys, args=[conf.SESSION_TTL_HOURS * 3_600, *args])


def flat(entries: Iterable[Entry]) -> list[str | int]:
    return [part for entry in entries for part in (entry.index, entry.turn_id, entry.json)]
