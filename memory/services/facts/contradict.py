"""Contradictions that subject and attribute decide: finding them, and storing facts that have some.

Every writer looks under the lock of the holder (`lock_holder`), so that of two claims that are learned at the same time
the second sees the first. Which claims contradict each other is decided by `extraction.rules.attributes`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum

from django.db import transaction
from django.db.models import Q

from memory import conf
from memory.dates import Tense, find_dates
from memory.errors import Conflict
from memory.extraction.rules.attributes import ClaimReading, contradicts, is_move, is_rescheduled, read_meaning
from memory.extraction.rules.denials import opposites_of
from memory.extraction.rules.words import CITIES, COUNTRIES, REGIONS, TOWNS
from memory.identity import fact_identity, normalize_claim
from memory.masking import masks_secrets
from memory.models import Account, Certainty, Fact, Kind, Temporal
from memory.owner import Owner
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.entities.resolve import filter_by_holder, lock_holder
from memory.services.facts.learn import FactDraft, LearnedFact, check_fact_draft, learn_fact
from memory.services.facts.review import Rival, filter_contradicted, find_rivals, open_review, prefer_new
from memory.services.facts.supersede import supersede_fact

MAX_CANDIDATES = 500
"""Facts that are compared with the claims of one extraction: those of their subjects and attributes, newest first."""
_PLACES = CITIES | COUNTRIES | REGIONS | TOWNS
FOR_GOOD = frozenset({"birthplace", "birthday"})
"""Attributes that stay true of events in the past: "was born in Porto"."""


class OnContradiction(StrEnum):
    """Treatments of a fact that contradicts believed ones."""

    SUPERSEDE = "supersede"
    KEEP_BOTH = "keep_both"
    REVIEW = "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaidClaim:
    """A claim to compare with what is believed, and when it was said."""

    claim: str
    certainty: str = ""
    temporal: str = Temporal.CURRENT
    said_at: datetime

    @classmethod
    def of(cls, draft: FactDraft, *, now: datetime) -> "SaidClaim":
        said_at = draft.said_at or draft.event_time or now
        return cls(claim=draft.claim, certainty=draft.certainty, temporal=draft.temporal, said_at=said_at)


def find_contradicted(owner: Owner, claims: Sequence[SaidClaim], *, now: datetime) -> list[list[Fact]]:
    """Return for each claim the believed facts of the same holder that it surely contradicts, newest first.

    One statement; none if no claim is understood. A claim that is uncertain contradicts nothing, and one that is
    planned only another date of the same thing.
    """
    readings = [None if said.certainty == Certainty.UNCERTAIN else read_meaning(said.claim) for said in claims]
    keys = {key for reading in readings if reading is not None for key in reading.sought_keys}
    ended = {
        opposite
        for said, reading in zip(claims, readings, strict=True)
        if reading is not None
        for opposite in opposites_of(said.claim)
    }
    if not keys and not ended:
        return [[] for _claim in claims]
    channels = [replace(owner, channel=channel) for channel in owner.channels]
    identities = [fact_identity(each, claim=claim) for claim in ended for each in channels]
    rows = Fact.objects.visible_to(owner, Kind.FACT).in_channels(owner).live(now)
    sought = Q(attribute__gt="", attribute__in=keys) | Q(identity__in=identities)
    found = rows.filter(filter_by_holder(owner), sought, status=Fact.Status.ACTIVE)
    newest = list(found.order_by("-recorded_at", "-id")[:MAX_CANDIDATES])
    return [
        [] if reading is None else [fact for fact in newest if is_contradicted(said, reading, fact)]
        for said, reading in zip(claims, readings, strict=True)
    ]


def is_contradicted(said: SaidClaim, reading: ClaimReading, fact: Fact) -> bool:
    """Return True if the claim surely contradicts the believed fact.

    Plans are not contradicted, and contradict nothing, except for the dates that things are set for. Of two such dates
    the one that was said later counts.
    """
    if normalize_claim(fact.text) == normalize_claim(said.claim):
        return False
    known = read_meaning(fact.text)
    is_scheduled = known.parts is not None and known.parts.attribute == "date"
    if is_scheduled and fact.event_time > said.said_at and is_rescheduled(known, reading):
        return True
    if said.temporal == Temporal.FUTURE:
        return is_rescheduled(reading, known) and not is_next_date(said, fact)
    if fact.temporal == Temporal.FUTURE and not is_scheduled:
        return False
    if normalize_claim(fact.text) in opposites_of(said.claim):
        return fact.temporal == Temporal.CURRENT
    if known.parts is None or not contradicts(reading, known):
        return False
    if fact.temporal == Temporal.PAST and not (
        known.parts.is_end or known.parts.attribute in FOR_GOOD or " moved " in fact.text
    ):
        return False
    return not is_next_date(said, fact)


def is_next_date(said: SaidClaim, fact: Fact) -> bool:
    """Return True if the fact's date has passed when the claim names another one: the next release is not the last."""
    parts = read_meaning(said.claim).parts
    if parts is None or parts.attribute != "date" or parts.is_change:
        return False
    found = find_dates(fact.text, at=fact.event_time, tense=Tense.FUTURE)
    return bool(found) and all(date.end <= said.said_at for date in found)


