"""Parts of `AgentMemory` that look something up by key: sessions, ledgers, keyed values, pools, tool caches, facts.

Each class keeps the methods that the source documents name; everything else of its noun is in `memory.services`. They
raise what the services do, which `errors.py` draws.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from ledger import store as ledger
from ledger.store import Mark
from memory import conf
from memory.extraction.imported import parse_time
from memory.extraction.messages import MalformedMessage, read_message
from memory.masking import mask_secrets
from memory.models import AgentShortTermMemory, ContextEntry, ToolCacheEntry, Turn
from memory.models.short_term import ShortTermKey
from memory.models.statements import Embedding
from memory.owner import Owner
from memory.retrieval.kind_searches import EntryResults
from memory.services import short_term, turns
from memory.services.accounts.access import ExpectedVersions
from memory.services.contexts.entries import EntryDraft
from memory.services.contexts.search import search_facts, store_fact
from memory.services.conversations.lifecycle import ConversationDefaults
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import ClientVector, validate_vector
from memory.services.pools.data import PoolData, cache_result, find_cached_result, merge_data, read_data, write_data
from memory.services.router import MemoryRouter, RoutedTierStats, RoutedValue
from memory.services.sessions import MemoryManager, fields_of_message, join_session, open_session
from memory.services.short_term import PromotedKeys, ShortTermDraft
from memory.services.turns import StoredTurns, TurnDraft
from memory.tiers.base import NewValue
from memory.tiers.session import SessionMemory
from memory.tiers.session_buffer import AgentMessage
from memory.tiers.session_stores import SessionTurn
from memory_project.redis import ConversationRef

Clock = Callable[[], datetime]
"""The time now, for calls that do not bring one."""

TASK_CONTEXT = AgentShortTermMemory.MemoryType.TASK_CONTEXT.value

Message = Mapping[str, Any] | AgentMessage | TurnDraft
"""A chat message (`role`, `content`, `name`, tool calls), with `timestamp` and `client_id` where it has them; or a
draft, which may say more: index, model, metadata, …"""


def append_messages(
    owner: Owner,
    conversation_id: str,
    messages: Sequence[Message],
    *,
    now: datetime,
    opening: ConversationDefaults | None = None,
) -> StoredTurns:
    """Embed and store turns (`services.turns.store_turns`). Raises MalformedMessage, a ValueError, for no message."""
    drafts = [draft_of(message) for message in messages]
    embedded = embed_texts([draft.message.text for draft in drafts if draft.own is None])
    return turns.store_turns(owner, conversation_id, drafts=drafts, embedded=embedded, now=now, defaults=opening)


def draft_of(message: Message) -> TurnDraft:
    if isinstance(message, TurnDraft):
        return message
    message = fields_of_message(message)
    said, client_id = read_time(message), read_name(message, "client_id")
    read_name(message, "name")
    return TurnDraft(message=read_message(message), timestamp=said, client_id=client_id)


def read_time(message: Mapping[str, Any]) -> datetime | None:
    """Return the `timestamp` of a message, which may be sent as `event_time`. Raises MalformedMessage."""
    said, at = (time_of(message.get(name), name) for name in ("timestamp", "event_time"))
    if said is not None and at is not None and said != at:
        raise MalformedMessage("event_time", 'is another name of "timestamp": send one of them')
    return said or at


def read_name(message: Mapping[str, Any], field: str) -> str:
    """Return the name in this field of a message; empty if there is none. Raises MalformedMessage."""
    name = message.get(field)
    if name is None:
        return ""
    if not isinstance(name, str):
        raise MalformedMessage(field, "must be a text")
    return name


def time_of(timestamp: object, name: str) -> datetime | None:
    """Return a time with a zone, or parse one in ISO 8601; None stays None. Raises MalformedMessage."""
    if timestamp is None:
        return None
    try:
        return parse_time(timestamp.isoformat() if isinstance(timestamp, datetime) else timestamp)
    except ValueError as err:
        raise MalformedMessage(name, str(err)) from err


class AgentPart:
    """A part of what an agent remembers: for whom, by which clock, and under which id, if it has one."""

    def __init__(self, owner: Owner, clock: Clock, key: str = "") -> None:
        self._owner = owner
        self._clock = clock
        self._key = key

    def _moment(self, now: datetime | None) -> datetime:
        """Return `now` where a call brings it, else the clock's."""
        return self._clock() if now is None else now

    def _masked(self, value: Any) -> Any:
        """Return a value to store, without secrets if the account masks them."""
        return mask_secrets(value) if self._owner.masks_secrets else value


