"""An agent's working memory: values by name in Redis, each with its own expiry, private to the agent.

An agent has one for itself, and separate ones for each task, workflow run, or task of a workflow run. A value shared
with another agent is a copy, kept with the agent that shared it until it is taken back or expires, and belongs to the
same task and workflow run as the memory it was shared from.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.audit import record_audit
from memory.errors import NotFound, Unprocessable
from memory.masking import mask_secrets
from memory.models import SavedWorkingMemory
from memory.models.short_term import SavedWorkingMemoryQuerySet
from memory.owner import Owner
from memory.tiers.base import TierStats, check_name, check_size, check_ttl, from_json, keyed_json, time_of_call
from memory.tiers.named_values import VALUES, NamedValues, StoredText, StoredValue, whole_seconds
from memory_project.redis import AGENT_MEMORY, ONCE, AgentMemoryRef, agent_key, client, once_arguments

MAX_TTL_SECONDS = 604_800
"""A week."""

MAX_ID_CHARACTERS = 100

LIST, TEXT = "[", '"'
"""First character of the JSON of a list, and of a text."""

SCRATCH_PAD, CONVERSATION_CONTEXT = "scratch_pad", "conversation_context"
"""Names of the values of documented calls; the others are `task_state`, `intermediate_result:<step>` and
`tool_state:<tool>`."""

APPENDED_KINDS = {SCRATCH_PAD: TEXT, CONVERSATION_CONTEXT: LIST}
"""The kind of the values that documented calls append to."""

# ARGV: max values, seconds to live of a new value, max bytes, kinds of value that may be extended (the first is
# the kind of a new one), name, JSON, that of ONCE. Values are joined as JSON, because Lua's numbers are not exact
APPEND = (
    ONCE
    + VALUES
    + """
local most, seconds, most_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local kinds, name, json = ARGV[4], ARGV[5], ARGV[6]
local stored = redis.call('GET', prefix .. name)
if was_done and stored then
    return {'kept', stored, redis.call('PTTL', prefix .. name)}
end
local kind = string.sub(stored or kinds, 1, 1)
if not string.find(kinds, kind, 1, true) or (kind == '"' and string.sub(json, 1, 1) ~= '"') then
    return {'refused'}
end
local joined
if kind == '"' then
    joined = string.sub(stored or '""', 1, -2) .. string.sub(json, 2)
elseif not stored or stored == '[]' then
    joined = '[' .. json .. ']'
else
    joined = string.sub(stored, 1, -2) .. ',' .. json .. ']'
end
if was_done then
    -- the value was removed since
    return {'kept', joined, 0}
