"""An agent's working memory: values by name in Redis, each with its own expiry, for nobody but the agent.

An agent has one for itself, and one for each task, workflow run, or task of a workflow run that it is narrowed to; they
know nothing of each other. What it shares with another agent is a copy, kept with the agent that shared it, until it is
taken back or expires; it is narrowed as the memory that it was shared from.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NoReturn
from uuid import UUID

from django.db import transaction

from memory import conf
from memory.audit import record
from memory.errors import NotFound, TooLarge, Unprocessable
from memory.models import SavedWorkingMemory
from memory.models.agent_working import SavedWorkingMemoryQuerySet
from memory.owner import Owner
from memory.tiers.base import TierStats, check_name, from_json, keyed_json
from memory.tiers.named_values import VALUES, NamedValues, StoredText, StoredValue, seconds_of
from memory_project.redis import AGENT_MEMORY, AgentPlace, agent_key, client
from memory_project.redis import scan_agents as scan_agents_with

MOST_TTL_SECONDS = 604_800
"""A week."""

LONGEST_ID = 100

LIST, TEXT = "[", '"'
"""What the JSON of a list, and that of a text, begins with."""

# most values, seconds that a new one lives, most bytes, what is appended to (the first begins where nothing is), name,
# JSON. Values are joined as JSON texts, since Lua's own numbers would not be exact
APPEND = (
    VALUES
    + """