class AgentSession(AgentPart):
    """The session of one conversation.

    Writing creates the conversation if it is new; reading an unknown one raises NotFound. Values and thoughts may be
    any JSON (see `SessionMemory`).
    """

    def add_turn(self, message: Message, *, now: datetime | None = None) -> Turn:
        """Append to the log and to the session's buffer: `AgentMemory.store_turn`."""
        return append_messages(self._owner, self._key, [message], now=self._moment(now)).turns[0]

    def get_recent_turns(self, limit: int | None = None) -> list[SessionTurn]:
        """Return the latest turns of the buffer, oldest first; MEMORY_MAX_CONTEXT_MESSAGES by default."""
        return MemoryManager(self._owner).find_memory(self._key).get_messages(limit)

    def set(self, key: str, value: Any, ttl_seconds: int | None = None, *, now: datetime | None = None) -> None:
        """Store a value for `ttl_seconds`, an hour by default. Raises TooLarge, Unprocessable for one too many."""
        self._for_write(now).set(key, self._masked(value), ttl_seconds)

    def get(self, key: str, *, now: datetime | None = None) -> Any:
        """Return the value; None if there is none, or no longer."""
        return self._for_read(now).get(key)

    def delete(self, key: str, *, now: datetime | None = None) -> bool:
        """Delete a value, and return whether it existed."""
        return self._for_read(now).delete(key)

    def get_context(self, *, now: datetime | None = None) -> dict[str, Any]:
        """Return all values that have not expired, by name."""
        return self._for_read(now).get_context()

    def clear_session(self) -> None:
        """Forget buffer, goal, thoughts and values, saved ones too; the log stays."""
        MemoryManager(self._owner).clear_session(self._key)

    def set_active_goal(self, goal_id: str, goal_description: str, *, now: datetime | None = None) -> None:
        self._for_write(now).set_active_goal(goal_id, self._masked(goal_description))

    def get_active_goal(self, *, now: datetime | None = None) -> dict[str, Any] | None:
        """Return `goal_id` and `goal_description`, or None if there is no goal (any more)."""
        return self._for_read(now).get_active_goal()

    def push_thought(self, thought: Any, *, now: datetime | None = None) -> None:
        """Add a thought of this agent's; the oldest one beyond SESSION_THOUGHTS goes. Raises TooLarge."""
        moment = self._moment(now)
        self._for_write(moment).push_thought(self._masked(thought), self._owner.agent_id, moment)

    def get_thoughts(self, limit: int = conf.SESSION_THOUGHTS, *, now: datetime | None = None) -> list[dict[str, Any]]:
        """Return the latest thoughts of all agents, newest last: thought, agent_id and timestamp (ISO 8601)."""
        return self._for_read(now).get_thoughts(limit)

    def _for_read(self, now: datetime | None) -> SessionMemory:
        return open_session(self._owner, self._key, now=self._moment(now))

    def _for_write(self, now: datetime | None) -> SessionMemory:
        return join_session(self._owner, self._key, now=self._moment(now))


