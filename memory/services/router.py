"""The memory router (P9): one key over four tiers, read from the fastest one to the shared one.

Each tier is a `Tier` over a store of keyed values. To add a tier, write a subclass of `tiers.base.Tier` and add it to
TIER_CLASSES in reading order.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Func, IntegerField, QuerySet, Sum, TextField, Value
from django.db.models.functions import Cast, Coalesce
from jsonpointer import JsonPointer

from memory import conf
from memory.errors import NotFound, Unprocessable, require_found
from memory.models import AgentShortTermMemory, ContextEntry, MemoryPool
from memory.models.short_term import ShortTermKey
from memory.owner import Owner
from memory.retrieval.kind_searches import EntryResults
from memory.retrieval.search import SearchResults
from memory.services.accounts.register import register_agent
from memory.services.contexts.access_log import Action, log_reads
from memory.services.contexts.aliases import list_aliases, remove_alias
from memory.services.contexts.entries import EntryDraft, remove_entry, store_entries, visible_entries
from memory.services.contexts.manage import ensure_own_context, find_keyed_value, find_own_context
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import ClientVector
from memory.services.pools.data import change_data, read_data, write_data
from memory.services.pools.manage import ensure_own_pool, find_own_pool
from memory.services.short_term import (
    MAX_TTL_SECONDS,
    PromotedKeys,
    ShortTermDraft,
    delete_entry,
    promote_session_entries,
    read_entry,
    store_entry,
)
from memory.tiers import agent_working
from memory.tiers.agent_working import WorkingMemoryService
from memory.tiers.base import NewValue, Tier, TierScope, TierStats, check_name, keyed_json
from memory.tiers.read_counts import count_read, read_counts


class WorkingTier(Tier):
    """The agent's own working memory, not that of a task or a workflow run."""

    name = "working"
    max_ttl_seconds = agent_working.MAX_TTL_SECONDS

    def read(self, key: str, within: TierScope, *, now: datetime) -> Any:
        return require_found(self._memory.find(key), "value").value

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        self._memory.store(key, written.value, written.ttl_seconds)
        register_agent(self._owner.account_id, self._owner.agent_id)

    def delete(self, key: str, within: TierScope, *, now: datetime) -> None:
        if not self._memory.remove(key):
            raise NotFound("no such value")

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        return self._memory.keys()

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        return self._memory.stats()

    @property
    def _memory(self) -> WorkingMemoryService:
        return WorkingMemoryService(self._owner)


class ShortTermTier(Tier):
    """The agent's short-term entries. Reads count as accesses."""

    name = "short_term"
    max_ttl_seconds = MAX_TTL_SECONDS
    memory_types = frozenset(AgentShortTermMemory.MemoryType.values)

    def read(self, key: str, within: TierScope, *, now: datetime) -> Any:
        return read_entry(self._owner, ShortTermKey(key=key, session_id=within.session_id), now=now).memory_value

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        draft = ShortTermDraft(
            memory_key=key,
            memory_value=written.value,
            session_id=within.session_id,
            memory_type=written.memory_type or AgentShortTermMemory.MemoryType.TASK_CONTEXT.value,
            ttl_seconds=conf.SHORT_TERM_TTL_SECONDS if written.ttl_seconds is None else written.ttl_seconds,
        )
        store_entry(self._owner, draft, now=now)

    def delete(self, key: str, within: TierScope, *, now: datetime) -> None:
        delete_entry(self._owner, ShortTermKey(key=key, session_id=within.session_id), now=now)

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        rows = AgentShortTermMemory.objects.visible_to(self._owner).live(now).filter(session_id=within.session_id)
        return sorted(rows.values_list("memory_key", flat=True))

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        """Measure the entries of all sessions."""
        rows = AgentShortTermMemory.objects.visible_to(self._owner).live(now)
        return measure_rows(rows, octet_length("memory_key") + octet_length("memory_value"))


class LongTermTier(Tier):
    """The entries of the agent's own context, `agent_memory`. Reads are in its access log."""

    name = "long_term"
    memory_types = frozenset(ContextEntry.MemoryType.values)

    def read(self, key: str, within: TierScope, *, now: datetime) -> Any:
        found = require_found(find_keyed_value(self._owner, key, now=now), "entry")
        log_reads(self._owner, [(found.context_id, found.entry_id)], action=Action.READ, now=now)
        return found.value

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        keyed_json(written.value)
        draft = EntryDraft(key=key, value=written.value, memory_type=written.memory_type or None)
        embedded = embed_texts([draft.text])
        context = ensure_own_context(self._owner, now=now)
        store_entries(self._owner, context.id, drafts=[draft], embedded=embedded, now=now)

    def delete(self, key: str, within: TierScope, *, now: datetime) -> None:
        """Remove the entry, or only its alias. Raises Conflict if the context is archived and has the key."""
        found = require_found(find_keyed_value(self._owner, key, now=now), "entry")
        if found.is_alias:
            remove_alias(self._owner, found.context_id, key, now=now)
        else:
            remove_entry(self._owner, found.entry_id, now=now)

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        """Return the keys of entries, their aliases included."""
        entries = self._entries(now)
        return sorted({*entries.exclude(key="").values_list("key", flat=True), *list_aliases(self._owner, entries)})

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        """Measure all entries of the context, those without a key too."""
        return measure_rows(
            self._entries(now), octet_length("key") + Coalesce(octet_length("value"), octet_length("text"))
        )

    def _entries(self, now: datetime) -> QuerySet[ContextEntry]:
        return visible_entries(self._owner, now=now).filter(context__in=find_own_context(self._owner))


