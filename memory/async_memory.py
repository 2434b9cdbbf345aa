"""The in-process API for asynchronous code: `AgentMemory` and its parts, awaited (see `memory_project.async_calls`).

No call blocks the event loop. What is in Redis alone (working memory, the ledger, keyed texts) is asked by
`redis.asyncio`; what needs the database runs in threads, outside of transactions that the caller has begun.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from memory import conf
from memory.agent_goals import Task
from memory.agent_memory import AgentMemory
from memory.agent_tiers import (
    AgentFacts,
    AgentPool,
    AgentRouter,
    AgentSession,
    AgentShortTerm,
    AgentToolCache,
    InjectionLedger,
    append_messages,
)
from memory.extraction.messages import read_message
from memory.models import Conversation
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.sessions import HybridContext, MemoryManager, fields_of_message
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.base import time_of_call
from memory.tiers.key_values import KeyValues
from memory.tiers.session_buffer import AgentMessage
from memory.tiers.working import WorkingMemory
from memory_project.async_calls import AsyncTwin, close_async_client, in_thread, over_redis, run_in_thread
from memory_project.redis import ConversationRef, conversation_key


class AsyncWorkingMemory(AsyncTwin[WorkingMemory]):
    """The working memory of conversations: `WorkingMemory`, awaited."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(WorkingMemory(owner))

    get = over_redis(WorkingMemory.get)
    peek = over_redis(WorkingMemory.peek)
    set = over_redis(WorkingMemory.set)
    delete = over_redis(WorkingMemory.delete)
    clear = over_redis(WorkingMemory.clear)
    set_scratchpad = over_redis(WorkingMemory.set_scratchpad)
    get_scratchpad = over_redis(WorkingMemory.get_scratchpad)
    set_entities = over_redis(WorkingMemory.set_entities)
    get_entities = over_redis(WorkingMemory.get_entities)


class AsyncInjectionLedger(AsyncTwin[InjectionLedger]):
    """The injection ledger of a conversation: `InjectionLedger`, awaited."""

    get_all = over_redis(InjectionLedger.get_all)
    check = over_redis(InjectionLedger.check)
    mark = over_redis(InjectionLedger.mark)
    evict = over_redis(InjectionLedger.evict)


class RedisManager(AsyncTwin[KeyValues]):
    """The documented Redis manager: an account's texts by key, and the injection ledgers of its conversations."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(KeyValues(owner))
        self._owner = owner

    get = over_redis(KeyValues.get)
    set = over_redis(KeyValues.set)
    delete = over_redis(KeyValues.delete)

    def _ledger_key(self, conversation_id: str) -> str:
        """Return the key of a conversation's ledger in Redis."""
        ref = ConversationRef(account_id=self._owner.account_id, conversation_id=conversation_id)
        return conversation_key("ledger", ref)

    async def ledger_has(self, conversation_id: str, item_key: str) -> bool:
        """Return whether the item was injected into the conversation."""
        return await self._ledger(conversation_id).check(item_key) is not None

    async def ledger_mark(self, conversation_id: str, item_key: str, value: str = "1") -> None:
        """Record an injection. The first value stays."""
        await self._ledger(conversation_id).mark(item_key, value)

    async def ledger_get_all(self, conversation_id: str) -> dict[str, str]:
        """Return the value of each injected item by its key."""
        return await self._ledger(conversation_id).get_all()

    def _ledger(self, conversation_id: str) -> AsyncInjectionLedger:
        return AsyncInjectionLedger(InjectionLedger(self._owner, conversation_id))


