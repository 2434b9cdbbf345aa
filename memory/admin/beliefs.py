"""History, evidence and relations of facts, for the pages of facts and of reviews."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import OuterRef, Q, Subquery
from django.db.models.functions import Left

from memory.admin.columns import DAY, MINUTE, change_url, turn_url, why_url
from memory.admin.link_ends import own_column
from memory.admin.text import excerpt_of, mark_invisible, text_excerpt
from memory.models import AuditEntry, Fact, FactReview, FactVersion, Kind, Link
from memory.services.memories.links import ABOUT, DERIVED_FROM, PROMOTED_FROM, SUPERSEDES

MAX_VERSIONS = 100
MAX_QUOTES = 20
"""Turns that are quoted for one fact."""
MAX_ENTITIES = 50
MAX_RELATED = 50
QUOTE_CHARACTERS = 600
CLAIM_CHARACTERS = 10_000
PARTICIPLES = {"retract": "Retracted", "reject": "Rejected"}
"""Operations of the audit log that end the belief in a fact."""
AUDITED_WITHIN = timedelta(minutes=2)
"""How long before or after the end of a belief its audit entry may have been written."""

RELATIONS_OF_FACTS = {
    (SUPERSEDES, True): "Supersedes",
    (SUPERSEDES, False): "Was superseded by",
    (PROMOTED_FROM, True): "Promoted from",
    (PROMOTED_FROM, False): "Promoted to",
}
"""Relations of a fact to another one, by type of link and whether the link goes out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnQuote:
    """A turn that supports a fact or mentions an entity, with its address in the transcript."""

    text: str
    speaker: str
    conversation: str
    index: int
    at: datetime
    url: str
    is_cut: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedLink:
    """The name, type and address of something that has a page of its own."""

    name: str
    type: str
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RelatedFact:
    """A fact or turn that superseded this one, a fact that was superseded by it, or a copy in another channel."""

    relation: str
    claim: str
    state: str
    url: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefRow:
    """A version of a fact. `claim` is empty if it is the same as in the version before."""

    row: FactVersion
    claim: str
    actor: str
    valid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeliefHistory:
    """The versions of a fact, newest first. `is_cut` if there were more than are shown."""

    versions: Sequence[BeliefRow]
    is_cut: bool
    retraction: "Retraction | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retraction:
    """The audit entry about the retraction or rejection of a fact. `reason` is empty if none is known."""

    operation: str
    at: datetime
    actor: str
    reason: str
    url: str


def format_short_time(moment: datetime) -> str:
    """Format a time, without the time of day if that is midnight."""
    return f"{moment:{DAY}}" if (moment.hour, moment.minute) == (0, 0) else f"{moment:{MINUTE}}"


def format_validity(start: datetime | None, end: datetime | None) -> str:
    """Format the time from when until when a fact is true."""
    if start is None and end is None:
        return "always"
    if start is None:
        return f"until {format_short_time(end)}" if end else ""
    return f"{format_short_time(start)} – {format_short_time(end)}" if end else f"since {format_short_time(start)}"


def format_belief_time(fact: Any) -> str:
    """Format the time since when a fact is believed, or until when it was."""
    if fact.retracted_at is not None:
        return f"until {format_short_time(fact.retracted_at)}"
    if fact.recorded_at is not None:
        return f"since {format_short_time(fact.recorded_at)}"
    return "not yet" if fact.status == Fact.Status.PENDING else "never"


NOT_YET_TRUE = "not yet true"
"""The state of an active fact that begins later."""


def state_of_fact(status: str, valid_from: datetime | None, valid_to: datetime | None, *, now: datetime) -> str:
    """Return the word of all pages for how a fact stands now: its status, "ended" or NOT_YET_TRUE."""
    state = Fact(status=status, valid_from=valid_from, valid_to=valid_to).status_at(now)
    begins_later = valid_from is not None and valid_from > now
    return NOT_YET_TRUE if state == Fact.Status.ACTIVE and begins_later else state


