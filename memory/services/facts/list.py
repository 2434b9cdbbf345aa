"""Reading facts: lists narrowed by what they are about and come from, and all that is known of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from memory.models import Fact, FactVersion, Kind, Link, Memory
from memory.owner import Owner
from memory.services.facts.learn import visible_facts
from memory.services.memories.links import ABOUT, DERIVED_FROM, PROMOTED_FROM, SUPERSEDES


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHistory:
    """All versions, first one first, and what a fact is linked to, by id. Staff may have deleted some of it."""

    versions: Sequence[FactVersion]
    turns: Sequence[UUID]
    entities: Sequence[UUID]
    supersedes: Sequence[UUID]
    superseded_by: Sequence[UUID]
    promoted_from: Sequence[UUID]
    promoted_to: Sequence[UUID]


def list_facts(
    owner: Owner,
    *,
    now: datetime,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    min_confidence: float | None = None,
    status: str = "",
) -> QuerySet[Fact]:
    """`visible_facts`, of a status or of any.

    Of another status than `active`, without a time that is asked for, all there are: hardly any of them is true now.
    """
    if status in ("", Fact.Status.ACTIVE) or as_of is not None or known_at is not None:
        rows: Any = visible_facts(owner, now=now, as_of=as_of, known_at=known_at, min_confidence=min_confidence)
        return cast("QuerySet[Fact]", rows.filter(status=status) if status else rows)
    rows = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).live(now)
    return cast("QuerySet[Fact]", rows.filter(status=status, confidence__gte=min_confidence or 0))


def about_entity(rows: QuerySet[Fact], entity_id: UUID) -> QuerySet[Fact]:
    """Those of the facts that are about it."""
    return rows.filter(Exists(links_out(ABOUT).filter(target_id=entity_id)))


def said_in(rows: QuerySet[Fact], conversation_id: str) -> QuerySet[Fact]:
    """Those of the facts that were learnt in a conversation, or are derived from a turn of it."""
    turns = Memory.objects.filter(account_id=OuterRef("account_id"), conversation_id=conversation_id, kind=Kind.TURN)
    told = links_out(DERIVED_FROM).filter(Exists(turns.filter(id=OuterRef("target_id"))))
    return rows.filter(Q(conversation_id=conversation_id) | Exists(told))


def links_out(link_type: str) -> QuerySet[Link]:
    """Of the fact of the query around it."""
    return Link.objects.filter(account_id=OuterRef("account_id"), source_id=OuterRef("pk"), type=link_type)


def read_history(fact: Fact) -> FactHistory:
    """All that is known of a fact that was found. Three statements."""
    versions = FactVersion.objects.filter(account_id=fact.account_id, fact_id=fact.id).order_by("number")
    links = Link.objects.filter(account_id=fact.account_id).order_by("id")
    out = list(links.filter(source_id=fact.id).values_list("type", "target_id"))
    into = list(links.filter(target_id=fact.id, type__in=(SUPERSEDES, PROMOTED_FROM)).values_list("type", "source_id"))
    return FactHistory(
        versions=list(versions),
        turns=of_type(out, DERIVED_FROM),
        entities=of_type(out, ABOUT),
        supersedes=of_type(out, SUPERSEDES),
        superseded_by=of_type(into, SUPERSEDES),
        promoted_from=of_type(out, PROMOTED_FROM),
        promoted_to=of_type(into, PROMOTED_FROM),
    )


def of_type(ends: Sequence[tuple[str, UUID]], link_type: str) -> list[UUID]:
    return [end for named, end in ends if named == link_type]
