"""What says the same as a fact: its holder's claims in other channels, and what it was promoted to and from."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.identity import normalize_claim, normalize_name
from memory.models import Fact, Kind, Link
from memory.owner import Owner
from memory.services.entities.resolve import of_holder
from memory.services.facts.references import names_about
from memory.services.memories.links import PROMOTED_FROM

HELD = Q(recorded_at__isnull=False, retracted_at=None) | Q(status=Fact.Status.PENDING)
"""What is believed, or waits for staff to decide whether it is."""


def same_claims(holder: Owner, fact: Fact) -> list[UUID]:
    """The holder's other facts that are believed, or pending, and claim the same (`normalize_claim`), by id.

    In whatever channel; about something of the same name, or about nothing where either is. Copies by promotion
    whatever they are about. Reads through all that the holder knows: no index knows what claims the same.
    """
    claim = normalize_claim(fact.text)
    rows = Fact.objects.filter(of_holder(holder), HELD, account_id=holder.account_id, kind=Kind.FACT)
    texts = rows.exclude(pk=fact.pk).order_by("id").values_list("id", "text").iterator()
    same = [fact_id for fact_id, text in texts if normalize_claim(text) == claim]
    if not same:
        return []
    names, copies = names_about(holder.account_id, [fact.id, *same]), promoted_with(fact)
    return [each for each in same if each in copies or share_a_name(names.get(fact.id, ()), names.get(each, ()))]


def share_a_name(ours: Collection[str], theirs: Collection[str]) -> bool:
    """Whether two are about something of the same name, or one of them about nothing."""
    if not ours or not theirs:
        return True
    return not {normalize_name(name) for name in ours}.isdisjoint(normalize_name(name) for name in theirs)


def promoted_with(fact: Fact) -> set[UUID]:
    """The facts that it was promoted to, and from."""
    links = Link.objects.filter(Q(source_id=fact.id) | Q(target_id=fact.id), account_id=fact.account_id)
    ends = links.filter(type=PROMOTED_FROM).values_list("source_id", "target_id")
    return {end for pair in ends for end in pair if end != fact.id}


def still_same(fact: Fact, fact_ids: Collection[UUID]) -> list[Fact]:
    """Those of the facts, locked by now, that are believed or pending still, and claim the same still."""
    if not fact_ids:
        return []
    rows: Any = Fact.objects.filter(HELD, account_id=fact.account_id, kind=Kind.FACT, id__in=fact_ids)
    claim = normalize_claim(fact.text)
    return [each for each in rows.order_by("id") if normalize_claim(each.text) == claim]
