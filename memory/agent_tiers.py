"""Keyed values and pools of the in-process API (`agent_memory`), by noun: each method one service call, by its clock.

They raise what the services do, which `errors.py` draws.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from memory import conf
from memory.models import (
    AgentShortTermMemory,
    BlackboardPosting,
    Level,
    MemoryPool,
    SharedContextPool,
    ToolCacheEntry,
    WorkflowRun,
)
from memory.owner import Owner
from memory.retrieval.entries import EntryResults
from memory.services.accounts.access import ExpectedVersions
from memory.services.memories.store import ClientVector
from memory.services.pools.data import PoolData
from memory.services.pools.manage import (
    PoolDraft,
    PoolStatistics,
    delete_pool,
    find_pool,
    grant_access,
    pool_statistics,
    revoke_access,
)
from memory.services.pools.share import (
    cache_result,
    delete_cached_result,
    find_cached_result,
    live_results,
    post_to_blackboard,
    read_postings,
)
from memory.services.pools.workflow_runs import change_run, create_run_pool, find_run, run_pools
from memory.services.router.concerns import StorageService
from memory.services.router.route import MemoryRouter, RoutedTierStats, RoutedValue
from memory.services.short_term import keep as short_term
from memory.services.short_term.keep import ShortTermDraft
from memory.services.short_term.promote import PromotedKeys
from memory.tiers.base import NewValue

Clock = Callable[[datetime | None], datetime]
"""The moment of a call: the one that it brings, else now."""

TASK_CONTEXT = AgentShortTermMemory.MemoryType.TASK_CONTEXT.value


class AgentPart:
    """A part of what an agent remembers: for whom, and by which clock."""

    def __init__(self, owner: Owner, clock: Clock) -> None:
        self._owner = owner
        self._clock = clock
        self._storage = StorageService(owner)


class AgentRouter(AgentPart):
    """The agent's keyed values in whichever tier they are (see `MemoryRouter`).

    >>> router = memory.router
    >>> router.write("colour", NewValue(value="green")).tier
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
        moment = self._clock(now)
        return self._router.read(key, session_id=session_id, pool_id=pool_id, tier=tier, now=moment)

    def write(
        self,
        key: str,
        written: NewValue,
        *,
        session_id: str = "",
        pool_id: str = "",
        tier: str = "short_term",
        now: datetime | None = None,
    ) -> RoutedValue:
        """Store the value in one tier, over what is there."""
        moment = self._clock(now)
        return self._router.write(key, written, session_id=session_id, pool_id=pool_id, tier=tier, now=moment)

    def delete(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime | None = None
    ) -> tuple[str, ...]:
        """Out of every tier, or of the one named; the names of those that had it. Raises NotFound for none."""
        moment = self._clock(now)
        return self._router.delete(key, session_id=session_id, pool_id=pool_id, tier=tier, now=moment)

    def keys(self, *, tier: str, session_id: str = "", pool_id: str = "", now: datetime | None = None) -> list[str]:
        """Return the keys of one tier, in order."""
        return self._router.keys(tier=tier, session_id=session_id, pool_id=pool_id, now=self._clock(now))

    def semantic_search(
        self, query: str, *, top_k: int = 10, own: ClientVector | None = None, now: datetime | None = None
    ) -> EntryResults:
        """Return the long-term entries nearest to the query, or to a vector of one's own."""
        return self._router.semantic_search(query, top_k=top_k, own=own, now=self._clock(now))

    def consolidate(self, *, session_id: str, now: datetime | None = None) -> PromotedKeys:
        """Keep for good what was read often in a session."""
        return self._router.consolidate(session_id=session_id, now=self._clock(now))

    def stats(self, *, now: datetime | None = None) -> dict[str, RoutedTierStats]:
        """Entries, bytes, hits and misses by tier."""
        return self._router.stats(now=self._clock(now))

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

    def __init__(self, owner: Owner, clock: Clock, *, session_id: str) -> None:
        super().__init__(owner, clock)
        self._session_id = session_id

    def store(
        self,
        key: str,
        value: Any,
        *,
        memory_type: str = TASK_CONTEXT,
        ttl_seconds: int = conf.SHORT_TERM_TTL_SECONDS,
        now: datetime | None = None,
    ) -> AgentShortTermMemory:
        """Over what is there. Raises TooLarge."""
        draft = ShortTermDraft(
            memory_key=key,
            memory_value=value,
            session_id=self._session_id,
            memory_type=memory_type,
            ttl_seconds=ttl_seconds,
        )
        return short_term.store_entry(self._owner, draft, now=self._clock(now))

    def read(self, key: str, *, now: datetime | None = None) -> AgentShortTermMemory:
        """Return an entry and count the access. Raises NotFound."""
        return short_term.read_entry(self._owner, key=key, session_id=self._session_id, now=self._clock(now))

    def refresh(
        self, entry_id: UUID, *, ttl_seconds: int | None = None, now: datetime | None = None
    ) -> AgentShortTermMemory:
        """Let it live for its time to live, or another, from now on. Raises NotFound."""
        return short_term.refresh_entry(self._owner, entry_id, ttl_seconds=ttl_seconds, now=self._clock(now))

    def delete(self, key: str, *, now: datetime | None = None) -> None:
        """Delete an entry. Raises NotFound."""
        short_term.delete_entry(self._owner, key=key, session_id=self._session_id, now=self._clock(now))


