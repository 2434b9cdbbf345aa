"""What is known of facts, to look at: who believed what when, what says so, what took whose place."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Left
from django.urls import reverse

from memory.admin.text import EXCERPT_CHARACTERS, mark_invisible, shorten
from memory.models import Fact, FactReview, FactVersion, Link
from memory.services.memories.links import ABOUT, DERIVED_FROM, PROMOTED_FROM, SUPERSEDES

MOST_VERSIONS = 100
MOST_QUOTES = 20
"""Turns quoted of each fact."""
MOST_ENTITIES = 50
MOST_RELATED = 50
QUOTE_CHARACTERS = 600
CLAIM_CHARACTERS = 10_000

OTHER_SIDES = {
    (SUPERSEDES, True): "Takes the place of",
    (SUPERSEDES, False): "Was superseded by",
    (PROMOTED_FROM, True): "Promoted from",
    (PROMOTED_FROM, False): "Promoted to",
}
"""What the fact at the other end of a link is to one: by the link's type, and whether it goes out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """A turn that says so, and its address in the transcript."""

    said: str
    speaker: str
    conversation: str
    index: int
    at: datetime
    url: str
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """Something with a page of its own."""

    name: str
    sort: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Succession:
    """A fact that took this one's place, or whose place it took; or a copy in another channel."""

    what: str
    claim: str
    status: str
    url: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVersion:
    """A belief; `claim` is empty where it is that of the belief before."""

    row: FactVersion
    claim: str
    actor: str
    valid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Newest first. `left_out`: there were more."""

    versions: Sequence[ShownVersion]
    is_cut: bool


def tell_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:%Y-%m-%d %H:%M}"


def tell_span(start: datetime | None, end: datetime | None) -> str:
    """When something is true, for people."""
    if start is None and end is None:
        return "always"
    if start is None:
        return f"until {tell_time(end)}" if end else ""
    return f"{tell_time(start)} – {tell_time(end)}" if end else f"since {tell_time(start)}"


def read_history(fact: Fact) -> History:
    """All beliefs that there were of it, to a limit."""
    rows = FactVersion.objects.filter(account_id=fact.account_id, fact_id=fact.pk).order_by("-number")
    found = list(rows[: MOST_VERSIONS + 1])
    before = [row.claim for row in found[1:]] + [""]
    versions = [show_version(row, claim) for row, claim in zip(found, before, strict=True)]
    return History(versions=versions[:MOST_VERSIONS], is_cut=len(found) > MOST_VERSIONS)


def show_version(row: FactVersion, claim_before: str) -> ShownVersion:
    return ShownVersion(
        row=row,
        claim=mark_invisible(row.claim[:CLAIM_CHARACTERS]) if row.claim != claim_before else "",
        actor=mark_invisible(row.actor),
        valid=tell_span(row.valid_from, row.valid_to),
    )


def read_quotes(facts: Sequence[Fact]) -> dict[UUID, list[Quote]]:
    """The turns that facts of one account are derived from, by fact, as they were said."""
    links = Link.objects.filter(
        account_id=facts[0].account_id, source_id__in=[fact.pk for fact in facts], type=DERIVED_FROM
    )
    columns = (
        "source_id",
        Left("target__text", QUOTE_CHARACTERS + 1),
        "target__event_time",
        "target__conversation_id",
        "target__turn__index",
        "target__turn__role",
        "target__turn__name",
        "target__turn__log_id",
    )
    rows = links.exclude(target__turn=None).order_by("target__event_time", "target_id").values_list(*columns)
    found: dict[UUID, list[Quote]] = {}
    for fact_id, *said in rows[: MOST_QUOTES * len(facts)]:
        found.setdefault(fact_id, []).append(make_quote(*said))
    return found


def make_quote(text: str, at: datetime, conversation_id: str, index: int, role: str, name: str, log_id: Any) -> Quote:
    page = reverse("admin:memory_conversation_change", args=[log_id])
    return Quote(
        said=mark_invisible(text[:QUOTE_CHARACTERS]),
        speaker=mark_invisible(name or role),
        conversation=shorten(conversation_id),
        index=index,
        at=at,
        url=f"{page}?turn={index}#turn-{index}",
        is_cut=len(text) > QUOTE_CHARACTERS,
    )


def read_entities(facts: Sequence[Fact]) -> dict[UUID, list[Named]]:
    """What facts of one account are about, by fact."""
    links = Link.objects.filter(account_id=facts[0].account_id, source_id__in=[fact.pk for fact in facts], type=ABOUT)
    columns = ("source_id", "target_id", "target__entity__name", "target__entity__type")
    rows = links.exclude(target__entity=None).order_by("id").values_list(*columns)
    found: dict[UUID, list[Named]] = {}
    for fact_id, entity_id, name, sort in rows[: MOST_ENTITIES * len(facts)]:
        url = reverse("admin:memory_entity_change", args=[entity_id])
        found.setdefault(fact_id, []).append(Named(name=shorten(name), sort=mark_invisible(sort), url=url))
    return found


def read_successions(fact: Fact) -> list[Succession]:
    """What superseded it, what it superseded, what it was promoted to and from."""
    links = Link.objects.filter(Q(source_id=fact.pk) | Q(target_id=fact.pk), account_id=fact.account_id)
    sides = [(f"{end}_id", Left(f"{end}__text", EXCERPT_CHARACTERS + 1), f"{end}__fact__status") for end in ENDS]
    rows = links.filter(type__in=(SUPERSEDES, PROMOTED_FROM)).order_by("-id")
    columns = ("type", "properties", *sides[0], *sides[1])
    found = []
    for type_, properties, *ends in rows.values_list(*columns)[:MOST_RELATED]:
        is_out = ends[0] == fact.pk
        other_id, claim, status = ends[3:] if is_out else ends[:3]
        found.append(
            Succession(
                what=OTHER_SIDES[type_, is_out],
                claim=shorten(claim),
                status=status or "",
                url=reverse("admin:memory_fact_change", args=[other_id]),
                told=shorten(str(properties.get("reason", ""))),
            )
        )
    return found


ENDS = ("source", "target")


def read_reviews(fact: Fact) -> list[Named]:
    """The reviews that it is part of."""
    rows = FactReview.objects.filter(Q(new_fact_id=fact.pk) | Q(old_fact_id=fact.pk), account_id=fact.account_id)
    return [
        Named(
            name="against what it contradicts" if review.new_fact_id == fact.pk else "against what contradicts it",
            sort=review.get_status_display(),
            url=reverse("admin:memory_factreview_change", args=[review.pk]),
        )
        for review in rows.order_by("-id")[:MOST_RELATED]
    ]
