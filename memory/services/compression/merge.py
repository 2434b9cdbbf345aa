"""Compression levels 2 and 3: adjacent records of one goal become a work episode, which is reduced later.

Records are adjacent if no record of another goal or level lies between them; a deleted number leaves no gap. Reasoning
is included no deeper than the account's policy allows at that moment. Records whose episode would not be shorter are
set aside: they wait for more records of their goal, or for a month.

Level 3 replaces a work episode, long after its goal was closed, by one with only the goal, decisions, products,
outcomes and corrections. The merged episode is archived and can still be read.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, Q, QuerySet, Subquery

from memory import conf
from memory.extraction.model_compressor import work_compressor
from memory.extraction.turn_slots import Rationale
from memory.extraction.work_renames import format_product
from memory.extraction.work_stories import (
    MAX_EPISODE_STEPS,
    Step,
    WorkStory,
    actions_to_shorten,
    archive_work,
    build_episode_data,
    format_episode_text,
    split_steps,
)
from memory.models import (
    Artifact,
    CompressionLevel,
    Goal,
    Kind,
    Link,
    MemoryRow,
    ToolInvocation,
    TurnRecord,
    TurnSlot,
    WorkEpisode,
)
from memory.owner import Owner
from memory.reasoning import ReasoningTier, shallowest
from memory.services.account_walk import Batch, BatchReport
from memory.services.compression.batches import result_of, take_batch
from memory.services.compression.compress import (
    ACTOR,
    SUMMARIZED,
    CompressionInput,
    CompressionTask,
    CompressionWorker,
    archive_sources,
    completed_columns,
    due_records,
    has_closed_goal,
    link_compressed,
    lock_conversation_row,
    lock_unchanged_memories,
    lock_unchanged_records,
)
from memory.services.conversations.queue import ClaimOutcome, ClaimResult, report_of
from memory.services.embedding.embed import embed_texts
from memory.services.memories.links import DERIVED_FROM, PRODUCED, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import store_memories
from memory.services.records.reasoning import RedactedSlot, read_policy, redact_slots
from memory.tokens import estimate_tokens
from memory_project.batches import batched

logger = logging.getLogger(__name__)

MERGED, ARCHIVED = CompressionLevel.MERGED, CompressionLevel.ARCHIVED
COPIED_EPISODE_COLUMNS = (
    *("kind", "conversation_id", "language", "salience", "event_time", "expires_at", "source", "trust", "metadata"),
    *("log_id", "for_goal_id", "first_number", "last_number", "status", "tier", "raw_tokens", "compressor"),
)
MAX_RECORDS = 1_000
"""Maximum of records of one conversation in one batch of the job. The next batch continues."""
SOURCE = "compression"
SET_ASIDE_FOR = timedelta(days=30)
MAX_TARGET_SHARE = 0.8
"""Share of its slots' tokens that an episode should take at most. Actions are shortened to what is left of it."""
MAX_MERGED_SHARE = 0.9
"""An episode that takes a larger share is not made."""
MIN_TOKENS_ALONE = 60
"""A single record with fewer tokens is not made an episode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeInput(CompressionInput):
    """Records to be merged into one episode. `tier` is the deepest reasoning that it will hold."""

    slots: Sequence[TurnSlot]
    story: WorkStory
    data: Mapping[str, Any]
    goal: Goal | None
    artifacts: Sequence[Artifact]
    tier: ReasoningTier


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeSources:
    """Everything known about records of one goal, by record."""

    goal: Goal | None
    slots: Mapping[UUID, Sequence[TurnSlot]]
    artifacts: Mapping[UUID, Sequence[Artifact]]
    tools: Mapping[UUID, Sequence[str]]
    allowed: ReasoningTier


def merge_records(batch: Batch, *, now: datetime) -> BatchReport:
    """Merge due records of a batch of conversations. The counts in the result are of episodes."""
    after = timedelta(hours=conf.MERGE_AFTER_HOURS)
    due = due_records(SUMMARIZED, older_than=after, now=now)
    runs: list[CompressionTask] = []
    for account_id, log_id in take_batch(batch, due, first_logs):
        batch.renew()
        of_log = due.filter(account_id=account_id, log_id=log_id)
        due_ids = set(of_log.order_by("number").values_list("id", flat=True)[:MAX_RECORDS])
        runs += find_adjacent_runs(account_id, log_id, due_ids)
    if batch.dry_run:
        return BatchReport(examined=len(runs), changed=len(runs))
    compressor = work_compressor()
    store = partial(store_work_episode, source=compressor.source, now=now)
    worker = CompressionWorker(compressor=compressor, read=read_merge_inputs, store=store, now=now)
    return result_of(batch, list(worker.process_tasks(runs, renew=batch.renew)), due)


def first_logs(rows: QuerySet[TurnRecord], share: int) -> QuerySet[TurnRecord, tuple[UUID, UUID]]:
    """Return the first conversations with such records, by account and log, at most as many as the account's share."""
    return rows.order_by("log_id").values_list("account_id", "log_id").distinct()[:share]