class InjectionLedger:
    """The items that were injected into one conversation, by any agent."""

    def __init__(self, owner: Owner, conversation_id: str) -> None:
        self._agent_id = owner.agent_id
        self._place = ConversationRef(account_id=owner.account_id, conversation_id=conversation_id)

    def get_all(self) -> dict[str, str]:
        """Return the value of each injected item by its key; empty if nothing was injected."""
        return ledger.get_all(self._place)

    def check(self, item_key: str) -> str | None:
        """Return the value with which the item was marked; None if it has not been injected."""
        return ledger.check(self._place, item_key)

    def mark(self, item_key: str, value: str = ledger.DEFAULT_VALUE) -> Mark:
        """Record an injection. Atomic, so two agents cannot both be first; the first value stays."""
        return ledger.mark(self._place, item_key, value, agent_id=self._agent_id)

    def evict(self, item_key: str) -> bool:
        """Remove an item, so that it may be injected again. Returns False if it was not in the ledger."""
        return ledger.evict(self._place, item_key, agent_id=self._agent_id)


class AgentRouter(AgentPart):
    """The agent's keyed values in whichever tier they are (see `MemoryRouter`).

    >>> router = memory.router
    >>> router.write("colour", "green").tier
    'short_term'
    >>> router.read("colour").value
    'green'
    >>> router.delete("colour")
    ('short_term',)
    """

    def read(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime | None = None
    ) -> RoutedValue:
        """Return the value of the first tier that has one. Raises NotFound."""
        moment = self._moment(now)
        return self._router.read(key, session_id=session_id, pool_id=pool_id, tier=tier, now=moment)

    def write(
        self,
        key: str,
        value: Any,
        *,
        session_id: str = "",
        pool_id: str = "",
        tier: str = "short_term",
        now: datetime | None = None,
    ) -> RoutedValue:
        """Store a value in one tier, over what is there. A `NewValue` brings a lifetime or a memory type with it."""
        moment = self._moment(now)
        written = value if isinstance(value, NewValue) else NewValue(value=value)
        written = replace(written, value=self._masked(written.value))
        return self._router.write(key, written, session_id=session_id, pool_id=pool_id, tier=tier, now=moment)

    def delete(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime | None = None
    ) -> tuple[str, ...]:
        """Delete the key from every tier, or from the given one, and return the tiers that had it. Raises NotFound."""
        moment = self._moment(now)
        return self._router.delete(key, session_id=session_id, pool_id=pool_id, tier=tier, now=moment)

    def semantic_search(
        self,
        query: str | Embedding | Sequence[float],
        limit: int = 10,
        *,
        own: ClientVector | None = None,
        now: datetime | None = None,
    ) -> EntryResults:
        """Return the `limit` long-term entries nearest to a text, to an embedding of it, or to a vector of one's own.

        A bare embedding is one of the configured model; `own` names another.
        """
        text = query if isinstance(query, str) else ""
        if not isinstance(query, str):
            own = validate_vector(self._owner, model="", vector=query)
        return self._router.semantic_search(text, top_k=limit, own=own, now=self._moment(now))

    def consolidate(self, *, session_id: str, now: datetime | None = None) -> PromotedKeys:
        """Keep for good what was read often in a session."""
        return self._router.consolidate(session_id=session_id, now=self._moment(now))

    def stats(self, *, now: datetime | None = None) -> dict[str, RoutedTierStats]:
        """Return the entries, bytes, hits and misses of each tier."""
        return self._router.stats(now=self._moment(now))

    @property
    def _router(self) -> MemoryRouter:
        return MemoryRouter(self._owner)