class AsyncWorkingMemoryService(AsyncTwin[WorkingMemoryService]):
    """The working memory of an agent: `WorkingMemoryService`, awaited."""

    store = over_redis(WorkingMemoryService.store)
    find = over_redis(WorkingMemoryService.find)
    retrieve = over_redis(WorkingMemoryService.retrieve)
    exists = over_redis(WorkingMemoryService.exists)
    remove = over_redis(WorkingMemoryService.remove)
    keys = over_redis(WorkingMemoryService.keys)
    expiries = over_redis(WorkingMemoryService.expiries)
    clear = over_redis(WorkingMemoryService.clear)
    append = over_redis(WorkingMemoryService.append)
    stats = over_redis(WorkingMemoryService.stats)
    store_task_state = over_redis(WorkingMemoryService.store_task_state)
    get_task_state = over_redis(WorkingMemoryService.get_task_state)
    store_intermediate_result = over_redis(WorkingMemoryService.store_intermediate_result)
    get_intermediate_result = over_redis(WorkingMemoryService.get_intermediate_result)
    store_conversation_context = over_redis(WorkingMemoryService.store_conversation_context)
    get_conversation_context = over_redis(WorkingMemoryService.get_conversation_context)
    append_to_conversation = over_redis(WorkingMemoryService.append_to_conversation)
    store_tool_state = over_redis(WorkingMemoryService.store_tool_state)
    get_tool_state = over_redis(WorkingMemoryService.get_tool_state)
    store_scratch_pad = over_redis(WorkingMemoryService.store_scratch_pad)
    get_scratch_pad = over_redis(WorkingMemoryService.get_scratch_pad)
    append_to_scratch_pad = over_redis(WorkingMemoryService.append_to_scratch_pad)
    share_with_agent = over_redis(WorkingMemoryService.share_with_agent)
    share_stored = over_redis(WorkingMemoryService.share_stored)
    take_back = over_redis(WorkingMemoryService.take_back)
    retrieve_shared = over_redis(WorkingMemoryService.retrieve_shared)
    find_shared = over_redis(WorkingMemoryService.find_shared)
    snapshot = over_redis(WorkingMemoryService.snapshot)
    restore = over_redis(WorkingMemoryService.restore)
    persist_to_database = in_thread(WorkingMemoryService.persist_to_database)
    load_from_database = in_thread(WorkingMemoryService.load_from_database)

    def workflow_memory(self, workflow_run_id: str) -> "AsyncWorkingMemoryService":
        """Return the agent's memory for this workflow run."""
        return AsyncWorkingMemoryService(self.synchronous.workflow_memory(workflow_run_id))


class AsyncAgentSession(AsyncTwin[AgentSession]):
    """The live session of a conversation: `AgentSession`, awaited."""

    add_turn = in_thread(AgentSession.add_turn)
    get_recent_turns = in_thread(AgentSession.get_recent_turns)
    set = in_thread(AgentSession.set)
    get = in_thread(AgentSession.get)
    delete = in_thread(AgentSession.delete)
    get_context = in_thread(AgentSession.get_context)
    clear_session = in_thread(AgentSession.clear_session)
    set_active_goal = in_thread(AgentSession.set_active_goal)
    get_active_goal = in_thread(AgentSession.get_active_goal)
    push_thought = in_thread(AgentSession.push_thought)
    get_thoughts = in_thread(AgentSession.get_thoughts)


class AsyncHybridMemory:
    """The memory of one session as it was last read, plus what was added since. No call of it waits for anything.

    `AsyncMemoryManager.save_memory` stores what was added, and so does the manager's next call for this session.
    """

    def __init__(self) -> None:
        self.messages: list[AgentMessage] = []
        self.added: list[Mapping[str, Any]] = []
        self.context: HybridContext | None = None

    def add(self, message: Mapping[str, Any] | AgentMessage) -> None:
        """Add a chat message to the buffer. Raises MalformedMessage."""
        fields = fields_of_message(message)
        said = read_message(fields)
        self.added.append(fields)
        self.messages.append(AgentMessage(role=said.role, content=fields.get("content"), name=said.name))

    def get_messages(self, limit: int | None = None) -> list[AgentMessage]:
        """Return the latest messages, oldest first; MEMORY_MAX_CONTEXT_MESSAGES by default."""
        most = conf.MAX_CONTEXT_MESSAGES if limit is None else limit
        return self.messages[-most:] if most > 0 else []

    def get_context(self) -> str:
        """Return the summary of earlier messages and similar past interactions, as of the last read."""
        return self.context or ""


