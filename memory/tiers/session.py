"""Session memory: the live state of a conversation in Redis, under the documented keys with the account's prefix.

- Turns, thoughts and the active goal expire together, SESSION_TTL_HOURS after the last call about any of them.
- A context value expires by itself, SESSION_VALUE_TTL_SECONDS or its own `ttl_seconds` after it was set.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from memory import conf
from memory.errors import Unprocessable
from memory.tiers.base import check_size, check_ttl, from_json, to_json
from memory.tiers.named_values import VALUES, NamedValues, StoredText, StoredValue, parse_stored_texts, whole_seconds
from memory.tiers.session_buffer import LISTS, RENEW, run_list_script
from memory_project.redis import ONCE, SessionRef, once_arguments, session_key

# KEYS: the names of the values, then LISTS
SNAPSHOT = VALUES + "return {redis.call('GET', KEYS[4]), redis.call('LRANGE', KEYS[3], 0, -1), all()}"

# ARGV: max values, seconds to live of lists, goal, number of thoughts, thoughts, then name, JSON, seconds of each value
RESTORE = (
    VALUES
    + """
local goal, thoughts, saved = KEYS[4], KEYS[3], KEYS[5]
if redis.call('EXPIRE', saved, ARGV[2]) == 1 then
    return 0
end
redis.call('SET', saved, 1, 'EX', ARGV[2])
if ARGV[3] ~= '' then
    redis.call('SET', goal, ARGV[3], 'EX', ARGV[2], 'NX')
end
local values_at = 5 + tonumber(ARGV[4])
if redis.call('EXISTS', thoughts) == 0 then
    for i = 5, values_at - 1 do
        redis.call('RPUSH', thoughts, ARGV[i])
    end
    redis.call('EXPIRE', thoughts, ARGV[2])
end
for i = values_at, #ARGV, 3 do
    if redis.call('EXISTS', prefix .. ARGV[i]) == 0 then
        keep(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]) * 1000, tonumber(ARGV[1]))
    end
end
return 1
"""
)

CLEAR = """
local is_readable = redis.call('TYPE', KEYS[1]).ok == 'zset'
for _, name in ipairs(is_readable and redis.call('ZRANGE', KEYS[1], 0, -1) or {}) do
    redis.call('UNLINK', KEYS[1] .. ':' .. name)
end
for _, key in ipairs(KEYS) do
    redis.call('UNLINK', key)
end
"""

# ARGV: seconds to live
MARK_SAVED = "redis.call('SET', KEYS[4], 1, 'EX', ARGV[1])"

# ARGV: seconds to live
KEEP_MARK = "return redis.call('EXPIRE', KEYS[4], ARGV[1])"

# ARGV: seconds to live, goal
SET_GOAL = "redis.call('SET', KEYS[3], ARGV[2])" + RENEW

GET_GOAL = RENEW + "return redis.call('GET', KEYS[3])"

CLEAR_GOAL = RENEW + "return redis.call('DEL', KEYS[3])"

# ARGV: seconds to live, max thoughts, thought, its time; returns the time at which it was pushed first
PUSH_THOUGHT = (
    ONCE
    + """
local at = was_done or ARGV[4]
if not was_done then
    redis.call('RPUSH', KEYS[2], ARGV[3])
    redis.call('LTRIM', KEYS[2], -tonumber(ARGV[2]), -1)
    note_done(at)
