"""The memory router (P9): one key over four tiers, read from the fastest one to the shared one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import NotFound, Unprocessable
from memory.owner import Owner
from memory.retrieval.entries import EntryResults
from memory.retrieval.search import SearchResults
from memory.services.contexts.manage import find_own_context
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.memories.store import ClientVector
from memory.services.router.tiers import build_tiers
from memory.services.short_term.promote import PromotedKeys, promote_session_entries
from memory.tiers.base import NewValue, Tier, TierScope, check_name
from memory.tiers.read_counts import count_read, read_counts

TIERS = ("working", "short_term", "long_term", "shared")
"""Names of the tiers, in reading order."""

STATS_NAMES = {"working": "working_memory"}
"""Tiers with another name in the documented statistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedValue:
    """A value, and the tier that it is in."""

    key: str
    value: Any
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedTierStats:
    """The size of an agent's tier, and how often reads through the router found a key in it or not."""

    entries: int
    size_bytes: int
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
        self._tiers = build_tiers(owner)

    def read(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime
    ) -> RoutedValue:
        """Return the value from the first tier that has one, or from the named tier. Raises NotFound."""
        check_name(key)
        within = TierScope(session_id=session_id, pool_id=pool_id)
        missed: list[str] = []
        for asked in self._named(tier):
            held = asked.read(key, within, now=now)
            if held is not None:
                count_read(self._owner, hit=asked.name, missed=missed)
                return RoutedValue(key=key, value=held.value, tier=asked.name)
            missed.append(asked.name)
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
        with transaction.atomic():
            deleted = {chosen.name for chosen in in_order if chosen.delete(key, within, now=now)}
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
        return {STATS_NAMES.get(tier.name, tier.name): self._stats_of(tier, counts, now=now) for tier in self._tiers}

    def _stats_of(self, tier: Tier, counts: dict[str, int], *, now: datetime) -> RoutedTierStats:
        found = tier.stats(TierScope(), now=now)
        return RoutedTierStats(
            entries=found.entries,
            size_bytes=found.size_bytes,
            hits=counts.get(f"{tier.name}:hits", 0),
            misses=counts.get(f"{tier.name}:misses", 0),
        )

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
