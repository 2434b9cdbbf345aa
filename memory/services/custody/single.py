"""Erasing what has an id: a fact, episodes, a context, an agent with what is its alone.

Previews say what erasing a memory or a conversation would erase.
"""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory.audit import record_audit
from memory.errors import Forbidden, NotFound, Unprocessable, require_found
from memory.kinds import Audience, Kind, kinds_seen_by
from memory.models import (
    Agent,
    AgentShortTermMemory,
    ApiKey,
    ContextSnapshot,
    Fact,
    LearningVote,
    Memory,
    MemoryPool,
    Participant,
    PersistentContext,
    SavedWorkingMemory,
    TeamMember,
)
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_version
from memory.services.accounts.register import find_agent, insert_agent
from memory.services.contexts.manage import delete_context, lock_managed_context
from memory.services.conversations.lifecycle import find_conversation
from memory.services.custody.conversations import held_memories, strategies_of
from memory.services.custody.histories import erase_histories_of
from memory.services.custody.memories import erase_derived, find_derived
from memory.services.entities.resolve import holds_memory
from memory.services.facts.reopen import find_superseded_ids
from memory.services.facts.store import find_fact
from memory.services.facts.supersede import retract_fact
from memory.services.summaries.store import episodes_of_conversation
from memory_project.ids import version_tag
from memory_project.redis import AgentMemoryRef, agent_key, client

UPDATE_OF = "mem0_id"
"""Name in the metadata of a fact that updates a memory in mem0's sense, whose former text nobody wants back. mem0 and
MCP set it, to the id of the first of these facts."""
BATCH_ROWS = 500
"""Memories that are erased in one transaction."""
PATTERN_CHARACTERS = str.maketrans({each: f"\\{each}" for each in "\\*?[]"})
MAX_PREVIEWED = 20_000
"""Memories of a conversation that are looked at together."""
MAX_NAMED = 100


def erase_fact(owner: Owner, fact_id: UUID, *, expected: ExpectedVersions, now: datetime) -> Counter[str]:
    """Erase a fact of any status for good; what it superseded is believed again, as if it had been retracted.

    The former text of the same memory is not (`UPDATE_OF`). If it is interrupted, the fact may be retracted already;
    erasing it again continues, also with the version from before. Raises NotFound, Forbidden as for its correction,
    StaleVersion.
    """
    fact = find_fact(owner, fact_id)
    if owner.agent_id not in ("", fact.agent_id) and not holds_memory(owner, fact):
        raise Forbidden("a fact can be erased only by its holder, by the agent that learned it, or by the account")
    check_version_to_erase(fact, expected)
    is_update = UPDATE_OF in fact.metadata
    if fact.retracted_at is None and not is_update and find_superseded_ids(owner.account_id, [fact_id]):
        # a transaction of its own: erasing locks memories in the order of their ids
        retract_fact(owner, fact_id, expected=expected, now=now)
    counts = erase_derived(owner, [fact_id], now=now)
    # another call may have erased it meanwhile
    if not counts[Kind.FACT]:
        raise NotFound("no such fact")
    return counts


def check_version_to_erase(fact: Fact, expected: ExpectedVersions) -> None:
    """Raise StaleVersion as `check_version`; of a retracted fact, the version that was retracted counts as well."""
    retracted = fact.version - 1 if fact.status == Fact.Status.RETRACTED else fact.version
    if expected is None or version_tag(retracted) not in map(str, expected):
        check_version(fact.version, expected)


def erase_episodes(owner: Owner, conversation_id: str, episode_id: UUID | None, *, now: datetime) -> Counter[str]:
    """Erase the episodes of a conversation that the owner sees, or one of them. Raises NotFound for none."""
    rows = episodes_of_conversation(owner, conversation_id, now=now)
    ids = list((rows.filter(id=episode_id) if episode_id else rows).values_list("id", flat=True))
    if episode_id and not ids:
        raise NotFound("no such episode")
    counts = erase_derived(owner, ids, now=now)
    # another call may have erased it meanwhile
    if episode_id and not counts[Kind.EPISODE]:
        raise NotFound("no such episode")
    return counts


def erase_context(owner: Owner, context_id: UUID, *, now: datetime) -> Counter[str]:
    """Erase a context with its entries, and what was derived from them. Raises NotFound, Forbidden.

    It archives the context first: if it is interrupted, nothing can be written, and erasing it again continues.
    """
    with transaction.atomic():
        lock_managed_context(owner, context_id, expected=None)
        PersistentContext.objects.filter(account_id=owner.account_id, id=context_id).update(archived=True)
    counts = erase_rows_of(owner, Q(context_id=context_id), now=now)
    snapshots = ContextSnapshot.objects.filter(account_id=owner.account_id, context_id=context_id)
    counts["staff_history"] += erase_histories_of([context_id, *snapshots.values_list("id", flat=True)])
    delete_context(owner, context_id)
    return +counts


