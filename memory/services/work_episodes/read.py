"""Work episodes (E5) read: listed, told as far as the account's policy allows, expanded to what they were made of.

What makes them is the compression of structured turns. Who takes part in the conversation sees them.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from memory.errors import NotFound
from memory.models import CompressionLevel, Kind, Link, TurnRecord, TurnSlot, WorkEpisode
from memory.models.work_episodes import TOLD_FROM, told_data
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper
from memory.services.memories.links import DERIVED_FROM
from memory.services.records.reasoning import ToldSlot, read_policy, told_slots
from memory.services.records.record import in_order

SPOKEN = {
    "goal": "Goal",
    "decisions": "Decided",
    "findings": "Found",
    "produced": "Produced",
    "corrections": "Corrected",
    "outcomes": "Came of it",
    "outcome": "Outcome",
}
"""How what an episode's data holds is told without its text, in this order."""
LABELS = tuple((name, label, TOLD_FROM[name]) for name, label in SPOKEN.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldEpisode:
    """`tier` is the deepest that the text tells."""

    row: WorkEpisode
    text: str = field(repr=False)
    tier: ReasoningTier


def told_episode(row: WorkEpisode, allowed: ReasoningTier) -> ToldEpisode | None:
    """What may be told where no reasoning deeper than `allowed` may; None where that is nothing.

    An episode that tells more leaves what its data holds of the shallower tiers.
    """
    if not is_deeper(row.tier, allowed):
        return ToldEpisode(row=row, text=row.text, tier=ReasoningTier(row.tier)) if row.text else None
    labels = [(name, label, tier) for name, label, tier in LABELS if not is_deeper(tier, allowed)]
    told = [(tier, f"{label}: {said}") for name, label, tier in labels for said in said_in(row.data.get(name))]
    if not told:
        return None
    deepest = max((tier for tier, _ in told), key=lambda tier: DEPTHS[tier])
    return ToldEpisode(row=row, text="\n".join(line for _, line in told), tier=deepest)


def said_in(value: Any) -> list[str]:
    """The texts of a list, or one text; of outcomes with how each ended."""
    said = value if isinstance(value, list) else [value]
    texts = (f"{each.get('status')}: {each.get('text')}" if isinstance(each, dict) else each for each in said)
    return [each for each in texts if isinstance(each, str) and each]


MOST_RECORDS = 100
"""That an episode is expanded to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeView:
    """A work episode as far as it may be told: `tier` is the deepest of reasoning that text and data tell.

    The text is empty where nothing of it may be told.
    """

    episode: WorkEpisode
    text: str
    data: Mapping[str, Any]
    tier: ReasoningTier


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedRecord:
    """A structured turn that an episode stands for, with what may be told of its slots."""

    record: TurnRecord
    slots: Sequence[ToldSlot]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedEpisode:
    """An episode with the structured turns that it stands for, in their order, and the episode that it was made of, if
    that is told yet. `truncated` where there are more than MOST_RECORDS."""

    view: EpisodeView
    derived_from: UUID | None
    records: Sequence[ExpandedRecord]
    truncated: bool


def listed_work_episodes(owner: Owner, *, now: datetime) -> QuerySet[WorkEpisode]:
    """All that the owner sees, each on the level that it is at now; to be filtered and ordered."""
    rows: Any = WorkEpisode.objects
    found: QuerySet[WorkEpisode] = rows.visible_to(owner, Kind.WORK_EPISODE).live(now)
    return found


def tell_episode(episode: WorkEpisode, allowed: ReasoningTier) -> EpisodeView:
    """As far as no reasoning deeper than `allowed` is told, which may have been another tier when it was made."""
    told = told_episode(episode, allowed)
    data = told_data(episode.data, tier=episode.tier, allowed=allowed)
    text, tier = (told.text, told.tier) if told else ("", ReasoningTier.NONE)
    return EpisodeView(episode=episode, text=text, data=data, tier=tier)


def find_work_episode(owner: Owner, episode_id: UUID, *, now: datetime) -> WorkEpisode:
    """One of whatever level: what was archived for a higher one, too. Raises NotFound."""
    rows: Any = WorkEpisode.objects
    lasting = Q(expires_at=None) | Q(expires_at__gt=now)
    seen = rows.visible_to(owner, Kind.WORK_EPISODE).filter(lasting, quarantined=False)
    episode: WorkEpisode | None = seen.filter(id=episode_id).first()
    if episode is None:
        raise NotFound("no such work episode")
    return episode


def view_work_episode(owner: Owner, episode_id: UUID, *, now: datetime) -> ExpandedEpisode:
    """Without its records. Three statements. Raises NotFound."""
    episode, allowed = find_work_episode(owner, episode_id, now=now), read_policy(owner.account_id).tier
    view, origin = tell_episode(episode, allowed), find_origin(episode)
    return ExpandedEpisode(view=view, derived_from=origin, records=[], truncated=False)


def expand_work_episode(owner: Owner, episode_id: UUID, *, level: int, now: datetime) -> ExpandedEpisode:
    """With its records, their slots as they were at that `level` (0: as they came, 1: each shortened by itself).

    Five statements. Raises NotFound.
    """
    episode, allowed = find_work_episode(owner, episode_id, now=now), read_policy(owner.account_id).tier
    found = list(records_of(owner, episode)[: MOST_RECORDS + 1])
    records = found[:MOST_RECORDS]
    slots = slots_of(records, level)
    return ExpandedEpisode(
        view=tell_episode(episode, allowed),
        derived_from=find_origin(episode),
        records=[ExpandedRecord(record=each, slots=told_slots(slots[each.id], allowed)) for each in records],
        truncated=len(found) > MOST_RECORDS,
    )


def find_origin(episode: WorkEpisode) -> UUID | None:
    """The work episode that it was made of."""
    links = Link.objects.filter(account_id=episode.account_id, source_id=episode.id, type=DERIVED_FROM)
    return links.filter(target__kind=Kind.WORK_EPISODE).values_list("target_id", flat=True).first()


def records_of(owner: Owner, episode: WorkEpisode) -> QuerySet[TurnRecord]:
    """Those that it stands for. By their numbers: an episode of a higher level stands for the same ones."""
    span = (episode.first_number, episode.last_number)
    rows = TurnRecord.objects.visible_to(owner).filter(log_id=episode.log_id, number__range=span)
    return rows.filter(level__gte=CompressionLevel.MERGED).order_by("number")


def slots_of(records: Collection[TurnRecord], level: int) -> Mapping[UUID, Sequence[TurnSlot]]:
    """The slots of records as they were at that level, by record: archived ones, too, as long as there are any.

    The nearest level below stands in for one that there is not; where there is none below, the next above does: what
    would not have been shorter was raised to its level as it was. Those that are quarantined are left out. One
    statement.
    """
    rows: Any = TurnSlot.objects
    found = rows.filter(record_id__in=[record.id for record in records])
    best: dict[tuple[UUID, str], TurnSlot] = {}
    for row in sorted(found, key=lambda row: nearness(row.level, level), reverse=True):
        best[row.record_id, row.slot] = row
    by_record: dict[UUID, list[TurnSlot]] = defaultdict(list)
    for row in in_order(row for row in best.values() if not row.quarantined):
        by_record[row.record_id].append(row)
    return by_record


def nearness(level: int, wanted: int) -> tuple[bool, int]:
    """The smaller, the better it stands for the wanted level."""
    return level > wanted, abs(wanted - level)
