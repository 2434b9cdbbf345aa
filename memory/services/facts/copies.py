"""Copies of facts in `_global` (`globalize`), which follow their originals: ended and corrected together with them.

A copy rests on the facts that it was PROMOTED_FROM. It follows a change of some of them if it was made by globalizing
and says the same, unless something else supports it: another of these facts is believed and says the same, or a turn is
evidence of the copy that is evidence of none of them. A copy that was corrected by itself is a fact of its own.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from memory.errors import Conflict
from memory.models import Fact, FactVersion, Link
from memory.services.facts.tombstones import says_the_same
from memory.services.memories.links import DERIVED_FROM, PROMOTED_FROM


def find_copy_ids(account_id: UUID, fact_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids of the other facts that were PROMOTED_FROM these."""
    links = Link.objects.filter(account_id=account_id, target_id__in=fact_ids, type=PROMOTED_FROM)
    return set(links.values_list("source_id", flat=True)) - set(fact_ids)


def find_following_copies(facts: Sequence[Fact], *, locked: Collection[UUID]) -> list[Fact]:
    """Return the believed copies that follow a change of these locked facts, by id.

    `locked` are the copies that are locked as well. Raises Conflict if there is another one by now.
    """
    account_id = facts[0].account_id
    copy_ids = find_copy_ids(account_id, [fact.id for fact in facts])
    if not copy_ids <= set(locked):
        raise Conflict("the fact was globalized at the same time: try again")
    if not copy_ids:
        return []
    believed = Fact.objects.filter(account_id=account_id, recorded_at__isnull=False, retracted_at=None)
    return [copy for copy in believed.filter(id__in=copy_ids).order_by("id") if rests_on(copy, facts)]


def rests_on(copy: Fact, facts: Sequence[Fact]) -> bool:
    """Return True if a copy rests on these facts alone, and still says what one of them does."""
    links = Link.objects.filter(account_id=copy.account_id)
    originals = set(links.filter(source_id=copy.id, type=PROMOTED_FROM).values_list("target_id", flat=True))
    if not any(fact.id in originals and says_the_same(fact, copy.text, copy.attribute) for fact in facts):
        return False
    first = FactVersion.objects.filter(account_id=copy.account_id, fact_id=copy.id).order_by("number").first()
    if first is None or first.reason != FactVersion.Reason.PROMOTED:
        return False
    statuses = {Fact.Status.ACTIVE, copy.status}
    others = Fact.objects.filter(account_id=copy.account_id, retracted_at=None, status__in=statuses, quarantined=False)
    others = others.filter(id__in=originals - {fact.id for fact in facts})
    if any(says_the_same(copy, other.text, other.attribute) for other in others):
        return False
    evidence = links.filter(type=DERIVED_FROM)
    of_originals = evidence.filter(source_id__in=originals).values("target_id")
    return not evidence.filter(source_id=copy.id).exclude(target_id__in=of_originals).exists()
