r"""Working memory of a conversation: a Redis hash that expires when it is not used.

The account's own fields have their names in the hash, so that HGET finds them; those of an agent are named
`<agent_id>\x00<name>` and private to it.

- An agent reads the account's fields below its own, and writes and deletes only its own.
- The account reads everything (its own value of a name first, else that of the first agent by id). Its writes replace
  the agents' values of that name, so that everybody sees them, and its deletions delete the name for everybody.

Sizes are UTF-8 bytes of the names and serialized values of everything in the hash, without agent ids.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from memory import conf
from memory.errors import TooLarge, Unprocessable
from memory.masking import mask_secrets
from memory.owner import Owner
from memory.tiers.base import check_name, from_json, to_json
from memory_project.redis import ConversationRef, client, conversation_key, script

KEY_NAME = "working_memory"
REFUSAL_FACTOR = 4
"""A write changes nothing if the hash would exceed this many times the limit."""

SPLIT = """
local function split(field)
    local at = string.find(field, '\\0', 1, true)
    return string.sub(field, 1, (at or 1) - 1), string.sub(field, (at or 0) + 1)
end
"""

READ = """
redis.call('EXPIRE', KEYS[1], ARGV[1])
return redis.call('HGETALL', KEYS[1])
"""

# ARGV: seconds to live, agent, bytes above which the write is refused, then names and values
MERGE = (
    SPLIT
    + """
local agent, size, incoming, overruled = ARGV[2], 0, {}, {}
local prefix = agent ~= '' and agent .. '\\0' or ''
for i = 4, #ARGV, 2 do
    incoming[ARGV[i]] = true
    size = size + #ARGV[i] + #ARGV[i + 1]
