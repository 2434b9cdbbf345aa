"""Session memory: a conversation's live side in Redis, under the documented keys behind the account's prefix.

- turns, thoughts and the active goal expire together, SESSION_TTL_HOURS after the last call about one of them;
- a context value expires by itself, SESSION_VALUE_TTL_SECONDS or its own `ttl_seconds` after it was set.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from memory import conf
from memory.errors import TooLarge, Unprocessable
from memory.tiers.base import from_json, to_json
from memory.tiers.named_values import VALUES, NamedValues, StoredValue, seconds_of, stored_texts
from memory.tiers.session_buffer import LISTS, RENEW, RedisBuffer, run_on_lists
from memory.tiers.session_turns import SessionTurn, turn_of
from memory_project.redis import SessionPlace, session_key

# the lists as keys after the names of the values
SNAPSHOT = VALUES + "return {redis.call('GET', KEYS[4]), redis.call('LRANGE', KEYS[3], 0, -1), all()}"

# most values, seconds that lists live, goal, number of thoughts, then thoughts, then name, JSON, seconds of each value
RESTORE = (
    VALUES
    + """
local goal, thoughts, saved = KEYS[4], KEYS[3], KEYS[5]
if redis.call('EXPIRE', saved, ARGV[3]) == 1 then
    return 0
end
redis.call('SET', saved, 1, 'EX', ARGV[3])
if ARGV[4] ~= '' then
    redis.call('SET', goal, ARGV[4], 'EX', ARGV[3], 'NX')
end
local values_at = 6 + tonumber(ARGV[5])
if redis.call('EXISTS', thoughts) == 0 then
    for i = 6, values_at - 1 do
        redis.call('RPUSH', thoughts, ARGV[i])
    end
    redis.call('EXPIRE', thoughts, ARGV[3])
end
for i = values_at, #ARGV, 3 do
    if redis.call('EXISTS', prefix .. ARGV[i]) == 0 then
        keep(ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 2]) * 1000, tonumber(ARGV[2]))
    end
end
return 1
"""
)

CLEAR = """
for _, name in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    redis.call('UNLINK', ARGV[1] .. name)
end
for _, key in ipairs(KEYS) do
    redis.call('UNLINK', key)
