"""Compression level 2: adjacent records of one goal become a work episode, which stands for them.

Records are adjacent if no record of another goal or level lies between them; a deleted number leaves no gap. Reasoning
is included no deeper than the account's policy allows at that moment. Records whose episode would not be shorter are
set aside: they wait for more records of their goal, or for a month.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, Subquery

from memory import conf
from memory.extraction.compression import Passage
from memory.extraction.compressors import work_compressor
from memory.extraction.turn_slots import Rationale
from memory.extraction.work_retellings import format_product
from memory.extraction.work_stories import (
    MOST_STEPS,
    Step,
    WorkStory,
    cut_steps,
    deeds_to_shorten,
    lay_out,
    net_work,
)
from memory.models import (
    Artifact,
    CompressionLevel,
    Goal,
    Kind,
    Link,
    Memory,
    ToolInvocation,
    TurnRecord,
    TurnSlot,
    WorkEpisode,
)
from memory.owner import Owner
from memory.providers.language_models import Usage
from memory.reasoning import ReasoningTier, shallowest
from memory.services.compression.compress import (
    ACTOR,
    CompressionBatch,
    CompressionWorker,
    Task,
    archive_sources,
    completed_columns,
    due_records,
    lock_conversation_row,
    lock_unchanged_memories,
    lock_unchanged_records,
)
from memory.services.conversations.queue import BatchResult
from memory.services.embedding.embed import embed_texts
from memory.services.memories.links import DERIVED_FROM, PRODUCED, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import store_memories
from memory.services.records.reasoning import RedactedSlot, read_policy, redact_slots
from memory.tokens import estimate_tokens

SUMMARIZED, MERGED = CompressionLevel.SLOT_SUMMARIZED, CompressionLevel.MERGED
MAX_RECORDS = 1_000
"""Maximum of records of one conversation in one run of the job. The next run continues."""
SOURCE = "compression"
SET_ASIDE_FOR = timedelta(days=30)
MAX_TARGET_SHARE = 0.8
"""Share of its slots' tokens that an episode should take at most. Actions are shortened to what is left of it."""
MAX_MERGED_SHARE = 0.9
"""An episode that takes a larger share is not made."""
MIN_TOKENS_ALONE = 60
"""A single record with fewer tokens is not made an episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInput:
    """Records to be merged into one episode. `tier` is the deepest reasoning that it will hold."""

    records: Sequence[TurnRecord]
    slots: Sequence[TurnSlot]
    story: WorkStory
    data: Mapping[str, Any]
    passages: Sequence[Passage]
    goal: Goal | None
    artifacts: Sequence[Artifact]
    tier: ReasoningTier
    usages: list[Usage] = field(default_factory=list)

    @property
    def named(self) -> list[Memory]:
        """The memories whose names the episode repeats; they must not have changed when it is stored."""
        return [*self.artifacts, *([self.goal] if self.goal else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSources:
    """Everything known about records of one goal, by record."""

    goal: Goal | None
    slots: Mapping[UUID, Sequence[TurnSlot]]
    artifacts: Mapping[UUID, Sequence[Artifact]]
    tools: Mapping[UUID, Sequence[str]]
    allowed: ReasoningTier


def merge_records(batch: CompressionBatch) -> BatchResult:
    """Merge due records of a batch of conversations. The counts in the result are of episodes."""
    after = timedelta(hours=conf.MERGE_AFTER_HOURS)
    due = due_records(SUMMARIZED, older_than=after, now=batch.now, account_id=batch.account_id)
    rows = due if batch.after is None else due.filter(log_id__gt=batch.after)
    logs = list(rows.order_by("log_id").values_list("log_id", flat=True).distinct()[: batch.limit])
    last = logs[-1] if len(logs) == batch.limit else None
    runs: list[Task] = []
    for log_id in logs:
        due_ids = due.filter(log_id=log_id).order_by("number").values_list("id", flat=True)[:MAX_RECORDS]
        runs += find_adjacent_runs(log_id, set(due_ids))
    if batch.dry_run:
        return BatchResult(claimed=len(runs), stored=len(runs), last=last)
    compressor = work_compressor()
    store = partial(store_work_episode, source=compressor.source, now=batch.now)
    worker = CompressionWorker(compressor=compressor, read=read_merge_inputs, store=store, now=batch.now)
    return BatchResult.of(list(worker.process_tasks(runs, renew=batch.renew)), last=last)


def find_adjacent_runs(log_id: UUID, due: set[UUID]) -> Iterator[Task]:
    """Yield runs of adjacent due records of one goal, each as long as one episode may be.

    Records that were set aside, before and between them, are included.
    """
    first = TurnRecord.objects.filter(id__in=due).order_by("number").values("number")[:1]
    rows = TurnRecord.objects.filter(log=log_id, number__gte=Subquery(first) - MOST_STEPS).order_by("number")
    # waiting because their episode would not be shorter, not because of a failure
    is_set_aside = Q(level=SUMMARIZED, compress_after__isnull=False, compress_error="")
    aside = ExpressionWrapper(is_set_aside, output_field=BooleanField())
    known = rows.values_list("id", "goal_id", aside)[:MAX_RECORDS]
    for (_, may_merge), run in groupby(known, key=lambda row: (row[1], row[2] or row[0] in due)):
        ids = [record_id for record_id, *_ in run]
        chunks = (ids[start : start + MOST_STEPS] for start in range(0, len(ids), MOST_STEPS)) if may_merge else ()
        yield from (chunk for chunk in chunks if not due.isdisjoint(chunk))


def set_records_aside(inputs: MergeInput, *, now: datetime) -> None:
    """Postpone records until more of their goal have come, or for SET_ASIDE_FOR."""
    for record in inputs.records:
        same = TurnRecord.objects.filter(id=record.id, level=SUMMARIZED, version=record.version)
        same.update(compress_after=now + SET_ASIDE_FOR, compress_attempts=0, compress_error="")


def read_merge_inputs(task: Task) -> Sequence[MergeInput]:
    """Read records in parts that leave room for their actions. The number of statements is fixed."""
    rows = TurnRecord.objects.filter(id__in=task, level=SUMMARIZED)
    records = {record.number: record for record in rows.order_by("number")}
    if not records:
        return []
    sources = read_merge_sources(list(records.values()))
    steps = [build_step(record, sources) for record in records.values()]
    parts = cut_steps(steps, max_tokens=conf.WORK_EPISODE_TOKENS)
    return [build_merge_input(part, [records[step.number] for step in part], sources) for part in parts]


def read_merge_sources(records: Sequence[TurnRecord]) -> MergeSources:
    ids, first = [record.id for record in records], records[0]
    slots: Any = TurnSlot.objects
    found = list(slots.filter(record_id__in=ids, archived=False, quarantined=False).order_by("id"))
    goals: Any = Goal.objects
    goal = goals.filter(pk=first.goal_id, quarantined=False).first() if first.goal_id else None
    invocations = ToolInvocation.objects.filter(account_id=first.account_id, record_id__in=ids).order_by("timestamp")
    return MergeSources(
        goal=goal,
        slots=group_by_record((slot.record_id, slot) for slot in found),
        artifacts=group_by_record(
            find_produced_artifacts(first.account_id, {slot.id: slot.record_id for slot in found}, ids)
        ),
        tools=group_by_record(invocations.values_list("record_id", "tool_name")),
        allowed=read_policy(first.account_id).tier,
    )


def group_by_record(pairs: Iterable[tuple[UUID | None, Any]]) -> dict[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = {}
    for record_id, item in pairs:
        if record_id is not None:
            found.setdefault(record_id, []).append(item)
    return found


def find_produced_artifacts(
    account_id: UUID, record_by_slot: Mapping[UUID, UUID], record_ids: Sequence[UUID]
) -> Iterator[tuple[UUID, Artifact]]:
    """Yield artifacts that slots link to, or that name one of the records, with their record. Two statements."""
    links = Link.objects.filter(account_id=account_id, source__in=record_by_slot, type=PRODUCED)
    makers = {target: record_by_slot[source] for source, target in links.values_list("source_id", "target_id")}
    artifacts: Any = Artifact.objects
    named = artifacts.filter(Q(pk__in=makers) | Q(record_id__in=record_ids), account_id=account_id, quarantined=False)
    for artifact in named.order_by("event_time", "id"):
        yield makers.get(artifact.id, artifact.record_id), artifact


def build_step(record: TurnRecord, sources: MergeSources) -> Step:
    """Return a record as a step of the story, as far as the policy allows."""
    slots = {each.row.slot: each for each in redact_slots(sources.slots.get(record.id, ()), sources.allowed)}
    text = {slot: each.text for slot, each in slots.items()}
    calls = slots["action"].data.get("calls", []) if "action" in slots else []
    points = rationale_in_text(slots.get("reasoning"))
    return Step(
        number=record.number,
        status=record.status,
        observation=text.get("observation", ""),
        points=points,
        summary=text.get("reasoning", "") if points.is_empty else "",
        action=text.get("action", ""),
        outcome=text.get("outcome", ""),
        tools=[*(call["tool"] for call in calls), *sources.tools.get(record.id, ())],
    )


def rationale_in_text(slot: RedactedSlot | None) -> Rationale:
    """Return the points of a rationale that its text still has: staff may have removed others."""
    rationale = Rationale.of_json(slot.data.get("rationale", {})) if slot else Rationale()
    text = slot.text if slot else ""
    lists = (rationale.decisions, rationale.rejected, rationale.blockers)
    decisions, rejected, blockers = ([point for point in points if point.format() in text] for points in lists)
    return Rationale(decisions=decisions, rejected=rejected, blockers=blockers)


def build_merge_input(steps: Sequence[Step], records: Sequence[TurnRecord], sources: MergeSources) -> MergeInput:
    artifacts = [artifact for record in records for artifact in sources.artifacts.get(record.id, ())]
    produced = [format_product(artifact.title, artifact.uri) for artifact in artifacts]
    story = WorkStory(goal=sources.goal.text if sources.goal else "", steps=steps, produced=produced)
    slots = [slot for record in records for slot in sources.slots.get(record.id, ())]
    tiers = [shallowest(slot.tier, sources.allowed) for slot in slots if slot.tier]
    data = net_work(story)
    bound = min(conf.WORK_EPISODE_TOKENS, int(MAX_TARGET_SHARE * sum(slot.token_count for slot in slots)))
    return MergeInput(
        records=records,
        slots=slots,
        story=story,
        data=data,
        passages=deeds_to_shorten(story, data, max_tokens=bound),
        goal=sources.goal,
        artifacts=artifacts,
        tier=max(tiers, key=list(ReasoningTier).index, default=ReasoningTier.NONE),
    )


def store_work_episode(
    inputs: MergeInput, deeds: Sequence[str], *, source: str, now: datetime
) -> Mapping[str, int] | None:
    """Store the episode of some records, or return None if anything has changed since it was read.

    Also returns None if the episode would not be shorter; its records are set aside then.
    """
    text = lay_out(inputs.data, inputs.story, deeds)
    before = sum(slot.token_count for slot in inputs.slots)
    is_short = len(inputs.records) == 1 and before < MIN_TOKENS_ALONE
    if not text or is_short or estimate_tokens(text) > MAX_MERGED_SHARE * before:
        set_records_aside(inputs, now=now)
        return None
    # outside the transaction: it may take seconds
    embedded = embed_texts([text])
    last = inputs.records[-1]
    with transaction.atomic():
        if not lock_conversation_row(last.log_id) or not lock_unchanged_records(inputs.records, SUMMARIZED):
            return None
        referenced = [*(artifact.id for artifact in inputs.artifacts), *([last.goal_id] if last.goal_id else [])]
        existing = lock_unchanged_memories([*inputs.slots, *inputs.named], referenced)
        if existing is None:
            return None
        goal_id = last.goal_id if last.goal_id in existing else None
        episode = build_work_episode(inputs, text, goal_id=goal_id, source=source)
        owner = Owner(account_id=last.account_id, user_id=last.user_id, channel=last.channel, actor=ACTOR)
        store_memories(replace(owner, agent_id=last.agent_id), [episode], embedded=embedded, own={}, now=now)
        insert_links(last.account_id, build_episode_links(episode, inputs, existing))
        sources = [slot for slot in inputs.slots if not slot.pinned]
        archive_sources(owner, sources, conversation_id=last.conversation_id, now=now)
        merged = TurnRecord.objects.filter(id__in=[record.id for record in inputs.records])
        merged.update(level=MERGED, episode=episode, tokens=0, **completed_columns(now))
    return {"tokens_before": before, "tokens_after": episode.token_count, "merged": len(inputs.records)}


def build_work_episode(inputs: MergeInput, text: str, *, goal_id: UUID | None, source: str) -> WorkEpisode:
    first, last = inputs.records[0], inputs.records[-1]
    return WorkEpisode(
        kind=Kind.WORK_EPISODE,
        identity=f"{last.log_id}:{first.number}:{MERGED.value}",
        text=text,
        conversation_id=last.conversation_id,
        event_time=last.event_time,
        source=SOURCE,
        salience=max((slot.salience for slot in inputs.slots), default=0.5),
        trust=min((slot.trust for slot in inputs.slots), default=1.0),
        log_id=last.log_id,
        for_goal_id=goal_id,
        level=MERGED,
        first_number=first.number,
        last_number=last.number,
        status=last.status,
        tier=inputs.tier.value,
        data=inputs.data,
        raw_tokens=sum(record.raw_tokens for record in inputs.records),
        compressor=source,
    )


def build_episode_links(episode: WorkEpisode, inputs: MergeInput, existing: set[UUID]) -> list[NewLink]:
    """Return links from an episode to its slots and, as far as they exist, its goal and the produced artifacts."""
    links = [NewLink(source_id=episode.id, type=DERIVED_FROM, target_id=slot.id) for slot in inputs.slots]
    if episode.for_goal_id is not None:
        links.append(NewLink(source_id=episode.id, type=WORKS_ON, target_id=episode.for_goal_id))
    produced = {artifact.id for artifact in inputs.artifacts} & existing
    return [*links, *(NewLink(source_id=episode.id, type=PRODUCED, target_id=each) for each in produced)]
