"""Reading work episodes (E5): listed, redacted to the account's policy, expanded to the records they were merged from.

Work episodes are made by `services.compression`. Every agent that takes part in the conversation sees them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from memory.errors import require_found
from memory.models import CompressionLevel, Kind, Link, TurnRecord, WorkEpisode
from memory.models.turn_records import MIN_TIER_BY_FIELD, data_within_tier
from memory.owner import Owner
from memory.reasoning import DEPTHS, ReasoningTier, is_deeper
from memory.services.memories.links import DERIVED_FROM
from memory.services.records.read import RecordView, build_record_view, read_slots_at_level
from memory.services.records.reasoning import read_policy

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
class ExpandedEpisode:
    """An episode with the records that it stands for, in order, `truncated` to MAX_RECORDS.

    `derived_from` is the episode that it was archived from, as long as that exists.
    """

    view: WorkEpisodeView
    derived_from: UUID | None
    records: Sequence[RecordView]
    truncated: bool


def redacted_view(episode: WorkEpisode, allowed: ReasoningTier) -> WorkEpisodeView:
    """Return an episode with no reasoning deeper than `allowed`, which may differ from the policy when it was made.

    The text of an episode with deeper reasoning is replaced by lines made from the shallower parts of its data.
    """
    data = data_within_tier(episode.data, tier=episode.tier, allowed=allowed)
    if not is_deeper(episode.tier, allowed):
        tier = ReasoningTier(episode.tier) if episode.text else ReasoningTier.NONE
        return WorkEpisodeView(episode=episode, text=episode.text, data=data, tier=tier)
    lines = [
        (name, f"{label}: {text}") for name, label in DATA_LABELS.items() for text in texts_in_data(data.get(name))
    ]
    tiers = (MIN_TIER_BY_FIELD[name] for name, _ in lines)
    deepest = max(tiers, key=lambda tier: DEPTHS[tier], default=ReasoningTier.NONE)
    return WorkEpisodeView(episode=episode, text="\n".join(line for _, line in lines), data=data, tier=deepest)


def texts_in_data(value: Any) -> list[str]:
    """Return the texts of a list, or a single text. Outcomes are prefixed with their status."""
    items = value if isinstance(value, list) else [value]
    texts = (f"{each.get('status')}: {each.get('text')}" if isinstance(each, dict) else each for each in items)
    return [each for each in texts if isinstance(each, str) and each]


def visible_work_episodes(owner: Owner, *, now: datetime) -> QuerySet[WorkEpisode]:
    """Return the episodes that the owner sees, each at its current level, unordered."""
    return WorkEpisode.objects.visible_to(owner, Kind.WORK_EPISODE).live(now)


def view_work_episode(owner: Owner, episode_id: UUID, *, level: int | None = None, now: datetime) -> ExpandedEpisode:
    """Return an episode, with its records and their slots at `level` (0: as recorded, 1: each shortened) if given.

    The episode may be of any level, and archived. Three statements, two more for the records. Raises NotFound.
    """
    lasting = Q(expires_at=None) | Q(expires_at__gt=now)
    seen = WorkEpisode.objects.visible_to(owner, Kind.WORK_EPISODE).filter(lasting, quarantined=False)
    episode = require_found(seen.filter(id=episode_id).first(), "work episode")
    allowed = read_policy(owner.account_id).tier
    # by number range: an episode of a higher level stands for the same records
    span = (episode.first_number, episode.last_number)
    merged = TurnRecord.objects.visible_to(owner).filter(log_id=episode.log_id, level__gte=CompressionLevel.MERGED)
    in_order = merged.filter(number__range=span).order_by("number")
    found = [] if level is None else list(in_order[: MAX_RECORDS + 1])
    records = found[:MAX_RECORDS]
    slots = {} if level is None else read_slots_at_level(owner.account_id, [record.id for record in records], level)
    origins = Link.objects.filter(account_id=episode.account_id, source_id=episode.id, type=DERIVED_FROM)
    return ExpandedEpisode(
        view=redacted_view(episode, allowed),
        derived_from=origins.filter(target__kind=Kind.WORK_EPISODE).values_list("target_id", flat=True).first(),
        records=[build_record_view(each, slots[each.id], allowed) for each in records],
        truncated=len(found) > MAX_RECORDS,
    )