def find_adjacent_runs(account_id: UUID, log_id: UUID, due: set[UUID]) -> Iterator[CompressionTask]:
    """Yield runs of adjacent due records of one goal, each as long as one episode may be.

    Records that were set aside, before and between them, are included.
    """
    records = TurnRecord.objects.filter(account_id=account_id)
    first = records.filter(id__in=due).order_by("number").values("number")[:1]
    rows = records.filter(log_id=log_id, number__gte=Subquery(first) - MAX_EPISODE_STEPS).order_by("number")
    # waiting because their episode would not be shorter, not because of a failure
    is_set_aside = Q(level=SUMMARIZED, compress_after__isnull=False, compress_error="")
    aside = ExpressionWrapper(is_set_aside, output_field=BooleanField())
    known = rows.values_list("id", "goal_id", aside)[:MAX_RECORDS]
    for (_, may_merge), run in groupby(known, key=lambda row: (row[1], row[2] or row[0] in due)):
        ids = [record_id for record_id, *_ in run]
        for chunk in batched(ids, MAX_EPISODE_STEPS) if may_merge else ():
            if not due.isdisjoint(chunk):
                yield CompressionTask(account_id=account_id, record_ids=chunk)


def set_records_aside(inputs: MergeInput, *, now: datetime) -> None:
    """Postpone records until more of their goal have come, or for SET_ASIDE_FOR."""
    for record in inputs.records:
        same = TurnRecord.objects.filter(account_id=record.account_id, id=record.id, version=record.version)
        same.filter(level=SUMMARIZED).update(compress_after=now + SET_ASIDE_FOR, compress_attempts=0, compress_error="")


def read_merge_inputs(task: CompressionTask) -> Sequence[MergeInput]:
    """Read records in parts that leave room for their actions. The number of statements is fixed."""
    rows = task.rows.filter(level=SUMMARIZED)
    records = {record.number: record for record in rows.order_by("number")}
    if not records:
        return []
    sources = read_merge_sources(list(records.values()))
    steps = [build_step(record, sources) for record in records.values()]
    parts = split_steps(steps, max_tokens=conf.WORK_EPISODE_TOKENS)
    return [build_merge_input(part, [records[step.number] for step in part], sources) for part in parts]


