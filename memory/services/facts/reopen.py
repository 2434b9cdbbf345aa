"""Believing facts again whose successor is retracted, rejected or erased: only the end that it made is undone.

A fact stays superseded if something else superseded it as well, if its successor was superseded in turn, or if it was
wrong all along. So it does if the same claim was learned again or rejected meanwhile.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from memory.errors import Conflict
from memory.models import Fact, FactVersion, Kind, Link
from memory.models.facts import ValidFromSource
from memory.owner import Owner
from memory.services.facts.learn import identity_of_fact
from memory.services.facts.lock import act_as_holder
from memory.services.facts.store import names_about_fact, revise_beliefs
from memory.services.facts.tombstones import find_tombstones
from memory.services.memories.links import PROMOTED_FROM, SUPERSEDES

WAS_WRONG = {"reason": "correction"}
"""Properties of a SUPERSEDES link whose old fact was wrong, rather than true until the world changed."""


def find_superseded_ids(account_id: UUID, fact_ids: Collection[UUID]) -> set[UUID]:
    """Return the ids of what these facts, or copies of them, superseded. One statement."""
    links = Link.objects.filter(account_id=account_id)
    copies = links.filter(target_id__in=fact_ids, type=PROMOTED_FROM).values("source_id")
    targets = links.filter(type=SUPERSEDES).values_list("target_id", flat=True)
    return set(targets.filter(source_id__in=fact_ids).union(targets.filter(source_id__in=copies)))


def reopen_superseded(owner: Owner, ended: Sequence[Fact], *, locked: Collection[UUID], now: datetime) -> list[UUID]:
    """Believe again what these facts superseded, which are not believed any more. Returns the ids of those facts.

    `locked` are the `find_superseded_ids` that are locked as well. Raises Conflict if there is another one by now.
    """
    if not locked:
        return []
    account_id, ids = owner.account_id, {fact.id for fact in ended}
    enders = ids - find_replaced(account_id, ids, apart_from=ids)
    links = Link.objects.filter(account_id=account_id, source_id__in=enders, type=SUPERSEDES)
    targets = set(links.values_list("target_id", flat=True)) - ids
    if not targets <= set(locked):
        raise Conflict("the fact superseded another one at the same time: try again")
    targets -= find_replaced(account_id, targets, apart_from=ids)
    rows = Fact.objects.filter(account_id=account_id, id__in=targets, kind=Kind.FACT, status=Fact.Status.SUPERSEDED)
    return [fact.id for fact in rows.order_by("id") if reopen_fact(owner, fact, now=now)]


def find_replaced(account_id: UUID, fact_ids: Collection[UUID], *, apart_from: Collection[UUID]) -> set[UUID]:
    """Return those of the facts that were wrong, or that something superseded that still stands."""
    links = Link.objects.filter(account_id=account_id, target_id__in=fact_ids, type=SUPERSEDES)
    pairs = list(links.exclude(source_id__in=apart_from).values_list("source_id", "target_id"))
    withdrawn = Fact.objects.filter(
        account_id=account_id,
        id__in={source for source, _target in pairs},
        kind=Kind.FACT,
        status__in=(Fact.Status.RETRACTED, Fact.Status.REJECTED),
    )
    fallen = set(withdrawn.values_list("id", flat=True))
    wrong = links.filter(properties__contains=WAS_WRONG).values_list("target_id", flat=True)
    return {target for source, target in pairs if source not in fallen} | set(wrong)


def reopen_fact(owner: Owner, fact: Fact, *, now: datetime) -> bool:
    """Believe a locked fact again that was superseded. Returns False if its claim is known or rejected by now."""
    holder = act_as_holder(owner, fact)
    if any(find_tombstones(holder, [(fact.text, names_about_fact(fact))])):
        return False
    if fact.retracted_at is None:
        restore_end(fact)
    else:
        # nothing was left of its time
        now, fact.retracted_at = max(now, fact.retracted_at), None
    fact.status = Fact.Status.ACTIVE
    fact.identity = identity_of_fact(holder, fact)
    known = Fact.objects.filter(account_id=fact.account_id, kind=Kind.FACT, identity=fact.identity)
    if known.exclude(pk=fact.pk).exists():
        return False
    revise_beliefs(owner, [fact], reason=FactVersion.Reason.CORRECTED, now=now)
    return True


def restore_end(fact: Fact) -> None:
    """Give a fact the end that it had before it was superseded, unless it was corrected since."""
    versions = FactVersion.objects.filter(account_id=fact.account_id, fact_id=fact.id)
    closed = versions.filter(reason=FactVersion.Reason.SUPERSEDED).order_by("-number").first()
    former = None if closed is None else versions.filter(number=closed.number - 1).first()
    if closed is None or former is None or closed.valid_to != fact.valid_to:
        return
    fact.valid_to = former.valid_to
    if closed.valid_from != former.valid_from and fact.valid_from == closed.valid_from:
        # only the time when it was said is dropped with an end
        fact.valid_from, fact.valid_from_source = former.valid_from, ValidFromSource.SAID
