"""What correcting, hiding and deleting slots of structured turns, and work episodes, means for what repeats them.

Each level of a slot, and each of an episode, tells the same, and what it was made of tells it at length. So a corrected
text leaves nothing of it: its data is emptied, what it was compressed from is erased, and so is the raw trace beside a
reasoning. Who quarantines a slot hides all of its levels, and the episodes that tell of it; those are released by
themselves. An archived level that another stands for comes back by no mark. What episodes repeat of goals and artifacts
is in `work_mentions`.

Conversations are locked first, as by those who record turns and compress them.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from memory.models import (
    CompressionLevel,
    Conversation,
    Kind,
    Link,
    Memory,
    ReasoningTrace,
    TurnRecord,
    TurnSlot,
    WorkEpisode,
)
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.memories.links import DERIVED_FROM

WORK = frozenset({Kind.TURN_SLOT, Kind.WORK_EPISODE})
"""Kinds that structured turns are told in, at one level or another."""

REASONING = TurnSlot.Slot.REASONING.value
slot_rows: Any = TurnSlot._default_manager
episode_rows: Any = WorkEpisode._default_manager


def hold_work(owner: Owner, memory_ids: Collection[UUID], *, along: Collection[UUID] = ()) -> list[UUID]:
    """The slots and work episodes among these memories, after locking the conversations that they, and those that go
    `along`, are of."""
    among = Memory.objects.filter(account_id=owner.account_id, kind__in=sorted(WORK), id__in=memory_ids)
    found = list(among.values_list("id", flat=True))
    if found or along:
        lock_logs([*found, *along])
    return found


def lock_logs(memory_ids: Collection[UUID]) -> None:
    """Lock the conversations that these slots and work episodes are of."""
    logs = slot_rows.filter(pk__in=memory_ids).order_by().values_list("record__log_id")
    logs = logs.union(episode_rows.filter(pk__in=memory_ids).order_by().values_list("log_id"))
    conversations = Conversation.objects.filter(id__in=[log_id for (log_id,) in logs]).order_by("id")
    list(conversations.select_for_update(no_key=True).values_list("id", flat=True))


def levels_of(memory_ids: Collection[UUID]) -> list[UUID]:
    """These slots and episodes at all of their levels."""
    same_slot = slot_rows.filter(pk__in=memory_ids, record=OuterRef("record"), slot=OuterRef("slot"))
    of_slots = slot_rows.filter(Exists(same_slot), record__slots__in=memory_ids)
    same_span = episode_rows.filter(pk__in=memory_ids, log=OuterRef("log"), first_number=OuterRef("first_number"))
    of_episodes = episode_rows.filter(Exists(same_span), log__work_episodes__in=memory_ids)
    found = [*of_slots.values_list("pk", flat=True), *of_episodes.values_list("pk", flat=True)]
    return list(dict.fromkeys(found))


def sources_of(owner: Owner, memory_ids: Iterable[UUID]) -> list[UUID]:
    """What these slots and episodes were compressed from, at any level. A statement for each level."""
    found: dict[UUID, None] = {}
    level = list(memory_ids)
    while level:
        links = Link.objects.filter(account_id=owner.account_id, type=DERIVED_FROM, source_id__in=level)
        of_work = links.filter(target__kind__in=sorted(WORK)).values_list("target_id", flat=True)
        level = [each for each in of_work if each not in found]
        found |= dict.fromkeys(level)
    return list(found)


def tellers_of(owner: Owner, memory_ids: Iterable[UUID]) -> list[UUID]:
    """The work episodes that tell of these slots and episodes, at any level."""
    found: dict[UUID, None] = {}
    level = list(memory_ids)
    while level:
        links = Link.objects.filter(account_id=owner.account_id, type=DERIVED_FROM, target_id__in=level)
        of_work = links.filter(source__kind=Kind.WORK_EPISODE).values_list("source_id", flat=True)
        level = [each for each in of_work if each not in found]
        found |= dict.fromkeys(level)
    return list(found)


def marked_along(owner: Owner, memory_ids: Sequence[UUID], mark: str) -> list[UUID]:
    """What a mark on these slots and episodes, which are held, means as well."""
    if not memory_ids or mark not in ("quarantine", "release"):
        return []
    levels = levels_of(memory_ids)
    return levels if mark == "release" else [*levels, *tellers_of(owner, levels)]


def deleted_along(owner: Owner, memory_ids: Sequence[UUID]) -> list[UUID]:
    """What goes with these slots and episodes, which are held: their other levels, and what they were made of."""
    if not memory_ids:
        return []
    levels = levels_of(memory_ids)
    return [*levels, *sources_of(owner, levels)]


def replaced_among(memory_ids: Collection[UUID]) -> set[UUID]:
    """Those that are archived since another level stands for them."""
    above = slot_rows.filter(record=OuterRef("record"), slot=OuterRef("slot"), level__gt=OuterRef("level"))
    is_merged = Q(record__level__gte=CompressionLevel.MERGED)
    slots = slot_rows.filter(Exists(above) | is_merged, pk__in=memory_ids).values_list("pk", flat=True)
    later = episode_rows.filter(log=OuterRef("log"), first_number=OuterRef("first_number"), level__gt=OuterRef("level"))
    episodes = episode_rows.filter(Exists(later), pk__in=memory_ids).values_list("pk", flat=True)
    return {*slots, *episodes}


def repeated_by(owner: Owner, memory_id: UUID) -> list[UUID]:
    """What says more of a slot or an episode, which is held, than its own text: its other levels, and its sources."""
    return [each for each in deleted_along(owner, [memory_id]) if each != memory_id]


def empty_data(memory_id: UUID) -> None:
    """It would go on saying what the text said."""
    slot_rows.filter(pk=memory_id).update(data={})
    episode_rows.filter(pk=memory_id).update(data={})


def records_of(memory_ids: Collection[UUID]) -> dict[UUID, bool]:
    """The records of slots among these, and whether their reasoning is among them. Ask before they are erased."""
    if not memory_ids:
        return {}
    reasoned: dict[UUID, bool] = {}
    for record_id, slot in slot_rows.filter(pk__in=memory_ids).values_list("record_id", "slot"):
        reasoned[record_id] = reasoned.get(record_id, False) or slot == REASONING
    return reasoned


def settle_records(records: dict[UUID, bool]) -> None:
    """Bring records up to what their slots say by now: their tokens and, of those whose reasoning was changed, the
    tier. Their raw traces are erased."""
    if not records:
        return
    reasoned = [record_id for record_id, has_reasoning in records.items() if has_reasoning]
    ReasoningTrace.objects.filter(record_id__in=reasoned).delete()
    own = slot_rows.filter(record=OuterRef("pk"), archived=False).order_by()
    tokens = Subquery(own.values("record").annotate(total=Sum("token_count")).values("total"))
    tier = Subquery(own.filter(slot=REASONING).values("tier")[:1])
    rows = TurnRecord.objects.filter(id__in=records)
    rows.filter(level__lt=CompressionLevel.MERGED).update(tokens=Coalesce(tokens, 0), version=F("version") + 1)
    TurnRecord.objects.filter(id__in=reasoned).update(reasoning_tier=Coalesce(tier, Value(ReasoningTier.NONE.value)))
