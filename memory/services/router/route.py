"""The router (P9): one key, four tiers, asked in turn from the fastest to the one that others share."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import NotFound, Unprocessable
from memory.owner import Owner
from memory.retrieval.entries import EntriesFound
from memory.retrieval.search import Found
from memory.services.contexts.search import EntryQuestion, find_entries
from memory.services.memories.store import OwnVector
from memory.services.router.tiers import find_own_context, tiers_of
from memory.services.short_term.promote import Consolidated, consolidate_session
from memory.tiers.base import Tier, Within, Written, check_name
from memory.tiers.read_counts import count_read, read_counts

TIERS = ("working", "short_term", "long_term", "shared")
"""In the order in which they are read."""

STATS_NAMES = {"working": "working_memory"}
"""Tiers that the documented statistics call otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Routed:
    """A value, and the tier that had it."""

    key: str
    value: Any
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedTierStats:
    """What an agent has in a tier, and how often the router found there what it was asked for."""

    entries: int
    size_bytes: int
    hits: int
    misses: int


class MemoryRouter:
    """Reads, writes and deletes an agent's keyed values, in whichever tier they are.

    `session_id` narrows the short_term tier, whose keys are a session's ("": of none); `pool_id` names the pool of the
    shared tier (""; the agent's own). Keys have 1 to 200 characters and no NUL (ValueError). Without Redis every call
    that needs the working tier raises RedisError: a slower tier may hold an older value.
    """

    def __init__(self, owner: Owner) -> None:
        if not owner.agent_id:
            raise Unprocessable("keyed values are an agent's: name one")
        self._owner = owner
        self._tiers = tiers_of(owner)

    def read(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime
    ) -> Routed:
        """The value of the first tier that has one, or of the tier named. Raises NotFound."""
        check_name(key)
        within = Within(session_id=session_id, pool_id=pool_id)
        missed: list[str] = []
        for asked in self._named(tier):
            held = asked.read(key, within, now=now)
            if held is not None:
                count_read(self._owner, hit=asked.name, missed=missed)
                return Routed(key=key, value=held.value, tier=asked.name)
            missed.append(asked.name)
        count_read(self._owner, hit="", missed=missed)
        raise NotFound("no tier has this key")

    def write(
        self,
        key: str,
        written: Written,
        *,
        session_id: str = "",
        pool_id: str = "",
        tier: str = "short_term",
        now: datetime,
    ) -> Routed:
        """Store the value in one tier, over what is there; the others keep what they have.

        Raises TooLarge, Unprocessable for what the tier knows nothing of (a pool, a time to live, a type),
        and what the tier's own store raises: NotFound and Forbidden for a pool, Conflict for an archived context.
        """
        check_name(key)
        within = Within(session_id=session_id, pool_id=pool_id)
        (chosen,) = self._named(tier)
        refuse_foreign(chosen, written, within)
        chosen.write(key, written, within, now=now)
        return Routed(key=key, value=written.value, tier=chosen.name)

    def delete(
        self, key: str, *, session_id: str = "", pool_id: str = "", tier: str | None = None, now: datetime
    ) -> tuple[str, ...]:
        """Delete it in every tier, or in the one named; the names of those that had it. Raises NotFound for none.

        In the short_term tier it is the key of this session, or of none: other sessions keep theirs.
        All or nothing: what one of them refuses (Forbidden, Conflict, RedisError) leaves the others as they were.
        """
        check_name(key)
        within = Within(session_id=session_id, pool_id=pool_id)
        # Redis comes last: when it fails, the database takes its part back. The others keep the order in which
        # consolidation locks
        in_order = sorted(self._named(tier), key=lambda chosen: chosen.name == "working")
        with transaction.atomic():
            deleted = {chosen.name for chosen in in_order if chosen.delete(key, within, now=now)}
        if not deleted:
            raise NotFound("no tier has this key")
        return tuple(name for name in TIERS if name in deleted)

    def keys(self, *, tier: str, session_id: str = "", pool_id: str = "", now: datetime) -> list[str]:
        """The keys of one tier, in order."""
        (chosen,) = self._named(tier)
        return chosen.keys(Within(session_id=session_id, pool_id=pool_id), now=now)

    def semantic_search(
        self, query: str, *, top_k: int = 10, own: OwnVector | None = None, now: datetime
    ) -> EntriesFound:
        """The long-term entries that answer the query best, or are nearest to the client's own vector."""
        contexts = self.long_term_contexts()
        if not contexts:
            return Found(hits=[], degraded=[])
        return find_entries(self._owner, EntryQuestion(text=query, top_k=top_k, own=own, contexts=contexts), now=now)

    def long_term_contexts(self) -> list[UUID]:
        """Where the long_term tier is: the agent's own context, if there is one yet."""
        return list(find_own_context(self._owner).values_list("id", flat=True))

    def consolidate(self, *, session_id: str, now: datetime) -> Consolidated:
        """Keep for good what was read often in a session (see `consolidate_session`)."""
        return consolidate_session(self._owner, session_id, now=now)

    def stats(self, *, now: datetime) -> dict[str, RoutedTierStats]:
        """By the tiers' documented names: working_memory, short_term, long_term, shared (the agent's own pool)."""
        counts = read_counts(self._owner)
        return {STATS_NAMES.get(tier.name, tier.name): self._stats_of(tier, counts, now=now) for tier in self._tiers}

    def _stats_of(self, tier: Tier, counts: dict[str, int], *, now: datetime) -> RoutedTierStats:
        found = tier.stats(Within(), now=now)
        return RoutedTierStats(
            entries=found.entries,
            size_bytes=found.size_bytes,
            hits=counts.get(f"{tier.name}:hits", 0),
            misses=counts.get(f"{tier.name}:misses", 0),
        )

    def _named(self, name: str | None) -> Sequence[Tier]:
        """All tiers, or the one of this name. Raises Unprocessable for none."""
        if name is None:
            return self._tiers
        named = [tier for tier in self._tiers if tier.name == name]
        if not named:
            raise Unprocessable(f"a tier is one of {', '.join(TIERS)}")
        return named


def refuse_foreign(tier: Tier, written: Written, within: Within) -> None:
    """Raise Unprocessable for what the tier would pass over."""
    if within.pool_id and not tier.has_pools:
        raise Unprocessable(f"pool_id means nothing in tier {tier.name}")
    if written.memory_type and written.memory_type not in tier.memory_types:
        known = ", ".join(sorted(tier.memory_types)) or "none"
        raise Unprocessable(f"memory_type in tier {tier.name} is one of: {known}")
    if written.ttl_seconds is not None and written.ttl_seconds > tier.most_ttl_seconds:
        raise Unprocessable(
            f"ttl_seconds is at most {tier.most_ttl_seconds} in tier {tier.name}"
            if tier.most_ttl_seconds
            else f"tier {tier.name} keeps values until they are deleted: it takes no ttl_seconds"
        )
