"""Plans of a home or a job that are called off: what was to begin with them does not.

"I'm moving to Berlin in March" teaches the plan and "The user lives in Berlin", which is true from March on and ends
the home of before then. Once the plan is over before that day, the new home is retracted, and the one of before is
believed again.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from memory.audit import record_audit
from memory.extraction.rules.planned_states import begins_with
from memory.models import Fact, Kind, Link, Temporal
from memory.models.facts import ValidFromSource
from memory.models.memory import EXTRACTED_SOURCE
from memory.owner import Owner
from memory.services.facts.copies import find_copy_ids, find_following_copies
from memory.services.facts.reopen import find_superseded_ids, reopen_superseded
from memory.services.facts.store import end_beliefs
from memory.services.memories.links import DERIVED_FROM


def find_begun_ids(account_id: UUID, plan_ids: Collection[UUID]) -> set[UUID]:
    """Return what may change if these facts are plans that end: what begins with them, its copies, what these ended."""
    begun = [fact.id for fact in find_begun(account_id, plan_ids)]
    ids = {*begun, *find_copy_ids(account_id, begun)} if begun else set()
    return ids | find_superseded_ids(account_id, begun) if begun else ids


def find_begun(account_id: UUID, plan_ids: Collection[UUID]) -> list[Fact]:
    """Return the believed facts that were learned with one of these plans and begin with it. Up to three statements."""
    rows = Fact.objects.filter(account_id=account_id, kind=Kind.FACT)
    plans = list(rows.filter(id__in=plan_ids, temporal=Temporal.FUTURE, source=EXTRACTED_SOURCE)) if plan_ids else []
    if not plans:
        return []
    learned = Link.objects.filter(account_id=account_id, type=DERIVED_FROM)
    turns: defaultdict[UUID, set[UUID]] = defaultdict(set)
    for fact_id, turn_id in learned.filter(source_id__in=[plan.id for plan in plans]).values_list(
        "source_id", "target_id"
    ):
        turns[turn_id].add(fact_id)
    derived = list(learned.filter(target_id__in=turns).values_list("source_id", "target_id"))
    said_with: defaultdict[UUID, set[UUID]] = defaultdict(set)
    for fact_id, turn_id in derived:
        said_with[fact_id] |= turns[turn_id]
    beginning = rows.filter(
        id__in=said_with,
        status=Fact.Status.ACTIVE,
        temporal=Temporal.CURRENT,
        valid_from_source=ValidFromSource.STATED,
        source=EXTRACTED_SOURCE,
        pinned=False,
    )
    return [
        fact
        for fact in beginning.order_by("id")
        if any(plan.id in said_with[fact.id] and begins_with(plan.text, fact.text) for plan in plans)
    ]


def retract_begun(owner: Owner, plans: Sequence[Fact], *, at: datetime, now: datetime) -> list[Fact]:
    """Retract what begins after `at` with plans that ended then, and believe again what it would have ended.

    All of it is locked (`find_begun_ids`). Returns the facts that were retracted.
    """
    begun = find_begun(owner.account_id, [plan.id for plan in plans if plan.temporal == Temporal.FUTURE])
    begun = [fact for fact in begun if fact.valid_from is not None and fact.valid_from > at]
    if not begun:
        return []
    ids = [fact.id for fact in begun]
    retracted = [*begun, *find_following_copies(begun, locked=find_copy_ids(owner.account_id, ids))]
    olds = find_superseded_ids(owner.account_id, ids)
    end_beliefs(retracted, status=Fact.Status.RETRACTED, now=now)
    reopened = reopen_superseded(owner, retracted, locked=olds, now=now)
    affected = [*(fact.id for fact in retracted), *reopened]
    record_audit(owner, operation="retract", memory_type="semantic", affected_ids=affected)
    return retracted