class AsyncMemoryManager(AsyncTwin[MemoryManager]):
    """The documented manager of sessions' memories. It keeps the memories that it returned, one for each session."""

    def __init__(self, owner: Owner) -> None:
        super().__init__(MemoryManager(owner))
        self._owner = owner
        self._memories: dict[str, AsyncHybridMemory] = {}

    async def get_memory(self, session_id: str) -> AsyncHybridMemory:
        """Return the session's memory, created if it is new, with what was said and summarized until now."""
        memory = self._memories.setdefault(session_id, AsyncHybridMemory())
        await self._store_added(session_id)
        memory.context, memory.messages = await run_in_thread(partial(self._read, session_id))
        return memory

    async def save_memory(self, session_id: str) -> Conversation:
        """Store what was added, and save what only Redis has. Raises NotFound for an unknown session."""
        await self._store_added(session_id)
        return await run_in_thread(partial(self.synchronous.save_memory, session_id))

    async def summarize_if_needed(self, session_id: str) -> bool:
        """Store what was added, queue a summary if enough messages wait for one, and return whether one is due."""
        await self._store_added(session_id)
        return await run_in_thread(partial(self.synchronous.summarize_if_needed, session_id))

    async def clear_session(self, session_id: str) -> None:
        """Forget buffer, goal, thoughts and values, and what was added and not stored; the log stays."""
        self._memories.pop(session_id, None)
        await run_in_thread(partial(self.synchronous.clear_session, session_id))

    async def _store_added(self, session_id: str) -> None:
        memory = self._memories.get(session_id)
        if memory is None or not memory.added:
            return
        added, memory.added = memory.added, []
        try:
            await run_in_thread(partial(append_messages, self._owner, session_id, added, now=time_of_call(None)))
        except BaseException:
            memory.added[:0] = added
            raise

    def _read(self, session_id: str) -> tuple[HybridContext, list[AgentMessage]]:
        memory = self.synchronous.get_memory(session_id)
        return memory.get_context(), [*memory.get_messages(conf.BUFFER_MESSAGES)]


class AsyncAgentRouter(AsyncTwin[AgentRouter]):
    """Keyed values in whichever tier they are: `AgentRouter`, awaited."""

    read = in_thread(AgentRouter.read)
    write = in_thread(AgentRouter.write)
    delete = in_thread(AgentRouter.delete)
    semantic_search = in_thread(AgentRouter.semantic_search)
    consolidate = in_thread(AgentRouter.consolidate)
    stats = in_thread(AgentRouter.stats)


class AsyncAgentShortTerm(AsyncTwin[AgentShortTerm]):
    """Short-term entries: `AgentShortTerm`, awaited."""

    store = in_thread(AgentShortTerm.store)
    read = in_thread(AgentShortTerm.read)
    delete = in_thread(AgentShortTerm.delete)


class AsyncAgentPool(AsyncTwin[AgentPool]):
    """The data of a pool: `AgentPool`, awaited."""

    read = in_thread(AgentPool.read)
    write = in_thread(AgentPool.write)
    merge = in_thread(AgentPool.merge)


class AsyncAgentToolCache(AsyncTwin[AgentToolCache]):
    """A pool of tool results: `AgentToolCache`, awaited."""

    store = in_thread(AgentToolCache.store)
    find = in_thread(AgentToolCache.find)


class AsyncAgentFacts(AsyncTwin[AgentFacts]):
    """Facts in the agent's own context: `AgentFacts`, awaited."""

    store = in_thread(AgentFacts.store)
    search = in_thread(AgentFacts.search)


