"""The models of the tiers document with their documented methods: a row, and the account or agent that acts on it.

`memory.documented.tiers` has them under their documented names:
`MemoryPool.find_by(pool_id="plan").grant_access("colleague", "write")`. A row changes only through its service, which
checks the owner and writes the audit entry, so each method is one call into it, and then has the row as it is stored.
All other attributes are the columns of the row.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Generic, Self, TypeVar
from uuid import UUID

from memory import models
from memory.documented.owners import owner_of_agent
from memory.documented.services import MaintenanceService
from memory.errors import require_found
from memory.models import Account, Agent, JobRun
from memory.models.access import Level, SharedRow
from memory.models.accounts import AccountRow
from memory.models.short_term import ShortTermKey
from memory.models.statements import Embedding
from memory.owner import Owner
from memory.retrieval.kind_searches import EntryResults
from memory.services import short_term
from memory.services.contexts import entries, manage, snapshots
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import validate_vector
from memory.services.pools import data as pool_data
from memory.services.pools import manage as pools
from memory.tiers.base import time_of_call

IMPORTANCE_STEP = 0.1
R = TypeVar("R", bound=AccountRow | SharedRow)
Actor = Agent | str
"""An agent, by row or by name. Empty: the account itself."""


class DocumentedRow(Generic[R]):
    """A row with the owner that acts on it."""

    def __init__(self, row: R, *, agent: Actor = "") -> None:
        self.row = row
        self._owner = owner_of_agent(row.account, agent)

    def __getattr__(self, name: str) -> Any:
        if name == "row":
            raise AttributeError(name)
        return getattr(self.row, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.row}>"


class DocumentedPool(DocumentedRow[models.MemoryPool]):
    """A pool, shared by agents."""

    POOL_TYPES = tuple(models.MemoryPool.PoolType.values)
    SCOPES = tuple(models.MemoryPool.Scope.values)

    @classmethod
    def find_by(
        cls, *, pool_id: str, account: Account | str = "default", agent: Actor = "", now: datetime | None = None
    ) -> Self:
        """Return a live pool that the agent may read. Raises NotFound."""
        return cls(pools.find_pool(owner_of_agent(account, agent), pool_id, now=time_of_call(now)), agent=agent)

    def read_data(self, path: str = "", *, now: datetime | None = None) -> Any:
        """Return the data, or the part under a JSON Pointer, and count the read."""
        return pool_data.read_data(self._owner, self.row.pool_id, path=path, now=time_of_call(now)).data

    def write_data(self, data: Any, path: str = "", *, now: datetime | None = None) -> Any:
        """Replace the data, or the part under a JSON Pointer, and return the whole."""
        moment = time_of_call(now)
        written = pool_data.write_data(self._owner, self.row.pool_id, path=path, data=data, expected=None, now=moment)
        return self._reread(written, moment)

    def merge_data(self, data: Any, path: str = "", *, now: datetime | None = None) -> Any:
        """Merge into the data, objects by name at every depth, and return the whole."""
        moment = time_of_call(now)
        merged = pool_data.merge_data(self._owner, self.row.pool_id, path=path, data=data, expected=None, now=moment)
        return self._reread(merged, moment)

    def _reread(self, stored: pool_data.PoolData, now: datetime) -> Any:
        self.row = pools.find_pool(self._owner, self.row.pool_id, now=now)
        return stored.data

    def accessible_by(self, agent: Actor, level: Level | str = Level.READ) -> bool:
        """Return True if the agent may read (or write) the pool."""
        named = agent if isinstance(agent, str) else agent.agent_id
        rows = models.MemoryPool.objects
        owner = owner_of_agent(self.row.account, named)
        able = rows.writable_by(owner) if Level(level) == Level.WRITE else rows.visible_to(owner)
        return able.filter(id=self.row.id).exists()

    def grant_access(self, agent_id: str, level: Level | str, *, now: datetime | None = None) -> Self:
        """Let an agent `read` or `write`."""
        self.row = pools.grant_access(
            self._owner,
            self.row.pool_id,
            agent_id=agent_id,
            level=Level(level),
            expected=None,
            now=time_of_call(now),
        )
        return self

    def revoke_access(self, agent_id: str, *, now: datetime | None = None) -> Self:
        """Take back what was granted to an agent."""
        self.row = pools.revoke_access(
            self._owner, self.row.pool_id, agent_id=agent_id, expected=None, now=time_of_call(now)
        )
        return self

    def statistics(self, *, now: datetime | None = None) -> pools.PoolStatistics:
        """Return the number of entries, the size, and how often the pool was read and written."""
        return pools.pool_statistics(self._owner, self.row.pool_id, now=time_of_call(now))


class DocumentedContext(DocumentedRow[models.PersistentContext]):
    """A context, which holds entries for good."""

    CONTEXT_TYPES = tuple(models.PersistentContext.ContextType.values)
    SCOPES = tuple(models.PersistentContext.Scope.values)

    @classmethod
    def find_by(cls, *, context_id: UUID, account: Account | str = "default", agent: Actor = "") -> Self:
        """Return a context that the agent may read. Raises NotFound."""
        return cls(manage.find_context(owner_of_agent(account, agent), context_id), agent=agent)

    def create_snapshot(self, name: str = "", *, now: datetime | None = None) -> models.ContextSnapshot:
        """Keep which entries the context holds."""
        return snapshots.create_snapshot(self._owner, self.row.id, name=name, now=time_of_call(now))

    def restore_from_snapshot(
        self, snapshot: models.ContextSnapshot | UUID, *, now: datetime | None = None
    ) -> snapshots.RestoreCounts:
        """Make the context hold the snapshot's entries as they were."""
        moment = time_of_call(now)
        snapshot_id = snapshot if isinstance(snapshot, UUID) else snapshot.id
        embedded = embed_texts(snapshots.texts_to_restore(self._owner, self.row.id, snapshot_id, now=moment))
        return snapshots.restore_snapshot(self._owner, self.row.id, snapshot_id, embedded=embedded, now=moment)

    def archive(self, *, now: datetime | None = None) -> Self:
        """Make the context read-only, and leave it out of searches."""
        self.row = manage.archive_context(self._owner, self.row.id, expected=None, now=time_of_call(now))
        return self

    def unarchive(self, *, now: datetime | None = None) -> Self:
        """Undo `archive`."""
        self.row = manage.unarchive_context(self._owner, self.row.id, expected=None, now=time_of_call(now))
        return self

    def grant_access(self, agent_id: str, level: Level | str, *, now: datetime | None = None) -> Self:
        """Let an agent `read` or `write`."""
        self.row = manage.grant_context(
            self._owner, self.row.id, agent_id=agent_id, level=Level(level), expected=None, now=time_of_call(now)
        )
        return self