end
"""

# seconds to live
MARK_SAVED = "redis.call('SET', KEYS[4], 1, 'EX', ARGV[1])"

# seconds to live
KEEP_MARK = "return redis.call('EXPIRE', KEYS[4], ARGV[1])"

# seconds to live, goal
SET_GOAL = "redis.call('SET', KEYS[3], ARGV[2])" + RENEW

GET_GOAL = RENEW + "return redis.call('GET', KEYS[3])"

CLEAR_GOAL = RENEW + "return redis.call('DEL', KEYS[3])"

# seconds to live, most thoughts, thought
PUSH_THOUGHT = "redis.call('RPUSH', KEYS[2], ARGV[3]) redis.call('LTRIM', KEYS[2], -tonumber(ARGV[2]), -1)" + RENEW

# seconds to live, limit
GET_THOUGHTS = RENEW + "return redis.call('LRANGE', KEYS[2], -tonumber(ARGV[2]), -1)"


class SessionMemory:
    """The session of one conversation, shared by the agents that take part. Every call is one round trip.

    Values and thoughts may be any JSON and come back as they went in; ValueError for what has no JSON. One of more
    than SESSION_VALUE_BYTES raises TooLarge (`stored=False`).
    """

    def __init__(self, place: SessionPlace) -> None:
        self._place = place

    def add_turn(self, turn: SessionTurn) -> None:
        """`add_turns` of one."""
        self.add_turns([turn])

    def add_turns(self, turns: Sequence[SessionTurn]) -> None:
        """Add turns, in order of index, to the buffer; those that it has already change nothing."""
        RedisBuffer(self._place).append(turns, first=0)

    def get_recent_turns(self, limit: int) -> list[SessionTurn]:
        """The latest turns of the buffer, oldest first."""
        if limit < 1:
            return []
        return [turn_of(entry) for entry in RedisBuffer(self._place).latest(limit, first=0)]

    def set(self, key: str, value: Any, ttl_seconds: int | None = None) -> None:
        """Store a value for `ttl_seconds` (1 to SESSION_MAX_TTL_HOURS; ValueError for others), or the default.

        Raises Unprocessable for one more than SESSION_VALUES, ValueError for what is no name.
        """
        seconds = conf.SESSION_VALUE_TTL_SECONDS if ttl_seconds is None else ttl_seconds
        if not 1 <= seconds <= most_seconds():
            raise ValueError(f"ttl_seconds must be 1 to {most_seconds()}")
        if not self._values.set(key, small_json(value), ttl_seconds=seconds):
            raise Unprocessable(f"the session has {conf.SESSION_VALUES} values, no more are allowed")

    def find(self, key: str) -> StoredValue | None:
        """The value, which may be None itself; None where there is none (any more)."""
        return self._values.find(key)

    def get(self, key: str) -> Any:
        """The value, or None where there is none (any more); `find` tells them apart."""
        found = self.find(key)
        return None if found is None else found.value

    def delete(self, key: str) -> bool:
        """Whether there was one."""
        return self._values.delete(key)

    def get_context(self) -> dict[str, Any]:
        """All values that have not expired, by name."""
        return {stored.name: from_json(stored.json) for stored in self._values.all()}

    def clear_session(self) -> None:
        """Forget turns, thoughts, values and the active goal."""
        self._run_on_everything(CLEAR)

    def set_active_goal(self, goal_id: str, goal_description: str) -> None:
        goal = small_json({"goal_id": goal_id, "goal_description": goal_description})
        run_on_lists(SET_GOAL, self._place, goal)

    def get_active_goal(self) -> dict[str, Any] | None:
        """`goal_id` and `goal_description`, or None where there is no goal (any more)."""
        json = run_on_lists(GET_GOAL, self._place)
        return None if json is None else from_json(json)

    def clear_active_goal(self) -> bool:
        """Whether there was one."""
        return bool(run_on_lists(CLEAR_GOAL, self._place))

    def push_thought(self, thought: Any, agent_id: str, now: datetime) -> None:
        """Add a thought; the oldest one beyond SESSION_THOUGHTS goes."""
        json = small_json({"thought": thought, "agent_id": agent_id, "timestamp": now.isoformat()})
        run_on_lists(PUSH_THOUGHT, self._place, conf.SESSION_THOUGHTS, json)

    def get_thoughts(self, limit: int) -> list[dict[str, Any]]:
        """The latest thoughts, newest last: each with thought, agent_id and timestamp (ISO 8601)."""
        if limit < 1:
            return []
        return [from_json(json) for json in run_on_lists(GET_THOUGHTS, self._place, limit)]

    def snapshot(self) -> dict[str, Any]:
        """What `restore` takes: the goal, the thoughts, and the values with the seconds that they have left.

        Each is the JSON text as it is stored, so that a database's own JSON does not change numbers inside. Turns are
        no part of it: they are in the log.
        """
        goal, thoughts, flat = self._run_on_everything(SNAPSHOT)
        values = {
            stored.name: {"json": stored.json, "ttl_seconds": seconds_of(stored.ttl_ms)}
            for stored in stored_texts(flat)
        }
        return {"active_goal": goal, "thoughts": thoughts, "values": values}

    def mark_saved(self) -> None:
        """Say that a snapshot is kept: what is deleted from now on is not lost."""
        run_on_lists(MARK_SAVED, self._place)

    def is_saved(self) -> bool:
        """Whether nothing was lost since it was marked as saved."""
        return bool(run_on_lists(KEEP_MARK, self._place))

    def restore(self, snapshot: Mapping[str, Any]) -> bool:
        """Bring back what is not there: goal, thoughts where there are none, values (for the seconds they had left).

        Only where the session was lost, or has expired, since it was marked as saved; False where it was not.
        """
        thoughts = snapshot["thoughts"][-conf.SESSION_THOUGHTS :]
        values = [
            part
            for name, value in snapshot["values"].items()
            for part in (name, value["json"], min(value["ttl_seconds"], most_seconds()))
        ]
        shared = (conf.SESSION_VALUES, conf.SESSION_TTL_HOURS * 3_600, snapshot["active_goal"] or "")
        return bool(self._run_on_everything(RESTORE, *shared, len(thoughts), *thoughts, *values))

    def _run_on_everything(self, source: str, *args: str | int) -> Any:
        return self._values.run(source, *args, keys=[session_key(self._place, name) for name in LISTS])

    @property
    def _values(self) -> NamedValues:
        return NamedValues(session_key(self._place, "context"), most=conf.SESSION_VALUES)


def most_seconds() -> int:
    return conf.SESSION_MAX_TTL_HOURS * 3_600


def small_json(value: Any) -> str:
    """`value` as JSON. Raises TooLarge above SESSION_VALUE_BYTES."""
    json = to_json(value)
    size_bytes, limit_bytes = len(json.encode("utf-8")), conf.SESSION_VALUE_BYTES
    if size_bytes > limit_bytes:
        message = f"the value has {size_bytes} bytes, {limit_bytes} are allowed; nothing was stored"
        raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)
    return json
