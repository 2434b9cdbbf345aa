"""Reading work episodes (E5): listed, redacted to the account's policy, expanded to the records they were merged from.

Work episodes are made by `services.compression`. Every agent that takes part in the conversation sees them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from memory.errors import NotFound
from memory.models import CompressionLevel, Kind, Link, TurnRecord, WorkEpisode
from memory.models.work_episodes import MIN_TIER_BY_FIELD, data_within_tier
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper
from memory.services.memories.links import DERIVED_FROM
from memory.services.records.read import read_slots_at_level
from memory.services.records.reasoning import RedactedSlot, read_policy, redact_slots

MAX_RECORDS = 100
"""Maximum of records that an episode is expanded to."""
DATA_LABELS = {
    "goal": "Goal",
    "decisions": "Decided",
    "findings": "Found",
    "produced": "Produced",
    "corrections": "Corrected",
    "outcomes": "Came of it",
    "outcome": "Outcome",
}
"""Labels of an episode's data, in this order, where its own text must not be shown."""
LABELS_BY_TIER = tuple((name, label, MIN_TIER_BY_FIELD[name]) for name, label in DATA_LABELS.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedEpisode:
    """An episode's text as far as the policy allows; `tier` is its deepest one."""

    row: WorkEpisode
    text: str = field(repr=False)
    tier: ReasoningTier


def redact_episode(row: WorkEpisode, allowed: ReasoningTier) -> RedactedEpisode | None:
    """Return an episode with no reasoning deeper than `allowed`, or None if nothing is left.

    The text of an episode with deeper reasoning is replaced by lines made from the shallower parts of its data.
    """
    if not is_deeper(row.tier, allowed):
        return RedactedEpisode(row=row, text=row.text, tier=ReasoningTier(row.tier)) if row.text else None
    labels = [(name, label, tier) for name, label, tier in LABELS_BY_TIER if not is_deeper(tier, allowed)]
    lines = [(tier, f"{label}: {text}") for name, label, tier in labels for text in texts_in_data(row.data.get(name))]
    if not lines:
        return None
    deepest = max((tier for tier, _ in lines), key=lambda tier: DEPTHS[tier])
    return RedactedEpisode(row=row, text="\n".join(line for _, line in lines), tier=deepest)


def texts_in_data(value: Any) -> list[str]:
    """Return the texts of a list, or a single text. Outcomes are prefixed with their status."""
    items = value if isinstance(value, list) else [value]
    texts = (f"{each.get('status')}: {each.get('text')}" if isinstance(each, dict) else each for each in items)
    return [each for each in texts if isinstance(each, str) and each]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkEpisodeView:
    """A work episode as far as the policy allows; `tier` is the deepest in text and data.

    The text is empty if none of it may be shown.
    """

    episode: WorkEpisode
    text: str
    data: Mapping[str, Any]
    tier: ReasoningTier


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedRecord:
    """A record that an episode stands for, with its slots as far as the policy allows."""

    record: TurnRecord
    slots: Sequence[RedactedSlot]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedEpisode:
    """An episode with the records that it stands for, in order, `truncated` to MAX_RECORDS.

    `derived_from` is the episode that it was archived from, as long as that exists.
    """

    view: WorkEpisodeView
    derived_from: UUID | None
    records: Sequence[ExpandedRecord]
    truncated: bool


def visible_work_episodes(owner: Owner, *, now: datetime) -> QuerySet[WorkEpisode]:
    """Return the episodes that the owner sees, each at its current level, unordered."""
    rows: Any = WorkEpisode.objects
    found: QuerySet[WorkEpisode] = rows.visible_to(owner, Kind.WORK_EPISODE).live(now)
    return found


def redacted_view(episode: WorkEpisode, allowed: ReasoningTier) -> WorkEpisodeView:
    """Return the view of an episode. `allowed` may differ from the policy under which it was made."""
    redacted = redact_episode(episode, allowed)
    data = data_within_tier(episode.data, tier=episode.tier, allowed=allowed)
    text, tier = (redacted.text, redacted.tier) if redacted else ("", ReasoningTier.NONE)
    return WorkEpisodeView(episode=episode, text=text, data=data, tier=tier)


def find_work_episode(owner: Owner, episode_id: UUID, *, now: datetime) -> WorkEpisode:
    """Return an episode of any level, archived ones included. Raises NotFound."""
    rows: Any = WorkEpisode.objects
    lasting = Q(expires_at=None) | Q(expires_at__gt=now)
    seen = rows.visible_to(owner, Kind.WORK_EPISODE).filter(lasting, quarantined=False)
    episode: WorkEpisode | None = seen.filter(id=episode_id).first()
    if episode is None:
        raise NotFound("no such work episode")
    return episode


def view_work_episode(owner: Owner, episode_id: UUID, *, now: datetime) -> ExpandedEpisode:
    """Return an episode without its records. Three statements. Raises NotFound."""
    episode, allowed = find_work_episode(owner, episode_id, now=now), read_policy(owner.account_id).tier
    view, origin = redacted_view(episode, allowed), find_source_episode_id(episode)
    return ExpandedEpisode(view=view, derived_from=origin, records=[], truncated=False)


def expand_work_episode(owner: Owner, episode_id: UUID, *, level: int, now: datetime) -> ExpandedEpisode:
    """Return an episode with its records and their slots at `level` (0: as recorded, 1: each shortened).

    Five statements. Raises NotFound.
    """
    episode, allowed = find_work_episode(owner, episode_id, now=now), read_policy(owner.account_id).tier
    found = list(records_of_episode(owner, episode)[: MAX_RECORDS + 1])
    records = found[:MAX_RECORDS]
    slots = read_slots_at_level([record.id for record in records], level)
    return ExpandedEpisode(
        view=redacted_view(episode, allowed),
        derived_from=find_source_episode_id(episode),
        records=[ExpandedRecord(record=each, slots=redact_slots(slots[each.id], allowed)) for each in records],
        truncated=len(found) > MAX_RECORDS,
    )


def find_source_episode_id(episode: WorkEpisode) -> UUID | None:
    """Return the id of the episode that this one was archived from."""
    links = Link.objects.filter(account_id=episode.account_id, source_id=episode.id, type=DERIVED_FROM)
    return links.filter(target__kind=Kind.WORK_EPISODE).values_list("target_id", flat=True).first()


def records_of_episode(owner: Owner, episode: WorkEpisode) -> QuerySet[TurnRecord]:
    """Return the records of an episode by number range: one of a higher level stands for the same records."""
    span = (episode.first_number, episode.last_number)
    rows = TurnRecord.objects.visible_to(owner).filter(log_id=episode.log_id, number__range=span)
    return rows.filter(level__gte=CompressionLevel.MERGED).order_by("number")