local most, seconds, most_bytes = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local kinds, name, json = ARGV[5], ARGV[6], ARGV[7]
local stored = redis.call('GET', prefix .. name)
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
if #joined > most_bytes then
    return {'large', #joined}
end
if stored then
    redis.call('SET', prefix .. name, joined, 'KEEPTTL')
elseif not keep(name, joined, seconds * 1000, most) then
    return {'full'}
end
return {'kept', joined, redis.call('PTTL', prefix .. name)}
"""
)

# most values, seconds to live (0: those that it has left), name, and as key the value that is shared
SHARE = (
    VALUES
    + """
local stored, ttl_ms = redis.call('GET', KEYS[2]), tonumber(ARGV[3]) * 1000
if not stored then
    return {'missing'}
end
if ttl_ms == 0 then
    ttl_ms = math.max(1, redis.call('PTTL', KEYS[2]))
end
if not keep(ARGV[4], stored, ttl_ms, tonumber(ARGV[2])) then
    return {'full'}
end
return {'kept', stored, ttl_ms}
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedValues:
    """How many values of a working memory are in the database, since when."""

    count: int
    saved_at: datetime


class WorkingMemoryService:
    """The working memory of the owner's agent, or the one that it is narrowed to.

    Every call is one round trip, but those of `persist_to_database` and `load_from_database`. Values may be any JSON
    and come back as they went in. Writes raise TooLarge (`stored=False`) for a value of more than TIER_VALUE_BYTES,
    Unprocessable for one more than AGENT_MEMORY_VALUES, and ValueError for what is no name (1 to 200 characters, no
    NUL), has no JSON, or no time to live: 1 to MOST_TTL_SECONDS, AGENT_MEMORY_TTL_SECONDS unless it says.
    """

    def __init__(self, owner: Owner, *, task_id: str = "", workflow_run_id: str = "") -> None:
        self._owner = owner
        self._place = AgentPlace(
            account_id=owner.account_id,
            agent_id=check_agent(owner.agent_id),
            task_id=check_id(task_id),
            workflow_run_id=check_id(workflow_run_id),
        )

    def store(self, key: str, value: Any, ttl_seconds: int | None = None) -> None:
        """Store a value, over what is there, with a new expiry."""
        if not self._values.set(key, keyed_json(value), ttl_seconds=seconds_to_live(ttl_seconds)):
            raise_full()

    def find(self, key: str) -> StoredValue | None:
        """The value, which may be None itself, and the seconds that it has left; None where there is none."""
        return self._values.find(key)

    def retrieve(self, key: str) -> Any:
        """The value, or None where there is none (any more); `find` tells them apart."""
        return value_of(self.find(key))

    def exists(self, key: str) -> bool:
        return bool(client().exists(agent_key(self._place, AGENT_MEMORY, check_name(key))))

    def remove(self, key: str) -> bool:
        """Whether there was one. What was shared of it stays shared."""
        return self._values.delete(key)

    def keys(self) -> list[str]:
        """The names of all values, in order."""
        return list(self.expiries())

    def expiries(self) -> dict[str, int]:
        """The names of all values, in order, and the seconds that each has left."""
        return self._values.expiries()

    def clear(self) -> int:
        """Remove all values; how many there were. What was shared stays shared, what was saved stays saved."""
        return self._values.clear()

    def append(self, key: str, value: Any) -> StoredValue:
        """Add an element to a list, or text to a text; where nothing is, begin a list. The expiry stays.

        Atomic: of two that append at once, neither is lost. Raises Unprocessable where another value is.
        """
        return self._append(key, value, to=LIST + TEXT)

    def stats(self) -> TierStats:
        entries, size_bytes = self._values.measure()
        return TierStats(entries=entries, size_bytes=size_bytes)

    def workflow_memory(self, workflow_run_id: str) -> "WorkingMemoryService":
        """The agent's memory for this workflow run; of the same task, where this one is narrowed to one."""
        return WorkingMemoryService(self._owner, task_id=self._place.task_id, workflow_run_id=workflow_run_id)

    def store_task_state(self, state: Any) -> None:
        self.store("task_state", state)

    def get_task_state(self) -> Any:
        """None where there is none."""
        return self.retrieve("task_state")

    def store_intermediate_result(self, step_name: str, result: Any) -> None:
        self.store(f"intermediate_result:{step_name}", result)

    def get_intermediate_result(self, step_name: str) -> Any:
        """None where there is none."""
        return self.retrieve(f"intermediate_result:{step_name}")

    def store_conversation_context(self, messages: Sequence[Any]) -> None:
        self.store("conversation_context", list(messages))

    def get_conversation_context(self) -> list[Any]:
        """The messages, oldest first; none stored is an empty list. Raises Unprocessable where no list is."""
        messages = self.retrieve("conversation_context")
        if not isinstance(messages, list | None):
            raise Unprocessable("the value conversation_context is no list")
        return messages or []

    def append_to_conversation(self, message: Any) -> None:
        """Raises Unprocessable where no list is."""
        self._append("conversation_context", message, to=LIST)

    def store_tool_state(self, tool_name: str, state: Any) -> None:
        self.store(f"tool_state:{tool_name}", state)

    def get_tool_state(self, tool_name: str) -> Any:
        """None where there is none."""
        return self.retrieve(f"tool_state:{tool_name}")

    def store_scratch_pad(self, content: str) -> None:
        self.store("scratch_pad", content)

    def get_scratch_pad(self) -> str | None:
        """None where there is none. Raises Unprocessable where no text is."""
        content = self.retrieve("scratch_pad")
        if not isinstance(content, str | None):
            raise Unprocessable("the value scratch_pad is no text")
        return content

    def append_to_scratch_pad(self, content: str) -> None:
        """Begins a text where nothing is. Raises Unprocessable where no text is."""
        self._append("scratch_pad", content, to=TEXT)

    def share_with_agent(self, target_agent_id: str, key: str, value: Any, ttl_seconds: int | None = None) -> None:
        """Let another agent read this value under this key, which it need not have here; over what it read there."""
        shared = self._shared_with(target_agent_id)
        if not shared.set(key, keyed_json(value), ttl_seconds=seconds_to_live(ttl_seconds)):
            raise_full()

    def share_stored(self, target_agent_id: str, key: str, ttl_seconds: int | None = None) -> StoredValue:
        """Let another agent read the value of `key` as it is now, for as long as it has left unless it says.

        Raises NotFound where there is none.
        """
        seconds = 0 if ttl_seconds is None else seconds_to_live(ttl_seconds)
        own_key = agent_key(self._place, AGENT_MEMORY, check_name(key))
        outcome, *stored = self._shared_with(target_agent_id).run(
            SHARE, conf.AGENT_MEMORY_VALUES, seconds, key, keys=[own_key]
        )
        if outcome == "missing":
            raise NotFound("no such value")
        return written_value(outcome, stored)

    def take_back(self, target_agent_id: str, key: str) -> bool:
        """Whether there was something that this agent could read under this key."""
        return self._shared_with(target_agent_id).delete(key)

    def retrieve_shared(self, source_agent_id: str, key: str) -> Any:
        """What that agent lets this one read, as it was shared; None where there is nothing (any more)."""
        return value_of(self.find_shared(source_agent_id, key))

    def find_shared(self, source_agent_id: str, key: str) -> StoredValue | None:
        """`retrieve_shared` with the seconds left, so that None itself is told from nothing."""
        source = replace(self._place, agent_id=check_agent(source_agent_id))
        return shared_values(source, self._place.agent_id).find(key)

    def snapshot(self) -> list[StoredText]:
        """Every value as it is stored, by name, with the milliseconds that it has left."""
        return self._values.all()

    def restore(self, saved: Sequence[StoredText]) -> None:
        """Bring values back for the milliseconds that they had left, over those of their names; others stay.

        Raises Unprocessable where there would be too many: nothing changes then.
        """
        if not self._values.restore(saved):
            raise_full()

    def persist_to_database(self, *, now: datetime) -> SavedValues:
        """Save every value in the database, instead of what was saved there; an empty memory too."""
        values = {stored.name: {"json": stored.json, "ttl_ms": stored.ttl_ms} for stored in self.snapshot()}
        row = SavedWorkingMemory(**self._columns, values=values, saved_at=now)
        with transaction.atomic():
            SavedWorkingMemory.objects.bulk_create(
                [row], update_conflicts=True, unique_fields=[*self._columns], update_fields=["values", "saved_at"]
            )
            self._record("persist", self._saved_rows().values_list("id", flat=True).get(), len(values))
        return SavedValues(count=len(values), saved_at=now)

    def load_from_database(self) -> SavedValues:
        """Bring back what was saved, as `restore` does; it stays saved. Raises NotFound where nothing was."""
        row = self._saved_rows().first()
        if row is None:
            raise NotFound("nothing of this working memory was saved")
        self.restore(saved_texts(row.values))
        self._record("load", row.id, len(row.values))
        return SavedValues(count=len(row.values), saved_at=row.saved_at)

    def _append(self, key: str, value: Any, *, to: str) -> StoredValue:
        limits = (conf.AGENT_MEMORY_VALUES, conf.AGENT_MEMORY_TTL_SECONDS, conf.TIER_VALUE_BYTES)
        outcome, *stored = self._values.run(APPEND, *limits, to, check_name(key), keyed_json(value))
        return written_value(outcome, stored)

    def _record(self, operation: str, saved_id: UUID, count: int) -> None:
        record(self._owner, operation=operation, memory_type="working", affected_ids=[saved_id], result_count=count)

    def _saved_rows(self) -> SavedWorkingMemoryQuerySet:
        return SavedWorkingMemory.objects.visible_to(self._owner).filter(**self._columns)

    @property
    def _columns(self) -> Mapping[str, Any]:
        """Whose row it is in the database."""
        place = self._place
        return {
            "account_id": place.account_id,
            "agent_id": place.agent_id,
            "task_id": place.task_id,
            "workflow_run_id": place.workflow_run_id,
        }

    @property
    def _values(self) -> NamedValues:
        return NamedValues(agent_key(self._place, AGENT_MEMORY), most=conf.AGENT_MEMORY_VALUES)

    def _shared_with(self, target_agent_id: str) -> NamedValues:
        return shared_values(self._place, check_agent(target_agent_id))


def shared_values(source: AgentPlace, target_agent_id: str) -> NamedValues:
    """What the memory at `source` lets an agent read."""
    # an empty last part, since the others are escaped: no agent's id passes for the name of a value
    key = agent_key(source, "shared", target_agent_id, "").removesuffix(":")
    return NamedValues(key, most=conf.AGENT_MEMORY_VALUES)


def saved_texts(values: Mapping[str, Mapping[str, Any]]) -> list[StoredText]:
    """The `values` of a SavedWorkingMemory as `restore` takes them."""
    return [StoredText(name=name, json=saved["json"], ttl_ms=saved["ttl_ms"]) for name, saved in values.items()]


def scan_agents(account_id: UUID, cursor: int) -> tuple[list[AgentPlace], int]:
    """One page of the account's working memories of agents; from cursor 0 until it is 0 again. Pages may repeat."""
    return scan_agents_with(account_id=account_id, cursor=cursor)


def check_agent(agent_id: str) -> str:
    """Raises ValueError for what can be no agent's id."""
    if not agent_id:
        raise ValueError("working memory is an agent's: an id is needed")
    return check_id(agent_id)


def check_id(text: str) -> str:
    """Raises ValueError for what the database could not keep as an id; none at all is one."""
    if len(text) > LONGEST_ID or "\x00" in text:
        raise ValueError(f"an id has at most {LONGEST_ID} characters and no NUL")
    text.encode("utf-8")
    return text


def seconds_to_live(ttl_seconds: int | None) -> int:
    """AGENT_MEMORY_TTL_SECONDS for None. Raises ValueError out of bounds."""
    seconds = conf.AGENT_MEMORY_TTL_SECONDS if ttl_seconds is None else ttl_seconds
    if not 1 <= seconds <= MOST_TTL_SECONDS:
        raise ValueError(f"ttl_seconds must be 1 to {MOST_TTL_SECONDS}")
    return seconds


def value_of(stored: StoredValue | None) -> Any:
    return None if stored is None else stored.value


def written_value(outcome: str, details: Sequence[Any]) -> StoredValue:
    """What a script kept: its JSON and the milliseconds that it has left. Raises as the writes do."""
    if outcome == "refused":
        raise Unprocessable("a text is appended to a text, anything to a list; this is neither, or needs a text")
    if outcome == "large":
        raise_too_large(size_bytes=details[0])
    if outcome == "full":
        raise_full()
    json, left_ms = details
    return StoredValue(value=from_json(json), ttl_seconds=seconds_of(left_ms))


def raise_too_large(*, size_bytes: int) -> NoReturn:
    limit_bytes = conf.TIER_VALUE_BYTES
    message = f"the value would have {size_bytes} bytes, {limit_bytes} are allowed; nothing was stored"
    raise TooLarge(message, stored=False, size_bytes=size_bytes, limit_bytes=limit_bytes)


def raise_full() -> NoReturn:
    raise Unprocessable(f"more than {conf.AGENT_MEMORY_VALUES} values are not allowed; nothing was stored")