class SharedTier(Tier):
    """Top-level names of the named pool, or of the agent's own."""

    name = "shared"
    has_pools = True

    def read(self, key: str, within: TierScope, *, now: datetime) -> Any:
        return read_data(self._owner, self._find_pool_id(within, now), path=pool_path(key), now=now).data

    def write(self, key: str, written: NewValue, within: TierScope, *, now: datetime) -> None:
        """Store the value under its name. Raises NotFound, Forbidden, TooLarge, Unprocessable of the pool."""
        keyed_json(written.value)
        pool_id = within.pool_id or ensure_own_pool(self._owner, now=now).pool_id
        write_data(self._owner, pool_id, path=pool_path(key), data=written.value, expected=None, now=now)

    def delete(self, key: str, within: TierScope, *, now: datetime) -> None:
        """Remove the name. Raises Forbidden if the pool may only be read."""

        def leave_out(stored: dict[str, Any]) -> dict[str, Any]:
            if key not in stored:
                # raising here writes nothing, so that the pool gets no new version
                raise NotFound("the pool has no such name")
            return {name: value for name, value in stored.items() if name != key}

        change_data(self._owner, self._find_pool_id(within, now), leave_out, expected=None, now=now)

    def keys(self, within: TierScope, *, now: datetime) -> list[str]:
        try:
            pool_id = self._find_pool_id(within, now)
        except NotFound:
            return []
        return sorted(read_data(self._owner, pool_id, now=now).data)

    def stats(self, within: TierScope, *, now: datetime) -> TierStats:
        named = MemoryPool.objects.visible_to(self._owner).filter(pool_id=within.pool_id)
        pools = named if within.pool_id else find_own_pool(self._owner)
        entries, size_bytes = pools.live(now).values_list("entry_count", "size_bytes").first() or (0, 0)
        return TierStats(entries=entries, size_bytes=size_bytes)

    def _find_pool_id(self, within: TierScope, now: datetime) -> str:
        """Return the pool's id. Raises NotFound if none is named and the agent has no pool of its own yet."""
        if within.pool_id:
            return within.pool_id
        own = find_own_pool(self._owner).live(now).values_list("pool_id", flat=True)
        return require_found(own.first(), "pool")


TIER_CLASSES = (WorkingTier, ShortTermTier, LongTermTier, SharedTier)
TIERS = tuple(tier.name for tier in TIER_CLASSES)
"""Names of the tiers, in reading order: the fastest first."""

STATS_NAMES = {"working": "working_memory"}
"""Tiers with another name in the documented statistics."""


def pool_path(key: str) -> str:
    return str(JsonPointer.from_parts([key]).path)


def octet_length(column: str) -> Func:
    return Func(Cast(F(column), TextField()), function="octet_length", output_field=IntegerField())


def measure_rows(rows: QuerySet[Any], size: Any) -> TierStats:
    return TierStats(**rows.aggregate(entries=Count("pk"), size_bytes=Coalesce(Sum(size), Value(0))))


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedValue:
    """A value, and the tier that it is in."""

    key: str
    value: Any
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedTierStats(TierStats):
    """The size of an agent's tier, and how often reads through the router found a key in it or not."""

    hits: int
    misses: int