def state_now(fact: Fact) -> str:
    return state_of_fact(fact.status, fact.valid_from, fact.valid_to, now=datetime.now(UTC))


STATE_COLUMNS = ("status", "valid_from", "valid_to")
"""Columns of a fact that `state_of_fact` reads."""


def fact_columns() -> dict[str, Subquery]:
    """Return STATE_COLUMNS of the fact that a row of memories is, for lists of all kinds, which `belief_marks` reads.

    They are None for other kinds.
    """
    facts = Fact.objects.filter(account_id=OuterRef("account_id"), pk=OuterRef("pk"), kind=Kind.FACT)
    return {f"fact_{name}": Subquery(facts.values(name)) for name in STATE_COLUMNS}


def state_marks(status: str, valid_from: datetime | None, valid_to: datetime | None, *, now: datetime) -> list[str]:
    """Return the state of a fact if it is not active, for a list of what is to be said of it."""
    state = state_of_fact(status, valid_from, valid_to, now=now)
    return [] if state == Fact.Status.ACTIVE else [str(state)]


def belief_marks(row: Any) -> list[str]:
    """Return the state of a fact that is not active, such as "retracted"; nothing for other memories."""
    if row.kind != Kind.FACT:
        return []
    now = datetime.now(UTC)
    if hasattr(row, "fact_status"):
        return state_marks(row.fact_status, row.fact_valid_from, row.fact_valid_to, now=now)
    fact = row if isinstance(row, Fact) else Fact.objects.get(account_id=row.account_id, pk=row.pk)
    return state_marks(fact.status, fact.valid_from, fact.valid_to, now=now)


def read_retraction(version: FactVersion) -> Retraction | None:
    """Return who retracted or rejected the fact whose last version this is, if the audit log says so."""
    ended_at = version.retracted_at
    if ended_at is None:
        return None
    around = (ended_at - AUDITED_WITHIN, ended_at + AUDITED_WITHIN)
    entries = AuditEntry.objects.filter(
        account_id=version.account_id, operation__in=PARTICIPLES, timestamp__range=around
    )
    entry = entries.filter(affected_ids__contains=[str(version.fact_id)]).order_by("-timestamp", "-id").first()
    if entry is None:
        return None
    return Retraction(
        operation=PARTICIPLES[entry.operation],
        at=ended_at,
        actor=mark_invisible(entry.actor),
        reason=excerpt_of(str(entry.metadata.get("reason", "")), characters=500),
        url=change_url("auditentry", entry.pk),
    )


def read_history(fact: Fact, *, may_see_audit: bool) -> BeliefHistory:
    """Return all versions of a fact, up to MAX_VERSIONS, and who ended it if the user may see the audit log."""
    rows = FactVersion.objects.filter(account_id=fact.account_id, fact_id=fact.pk).order_by("-number")
    found = list(rows[: MAX_VERSIONS + 1])
    claims_before = [*(row.claim for row in found[1:]), ""][: len(found)]
    versions = [
        BeliefRow(
            row=row,
            claim=mark_invisible(row.claim[:CLAIM_CHARACTERS]) if row.claim != claim_before else "",
            actor=mark_invisible(row.actor),
            valid=format_validity(row.valid_from, row.valid_to),
        )
        for row, claim_before in zip(found, claims_before, strict=True)
    ]
    return BeliefHistory(
        versions=versions[:MAX_VERSIONS],
        is_cut=len(found) > MAX_VERSIONS,
        retraction=read_retraction(found[0]) if found and may_see_audit else None,
    )


def quote_columns(end: str) -> tuple[Any, ...]:
    """Return the columns of a link that `turn_quote` needs, for the turn at one end ("source" or "target")."""
    own = (own_column(end, name) for name in ("index", "role", "name", "log_id"))
    return (Left(f"{end}__text", QUOTE_CHARACTERS + 1), f"{end}__event_time", f"{end}__conversation_id", *own)


