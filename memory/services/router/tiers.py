"""The four tiers of an agent as the router uses them: a `Tier` over each store of keyed values."""

from collections.abc import Set as AbstractSet
from datetime import datetime
from typing import Any, ClassVar

from django.db.models import Count, F, Func, IntegerField, QuerySet, Sum, TextField, Value
from django.db.models.functions import Cast, Coalesce

from memory import conf
from memory.errors import NotFound
from memory.models import AgentShortTermMemory, ContextEntry, Kind, MemoryPool
from memory.owner import Owner
from memory.services.accounts.register import register_agent
from memory.services.contexts.access_log import Action, log_reads
from memory.services.contexts.entries import EntryDraft, remove_entry, store_entries
from memory.services.contexts.manage import ensure_own_context, find_keyed_value, find_own_context
from memory.services.embedding.embed import embed_texts
from memory.services.pools.data import change_data, read_data, write_data
from memory.services.pools.manage import ensure_own_pool
from memory.services.short_term.keep import MAX_TTL_SECONDS, ShortTermDraft, delete_entry, read_entry, store_entry
from memory.tiers import agent_working
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.base import NewValue, Tier, TierScope, TierStats, TierValue, keyed_json
from memory.tiers.json_documents import pointer_from_names

NO_TYPES: AbstractSet[str] = frozenset()


class WorkingTier:
    """The agent's own working memory, not that of a task or a workflow run."""

    name: ClassVar[str] = "working"
    has_pools: ClassVar[bool] = False
    max_ttl_seconds: ClassVar[int] = agent_working.MAX_TTL_SECONDS
    memory_types: ClassVar[AbstractSet[str]] = NO_TYPES

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._memory = WorkingMemoryService(owner)

    def read(self, key: str, within: TierScope, *, now: datetime) -> TierValue | None:
        found = self._memory.find(key)
        return None if found is None else TierValue(value=found.value)

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        self._memory.store(key, written.value, written.ttl_seconds)
        register_agent(self._owner.account_id, self._owner.agent_id)

    def delete(self, key: str, within: TierScope, *, now: datetime) -> bool:
        return self._memory.remove(key)

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        return self._memory.keys()

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        found = self._memory.stats()
        return TierStats(entries=found.entries, size_bytes=found.size_bytes)


class ShortTermTier:
    """The agent's short-term entries. Reads count as accesses."""

    name: ClassVar[str] = "short_term"
    has_pools: ClassVar[bool] = False
    max_ttl_seconds: ClassVar[int] = MAX_TTL_SECONDS
    memory_types: ClassVar[AbstractSet[str]] = frozenset(AgentShortTermMemory.MemoryType.values)

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def read(self, key: str, within: TierScope, *, now: datetime) -> TierValue | None:
        try:
            return TierValue(value=read_entry(self._owner, key=key, session_id=within.session_id, now=now).memory_value)
        except NotFound:
            return None

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        draft = ShortTermDraft(
            memory_key=key,
            memory_value=written.value,
            session_id=within.session_id,
            memory_type=written.memory_type or AgentShortTermMemory.MemoryType.TASK_CONTEXT.value,
            ttl_seconds=conf.SHORT_TERM_TTL_SECONDS if written.ttl_seconds is None else written.ttl_seconds,
        )
        store_entry(self._owner, draft, now=now)

    def delete(self, key: str, within: TierScope, *, now: datetime) -> bool:
        try:
            delete_entry(self._owner, key=key, session_id=within.session_id, now=now)
        except NotFound:
            return False
        return True

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        rows = AgentShortTermMemory.objects.visible_to(self._owner).live(now).filter(session_id=within.session_id)
        return sorted(rows.values_list("memory_key", flat=True))

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        """Measure the entries of all sessions."""
        rows = AgentShortTermMemory.objects.visible_to(self._owner).live(now)
        return measure_rows(rows, octet_length("memory_key") + octet_length("memory_value"))


