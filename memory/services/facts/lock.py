"""Locking facts that change, with the copies that follow them, and refusing changes that may not be made.

A fact may be changed by its holder, by the agent that learned it and by the account; an owner that may only read it is
refused. A change first locks the fact and everything that it will refer to, in one order: of two simultaneous changes,
the second sees the result of the first.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from memory.errors import Conflict, Forbidden
from memory.models import Fact
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions, check_version
from memory.services.entities.resolve import holds_memory
from memory.services.facts.copies import find_copy_ids, find_following_copies
from memory.services.facts.store import find_facts_by_id, lock_for_change


def lock_fact_with_copies(
    owner: Owner,
    fact_id: UUID,
    *,
    also: Collection[UUID] = (),
    expected: ExpectedVersions | int = None,
    now: datetime,
) -> tuple[Fact, list[Fact]]:
    """Lock one fact as `lock_facts` does, its copies, and others. Returns it with those of the copies that follow it.

    Raises StaleVersion as well.
    """
    copy_ids = find_copy_ids(owner.account_id, [fact_id])
    [fact] = lock_facts(owner, [fact_id], alone={*copy_ids, *also}, now=now)
    check_version(fact.version, frozenset({expected}) if isinstance(expected, int) else expected)
    return fact, find_following_copies([fact], locked=copy_ids)


def lock_facts(
    owner: Owner,
    fact_ids: Sequence[UUID],
    *,
    alone: Collection[UUID] = (),
    shared: Collection[UUID] = (),
    now: datetime,
) -> list[Fact]:
    """Lock facts that the owner may change until the transaction ends. Returns them in the order of `fact_ids`.

    `alone` are memories that change with them, `shared` those that something is going to refer to. Raises NotFound, and
    Forbidden where the owner may only read a fact.
    """
    find_facts_by_id(owner, fact_ids)
    lock_for_change(owner, {*fact_ids, *alone}, shared=shared, now=now)
    facts = find_facts_by_id(owner, fact_ids)
    if any(owner.agent_id not in ("", fact.agent_id) and not holds_memory(owner, fact) for fact in facts):
        raise Forbidden("a fact can be changed only by its holder, by the agent that learned it, or by the account")
    return facts


def refuse_inactive(fact: Fact) -> None:
    if fact.status != Fact.Status.ACTIVE:
        raise Conflict(f"the fact is {fact.status}, not active")


def act_as_holder(owner: Owner, fact: Fact) -> Owner:
    """Return an owner with the holder and channel of the fact, to store rows where the fact is."""
    learner = owner.agent_id if fact.user_id and owner.agent_id else fact.agent_id
    joins = owner.joins and learner == owner.agent_id
    return replace(owner, agent_id=learner, user_id=fact.user_id, channel=fact.channel, joins=joins)


def refuse_unbelieved(fact: Fact) -> None:
    if fact.recorded_at is None or fact.retracted_at is not None:
        raise Conflict(f"the fact is {fact.status}, and not believed")