class AgentPool(AgentPart):
    """A pool, by its id: what it holds, and who is let in.

    >>> pool = memory.create_pool(PoolDraft(pool_id="plan", data={"steps": {"one": "look"}}))
    >>> plan = memory.pool("plan")
    >>> plan.merge({"steps": {"two": "dig"}}, expected=frozenset({pool.version})).version
    2
    >>> plan.read("/steps").data
    {'one': 'look', 'two': 'dig'}
    """

    def __init__(self, owner: Owner, clock: Clock, *, pool_id: str) -> None:
        super().__init__(owner, clock)
        self._pool_id = pool_id

    def find(self, *, now: datetime | None = None) -> MemoryPool:
        """Return the pool itself. Raises NotFound."""
        return find_pool(self._owner, self._pool_id, now=self._clock(now))

    def read(self, path: str = "", *, now: datetime | None = None) -> PoolData:
        """All of its data, or what a JSON Pointer leads to. Raises NotFound."""
        return self._storage.read_pool(self._pool_id, path=path, now=self._clock(now))

    def write(
        self, data: Any, *, path: str = "", expected: ExpectedVersions = None, now: datetime | None = None
    ) -> PoolData:
        """Replace the data. Raises NotFound, Forbidden, StaleVersion, TooLarge, Unprocessable."""
        return self._storage.write_pool(self._pool_id, data, path=path, expected=expected, now=self._clock(now))

    def merge(
        self, data: Any, *, path: str = "", expected: ExpectedVersions = None, now: datetime | None = None
    ) -> PoolData:
        """Into what is there, however deep; null is a value. Raises as `write`."""
        return self._storage.merge_pool(self._pool_id, data, path=path, expected=expected, now=self._clock(now))

    def grant(
        self,
        agent_id: str,
        level: Level = Level.READ,
        *,
        expected: ExpectedVersions = None,
        now: datetime | None = None,
    ) -> MemoryPool:
        """Let an agent in. Raises NotFound, Forbidden, StaleVersion."""
        moment = self._clock(now)
        return grant_access(self._owner, self._pool_id, agent_id=agent_id, level=level, expected=expected, now=moment)

    def revoke(
        self,
        agent_id: str,
        level: Level | None = None,
        *,
        expected: ExpectedVersions = None,
        now: datetime | None = None,
    ) -> MemoryPool:
        """Shut an agent out again; without a level, wholly. Raises as `grant`."""
        moment = self._clock(now)
        return revoke_access(self._owner, self._pool_id, agent_id=agent_id, level=level, expected=expected, now=moment)

    def statistics(self, *, now: datetime | None = None) -> PoolStatistics:
        return pool_statistics(self._owner, self._pool_id, now=self._clock(now))

    def delete(self, *, expected: ExpectedVersions = None, now: datetime | None = None) -> None:
        """Delete the pool with its data. Raises NotFound, Forbidden, StaleVersion."""
        delete_pool(self._owner, self._pool_id, expected=expected, now=self._clock(now))