def is_old_move(draft: FactDraft) -> bool:
    """Return True for "moved to Porto" without a date: it may have been long ago."""
    return draft.valid_from is None and is_move(draft.claim)


def is_former_residence(draft: FactDraft) -> bool:
    """Return True for a move that a client calls past or says a time of, and for one to what may be no place.

    "Ana moved to Porto as a child", "in 2001", "to Marketing".
    """
    parts = read_meaning(draft.claim).parts
    is_place = parts is not None and not _PLACES.isdisjoint(parts.value.split(", "))
    has_time = bool(find_dates(draft.claim, at=draft.said_at or datetime.now(UTC), tense=Tense.PAST))
    return draft.temporal != Temporal.CURRENT or not is_place or has_time


def find_policy(owner: Owner) -> str:
    """Return what the account does about contradictions: `prefer_new`, `prefer_old` or `flag_review`."""
    own = Account.objects.filter(id=owner.account_id).values_list("contradictions", flat=True).first()
    return own or conf.CONTRADICTIONS


@masks_secrets
def learn_consistent_fact(
    owner: Owner, draft: FactDraft, *, on_contradiction: str = "", embedded: EmbeddedTexts, now: datetime
) -> LearnedFact:
    """Learn a fact, and supersede the facts that it contradicts, keep both, or open reviews for staff.

    Without `on_contradiction` the account decides (`find_policy`). An account that prefers old facts refuses the new
    one. Raises Conflict then, and as `learn_facts` and `supersede_fact` do.
    """
    check_fact_draft(draft)
    with transaction.atomic():
        lock_holder(owner)
        if on_contradiction == OnContradiction.KEEP_BOTH:
            return learn_fact(owner, draft, embedded=embedded, now=now)
        draft, against = contradicted_by_draft(owner, draft, embedded=embedded, now=now)
        if not against:
            return learn_fact(owner, draft, embedded=embedded, now=now)
        policy = on_contradiction or find_policy(owner)
        if policy in (OnContradiction.REVIEW, "flag_review"):
            reviews = [
                open_review(owner, old=rival.fact, draft=draft, similarity=rival.similarity, embedded=embedded, now=now)
                for rival in against
            ]
            pending = Fact.objects.get(account_id=owner.account_id, id=reviews[0].new_fact_id)
            return LearnedFact(fact=pending, is_new=pending.id == draft.id)
        if policy == "prefer_old":
            raise Conflict(
                f"this contradicts the fact {against[0].fact.id}, and the account prefers old facts. "
                "Set on_contradiction to supersede, keep_both or review"
            )
        first, *also = (rival.fact.id for rival in against)
        stored = supersede_fact(owner, first, draft, also=also, embedded=embedded, now=now)
        return LearnedFact(fact=stored, is_new=stored.id == draft.id)


def contradicted_by_draft(
    owner: Owner, draft: FactDraft, *, embedded: EmbeddedTexts, now: datetime
) -> tuple[FactDraft, list[Rival]]:
    """Return a client's draft, and the facts that it surely contradicts and that were true before it.

    It ends where a fact begins that contradicts it, and that was said later or states a later beginning. A client that
    states a move without any time states where somebody lives now.
    """
    [found] = find_contradicted(owner, [SaidClaim.of(draft, now=now)], now=now)
    if not found or (is_old_move(draft) and is_former_residence(draft)):
        return draft, []
    later = [fact for fact in found if states_later_beginning(fact, draft)]
    rivals = find_rivals(owner, draft, (), sure=[fact for fact in found if fact not in later], embedded=embedded)
    said_at = draft.said_at or draft.event_time or now
    against = filter_contradicted(draft, rivals, said_at=said_at)
    verdict = prefer_new(draft, against, said_at=said_at)
    begins = [fact.stated_from for fact in later if fact.stated_from and fact.temporal == Temporal.CURRENT]
    ends = min([*begins, *filter(None, [verdict.draft.valid_to])], default=None)
    return replace(verdict.draft, valid_to=ends), [rival for rival in against if rival.fact in verdict.outdated]


def states_later_beginning(fact: Fact, draft: FactDraft) -> bool:
    return draft.valid_from is not None and fact.stated_from is not None and fact.stated_from > draft.valid_from