end
"""
    + RENEW
    + "return at"
)

# ARGV: seconds to live, limit
GET_THOUGHTS = RENEW + "return redis.call('LRANGE', KEYS[2], -tonumber(ARGV[2]), -1)"


class SessionMemory:
    """The session of one conversation, shared by its agents, without its turns (see `session_stores`).

    Every call is one round trip.
    Values and thoughts may be any JSON; ValueError for values that JSON cannot represent, TooLarge (`stored=False`)
    above SESSION_VALUE_BYTES.
    """

    def __init__(self, session: SessionRef) -> None:
        self._session = session

    def set(self, key: str, value: Any, ttl_seconds: int | None = None) -> None:
        """Store a value for `ttl_seconds` (1 to SESSION_MAX_TTL_HOURS, else ValueError) or for the default time.

        Raises Unprocessable for more than SESSION_VALUES values, ValueError for an invalid name.
        """
        seconds = conf.SESSION_VALUE_TTL_SECONDS if ttl_seconds is None else ttl_seconds
        check_ttl(seconds, max_seconds=max_ttl_seconds())
        if not self._values.set(key, session_json(value), ttl_seconds=seconds):
            raise Unprocessable(f"the session already has {conf.SESSION_VALUES} values: delete one first")

    def find(self, key: str) -> StoredValue | None:
        """Return the stored value, or None if there is none or it has expired."""
        return self._values.find(key)

    def get(self, key: str) -> Any:
        """Return the value, or None if there is none; `find` distinguishes a stored None."""
        found = self.find(key)
        return None if found is None else found.value

    def delete(self, key: str) -> bool:
        """Delete a value and return True if there was one."""
        return self._values.delete(key)

    def get_context(self) -> dict[str, Any]:
        """Return all live values by name."""
        return {stored.name: from_json(stored.json) for stored in self.stored_values()}

    def stored_values(self) -> list[StoredText]:
        """Return all live values as they are stored, ordered by name, with their remaining milliseconds."""
        return self._values.all()

    def clear_session(self) -> None:
        """Delete turns, thoughts, values and the active goal."""
        self._run_on_everything(CLEAR)

    def set_active_goal(self, goal_id: str, goal_description: str) -> None:
        goal = session_json({"goal_id": goal_id, "goal_description": goal_description})
        run_list_script(SET_GOAL, self._session, goal)

    def get_active_goal(self) -> dict[str, Any] | None:
        """Return `goal_id` and `goal_description`, or None if there is no goal or it has expired."""
        json = run_list_script(GET_GOAL, self._session)
        return None if json is None else from_json(json)

    def clear_active_goal(self) -> bool:
        """Clear the active goal and return True if there was one."""
        return bool(run_list_script(CLEAR_GOAL, self._session))

    def push_thought(self, thought: Any, agent_id: str, now: datetime) -> datetime:
        """Add a thought; the oldest beyond SESSION_THOUGHTS are dropped. Return when a repeated request added it."""
        json = session_json({"thought": thought, "agent_id": agent_id, "timestamp": now.isoformat()})
        once_keys, once_seconds = once_arguments(session_key(self._session, "thoughts"))
        args = (conf.SESSION_THOUGHTS, json, now.isoformat(), once_seconds)
        at = run_list_script(PUSH_THOUGHT, self._session, *args, keys=once_keys)
        return datetime.fromisoformat(at)

    def get_thoughts(self, limit: int) -> list[dict[str, Any]]:
        """Return the latest thoughts, newest last: each with thought, agent_id and timestamp (ISO 8601)."""
        if limit < 1:
            return []
        return [from_json(json) for json in run_list_script(GET_THOUGHTS, self._session, limit)]

    def snapshot(self) -> dict[str, Any]:
        """Return the input of `restore`: the goal, the thoughts, and the values with their remaining seconds.

        Each is the JSON text as stored, because a database's own JSON would change numbers. Turns are not included:
        they are in the log.
        """
        goal, thoughts, flat = self._run_on_everything(SNAPSHOT)
        values = {
            stored.name: {"json": stored.json, "ttl_seconds": whole_seconds(stored.ttl_ms)}
            for stored in parse_stored_texts(flat)
        }
        return {"active_goal": goal, "thoughts": thoughts, "values": values}

    def mark_saved(self) -> None:
        """Record that a snapshot is stored: deletions from now on are no loss."""
        run_list_script(MARK_SAVED, self._session)

    def is_saved(self) -> bool:
        """Return True if nothing was lost since `mark_saved`."""
        return bool(run_list_script(KEEP_MARK, self._session))

    def restore(self, snapshot: Mapping[str, Any]) -> bool:
        """Restore what is missing: the goal, thoughts if there are none, and values for their remaining seconds.

        Does so only if the session was lost, or expired, since `mark_saved`; otherwise returns False.
        """
        thoughts = snapshot["thoughts"][-conf.SESSION_THOUGHTS :]
        values = [
            part
            for name, value in snapshot["values"].items()
            for part in (name, value["json"], min(value["ttl_seconds"], max_ttl_seconds()))
        ]
        shared = (conf.SESSION_VALUES, conf.SESSION_TTL_HOURS * 3_600, snapshot["active_goal"] or "")
        return bool(self._run_on_everything(RESTORE, *shared, len(thoughts), *thoughts, *values))

    def _run_on_everything(self, source: str, *args: str | int) -> Any:
        return self._values.run(source, *args, keys=[session_key(self._session, name) for name in LISTS])

    @property
    def _values(self) -> NamedValues:
        return NamedValues(session_key(self._session, "context"), max_values=conf.SESSION_VALUES)


def max_ttl_seconds() -> int:
    return conf.SESSION_MAX_TTL_HOURS * 3_600


def session_json(value: Any) -> str:
    """Return the value as JSON. Raises TooLarge above SESSION_VALUE_BYTES."""
    json = to_json(value)
    check_size(len(json.encode("utf-8")), limit_bytes=conf.SESSION_VALUE_BYTES, what="the value has")
    return json