class AgentBlackboard(AgentPart):
    """A pool of type blackboard, by its id: postings in the order in which they came."""

    def __init__(self, owner: Owner, clock: Clock, *, pool_id: str) -> None:
        super().__init__(owner, clock)
        self._pool_id = pool_id

    def post(self, content: Any, *, now: datetime | None = None) -> BlackboardPosting:
        """Append a posting. Raises NotFound, Forbidden, TooLarge, and Conflict once the run has ended."""
        return post_to_blackboard(self._owner, self._pool_id, content=content, now=self._clock(now))

    def postings(self, *, after: int | None = None, now: datetime | None = None) -> QuerySet[BlackboardPosting]:
        """Return the postings after a position, or all of them. Raises NotFound."""
        return read_postings(self._owner, self._pool_id, after=after, now=self._clock(now))


class AgentToolCache(AgentPart):
    """A pool of type tool_cache, by its id: results of tools by key, each until it expires."""

    def __init__(self, owner: Owner, clock: Clock, *, pool_id: str) -> None:
        super().__init__(owner, clock)
        self._pool_id = pool_id

    def store(
        self, key: str, value: Any, *, ttl_seconds: int | None = None, now: datetime | None = None
    ) -> ToolCacheEntry:
        """Store the result of a key, replacing an earlier one. Raises as `AgentBlackboard.post`."""
        moment = self._clock(now)
        return cache_result(self._owner, self._pool_id, key, value=value, ttl_seconds=ttl_seconds, now=moment)

    def find(self, key: str, *, now: datetime | None = None) -> ToolCacheEntry:
        """Return a result and count the hit. Raises NotFound."""
        return find_cached_result(self._owner, self._pool_id, key, now=self._clock(now))

    def forget(self, key: str, *, now: datetime | None = None) -> bool:
        """Delete a result, and return whether it existed."""
        return delete_cached_result(self._owner, self._pool_id, key, now=self._clock(now))

    def keys(self, *, now: datetime | None = None) -> list[str]:
        """Return the keys in order."""
        found = live_results(self._owner, self._pool_id, now=self._clock(now))
        return list(found.order_by("key").values_list("key", flat=True))


class AgentWorkflowRun(AgentPart):
    """A workflow run, by its id: its agents, its end, the pools that they share.

    >>> from memory.services.pools.workflow_runs import RunDraft
    >>> run = memory.start_run(RunDraft(workflow_run_id="run-1", agents=["builder"]))
    >>> board = memory.workflow_run("run-1").create_pool(PoolDraft(pool_id="board", pool_type="blackboard"))
    >>> memory.blackboard("board").post({"found": "key"}).position
    0
    >>> memory.workflow_run("run-1").end("completed").status
    'completed'
    """

    def __init__(self, owner: Owner, clock: Clock, *, workflow_run_id: str) -> None:
        super().__init__(owner, clock)
        self._workflow_run_id = workflow_run_id

    def find(self) -> WorkflowRun:
        """Return the run itself. Raises NotFound."""
        return find_run(self._owner, self._workflow_run_id)

    def change(self, changes: Mapping[str, Any], *, now: datetime | None = None) -> WorkflowRun:
        """Other `agents` or `metadata`. Raises NotFound, Forbidden."""
        return change_run(self._owner, self._workflow_run_id, changes=changes, now=self._clock(now))

    def end(self, status: str, *, now: datetime | None = None) -> WorkflowRun:
        """`completed`, `failed` or `cancelled`; its pools are read-only from then on. Raises as `change`."""
        return self.change({"status": status}, now=now)

    def create_pool(self, draft: PoolDraft, *, now: datetime | None = None) -> SharedContextPool:
        """Create a pool of type shared_memory, tool_cache or blackboard. Raises NotFound, Conflict, Unprocessable."""
        return create_run_pool(self._owner, self._workflow_run_id, draft, now=self._clock(now))

    def pools(self, *, now: datetime | None = None) -> list[MemoryPool]:
        """Return the pools that the agent may read, oldest first. Raises NotFound."""
        return list(run_pools(self._owner, self._workflow_run_id, now=self._clock(now)).order_by("id"))