class AgentShortTerm(AgentPart):
    """Short-term entries of one session, or of none in particular. Private to the agent; expired, they are gone.

    >>> notes = memory.short_term("talk-1")
    >>> notes.store("colour", {"red": 1.0}, ttl_seconds=60).ttl_seconds
    60
    >>> entry = notes.read("colour")
    >>> entry.memory_value, entry.access_count
    ({'red': 1.0}, 1)
    """

    def store(
        self,
        key: str,
        value: Any,
        *,
        memory_type: str = TASK_CONTEXT,
        ttl_seconds: int = conf.SHORT_TERM_TTL_SECONDS,
        now: datetime | None = None,
    ) -> AgentShortTermMemory:
        """Store a value and replace the present one. Raises TooLarge."""
        draft = ShortTermDraft(
            memory_key=key,
            memory_value=self._masked(value),
            session_id=self._key,
            memory_type=memory_type,
            ttl_seconds=ttl_seconds,
        )
        return short_term.store_entry(self._owner, draft, now=self._moment(now))

    def read(self, key: str, *, now: datetime | None = None) -> AgentShortTermMemory:
        """Return an entry and count the access. Raises NotFound."""
        entry_key = ShortTermKey(key=key, session_id=self._key)
        return short_term.read_entry(self._owner, entry_key, now=self._moment(now))

    def delete(self, key: str, *, now: datetime | None = None) -> None:
        """Delete an entry. Raises NotFound."""
        entry_key = ShortTermKey(key=key, session_id=self._key)
        short_term.delete_entry(self._owner, entry_key, now=self._moment(now))


class AgentPool(AgentPart):
    """The data of a pool, by its id.

    >>> pool = memory.create_pool(PoolDraft(pool_id="plan", data={"steps": {"one": "look"}}))
    >>> plan = memory.pool("plan")
    >>> plan.merge({"steps": {"two": "dig"}}, expected=frozenset({pool.version})).version
    2
    >>> plan.read("/steps").data
    {'one': 'look', 'two': 'dig'}
    """

    def read(self, path: str = "", *, now: datetime | None = None) -> PoolData:
        """Return all data of the pool, or the part at a JSON Pointer. Raises NotFound."""
        return read_data(self._owner, self._key, path=path, now=self._moment(now))

    def write(
        self, data: Any, *, path: str = "", expected: ExpectedVersions = None, now: datetime | None = None
    ) -> PoolData:
        """Replace the data. Raises NotFound, Forbidden, StaleVersion, TooLarge, Unprocessable."""
        data = self._masked(data)
        return write_data(self._owner, self._key, path=path, data=data, expected=expected, now=self._moment(now))

    def merge(
        self, data: Any, *, path: str = "", expected: ExpectedVersions = None, now: datetime | None = None
    ) -> PoolData:
        """Merge into the present data at any depth; null is a value. Raises the same errors as `write`."""
        data = self._masked(data)
        return merge_data(self._owner, self._key, path=path, data=data, expected=expected, now=self._moment(now))


class AgentToolCache(AgentPart):
    """A pool of type tool_cache, by its id: results of tools by key, each until it expires."""

    def store(
        self, key: str, value: Any, *, ttl_seconds: int | None = None, now: datetime | None = None
    ) -> ToolCacheEntry:
        """Store the result of a key, replacing an earlier one. Raises NotFound, Forbidden, TooLarge, Conflict."""
        moment = self._moment(now)
        value = self._masked(value)
        return cache_result(self._owner, self._key, key, value=value, ttl_seconds=ttl_seconds, now=moment)

    def find(self, key: str, *, now: datetime | None = None) -> ToolCacheEntry:
        """Return a result and count the hit. Raises NotFound."""
        return find_cached_result(self._owner, self._key, key, now=self._moment(now))


class AgentFacts(AgentPart):
    """Facts of the agent: entries of type fact in its own context (see `services.contexts.search`)."""

    def store(self, draft: EntryDraft, *, now: datetime | None = None) -> ContextEntry:
        """Store a fact; under an existing key, its next version.

        Raises Conflict if the key is another entry's, TooLarge.
        """
        return store_fact(self._owner, draft, now=self._moment(now))

    def search(
        self, query: str, *, top_k: int = 10, own: ClientVector | None = None, now: datetime | None = None
    ) -> EntryResults:
        """Return the facts nearest to the query, or to a vector of one's own."""
        return search_facts(self._owner, query, top_k=top_k, own=own, now=self._moment(now))