elseif #joined > most_bytes then
    return {'large', #joined}
end
if stored then
    redis.call('SET', prefix .. name, joined, 'KEEPTTL')
elseif not keep(name, joined, seconds * 1000, most) then
    return {'full'}
end
note_done('')
return {'kept', joined, redis.call('PTTL', prefix .. name)}
"""
)

# KEYS[2]: the value to share; ARGV: max values, seconds to live (0: the remaining ones), name
SHARE = (
    VALUES
    + """
local stored, ttl_ms = redis.call('GET', KEYS[2]), tonumber(ARGV[2]) * 1000
if not stored then
    return {'missing'}
end
if ttl_ms == 0 then
    ttl_ms = math.max(1, redis.call('PTTL', KEYS[2]))
end
if not keep(ARGV[3], stored, ttl_ms, tonumber(ARGV[1])) then
    return {'full'}
end
return {'kept', stored, ttl_ms}
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedValues:
    """The number of a working memory's values in the database, and when they were saved."""

    count: int
    saved_at: datetime


class WorkingMemoryService:
    """The working memory of the owner's agent, for itself or for a task and workflow run.

    Every call is one round trip, except `persist_to_database` and `load_from_database`. Values may be any JSON. Writes
    raise TooLarge (`stored=False`) above TIER_VALUE_BYTES, Unprocessable for more than AGENT_MEMORY_VALUES values, and
    ValueError for an invalid name (1 to 200 characters, no NUL), value, or lifetime (1 to MAX_TTL_SECONDS, default
    AGENT_MEMORY_TTL_SECONDS).
    """

    def __init__(self, owner: Owner, *, task_id: str = "", workflow_run_id: str = "") -> None:
        self._owner = owner
        self._ref = AgentMemoryRef(
            account_id=owner.account_id,
            agent_id=check_agent_id(owner.agent_id),
            task_id=check_scope_id(task_id),
            workflow_run_id=check_scope_id(workflow_run_id),
        )

    def store(self, key: str, value: Any, ttl: int | None = None) -> None:
        """Store a value for `ttl` seconds, replacing the old one."""
        if not self._values.set(key, self._to_json(value), ttl_seconds=check_agent_ttl(ttl)):
            raise_memory_full()

    def find(self, key: str) -> StoredValue | None:
        """Return the value and its remaining seconds, or None if there is none."""
        return self._values.find(key)

    def retrieve(self, key: str) -> Any:
        """Return the value, or None if there is none; `find` distinguishes a stored None."""
        return value_or_none(self.find(key))

    def exists(self, key: str) -> bool:
        return bool(client().exists(agent_key(self._ref, AGENT_MEMORY, check_name(key))))

    def remove(self, key: str) -> bool:
        """Remove a value and return True if there was one. Shared copies stay."""
        return self._values.delete(key)

    def keys(self) -> list[str]:
        """Return the names of all values, sorted."""
        return list(self.expiries())

    def expiries(self) -> dict[str, int]:
        """Return the names of all values, sorted, and their remaining seconds."""
        return self._values.expiries()

    def clear(self) -> int:
        """Remove all values and return their number. Shared and saved copies stay."""
        return self._values.clear()

    def append(self, key: str, value: Any) -> StoredValue:
        """Append an element to a list, or text to a text; a missing value becomes a list. The expiry stays.

        The scratch pad is a text and the conversation context a list, also when they are missing (APPENDED_KINDS).
        Atomic: concurrent appends lose nothing. Raises Unprocessable for any other value.
        """
        return self._append(key, value, to=APPENDED_KINDS.get(key, LIST + TEXT))

    def stats(self) -> TierStats:
        entries, size_bytes = self._values.measure()
        return TierStats(entries=entries, size_bytes=size_bytes)

    def workflow_memory(self, workflow_run_id: str) -> "WorkingMemoryService":
        """Return the agent's memory for this workflow run, and for the same task if this memory has one."""
        return WorkingMemoryService(self._owner, task_id=self._ref.task_id, workflow_run_id=workflow_run_id)

    def store_task_state(self, state: Any) -> None:
        self.store("task_state", state)

    def get_task_state(self) -> Any:
        return self.retrieve("task_state")

    def store_intermediate_result(self, step_name: str, result: Any) -> None:
        self.store(f"intermediate_result:{step_name}", result)

    def get_intermediate_result(self, step_name: str) -> Any:
        return self.retrieve(f"intermediate_result:{step_name}")

    def store_conversation_context(self, messages: Sequence[Any]) -> None:
        self.store(CONVERSATION_CONTEXT, list(messages))

    def get_conversation_context(self) -> list[Any]:
        """Return the messages, oldest first, which may be none. Raises Unprocessable if the value is not a list."""
        messages = self.retrieve(CONVERSATION_CONTEXT)
        if not isinstance(messages, list | None):
            raise Unprocessable("the value conversation_context is not a list")
        return messages or []

    def append_to_conversation(self, message: Any) -> None:
        """Append a message. Raises Unprocessable if the value is not a list."""
        self.append(CONVERSATION_CONTEXT, message)

    def store_tool_state(self, tool_name: str, state: Any) -> None:
        self.store(f"tool_state:{tool_name}", state)

    def get_tool_state(self, tool_name: str) -> Any:
        return self.retrieve(f"tool_state:{tool_name}")

    def store_scratch_pad(self, content: str) -> None:
        self.store(SCRATCH_PAD, content)

    def get_scratch_pad(self) -> str | None:
        """Return the text, or None if there is none. Raises Unprocessable if the value is not a text."""
        content = self.retrieve(SCRATCH_PAD)
        if not isinstance(content, str | None):
            raise Unprocessable("the value scratch_pad is not a text")
        return content

    def append_to_scratch_pad(self, content: str) -> None:
        """Append to the text, which may be missing. Raises Unprocessable if the value is not a text."""
        self.append(SCRATCH_PAD, content)

    def share_with_agent(self, target_agent_id: str, key: str, value: Any, ttl_seconds: int | None = None) -> None:
        """Let another agent read this value under this key, which need not exist here; replaces what it read there."""
        shared = self._shared_with(target_agent_id)
        if not shared.set(key, self._to_json(value), ttl_seconds=check_agent_ttl(ttl_seconds)):
            raise_memory_full()

    def share_stored(self, target_agent_id: str, key: str, ttl_seconds: int | None = None) -> StoredValue:
        """Let another agent read the current value of `key`, for its remaining lifetime unless `ttl_seconds` is given.

        Raises NotFound if there is none.
        """
        seconds = 0 if ttl_seconds is None else check_agent_ttl(ttl_seconds)
        own_key = agent_key(self._ref, AGENT_MEMORY, check_name(key))
        outcome, *stored = self._shared_with(target_agent_id).run(
            SHARE, conf.AGENT_MEMORY_VALUES, seconds, key, keys=[own_key]
        )
        if outcome == "missing":
            raise NotFound("no such value")
        return parse_script_outcome(outcome, stored)

    def take_back(self, target_agent_id: str, key: str) -> bool:
        """Delete the copy that this agent could read under this key, and return True if there was one."""
        return self._shared_with(target_agent_id).delete(key)

    def retrieve_shared(self, source_agent_id: str, key: str) -> Any:
        """Return the copy that the source agent shares with this one, or None if there is none."""
        return value_or_none(self.find_shared(source_agent_id, key))

    def find_shared(self, source_agent_id: str, key: str) -> StoredValue | None:
        """Return the shared copy with its remaining seconds, or None if there is none."""
        source = replace(self._ref, agent_id=check_agent_id(source_agent_id))
        return shared_values(source, self._ref.agent_id).find(key)

    def snapshot(self) -> list[StoredText]:
        """Return every value as stored, by name, with its remaining milliseconds."""
        return self._values.all()

    def restore(self, saved: Sequence[StoredText]) -> None:
        """Store these values for their remaining milliseconds, over those with the same names; other values stay.

        Raises Unprocessable, without changes, if there would be too many.
        """
        if not self._values.restore(saved):
            raise_memory_full()

    def persist_to_database(self, *, now: datetime | None = None) -> SavedValues:
        """Save every value in the database, replacing what was saved; an empty memory too."""
        saved_at = time_of_call(now)
        values = {stored.name: {"json": stored.json, "ttl_ms": stored.ttl_ms} for stored in self.snapshot()}
        row = SavedWorkingMemory(**asdict(self._ref), values=values, saved_at=saved_at)
        with transaction.atomic():
            SavedWorkingMemory.objects.bulk_create(
                [row], update_conflicts=True, unique_fields=[*asdict(self._ref)], update_fields=["values", "saved_at"]
            )
            self._record("persist", self._saved_rows().values_list("id", flat=True).get(), len(values))
        return SavedValues(count=len(values), saved_at=saved_at)

    def load_from_database(self) -> SavedValues:
        """Restore what was saved, as `restore` does; the saved copy stays. Raises NotFound if nothing was saved."""
        row = self._saved_rows().first()
        if row is None:
            raise NotFound("this working memory has never been saved")
        self.restore([StoredText(name=name, **saved) for name, saved in row.values.items()])
        self._record("load", row.id, len(row.values))
        return SavedValues(count=len(row.values), saved_at=row.saved_at)

    def _to_json(self, value: Any) -> str:
        """Serialize a value, without secrets if the owner's account masks them."""
        return keyed_json(mask_secrets(value) if self._owner.masks_secrets else value)

    def _append(self, key: str, value: Any, *, to: str) -> StoredValue:
        limits = (conf.AGENT_MEMORY_VALUES, conf.AGENT_MEMORY_TTL_SECONDS, conf.TIER_VALUE_BYTES)
        once_keys, once_seconds = once_arguments(agent_key(self._ref, AGENT_MEMORY))
        args = (*limits, to, check_name(key), self._to_json(value), once_seconds)
        outcome, *stored = self._values.run(APPEND, *args, keys=once_keys)
        return parse_script_outcome(outcome, stored)

    def _record(self, operation: str, saved_id: UUID, count: int) -> None:
        record_audit(
            self._owner, operation=operation, memory_type="working", affected_ids=[saved_id], result_count=count
        )

    def _saved_rows(self) -> SavedWorkingMemoryQuerySet:
        return SavedWorkingMemory.objects.visible_to(self._owner).filter(**asdict(self._ref))

    @property
    def _values(self) -> NamedValues:
        return NamedValues(agent_key(self._ref, AGENT_MEMORY), max_values=conf.AGENT_MEMORY_VALUES)

    def _shared_with(self, target_agent_id: str) -> NamedValues:
        return shared_values(self._ref, check_agent_id(target_agent_id))


def shared_values(source: AgentMemoryRef, target_agent_id: str) -> NamedValues:
    """Return the values that the memory at `source` lets an agent read."""
    # the empty last part makes agent_key escape the agent id, so that it cannot look like the name of a value
    key = agent_key(source, "shared", target_agent_id, "").removesuffix(":")
    return NamedValues(key, max_values=conf.AGENT_MEMORY_VALUES)


def check_agent_id(agent_id: str) -> str:
    """Return the id, or raise ValueError for an invalid agent id."""
    if not agent_id:
        raise ValueError("working memory belongs to an agent: name an agent_id")
    return check_scope_id(agent_id)


def check_scope_id(text: str) -> str:
    """Return the id, which may be empty, or raise ValueError if the database could not store it."""
    if len(text) > MAX_ID_CHARACTERS or "\x00" in text:
        raise ValueError(f"an id must have at most {MAX_ID_CHARACTERS} characters and no NUL")
    text.encode("utf-8")
    return text


def check_agent_ttl(ttl_seconds: int | None) -> int:
    """Return the lifetime, AGENT_MEMORY_TTL_SECONDS for None. Raises ValueError out of range."""
    seconds = conf.AGENT_MEMORY_TTL_SECONDS if ttl_seconds is None else ttl_seconds
    return check_ttl(seconds, max_seconds=MAX_TTL_SECONDS)


def value_or_none(stored: StoredValue | None) -> Any:
    return None if stored is None else stored.value


def parse_script_outcome(outcome: str, details: Sequence[Any]) -> StoredValue:
    """Return the value that a script stored, from its JSON and remaining milliseconds, or raise the write's error."""
    if outcome == "refused":
        raise Unprocessable("only a text can be appended to a text, and only lists and texts can be appended to")
    if outcome == "large":
        check_size(details[0], limit_bytes=conf.TIER_VALUE_BYTES, what="the value would have")
    if outcome == "full":
        raise_memory_full()
    json, left_ms = details
    return StoredValue(value=from_json(json), ttl_seconds=whole_seconds(left_ms))


def raise_memory_full() -> NoReturn:
    raise Unprocessable(f"at most {conf.AGENT_MEMORY_VALUES} values are allowed; nothing was stored")