class LongTermTier:
    """The entries of the agent's own context, `agent_memory`. Reads are in its access log."""

    name: ClassVar[str] = "long_term"
    has_pools: ClassVar[bool] = False
    max_ttl_seconds: ClassVar[int] = 0
    memory_types: ClassVar[AbstractSet[str]] = frozenset(ContextEntry.MemoryType.values)

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def read(self, key: str, within: TierScope, *, now: datetime) -> TierValue | None:
        found = find_keyed_value(self._owner, key, now=now)
        if found is None:
            return None
        log_reads(self._owner, [(found.context_id, found.entry_id)], action=Action.READ, now=now)
        return TierValue(value=found.value)

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        keyed_json(written.value)
        draft = EntryDraft(key=key, value=written.value, memory_type=written.memory_type or None)
        embedded = embed_texts([draft.text])
        context = ensure_own_context(self._owner, now=now)
        store_entries(self._owner, context.id, drafts=[draft], embedded=embedded, now=now)

    def delete(self, key: str, within: TierScope, *, now: datetime) -> bool:
        """Remove the entry. Raises Conflict if the context is archived and has the key."""
        found = find_keyed_value(self._owner, key, now=now)
        if found is None:
            return False
        try:
            remove_entry(self._owner, found.entry_id, now=now)
        except NotFound:
            return False
        return True

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        """Return the keys of entries that have one."""
        return sorted(self._entries(now).exclude(key="").values_list("key", flat=True))

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        """Measure all entries of the context, those without a key too."""
        return measure_rows(
            self._entries(now), octet_length("key") + Coalesce(octet_length("value"), octet_length("text"))
        )

    def _entries(self, now: datetime) -> QuerySet[Any]:
        entries: Any = ContextEntry.objects.visible_to(self._owner, Kind.CONTEXT_ENTRY)
        return entries.live(now).filter(context__in=find_own_context(self._owner))  # type: ignore[no-any-return]


class SharedTier:
    """Top-level names of the named pool, or of the agent's own."""

    name: ClassVar[str] = "shared"
    has_pools: ClassVar[bool] = True
    max_ttl_seconds: ClassVar[int] = 0
    memory_types: ClassVar[AbstractSet[str]] = NO_TYPES

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def read(self, key: str, within: TierScope, *, now: datetime) -> TierValue | None:
        pool_id = self._find_pool_id(within, now)
        if not pool_id:
            return None
        try:
            return TierValue(value=read_data(self._owner, pool_id, path=pool_path(key), now=now).data)
        except NotFound:
            return None

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        """Store the value under its name. Raises NotFound, Forbidden, TooLarge, Unprocessable of the pool."""
        keyed_json(written.value)
        pool_id = within.pool_id or ensure_own_pool(self._owner, now=now).pool_id
        write_data(self._owner, pool_id, path=pool_path(key), data=written.value, expected=None, now=now)

    def delete(self, key: str, within: TierScope, *, now: datetime) -> bool:
        """Remove the name. Raises Forbidden if the pool may only be read."""
        pool_id = self._find_pool_id(within, now)
        if not pool_id:
            return False

        def leave_out(stored: dict[str, Any]) -> dict[str, Any]:
            if key not in stored:
                # raising here writes nothing, so that the pool gets no new version
                raise NotFound("the pool has no such name")
            return {name: value for name, value in stored.items() if name != key}

        try:
            change_data(self._owner, pool_id, leave_out, expected=None, now=now)
        except NotFound:
            return False
        return True

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        pool_id = self._find_pool_id(within, now)
        return sorted(read_data(self._owner, pool_id, now=now).data) if pool_id else []

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        pools = MemoryPool.objects.visible_to(self._owner).live(now)
        named = pools.filter(pool_id=within.pool_id) if within.pool_id else pools.filter(**self._is_own)
        entries, size_bytes = named.values_list("entry_count", "size_bytes").first() or (0, 0)
        return TierStats(entries=entries, size_bytes=size_bytes)

    def _find_pool_id(self, within: TierScope, now: datetime) -> str:
        """Return the pool's id; empty if the agent has no pool of its own yet."""
        if within.pool_id:
            return within.pool_id
        mine = MemoryPool.objects.filter(account_id=self._owner.account_id, **self._is_own)
        return mine.live(now).values_list("pool_id", flat=True).first() or ""

    @property
    def _is_own(self) -> dict[str, Any]:
        return {"agent_id": self._owner.agent_id, "is_own": True}


def build_tiers(owner: Owner) -> tuple[Tier, ...]:
    """Return the owner's tiers, fastest first."""
    return (WorkingTier(owner), ShortTermTier(owner), LongTermTier(owner), SharedTier(owner))


def pool_path(key: str) -> str:
    return str(pointer_from_names([key]).path)


def octet_length(column: str) -> Func:
    return Func(Cast(F(column), TextField()), function="octet_length", output_field=IntegerField())


def measure_rows(rows: QuerySet[Any], size: Any) -> TierStats:
    found = rows.aggregate(entries=Count("pk"), size_bytes=Coalesce(Sum(size), Value(0)))
    return TierStats(entries=found["entries"], size_bytes=found["size_bytes"])