def erase_rows_of(owner: Owner, condition: Q, *, now: datetime) -> Counter[str]:
    """Erase all memories of the account that meet a condition, in batches."""
    rows, counts = Memory.objects.filter(condition, account_id=owner.account_id).order_by("id"), Counter[str]()
    while ids := list(rows.values_list("id", flat=True)[:BATCH_ROWS]):
        counts += erase_derived(owner, ids, now=now)
    return counts


def erase_agent(owner: Owner, agent_id: str, *, now: datetime) -> Counter[str]:
    """Erase an agent with what is its alone. Conversations, and what it learned about users, stay with the account.

    In batches; erasing it again continues after an interruption. Raises NotFound, and Forbidden for another agent.
    """
    if owner.agent_id:
        raise Forbidden("only the account may erase an agent")
    find_agent(owner, agent_id)
    account_id = owner.account_id
    private = sorted(kinds_seen_by(Audience.AUTHOR))
    knowledge = sorted(kinds_seen_by(Audience.KNOWLEDGE))
    own = Q(agent_id=agent_id) & (Q(kind__in=private) | Q(kind__in=knowledge, user_id=""))
    counts = erase_rows_of(owner, own, now=now)
    contexts = PersistentContext.objects.filter(account_id=account_id, agent_id=agent_id, scope="agent")
    for context_id in contexts.values_list("id", flat=True):
        counts += erase_context(owner, context_id, now=now)
    place = agent_key(AgentMemoryRef(account_id=account_id, agent_id=agent_id), "").partition("}:")[0]
    keys = list(client().scan_iter(match=place.translate(PATTERN_CHARACTERS) + "}:*"))
    with transaction.atomic():
        rows: list[Any] = [AgentShortTermMemory, SavedWorkingMemory, TeamMember, LearningVote, Participant, ApiKey]
        for model in rows:
            counts[model._meta.db_table] += model._default_manager.filter(
                account_id=account_id, agent_id=agent_id
            ).delete()[0]
        pools = MemoryPool.objects.filter(account_id=account_id, agent_id=agent_id, scope="agent")
        counts["memory_pools"] += pools.delete()[0]
        Agent.objects.filter(account_id=account_id, agent_id=agent_id).delete()
        record_audit(owner, operation="delete", memory_type="agent", affected_ids=[agent_id])
        if keys:
            counts["redis"] += int(client().unlink(*keys))
    # this process would think that the agent exists
    insert_agent.cache_clear()
    return +counts


@dataclass(frozen=True, slots=True, kw_only=True)
class ErasurePreview:
    """Numbers of memories by kind: those that are deleted as such, and those that go with them as derived from them.

    `derived_ids` are the first MAX_NAMED derived ones that the owner sees.
    """

    counts: Counter[str]
    derived: Counter[str]
    derived_ids: list[UUID]


def preview_memory(owner: Owner, memory_id: UUID) -> ErasurePreview:
    """Say what goes when a memory is erased, of whatever kind. Raises NotFound."""
    rows = Memory.objects.visible_to(owner).filter(id=memory_id)
    return preview_rows(owner, [require_found(rows.values_list("id", flat=True).first(), "memory")])


def preview_conversation(owner: Owner, conversation_id: str) -> ErasurePreview:
    """Say what goes when a conversation is erased. Raises NotFound, and Unprocessable for one that is too large."""
    conversation = find_conversation(owner, conversation_id)
    held = held_memories(owner.account_id, conversation_id).order_by("id").values_list("id", flat=True)
    ids = list(held[: MAX_PREVIEWED + 1])
    if len(ids) > MAX_PREVIEWED:
        raise Unprocessable(f"a conversation of more than {MAX_PREVIEWED:,} memories has no preview")
    return preview_rows(owner, [*ids, *strategies_of(conversation)])


def preview_rows(owner: Owner, memory_ids: Collection[UUID]) -> ErasurePreview:
    derived_ids = find_derived(owner.account_id, memory_ids) - set(memory_ids)
    rows = Memory.objects.filter(account_id=owner.account_id)
    seen = Memory.objects.visible_to(owner).filter(id__in=derived_ids).order_by("id")
    return ErasurePreview(
        counts=Counter(rows.filter(id__in=memory_ids).order_by().values_list("kind", flat=True)),
        derived=Counter(rows.filter(id__in=derived_ids).order_by().values_list("kind", flat=True)),
        derived_ids=list(seen.values_list("id", flat=True)[:MAX_NAMED]),
    )