class DocumentedEntry(DocumentedRow[models.ContextEntry]):
    """An entry of a context."""

    ENTRY_TYPES = tuple(models.ContextEntry.EntryType.values)
    SOURCE_TYPES = tuple(models.ContextEntry.SourceType.values)
    MEMORY_TYPES = tuple(models.ContextEntry.MemoryType.values)

    @classmethod
    def find_by(cls, *, entry_id: UUID, account: Account | str = "default", agent: Actor = "") -> Self:
        """Return an entry that the agent may read. Raises NotFound."""
        rows = models.ContextEntry.objects.visible_to(owner_of_agent(account, agent)).filter(id=entry_id)
        return cls(require_found(rows.first(), "entry"), agent=agent)

    @classmethod
    def semantic_search(
        cls,
        query_embedding: Embedding | Sequence[float],
        limit: int = 10,
        *,
        account: Account | str = "default",
        agent: Actor = "",
        now: datetime | None = None,
    ) -> EntryResults:
        """Return the entries nearest to an embedding of the configured model."""
        owner = owner_of_agent(account, agent)
        own = validate_vector(owner, model="", vector=query_embedding)
        return find_entries(owner, EntryQuestion(text="", top_k=limit, own=own), now=time_of_call(now))

    def update_content(self, new_content: str, editor: str = "", *, now: datetime | None = None) -> Self:
        """Give the entry new content, as its next version."""
        edit = entries.EntryEdit(content=new_content, editor=editor)
        embedded = embed_texts([new_content])
        self.row = entries.update_entry_content(
            self._owner, self.row.id, edit=edit, embedded=embedded, now=time_of_call(now)
        )
        return self

    def boost_importance(self, by: float = IMPORTANCE_STEP, *, now: datetime | None = None) -> Self:
        """Raise the importance, up to 1."""
        self.row = entries.boost_importance(self._owner, self.row.id, by=by, now=time_of_call(now))
        return self

    def reduce_importance(self, by: float = IMPORTANCE_STEP, *, now: datetime | None = None) -> Self:
        """Lower the importance, down to 0."""
        self.row = entries.reduce_importance(self._owner, self.row.id, by=by, now=time_of_call(now))
        return self

    def effective_relevance_score(self, now: datetime | None = None) -> float:
        """Return importance, confidence and recency as one number in [0, 1]."""
        return self.row.effective_relevance_score(time_of_call(now))


class DocumentedShortTermMemory(DocumentedRow[models.AgentShortTermMemory]):
    """An entry of an agent that expires."""

    def __init__(self, row: models.AgentShortTermMemory, *, agent: Actor = "") -> None:
        super().__init__(row, agent=agent or row.agent_id)

    @classmethod
    def find_by(
        cls,
        *,
        memory_key: str,
        agent: Actor,
        session_id: str = "",
        account: Account | str = "default",
        now: datetime | None = None,
    ) -> Self:
        """Return a live entry, without counting an access. Raises NotFound."""
        rows = models.AgentShortTermMemory.objects.visible_to(owner_of_agent(account, agent)).live(time_of_call(now))
        return cls(require_found(rows.filter(memory_key=memory_key, session_id=session_id).first(), "entry"))

    @classmethod
    def cleanup_expired(cls, *, account: Account | str = "default") -> JobRun:
        """Delete the account's expired entries (the job `expire`)."""
        owner: Owner = owner_of_agent(account, "")
        return MaintenanceService(owner).cleanup_expired()

    def touch_access(self, *, now: datetime | None = None) -> Self:
        """Count an access."""
        self.row = short_term.read_entry(self._owner, ShortTermKey(id=self.row.id), now=time_of_call(now))
        return self

    def refresh_ttl(self, ttl_seconds: int | None = None, *, now: datetime | None = None) -> Self:
        """Extend the life of the entry to its lifetime from now, or to another one."""
        self.row = short_term.refresh_entry(
            self._owner, ShortTermKey(id=self.row.id), ttl_seconds=ttl_seconds, now=time_of_call(now)
        )
        return self
