"""Propagation of corrections, quarantine and deletion to the slots and work episodes that repeat the changed text.

All levels of a slot, or of an episode, say the same, and their sources say it at length. So a correction clears the
row's data and erases its sources and the raw trace next to a reasoning. Quarantining a slot hides all its levels and
the episodes that repeat it; those episodes are released one by one. An archived level that another one replaces is not
brought back by any mark.

Work episodes also repeat the names of goals and artifacts, which they link to. When staff correct such a name, or it is
erased, the episodes are updated at all levels and wait for new vectors; when it is quarantined, they are quarantined.
Changes by those who work on a goal leave episodes as they are: they say what the goal was when it was done.

Conversations are locked first, as when turns are recorded and compressed, then the changed rows together with the
episodes that mention them. Any other order could deadlock.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Coalesce

from memory.audit import record_audit
from memory.errors import Unprocessable
from memory.extraction.work_renames import Renaming, format_product, is_product_of, rewrite_episode
from memory.kinds import Kind, kinds_where
from memory.models import (
    Artifact,
    CompressionLevel,
    Goal,
    Link,
    Memory,
    MemoryTable,
    ReasoningTrace,
    TurnRecord,
    TurnSlot,
    WorkEpisode,
)
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.correct import chunk_ids, erase_memories
from memory.services.memories.lifecycle import Lifecycle, Operation, lock_conversations
from memory.services.memories.links import DERIVED_FROM, PRODUCED, WORKS_ON
from memory.services.memories.store import TextUpdate, update_texts
from memory_project.batches import batched

WORK_KINDS = kinds_where(lambda spec: spec.is_compressed)
"""Kinds that hold structured turns, at one level of compression or another."""
MENTION_TYPES = (WORKS_ON, PRODUCED)
"""Types of links from work episodes to goals and artifacts."""
MENTIONED_COLUMNS = frozenset({"text", "title"})
"""Columns of goals and artifacts that work episodes repeat."""
EPISODE_BATCH = 500
NO_VECTORS = EmbeddedTexts(model="", width=0, vectors={})
REASONING = TurnSlot.Slot.REASONING.value


def slot_rows(owner: Owner) -> QuerySet[TurnSlot]:
    """Return all slots of the account."""
    return TurnSlot.objects.filter(account_id=owner.account_id)


def episode_rows(owner: Owner) -> QuerySet[WorkEpisode]:
    """Return all work episodes of the account."""
    return WorkEpisode.objects.filter(account_id=owner.account_id)


def find_conversations_of_work(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """Return the primary keys of the conversations that these slots and work episodes are of."""
    records = slot_rows(owner).filter(pk__in=memory_ids).values("record_id")
    logs = TurnRecord.objects.filter(account_id=owner.account_id, id__in=records).order_by().values_list("log_id")
    logs = logs.union(episode_rows(owner).filter(pk__in=memory_ids).order_by().values_list("log_id"))
    return [log_id for (log_id,) in logs]


def find_all_levels(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """Return these slots and episodes with all of their levels."""
    slots = slot_rows(owner).filter(pk__in=memory_ids)
    same_slot = slots.filter(record_id=OuterRef("record_id"), slot=OuterRef("slot"))
    of_slots = slot_rows(owner).filter(Exists(same_slot), record_id__in=slots.values("record_id"))
    episodes = episode_rows(owner).filter(pk__in=memory_ids)
    same_span = episodes.filter(log_id=OuterRef("log_id"), first_number=OuterRef("first_number"))
    of_episodes = episode_rows(owner).filter(Exists(same_span), log_id__in=episodes.values("log_id"))
    return [*of_slots.values_list("pk", flat=True), *of_episodes.values_list("pk", flat=True)]


def follow_derivations(
    owner: Owner, memory_ids: Iterable[UUID], *, start: str, end: str, kinds: Collection[Kind]
) -> list[UUID]:
    """Return memories of these kinds that DERIVED_FROM links reach in any number of steps. One statement per step.

    From "source" to "target", the links lead to what a memory was compressed from; back, to what repeats it.
    """
    found: dict[UUID, None] = {}
    step = list(memory_ids)
    while step:
        links = Link.objects.filter(account_id=owner.account_id, type=DERIVED_FROM, **{f"{start}_id__in": step})
        reached = links.filter(**{f"{end}__kind__in": sorted(kinds)}).values_list(f"{end}_id", flat=True)
        step = [each for each in reached if each not in found]
        found |= dict.fromkeys(step)
    return list(found)


def find_deleted_along(owner: Owner, memory_ids: Sequence[UUID]) -> list[UUID]:
    """Return what is deleted with these locked slots and episodes: their other levels and their sources."""
    if not memory_ids:
        return []
    levels = find_all_levels(owner, memory_ids)
    return [*levels, *follow_derivations(owner, levels, start="source", end="target", kinds=WORK_KINDS)]


def find_replaced(owner: Owner, memory_ids: Collection[UUID]) -> set[UUID]:
    """Return those that are archived because another level replaces them."""
    is_above = Q(level__gt=OuterRef("level"))
    above = slot_rows(owner).filter(is_above, record_id=OuterRef("record_id"), slot=OuterRef("slot"))
    is_merged = Q(record__level__gte=CompressionLevel.MERGED)
    slots = slot_rows(owner).filter(Exists(above) | is_merged, pk__in=memory_ids).values_list("pk", flat=True)
    later = episode_rows(owner).filter(is_above, log_id=OuterRef("log_id"), first_number=OuterRef("first_number"))
    episodes = episode_rows(owner).filter(Exists(later), pk__in=memory_ids).values_list("pk", flat=True)
    return {*slots, *episodes}


def find_records_of_slots(owner: Owner, memory_ids: Collection[UUID]) -> dict[UUID, bool]:
    """Return the records of slots among these, each with whether its reasoning is among them.

    Call it before the slots are erased.
    """
    if not memory_ids:
        return {}
    has_reasoning: dict[UUID, bool] = {}
    for record_id, slot in slot_rows(owner).filter(pk__in=memory_ids).values_list("record_id", "slot"):
        has_reasoning[record_id] = has_reasoning.get(record_id, False) or slot == REASONING
    return has_reasoning


def recompute_records(owner: Owner, records: dict[UUID, bool]) -> None:
    """Recompute the tokens of records from their slots and, where the reasoning changed, the tier.

    The raw traces next to a changed reasoning are erased.
    """
    if not records:
        return
    reasoned = [record_id for record_id, has_reasoning in records.items() if has_reasoning]
    ReasoningTrace.objects.filter(account_id=owner.account_id, record_id__in=reasoned).delete()
    own = slot_rows(owner).filter(record_id=OuterRef("pk"), archived=False).order_by()
    tokens = Subquery(own.values("record_id").annotate(total=Sum("token_count")).values("total"))
    tier = Subquery(own.filter(slot=REASONING).values("tier")[:1])
    rows = TurnRecord.objects.filter(account_id=owner.account_id, id__in=records)
    rows.filter(level__lt=CompressionLevel.MERGED).update(tokens=Coalesce(tokens, 0), version=F("version") + 1)
    rows.filter(id__in=reasoned).update(reasoning_tier=Coalesce(tier, Value(ReasoningTier.NONE.value)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CurrentNames:
    """The names that episodes should use: `goals` by id, with an empty text for one that is gone.

    `changed` are the URIs of artifacts that were renamed or erased, by id. `titles` are the titles and URIs of all that
    still exist, by id.
    """

    goals: Mapping[UUID, str]
    changed: Mapping[UUID, str]
    titles: Mapping[UUID, tuple[str, str]]


def mentioned_kinds() -> frozenset[Kind]:
    """Return the kinds that work episodes name: those whose memories have a MentionLifecycle."""
    return kinds_where(lambda spec: f"{__name__}.{MentionLifecycle.__name__}" in spec.lifecycles)


def find_mentioning_episodes(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """Return the work episodes, of any level, that mention the goals and artifacts among these.

    One statement, two if there are any goals or artifacts.
    """
    named = Memory.objects.visible_to(owner, *sorted(mentioned_kinds())).filter(id__in=memory_ids)
    found = list(named.order_by().values_list("id", flat=True))
    if not found:
        return []
    links = Link.objects.filter(account_id=owner.account_id, target_id__in=found, type__in=MENTION_TYPES)
    linked = links.filter(source__kind=Kind.WORK_EPISODE).order_by().values_list("source_id")
    for_goals = episode_rows(owner).filter(for_goal_id__in=found).order_by().values_list("pk")
    return sorted(each for (each,) in linked.union(for_goals))


def lock_mentioning_episodes(owner: Owner, memory_ids: Collection[UUID]) -> list[UUID]:
    """Lock the conversations of the episodes that mention these and return the episodes."""
    mentions = find_mentioning_episodes(owner, memory_ids)
    if mentions:
        lock_conversations(owner, find_conversations_of_work(owner, mentions))
    return mentions


def remove_mentions(owner: Owner, memory_ids: Collection[UUID], *, now: datetime) -> None:
    """Remove the names of these from all episodes. They are locked and about to be erased."""
    update_mentions(owner, memory_ids, are_gone=True, now=now)


def update_mentions(owner: Owner, memory_ids: Collection[UUID], *, are_gone: bool = False, now: datetime) -> None:
    """Update the names of these, which are locked, in all episodes that mention them."""
    mentions = find_mentioning_episodes(owner, memory_ids)
    for batch in batched(mentions, EPISODE_BATCH):
        update_mentions_in_batch(owner, batch, memory_ids, are_gone=are_gone, now=now)


def update_mentions_in_batch(
    owner: Owner, episode_ids: Sequence[UUID], memory_ids: Collection[UUID], *, are_gone: bool, now: datetime
) -> None:
    rows = episode_rows(owner).filter(pk__in=episode_ids).order_by("pk")
    episodes = list(rows.select_for_update(no_key=True))
    links = Link.objects.filter(account_id=owner.account_id, source_id__in=episode_ids, type__in=MENTION_TYPES)
    named: dict[UUID, set[UUID]] = defaultdict(set)
    for source, target in links.values_list("source_id", "target_id"):
        named[source].add(target)
    current = read_current_names(owner, {each for ids in named.values() for each in ids}, memory_ids, are_gone=are_gone)
    changed: dict[WorkEpisode, str] = {}
    for episode in episodes:
        names = named[episode.pk] | ({episode.for_goal_id} if episode.for_goal_id else set())
        text, data = rewrite_episode(episode.text, episode.data, build_renaming(current, names))
        if (text, data) != (episode.text, episode.data):
            episode.data = data
            changed[episode] = text
    if changed:
        episode_rows(owner).bulk_update(changed, ["data"])
        updates = [TextUpdate(row=row, text=text) for row, text in changed.items()]
        update_texts(owner, updates, embedded=NO_VECTORS, now=now)
        ids = [row.id for row in changed]
        record_audit(owner, operation="update", memory_type="episodic", affected_ids=ids, result_count=len(ids))


def read_current_names(
    owner: Owner, named: Collection[UUID], memory_ids: Collection[UUID], *, are_gone: bool
) -> CurrentNames:
    goals = Goal.objects.filter(account_id=owner.account_id, pk__in=memory_ids).values_list("pk", "text")
    artifacts = Artifact.objects.filter(account_id=owner.account_id, pk__in={*named, *memory_ids})
    known = {each: (title, uri) for each, title, uri in artifacts.values_list("pk", "title", "uri")}
    return CurrentNames(
        goals={each: "" if are_gone else text for each, text in goals},
        changed={each: known[each][1] for each in known if each in set(memory_ids)},
        titles={each: name for each, name in known.items() if not are_gone or each not in set(memory_ids)},
    )


def build_renaming(current: CurrentNames, names: Collection[UUID]) -> Renaming:
    """Return the function that maps former names to current ones for an episode that mentions `names`."""
    goal = next((current.goals[each] for each in names if each in current.goals), None)
    changed = {each: current.changed[each] for each in names if each in current.changed}
    # another revision may have the same name
    others = {format_product(*current.titles[each]) for each in names if each in current.titles and each not in changed}

    def rename(key: str, name: str) -> str:
        if key == "goal":
            return name if goal is None else goal
        named = [each for each, uri in changed.items() if is_product_of(name, uri)]
        if not named or name in others:
            return name
        return next((format_product(*current.titles[each]) for each in named if each in current.titles), "")

    return rename


class WorkLifecycle(Lifecycle):
    """Slots and work episodes, which exist at several levels of compression."""

    def __init__(self, operation: Operation, memory_ids: Sequence[UUID]) -> None:
        super().__init__(operation, memory_ids)
        self.along: list[UUID] = []
        self.records: dict[UUID, bool] = {}

    def find_conversations(self) -> Collection[UUID]:
        return find_conversations_of_work(self.owner, self.memory_ids)

    def find_along(self) -> Collection[UUID]:
        if self.operation.is_erasure:
            self.along = find_deleted_along(self.owner, self.memory_ids)
            return self.along
        if not self.memory_ids or self.operation.name not in ("quarantine", "release"):
            return ()
        levels = find_all_levels(self.owner, self.memory_ids)
        if self.operation.name == "release":
            return levels
        # what repeats them
        episodes = follow_derivations(self.owner, levels, start="target", end="source", kinds=[Kind.WORK_EPISODE])
        return [*levels, *episodes]

    def leave_out(self, rows: Sequence[Memory]) -> Collection[UUID]:
        """Keep rows archived that another level replaced, since both have the same content."""
        return find_replaced(self.owner, [row.id for row in rows]) if self.operation.name == "unarchive" else ()

    def before_erasure(self) -> None:
        self.records = find_records_of_slots(self.owner, self.along)

    def propagate(self, rows: Sequence[Memory]) -> None:
        if self.operation.is_erasure:
            recompute_records(self.owner, self.records)
        elif "text" in self.operation.columns:
            for row in rows:
                self._erase_other_versions(row.id)

    def _erase_other_versions(self, memory_id: UUID) -> None:
        """Erase everything that still says what the text said before its correction.

        Raises Unprocessable for a memory that another level stands for: nobody would read the corrected text.
        """
        if find_replaced(self.owner, [memory_id]):
            raise Unprocessable("another level stands for it: correct that one")
        others = [each for each in find_deleted_along(self.owner, [memory_id]) if each != memory_id]
        records = find_records_of_slots(self.owner, [memory_id, *others])
        # the data repeats the former text
        kinds = (Kind.TURN_SLOT, Kind.WORK_EPISODE)
        MemoryTable.objects.filter(account_id=self.owner.account_id, pk=memory_id, kind__in=kinds).update(data={})
        for ids in chunk_ids(others):
            erase_memories(self.owner, ids)
        recompute_records(self.owner, records)


class MentionLifecycle(Lifecycle):
    """Goals and artifacts, which work episodes name."""

    def __init__(self, operation: Operation, memory_ids: Sequence[UUID]) -> None:
        super().__init__(operation, memory_ids)
        self.mentions: list[UUID] = []

    @property
    def _is_renamed(self) -> bool:
        return not MENTIONED_COLUMNS.isdisjoint(self.operation.columns)

    def find_conversations(self) -> Collection[UUID]:
        if self.operation.is_erasure or self.operation.name == "quarantine" or self._is_renamed:
            self.mentions = find_mentioning_episodes(self.owner, self.memory_ids)
        return find_conversations_of_work(self.owner, self.mentions) if self.mentions else ()

    def find_along(self) -> Collection[UUID]:
        """Hide the episodes that name what is quarantined."""
        return self.mentions if self.operation.name == "quarantine" else ()

    def find_rewritten(self) -> Collection[UUID]:
        return self.mentions

    def before_erasure(self) -> None:
        remove_mentions(self.owner, self.memory_ids, now=self.now)

    def propagate(self, rows: Sequence[Memory]) -> None:
        if self._is_renamed:
            update_mentions(self.owner, self.memory_ids, now=self.now)