class MemoryRouter:
    """Reads, writes and deletes an agent's keyed values, in whichever tier they are.

    `session_id` selects the session of the short_term tier ("": no session); `pool_id` selects the pool of the shared
    tier ("": the agent's own). Keys have 1 to 200 characters and no NUL (ValueError). Without Redis every call that
    needs the working tier raises RedisError, because a slower tier may hold an older value.
    """

    def __init__(self, owner: Owner) -> None:
        if not owner.agent_id:
            raise Unprocessable("keyed values belong to an agent: name an agent_id")
        self._owner = owner
        self._tiers = [tier(owner) for tier in TIER_CLASSES]

    def read(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime
    ) -> RoutedValue:
        """Return the value from the first tier that has one, or from the named tier. Raises NotFound."""
        check_name(key)
        within = TierScope(session_id=session_id, pool_id=pool_id)
        missed: list[str] = []
        for asked in self._named(tier):
            try:
                value = asked.read(key, within, now=now)
            except NotFound:
                missed.append(asked.name)
                continue
            count_read(self._owner, hit=asked.name, missed=missed)
            return RoutedValue(key=key, value=value, tier=asked.name)
        count_read(self._owner, hit="", missed=missed)
        raise NotFound("no tier has this key")

    def write(
        self,
        key: str,
        written: NewValue,
        *,
        session_id: str = "",
        pool_id: str = "",
        tier: str = "short_term",
        now: datetime,
    ) -> RoutedValue:
        """Store the value in one tier, replacing the old one; other tiers keep theirs.

        Raises TooLarge, Unprocessable for an option that the tier does not support (a pool, a lifetime, a type), and
        the errors of the tier's own store: NotFound and Forbidden for a pool, Conflict for an archived context.
        """
        check_name(key)
        within = TierScope(session_id=session_id, pool_id=pool_id)
        (chosen,) = self._named(tier)
        check_tier_options(chosen, written, within)
        chosen.write(key, written, within, now=now)
        return RoutedValue(key=key, value=written.value, tier=chosen.name)

    def delete(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime
    ) -> tuple[str, ...]:
        """Delete the key in every tier, or in the named one, and return the names of the tiers that had it.

        The short_term tier deletes the key of this session only. All or nothing: if one tier refuses (Forbidden,
        Conflict, RedisError), the others stay as they were. Raises NotFound if no tier had the key.
        """
        check_name(key)
        within = TierScope(session_id=session_id, pool_id=pool_id)
        # Redis last: if it fails, the database rolls back. The others are in the order in which promotion locks
        in_order = sorted(self._named(tier), key=lambda chosen: chosen.name == "working")
        deleted: set[str] = set()
        with transaction.atomic():
            for chosen in in_order:
                with suppress(NotFound):
                    chosen.delete(key, within, now=now)
                    deleted.add(chosen.name)
        if not deleted:
            raise NotFound("no tier has this key")
        return tuple(name for name in TIERS if name in deleted)

    def keys(self, *, tier: str, session_id: str = "", pool_id: str = "", now: datetime) -> list[str]:
        """Return the keys of one tier, sorted."""
        (chosen,) = self._named(tier)
        return chosen.keys(TierScope(session_id=session_id, pool_id=pool_id), now=now)

    def semantic_search(
        self, query: str, *, top_k: int = 10, own: ClientVector | None = None, now: datetime
    ) -> EntryResults:
        """Return the long-term entries that answer the query best, or are nearest to the client's own vector."""
        contexts = self.long_term_contexts()
        if not contexts:
            return SearchResults(hits=[], degraded=[])
        return find_entries(self._owner, EntryQuestion(text=query, top_k=top_k, own=own, contexts=contexts), now=now)

    def long_term_contexts(self) -> list[UUID]:
        """Return the id of the agent's own context, which is the long_term tier; empty if it does not exist yet."""
        return list(find_own_context(self._owner).values_list("id", flat=True))

    def consolidate(self, *, session_id: str, now: datetime) -> PromotedKeys:
        """Promote what was read often in a session to long-term memory (see `promote_session_entries`)."""
        return promote_session_entries(self._owner, session_id, now=now)

    def stats(self, *, now: datetime) -> dict[str, RoutedTierStats]:
        """Return statistics by the documented tier names: working_memory, short_term, long_term, shared.

        The shared tier is the agent's own pool.
        """
        counts = read_counts(self._owner)
        return {
            STATS_NAMES.get(tier.name, tier.name): RoutedTierStats(
                **asdict(tier.stats(TierScope(), now=now)),
                hits=counts.get(f"{tier.name}:hits", 0),
                misses=counts.get(f"{tier.name}:misses", 0),
            )
            for tier in self._tiers
        }

    def _named(self, name: str | None) -> Sequence[Tier]:
        """Return all tiers, or the one with this name. Raises Unprocessable for an unknown name."""
        if name is None:
            return self._tiers
        named = [tier for tier in self._tiers if tier.name == name]
        if not named:
            raise Unprocessable(f"tier must be one of {', '.join(TIERS)}")
        return named


def check_tier_options(tier: Tier, written: NewValue, within: TierScope) -> None:
    """Raise Unprocessable for options that the tier would ignore."""
    if within.pool_id and not tier.has_pools:
        raise Unprocessable(f"pool_id is not allowed in tier {tier.name}, only in tier shared")
    if written.memory_type and written.memory_type not in tier.memory_types:
        known = ", ".join(sorted(tier.memory_types))
        raise Unprocessable(
            f"memory_type must be one of {known} in tier {tier.name}"
            if known
            else f"memory_type is not allowed in tier {tier.name}"
        )
    if written.ttl_seconds is not None and written.ttl_seconds > tier.max_ttl_seconds:
        raise Unprocessable(
            f"ttl_seconds must be at most {tier.max_ttl_seconds} in tier {tier.name}"
            if tier.max_ttl_seconds
            else f"ttl_seconds is not allowed in tier {tier.name}, which keeps values until they are deleted"
        )