end
local stored = redis.call('HGETALL', KEYS[1])
for i = 1, #stored, 2 do
    local writer, name = split(stored[i])
    if not incoming[name] or (agent ~= '' and writer ~= agent) then
        size = size + #name + #stored[i + 1]
    elseif stored[i] ~= prefix .. name then
        -- an agent's, or one of the account's from before its fields had plain names
        overruled[#overruled + 1] = stored[i]
    end
end
if size > tonumber(ARGV[3]) then
    return {0, size, 0}
end
for _, field in ipairs(overruled) do
    redis.call('HDEL', KEYS[1], field)
end
for i = 4, #ARGV, 2 do
    redis.call('HSET', KEYS[1], prefix .. ARGV[i], ARGV[i + 1])
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return {1, size, redis.call('MEMORY', 'USAGE', KEYS[1], 'SAMPLES', 0) or 0}
"""
)

# ARGV: seconds to live, agent, then names
REMOVE = (
    SPLIT
    + """
local agent, unwanted, removed = ARGV[2], {}, 0
for i = 3, #ARGV do
    unwanted[ARGV[i]] = true
end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    local writer, name = split(field)
    if unwanted[name] and (agent == '' or writer == agent) then
        removed = removed + redis.call('HDEL', KEYS[1], field)
    end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return removed
"""
)

# ARGV: seconds to live, agent
CLEAR = (
    SPLIT
    + """
local agent, removed = ARGV[2], 0
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then
    -- nothing, or what nobody can read
    return redis.call('UNLINK', KEYS[1])
end
if agent == '' then
    removed = redis.call('HLEN', KEYS[1])
    redis.call('UNLINK', KEYS[1])
    return removed
end
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if split(field) == agent then
        removed = removed + redis.call('HDEL', KEYS[1], field)
    end
end
redis.call('EXPIRE', KEYS[1], ARGV[1])
return removed
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkingMemoryWrite:
    """The sizes after a write. `size_bytes` is limited; `memory_bytes` is what this Redis server uses for it."""

    size_bytes: int
    limit_bytes: int
    memory_bytes: int
    ttl_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredField:
    """A field of the hash: its agent ("" for the account), its name, its value as JSON."""

    agent_id: str
    name: str
    json: str


class WorkingMemory:
    """The working memory that `owner` sees. Every call is one round trip, and all but `peek` renew the expiry."""

    def __init__(self, owner: Owner) -> None:
        if "\x00" in owner.agent_id:
            raise ValueError("an agent id must not contain NUL")
        self._owner = owner

    def get(self, conversation_id: str) -> dict[str, Any]:
        """Return all fields that the owner sees; empty if nothing is stored."""
        flat: list[str] = self._run(READ, conversation_id)
        seen = visible_fields(self._owner.agent_id, zip(flat[::2], flat[1::2], strict=True))
        return {name: from_json(value) for name, value in seen.items()}

    def peek(self, conversation_id: str) -> dict[str, Any]:
        """Return what `get` returns without renewing the expiry, for staff who only look."""
        stored: dict[str, str] = client().hgetall(self._key(conversation_id))  # type: ignore[assignment]
        seen = visible_fields(self._owner.agent_id, stored.items())
        return {name: from_json(value) for name, value in seen.items()}

    def set(self, conversation_id: str, data: Mapping[str, Any]) -> WorkingMemoryWrite:
        """Merge `data` into the stored fields and measure the result, atomically.

        Raises TooLarge over the limit, although the write is stored (`stored=True`), and over four times the limit,
        where nothing changes (`stored=False`, `size_bytes` as it would be); ValueError for an invalid name or value.
        """
        if self._owner.masks_secrets:
            data = mask_secrets(data)
        pairs = [text for name, value in data.items() for text in (check_name(name), to_json(value))]
        # a write that can never fit is not sent; the reported size is that of the write alone
        alone = sum(len(text.encode("utf-8")) for text in pairs)
        if alone > refused_above_bytes():
            raise_working_memory_too_large(stored=False, size_bytes=alone)
        kept, size_bytes, memory_bytes = self._run(MERGE, conversation_id, refused_above_bytes(), *pairs)
        if not kept:
            raise_working_memory_too_large(stored=False, size_bytes=size_bytes)
        if size_bytes > conf.WORKING_MEMORY_LIMIT_BYTES:
            raise_working_memory_too_large(stored=True, size_bytes=size_bytes, memory_bytes=memory_bytes)
        return WorkingMemoryWrite(
            size_bytes=size_bytes,
            limit_bytes=conf.WORKING_MEMORY_LIMIT_BYTES,
            memory_bytes=memory_bytes,
            ttl_seconds=conf.WORKING_MEMORY_TTL_SECONDS,
        )

    def delete(self, conversation_id: str, fields: Sequence[str] | None = None) -> int:
        """Delete these fields, or all of them, as far as the owner may. Return the number of deleted values."""
        if fields is None:
            return self.clear(conversation_id)
        names = [check_name(name) for name in fields]
        return int(self._run(REMOVE, conversation_id, *names))

    def clear(self, conversation_id: str) -> int:
        """Delete everything that the owner may, and return the number of deleted values."""
        return int(self._run(CLEAR, conversation_id))

    def set_scratchpad(self, conversation_id: str, content: str) -> WorkingMemoryWrite:
        return self.set(conversation_id, {"scratchpad": content})

    def get_scratchpad(self, conversation_id: str) -> str | None:
        content = self.get(conversation_id).get("scratchpad")
        if content is not None and not isinstance(content, str):
            raise Unprocessable("the field scratchpad is not a text")
        return content

    def set_entities(self, conversation_id: str, entities: Sequence[Mapping[str, Any]]) -> WorkingMemoryWrite:
        return self.set(conversation_id, {"entities": [dict(entity) for entity in entities]})

    def get_entities(self, conversation_id: str) -> list[dict[str, Any]]:
        """Return the entities, by convention with type, id and name; empty if none are stored."""
        entities = self.get(conversation_id).get("entities", [])
        if not isinstance(entities, list) or not all(isinstance(entity, dict) for entity in entities):
            raise Unprocessable("the field entities is not a list of objects")
        return entities

    def _key(self, conversation_id: str) -> str:
        conversation = ConversationRef(account_id=self._owner.account_id, conversation_id=conversation_id)
        return conversation_key(KEY_NAME, conversation)

    def _run(self, source: str, conversation_id: str, *args: str | int) -> Any:
        """Run a script; the seconds to live and the agent come before its own arguments."""
        shared = (conf.WORKING_MEMORY_TTL_SECONDS, self._owner.agent_id)
        return script(source)(keys=[self._key(conversation_id)], args=[*shared, *args])


def visible_fields(agent_id: str, stored: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return names and values, sorted, as `agent_id` sees these fields of the hash; "" is the account."""
    fields = [(*field.rpartition("\x00")[::2], value) for field, value in stored]
    if agent_id:
        # the agent's own values replace the account's
        visible = sorted(field for field in fields if field[0] in ("", agent_id))
    else:
        # the account's values replace the agents', and the first agent's those of the others
        visible = sorted(fields, reverse=True)
    seen = {name: value for _, name, value in visible}
    return dict(sorted(seen.items()))


def stored_fields(conversation: ConversationRef) -> list[StoredField]:
    """Return every field with its writer, ordered by name and writer, without renewing the expiry."""
    stored: dict[str, str] = client().hgetall(conversation_key(KEY_NAME, conversation))  # type: ignore[assignment]
    parts = [(*field.rpartition("\x00")[::2], value) for field, value in stored.items()]
    fields = [StoredField(agent_id=agent_id, name=name, json=value) for agent_id, name, value in parts]
    return sorted(fields, key=lambda field: (field.name, field.agent_id))


def refused_above_bytes() -> int:
    return REFUSAL_FACTOR * conf.WORKING_MEMORY_LIMIT_BYTES


def raise_working_memory_too_large(*, stored: bool, **sizes: int) -> NoReturn:
    """Raise TooLarge with the facts for clients: whether the write was stored, and the sizes."""
    limit_bytes = conf.WORKING_MEMORY_LIMIT_BYTES
    outcome = "the write was stored nevertheless" if stored else "nothing was stored"
    message = f"working memory has {sizes['size_bytes']} bytes, but {limit_bytes} are allowed; {outcome}"
    raise TooLarge(message, stored=stored, limit_bytes=limit_bytes, **sizes)