def turn_quote(
    text: str, at: datetime, conversation_id: str, index: int, role: str, name: str, log_id: Any
) -> TurnQuote:
    return TurnQuote(
        text=mark_invisible(text[:QUOTE_CHARACTERS]),
        speaker=mark_invisible(name or role),
        conversation=excerpt_of(conversation_id),
        index=index,
        at=at,
        url=turn_url(log_id, index),
        is_cut=len(text) > QUOTE_CHARACTERS,
    )


def read_quotes(facts: Sequence[Fact]) -> dict[UUID, list[TurnQuote]]:
    """Return the turns from which facts of one account are derived, by fact, in order of time."""
    fact_ids = [fact.pk for fact in facts]
    links = Link.objects.filter(account_id=facts[0].account_id, source_id__in=fact_ids, type=DERIVED_FROM)
    rows = links.filter(target__kind=Kind.TURN).order_by("target__event_time", "target_id")
    found: dict[UUID, list[TurnQuote]] = {}
    for fact_id, *quoted in rows.values_list("source_id", *quote_columns("target"))[: MAX_QUOTES * len(facts)]:
        found.setdefault(fact_id, []).append(turn_quote(*quoted))
    return found


def entity_link(entity_id: UUID, name: str, type_: str) -> NamedLink:
    return NamedLink(name=excerpt_of(name), type=mark_invisible(type_), url=change_url("entity", entity_id))


def read_entities(facts: Sequence[Fact]) -> dict[UUID, list[NamedLink]]:
    """Return the entities that facts of one account are about, by fact."""
    links = Link.objects.filter(account_id=facts[0].account_id, source_id__in=[fact.pk for fact in facts], type=ABOUT)
    columns = ("source_id", "target_id", own_column("target", "name"), own_column("target", "type"))
    rows = links.filter(target__kind=Kind.ENTITY).order_by("id").values_list(*columns)
    found: dict[UUID, list[NamedLink]] = {}
    for fact_id, *entity in rows[: MAX_ENTITIES * len(facts)]:
        found.setdefault(fact_id, []).append(entity_link(*entity))
    return found


def read_related_facts(fact: Fact) -> list[RelatedFact]:
    """Return what this fact superseded, was superseded by, was promoted to or from; latest links first."""
    links = Link.objects.filter(Q(source_id=fact.pk) | Q(target_id=fact.pk), account_id=fact.account_id)
    rows = links.filter(type__in=(SUPERSEDES, PROMOTED_FROM)).order_by("-id")
    columns: list[Any] = ["type", "properties"]
    for end in ("source", "target"):
        columns += [f"{end}_id", f"{end}__kind", text_excerpt(f"{end}__text")]
        columns += [own_column(end, name) for name in STATE_COLUMNS]
    found, now = [], datetime.now(UTC)
    for type_, properties, *ends in rows.values_list(*columns)[:MAX_RELATED]:
        is_out = ends[0] == fact.pk
        half = len(ends) // 2
        other_id, kind, claim, *state = ends[half:] if is_out else ends[:half]
        found.append(
            RelatedFact(
                relation=RELATIONS_OF_FACTS[type_, is_out],
                claim=excerpt_of(claim),
                state=state_of_fact(*state, now=now) if kind == Kind.FACT else "",
                url=change_url("fact", other_id) if kind == Kind.FACT else why_url(other_id),
                reason=excerpt_of(str(properties.get("reason", ""))),
            )
        )
    return found


def read_reviews(fact: Fact) -> list[NamedLink]:
    """Return the reviews of contradictions that the fact is part of, latest first."""
    rows = FactReview.objects.filter(Q(new_fact_id=fact.pk) | Q(old_fact_id=fact.pk), account_id=fact.account_id)
    return [
        NamedLink(
            name="as the new fact" if review.new_fact_id == fact.pk else "as the old fact",
            type=review.get_status_display(),
            url=change_url("factreview", review.pk),
        )
        for review in rows.order_by("-id")[:MAX_RELATED]
    ]
