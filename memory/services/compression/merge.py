"""The second level: adjacent records of one goal become a work episode, which stands for them.

Adjacent is what no record of another goal, or of another level, lies between; a number that was deleted leaves no gap.
Reasoning goes in no deeper than the account's policy tells it at that moment. What would get no shorter is set aside:
it waits for more records of its goal, or for a month.
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
from memory.extraction.work_retellings import tell_produced
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
    Line,
    Stretch,
    Task,
    Worked,
    archive_sources,
    due_records,
    lock_log,
    lock_memories,
    lock_records,
    settled_columns,
)
from memory.services.embedding.embed import embed_texts
from memory.services.memories.links import DERIVED_FROM, PRODUCED, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import store_memories
from memory.services.records.reasoning import ToldSlot, read_policy, told_slots
from memory.tokens import estimate_tokens

SUMMARIZED, MERGED = CompressionLevel.SLOT_SUMMARIZED, CompressionLevel.MERGED
MOST_RECORDS = 1_000
"""Of one conversation in one run of the job; the next one goes on."""
SOURCE = "compression"
SET_ASIDE_FOR = timedelta(days=30)
MOST_OF_SOURCES = 0.8
"""An episode is to take so much of the tokens that it stands for; what was done is told in what is left of that."""
WORTH_MERGING = 0.9
"""An episode that takes more of those tokens is not made,"""
FEWEST_TOKENS_ALONE = 60
"""and none of a single record that has fewer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePiece:
    """Records that become one episode. `tier` is the deepest that it tells of their reasoning."""

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
        """What the episode repeats: it is to be told so by then."""
        return [*self.artifacts, *([self.goal] if self.goal else [])]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What is known of records of one goal, by record."""

    goal: Goal | None
    slots: Mapping[UUID, Sequence[TurnSlot]]
    artifacts: Mapping[UUID, Sequence[Artifact]]
    tools: Mapping[UUID, Sequence[str]]
    allowed: ReasoningTier


def merge_records(stretch: Stretch) -> Worked:
    """Merge what is due of the conversations of a stretch. Examined and changed are episodes."""
    after = timedelta(hours=conf.MERGE_AFTER_HOURS)
    due = due_records(SUMMARIZED, older_than=after, now=stretch.now, account_id=stretch.account_id)
    rows = due if stretch.after is None else due.filter(log_id__gt=stretch.after)
    logs = list(rows.order_by("log_id").values_list("log_id", flat=True).distinct()[: stretch.limit])
    last = logs[-1] if len(logs) == stretch.limit else None
    runs = [run for log_id in logs for run in adjacent_runs(log_id, set(ids_of(due.filter(log_id=log_id))))]
    if stretch.dry_run:
        return Worked(examined=len(runs), changed=len(runs), figures={}, last=last)
    compressor = work_compressor()
    store = partial(store_episode, source=compressor.source, now=stretch.now)
    line = Line(compressor=compressor, read=read_merges, store=store, now=stretch.now)
    return Worked.of(list(line.work_off(runs, renew=stretch.renew)), last=last)


def ids_of(rows: Any) -> list[UUID]:
    return list(rows.order_by("number").values_list("id", flat=True)[:MOST_RECORDS])


def adjacent_runs(log_id: UUID, due: set[UUID]) -> Iterator[Task]:
    """The due records of a conversation by goal, as far as they are adjacent, at most MOST_STEPS each.

    With those before and between them that were set aside.
    """
    first = TurnRecord.objects.filter(id__in=due).order_by("number").values("number")[:1]
    rows = TurnRecord.objects.filter(log=log_id, number__gte=Subquery(first) - MOST_STEPS).order_by("number")
    aside = ExpressionWrapper(is_set_aside(), output_field=BooleanField())
    known = rows.values_list("id", "goal_id", aside)[:MOST_RECORDS]
    for (_, may_be), run in groupby(known, key=lambda row: (row[1], row[2] or row[0] in due)):
        ids = [record_id for record_id, *_ in run]
        chunks = (ids[start : start + MOST_STEPS] for start in range(0, len(ids), MOST_STEPS)) if may_be else ()
        yield from (chunk for chunk in chunks if not due.isdisjoint(chunk))


def is_set_aside() -> Q:
    """Whether a record waits because it got no shorter, and not after a failure."""
    return Q(level=SUMMARIZED, compress_after__isnull=False, compress_error="")


def set_aside(piece: MergePiece, *, now: datetime) -> None:
    """Look at the records again when more of their goal have come, or much later."""
    for record in piece.records:
        same = TurnRecord.objects.filter(id=record.id, level=SUMMARIZED, version=record.version)
        same.update(compress_after=now + SET_ASIDE_FOR, compress_attempts=0, compress_error="")


def read_merges(task: Task) -> Sequence[MergePiece]:
    """In pieces that leave room for what was done. Statements do not depend on the number of records."""
    rows = TurnRecord.objects.filter(id__in=task, level=SUMMARIZED)
    records = {record.number: record for record in rows.order_by("number")}
    if not records:
        return []
    material = read_material(list(records.values()))
    steps = [step_of(record, material) for record in records.values()]
    stretches = cut_steps(steps, max_tokens=conf.WORK_EPISODE_TOKENS)
    return [merge_piece(stretch, [records[step.number] for step in stretch], material) for stretch in stretches]


def read_material(records: Sequence[TurnRecord]) -> Material:
    ids, first = [record.id for record in records], records[0]
    slots: Any = TurnSlot.objects
    found = list(slots.filter(record_id__in=ids, archived=False, quarantined=False).order_by("id"))
    goals: Any = Goal.objects
    goal = goals.filter(pk=first.goal_id, quarantined=False).first() if first.goal_id else None
    invocations = ToolInvocation.objects.filter(account_id=first.account_id, record_id__in=ids).order_by("timestamp")
    return Material(
        goal=goal,
        slots=by_record((slot.record_id, slot) for slot in found),
        artifacts=by_record(produced_in(first.account_id, {slot.id: slot.record_id for slot in found}, ids)),
        tools=by_record(invocations.values_list("record_id", "tool_name")),
        allowed=read_policy(first.account_id).tier,
    )


def by_record(pairs: Iterable[tuple[UUID | None, Any]]) -> dict[UUID, list[Any]]:
    found: dict[UUID, list[Any]] = {}
    for record_id, item in pairs:
        if record_id is not None:
            found.setdefault(record_id, []).append(item)
    return found


def produced_in(
    account_id: UUID, records_of: Mapping[UUID, UUID], record_ids: Sequence[UUID]
) -> Iterator[tuple[UUID, Artifact]]:
    """Artifacts that slots are linked to, or that name the record that they come from. Two statements."""
    links = Link.objects.filter(account_id=account_id, source__in=records_of, type=PRODUCED)
    makers = {target: records_of[source] for source, target in links.values_list("source_id", "target_id")}
    artifacts: Any = Artifact.objects
    named = artifacts.filter(Q(pk__in=makers) | Q(record_id__in=record_ids), account_id=account_id, quarantined=False)
    for artifact in named.order_by("event_time", "id"):
        yield makers.get(artifact.id, artifact.record_id), artifact


def step_of(record: TurnRecord, material: Material) -> Step:
    """A record as far as it may be told."""
    told = {each.row.slot: each for each in told_slots(material.slots.get(record.id, ()), material.allowed)}
    text = {slot: each.text for slot, each in told.items()}
    calls = told["action"].data.get("calls", []) if "action" in told else []
    points = points_of(told.get("reasoning"))
    return Step(
        number=record.number,
        status=record.status,
        observation=text.get("observation", ""),
        points=points,
        summary=text.get("reasoning", "") if points.is_empty else "",
        action=text.get("action", ""),
        outcome=text.get("outcome", ""),
        tools=[*(call["tool"] for call in calls), *material.tools.get(record.id, ())],
    )


def points_of(told: ToldSlot | None) -> Rationale:
    """The points of a rationale that stand in its text: what staff took out of that is told no more."""
    rationale = Rationale.of_json(told.data.get("rationale", {})) if told else Rationale()
    text = told.text if told else ""
    lists = (rationale.decisions, rationale.rejected, rationale.blockers)
    decisions, rejected, blockers = ([point for point in points if point.tell() in text] for points in lists)
    return Rationale(decisions=decisions, rejected=rejected, blockers=blockers)


def merge_piece(steps: Sequence[Step], records: Sequence[TurnRecord], material: Material) -> MergePiece:
    artifacts = [artifact for record in records for artifact in material.artifacts.get(record.id, ())]
    produced = [tell_produced(artifact.title, artifact.uri) for artifact in artifacts]
    story = WorkStory(goal=material.goal.text if material.goal else "", steps=steps, produced=produced)
    slots = [slot for record in records for slot in material.slots.get(record.id, ())]
    tiers = [shallowest(slot.tier, material.allowed) for slot in slots if slot.tier]
    data = net_work(story)
    bound = min(conf.WORK_EPISODE_TOKENS, int(MOST_OF_SOURCES * sum(slot.token_count for slot in slots)))
    return MergePiece(
        records=records,
        slots=slots,
        story=story,
        data=data,
        passages=deeds_to_shorten(story, data, max_tokens=bound),
        goal=material.goal,
        artifacts=artifacts,
        tier=max(tiers, key=list(ReasoningTier).index, default=ReasoningTier.NONE),
    )


def store_episode(piece: MergePiece, deeds: Sequence[str], *, source: str, now: datetime) -> Mapping[str, int] | None:
    """None where a record, a slot, or what it names has changed since it was read, or where it would get no shorter."""
    text = lay_out(piece.data, piece.story, deeds)
    before = sum(slot.token_count for slot in piece.slots)
    if not is_worth_merging(piece, text, before=before):
        set_aside(piece, now=now)
        return None
    # outside the transaction: it may take seconds
    embedded = embed_texts([text])
    last = piece.records[-1]
    with transaction.atomic():
        if not lock_log(last.log_id) or not lock_records(piece.records, SUMMARIZED):
            return None
        there = lock_memories([*piece.slots, *piece.named], named_by(piece))
        if there is None:
            return None
        episode = new_episode(piece, text, goal_id=last.goal_id if last.goal_id in there else None, source=source)
        owner = Owner(account_id=last.account_id, user_id=last.user_id, channel=last.channel, actor=ACTOR)
        store_memories(replace(owner, agent_id=last.agent_id), [episode], embedded=embedded, own={}, now=now)
        insert_links(last.account_id, links_of(episode, piece, there))
        sources = [slot for slot in piece.slots if not slot.pinned]
        archive_sources(owner, sources, conversation_id=last.conversation_id, now=now)
        merged = TurnRecord.objects.filter(id__in=[record.id for record in piece.records])
        merged.update(level=MERGED, episode=episode, tokens=0, **settled_columns(now))
    return {"tokens_before": before, "tokens_after": episode.token_count, "merged": len(piece.records)}


def is_worth_merging(piece: MergePiece, text: str, *, before: int) -> bool:
    is_short = len(piece.records) == 1 and before < FEWEST_TOKENS_ALONE
    return bool(text) and not is_short and estimate_tokens(text) <= WORTH_MERGING * before


def named_by(piece: MergePiece) -> list[UUID]:
    goal_id = piece.records[-1].goal_id
    return [*(artifact.id for artifact in piece.artifacts), *([goal_id] if goal_id else [])]


def new_episode(piece: MergePiece, text: str, *, goal_id: UUID | None, source: str) -> WorkEpisode:
    """Not stored yet."""
    first, last = piece.records[0], piece.records[-1]
    return WorkEpisode(
        kind=Kind.WORK_EPISODE,
        identity=f"{last.log_id}:{first.number}:{MERGED.value}",
        text=text,
        conversation_id=last.conversation_id,
        event_time=last.event_time,
        source=SOURCE,
        salience=max((slot.salience for slot in piece.slots), default=0.5),
        trust=min((slot.trust for slot in piece.slots), default=1.0),
        log_id=last.log_id,
        for_goal_id=goal_id,
        level=MERGED,
        first_number=first.number,
        last_number=last.number,
        status=last.status,
        tier=piece.tier.value,
        data=piece.data,
        raw_tokens=sum(record.raw_tokens for record in piece.records),
        compressor=source,
    )


def links_of(episode: WorkEpisode, piece: MergePiece, there: set[UUID]) -> list[NewLink]:
    """To what it was made of, to its goal, and to what was produced, as far as these are there."""
    links = [NewLink(source_id=episode.id, type=DERIVED_FROM, target_id=slot.id) for slot in piece.slots]
    if episode.for_goal_id is not None:
        links.append(NewLink(source_id=episode.id, type=WORKS_ON, target_id=episode.for_goal_id))
    produced = {artifact.id for artifact in piece.artifacts} & there
    return [*links, *(NewLink(source_id=episode.id, type=PRODUCED, target_id=each) for each in produced)]