class AsyncAgentMemory(AsyncTwin[AgentMemory]):
    """Everything that one agent remembers, for one user and in one channel: `AgentMemory`, awaited.

    Leaving `async with` closes the event loop's connections to Redis:

        async with await AsyncAgentMemory.open(agent_id="assistant", user_id="ana") as memory:
            await memory.store_turn("trip", {"role": "user", "content": "We fly on 4 May."})
    """

    @classmethod
    async def open(
        cls, account: str = "default", *, agent_id: str, user_id: str = "", channel: str = GLOBAL_CHANNEL
    ) -> Self:
        """Open the memory of an agent, created with its first write. Raises NotFound for an unknown account."""
        opened = partial(AgentMemory.open, account, agent_id=agent_id, user_id=user_id, channel=channel)
        return cls(await run_in_thread(opened))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await close_async_client()

    @property
    def owner(self) -> Owner:
        """Return whose memory it is."""
        return self.synchronous.owner

    @property
    def memory_manager(self) -> AsyncMemoryManager:
        return AsyncMemoryManager(self.owner)

    @property
    def working_memory(self) -> AsyncWorkingMemory:
        return AsyncWorkingMemory(self.owner)

    @property
    def router(self) -> AsyncAgentRouter:
        return AsyncAgentRouter(self.synchronous.router)

    @property
    def factual(self) -> AsyncAgentFacts:
        return AsyncAgentFacts(self.synchronous.factual)

    def agent_working_memory(self, task_id: str = "", workflow_run_id: str = "") -> AsyncWorkingMemoryService:
        return AsyncWorkingMemoryService(self.synchronous.agent_working_memory(task_id, workflow_run_id))

    def session(self, conversation_id: str) -> AsyncAgentSession:
        return AsyncAgentSession(self.synchronous.session(conversation_id))

    def ledger(self, conversation_id: str) -> AsyncInjectionLedger:
        return AsyncInjectionLedger(self.synchronous.ledger(conversation_id))

    def short_term(self, session_id: str = "") -> AsyncAgentShortTerm:
        return AsyncAgentShortTerm(self.synchronous.short_term(session_id))

    def pool(self, pool_id: str) -> AsyncAgentPool:
        return AsyncAgentPool(self.synchronous.pool(pool_id))

    def tool_cache(self, pool_id: str) -> AsyncAgentToolCache:
        return AsyncAgentToolCache(self.synchronous.tool_cache(pool_id))

    create_pool = in_thread(AgentMemory.create_pool)
    store_turn = in_thread(AgentMemory.store_turn)
    store_turns = in_thread(AgentMemory.store_turns)
    get_conversation = in_thread(AgentMemory.get_conversation)
    get_recent_turns = in_thread(AgentMemory.get_recent_turns)
    search_turns = in_thread(AgentMemory.search_turns)
    context = in_thread(AgentMemory.context)
    timeline = in_thread(AgentMemory.timeline)
    replay = in_thread(AgentMemory.replay)
    resume = in_thread(AgentMemory.resume)
    end_conversation = in_thread(AgentMemory.end_conversation)
    remember = in_thread(AgentMemory.remember)
    recall = in_thread(AgentMemory.recall)
    upsert_entity = in_thread(AgentMemory.upsert_entity)
    create_relationship = in_thread(AgentMemory.create_relationship)
    get_entity_graph = in_thread(AgentMemory.get_entity_graph)
    learn_fact = in_thread(AgentMemory.learn_fact)
    promote_to_global = in_thread(AgentMemory.promote_to_global)
    record_invocation = in_thread(AgentMemory.record_invocation)
    get_tool_stats = in_thread(AgentMemory.get_tool_stats)
    learn_strategy = in_thread(AgentMemory.learn_strategy)
    find_strategies = in_thread(AgentMemory.find_strategies)
    reinforce_strategy = in_thread(AgentMemory.reinforce_strategy)
    add_goal = in_thread(AgentMemory.add_goal)
    get_goal = in_thread(AgentMemory.get_goal)
    complete_goal = in_thread(AgentMemory.complete_goal)

    @asynccontextmanager
    async def task(
        self,
        description: str,
        *,
        priority: int = 0,
        deadline: datetime | None = None,
        parent_id: UUID | None = None,
        conversation_id: str = "",
    ) -> AsyncGenerator[Task, None]:
        """Add a goal for as long as the block runs (see `AgentMemory.task`)."""
        block = self.synchronous.task(
            description, priority=priority, deadline=deadline, parent_id=parent_id, conversation_id=conversation_id
        )
        task = await run_in_thread(block.__enter__)
        try:
            yield task
        except BaseException as err:
            if not await run_in_thread(partial(block.__exit__, type(err), err, err.__traceback__)):
                raise
        else:
            await run_in_thread(partial(block.__exit__, None, None, None))