def read_merge_sources(records: Sequence[TurnRecord]) -> MergeSources:
    ids, first = [record.id for record in records], records[0]
    slots = TurnSlot.objects.filter(account_id=first.account_id, record_id__in=ids)
    found = list(slots.filter(archived=False, quarantined=False).order_by("id"))
    goals = Goal.objects.filter(account_id=first.account_id, quarantined=False)
    goal = goals.filter(pk=first.goal_id).first() if first.goal_id else None
    invocations = ToolInvocation.objects.filter(account_id=first.account_id, record_id__in=ids).order_by("timestamp")
    # artifacts that slots link to, or that name one of the records
    record_by_slot = {slot.id: slot.record_id for slot in found}
    links = Link.objects.filter(account_id=first.account_id, source_id__in=record_by_slot, type=PRODUCED)
    makers = {target: record_by_slot[source] for source, target in links.values_list("source_id", "target_id")}
    is_product = Q(pk__in=makers) | Q(source_record_id__in=ids)
    artifacts = Artifact.objects.filter(is_product, account_id=first.account_id)
    produced = artifacts.filter(quarantined=False).order_by("event_time", "id")
    return MergeSources(
        goal=goal,
        slots=group_by_record((slot.record_id, slot) for slot in found),
        artifacts=group_by_record(
            (makers.get(artifact.id, artifact.source_record_id), artifact) for artifact in produced
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
    data = build_episode_data(story)
    bound = min(conf.WORK_EPISODE_TOKENS, int(MAX_TARGET_SHARE * sum(slot.token_count for slot in slots)))
    return MergeInput(
        records=records,
        slots=slots,
        story=story,
        data=data,
        passages=actions_to_shorten(story, data, max_tokens=bound),
        goal=sources.goal,
        artifacts=artifacts,
        tier=max(tiers, key=list(ReasoningTier).index, default=ReasoningTier.NONE),
    )


def store_work_episode(
    inputs: MergeInput, actions: Sequence[str], *, source: str, now: datetime
) -> Mapping[str, int] | None:
    """Store the episode of some records, or return None if anything has changed since it was read.

    Returns no figures if the episode would not be shorter; its records are set aside then.
    """
    text = format_episode_text(inputs.data, inputs.story, actions)
    before = sum(slot.token_count for slot in inputs.slots)
    is_short = len(inputs.records) == 1 and before < MIN_TOKENS_ALONE
    if not text or is_short or estimate_tokens(text) > MAX_MERGED_SHARE * before:
        set_records_aside(inputs, now=now)
        return {}
    # outside the transaction: it may take seconds
    embedded = embed_texts([text])
    last = inputs.records[-1]
    with transaction.atomic():
        if not lock_conversation_row(last) or not lock_unchanged_records(inputs.records, SUMMARIZED):
            return None
        referenced = [*(artifact.id for artifact in inputs.artifacts), *([last.goal_id] if last.goal_id else [])]
        # the episode repeats the names of artifacts and goal
        named: list[MemoryRow] = [*inputs.artifacts, *([inputs.goal] if inputs.goal else [])]
        existing = lock_unchanged_memories(last.account_id, [*inputs.slots, *named], referenced)
        if existing is None:
            return None
        goal_id = last.goal_id if last.goal_id in existing else None
        episode = build_work_episode(inputs, text, goal_id=goal_id, source=source)
        owner = Owner(account_id=last.account_id, user_id=last.user_id, channel=last.channel, actor=ACTOR)
        store_memories(
            replace(owner, agent_id=last.agent_id, joins=False), [episode], embedded=embedded, own={}, now=now
        )
        derived = [NewLink(source_id=episode.id, type=DERIVED_FROM, target_id=slot.id) for slot in inputs.slots]
        targets = [(WORKS_ON, goal_id), *((PRODUCED, each.id) for each in inputs.artifacts if each.id in existing)]
        named_links = [NewLink(source_id=episode.id, type=type_, target_id=each) for type_, each in targets if each]
        insert_links(last.account_id, [*derived, *named_links])
        sources = [slot for slot in inputs.slots if not slot.pinned]
        archive_sources(owner, sources, conversation_id=last.conversation_id, now=now)
        ids = [record.id for record in inputs.records]
        merged = TurnRecord.objects.filter(account_id=last.account_id, id__in=ids)
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


def archive_episodes(batch: Batch, *, now: datetime) -> BatchReport:
    """Reduce a batch of due merged episodes to level 3."""
    page = batch.page_of(due_episodes(now))
    if batch.dry_run:
        return BatchReport(examined=len(page.rows), changed=len(page.rows), cursor=page.cursor)
    results = []
    for episode in page.rows:
        try:
            figures = store_archived_episode(episode, now=now)
        except Exception as err:  # noqa: BLE001 - the job's outermost loop
            # the error's message may quote the episode
            logger.error("archiving of work episode %s failed: %s", episode.id, type(err).__name__)
            results.append(ClaimResult(outcome=ClaimOutcome.FAILED))
        else:
            outcome = ClaimOutcome.OUTDATED if figures is None else ClaimOutcome.STORED
            results.append(ClaimResult(outcome=outcome, figures=figures or {}))
        batch.renew()
    return report_of(results, cursor=page.cursor)


def due_episodes(now: datetime) -> QuerySet[WorkEpisode]:
    """Return unpinned episodes whose goal was closed long ago or, without one, whose last record is so old."""
    oldest = now - timedelta(days=conf.ARCHIVE_WORK_AFTER_DAYS)
    closed = has_closed_goal("for_goal_id")
    return WorkEpisode.objects.filter(
        Q(has_closed_goal("for_goal_id", completed_at__lte=oldest)) | (~Q(closed) & Q(event_time__lte=oldest)),
        level=MERGED,
        archived=False,
        quarantined=False,
        pinned=False,
    )


def store_archived_episode(episode: WorkEpisode, *, now: datetime) -> Mapping[str, int] | None:
    """Store the reduced episode, or return None if it has changed since it was read."""
    text, data = archive_work(episode.text, episode.data)
    copied = {name: getattr(episode, name) for name in COPIED_EPISODE_COLUMNS}
    row = WorkEpisode(text=text, data=data, level=ARCHIVED, **copied)
    row.identity = f"{episode.log_id}:{episode.first_number}:{ARCHIVED.value}"
    # outside the transaction: it may take seconds
    embedded = embed_texts([row.text])
    owner = Owner(account_id=episode.account_id, user_id=episode.user_id, channel=episode.channel, actor=ACTOR)
    with transaction.atomic():
        if not lock_conversation_row(episode) or lock_unchanged_memories(episode.account_id, [episode]) is None:
            return None
        store_memories(
            replace(owner, agent_id=episode.agent_id, joins=False), [row], embedded=embedded, own={}, now=now
        )
        link_compressed(episode.account_id, {episode.id: row.id})
        archive_sources(owner, [episode], conversation_id=episode.conversation_id, now=now)
        records = TurnRecord.objects.filter(account_id=episode.account_id, episode=episode)
        records.update(episode=row, level=ARCHIVED, **completed_columns(now))
    return {"tokens_before": episode.token_count, "tokens_after": row.token_count, "archived": 1}
