"""The pipeline of a resume (E8): read, make items, drop what was retracted, pack and render."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.extraction.terms import content_words, repeated_terms
from memory.owner import Owner
from memory.providers.embeddings import token_counter
from memory.retrieval.candidates import Candidate
from memory.services.audit import count_other_channels, record_read
from memory.services.recall.recall import count_memory_reads, start_deadline
from memory.services.replay.replay import ReplaySlice
from memory.services.resume.goals import goal_items
from memory.services.resume.items import (
    PacketItem,
    PacketSection,
    artifact_items,
    fact_items,
    profile_items,
    replay_items,
    strategy_items,
)
from memory.services.resume.pack import keep_heaviest, render_packet
from memory.services.resume.read import (
    ResumeMaterial,
    ResumeRequest,
    limit_slice_to_items,
    read_material,
)
from memory.services.resume.records import (
    last_outcome_items,
    snippets_of_episodes,
    snippets_of_recalled,
    snippets_of_slots,
)
from memory.services.resume.retract import drop_retracted
from memory.services.resume.snippets import SentenceContext, item_from_snippet, mark_repeats, snippets_of_turns
from memory_project.tracing import traced


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePacket:
    """A packet as text and as data.

    `items` are the lines of the text, in its order. `conversation_id` is empty if there is nothing to resume; `lineage`
    are the conversations that it continues and in which the owner takes part, the latest first. `left_out` counts by
    section what had no room. `replay` holds what of it stands in the text.
    """

    conversation_id: str
    lineage: Sequence[str]
    items: Sequence[PacketItem]
    text: str
    tokens: int
    left_out: Mapping[str, int]
    degraded: Sequence[str]
    query: str
    replay: ReplaySlice | None = None

    def items_in(self, section: PacketSection) -> list[PacketItem]:
        return [item for item in self.items if item.section == section]


@traced("resume", attributes=lambda packet: {"pieces": len(packet.items)})
def resume_work(owner: Owner, request: ResumeRequest, *, now: datetime) -> ResumePacket:
    """Return the packet for the owner's next move. Writes nothing: `conclude_resume` counts the reads.

    Takes a bounded number of statements, whatever is stored. Raises NotFound and Unprocessable as `read_material`.
    """
    material = read_material(owner, request, start_deadline(request.deadline_ms), now=now)
    items = drop_retracted(keep_heaviest(collect_items(material, now=now)))
    rendered = render_packet(items, request.max_tokens, count=token_counter())
    return ResumePacket(
        conversation_id=next(iter(material.lineage.conversations), ""),
        lineage=material.lineage.conversations[1:],
        items=rendered.items,
        text=rendered.text,
        tokens=rendered.tokens,
        left_out=count_left_out(rendered.left_out),
        degraded=sorted(material.degraded),
        query=request.query,
        replay=limit_slice_to_items(material.replay, rendered.items) if material.replay else None,
    )


def collect_items(material: ResumeMaterial, *, now: datetime) -> list[PacketItem]:
    """Return an item for everything that may stand in the packet."""
    bundle, allowed = material.bundle, material.lineage.allowed
    context = sentence_context(material)
    snippets = [
        *snippets_of_slots(material.slots, allowed, open_goals={goal.id for goal in material.open_goals}),
        *snippets_of_episodes(material.episodes),
        *snippets_of_turns(material.turns),
        *snippets_of_recalled(bundle.results if bundle else (), material.read_ids, allowed),
    ]
    return [
        *goal_items(material.placed, material.goals, now=now),
        *last_outcome_items(material.slots, material.episodes, material.turns),
        *profile_items((bundle and bundle.profile) or {}),
        *fact_items(material.user_facts),
        *(item_from_snippet(snippet, context) for snippet in mark_repeats(snippets)),
        *strategy_items(material.strategies),
        *artifact_items(material.artifacts),
        *(replay_items(material.replay) if material.replay else ()),
    ]


def sentence_context(material: ResumeMaterial) -> SentenceContext:
    """Return what the weight of a sentence depends on besides the sentence."""
    results = material.bundle.results if material.bundle else []
    goal_words: frozenset[str] = frozenset().union(*(content_words(goal.text) for goal in material.open_goals))
    closed = (goal for goal in material.goals if not goal.is_open)
    return SentenceContext(
        goal_words=goal_words,
        closed_words=frozenset().union(*(content_words(goal.text) for goal in closed)) - goal_words,
        repeated=repeated_terms([each.text for each in (*material.turns, *material.slots)]),
        relevance=relevance_by_id(results, has_query=bool(material.query)),
        query_words=content_words(material.query),
        scores={result.id: result.score for result in results},
        reasons={result.id: tuple(result.reasons) for result in results},
    )


def relevance_by_id(results: Sequence[Candidate], *, has_query: bool) -> dict[UUID, float]:
    """Return the relevance of each result from 0 to 1: by score for a query of the client's, else by rank."""
    best = max((result.score for result in results), default=0.0)
    if has_query and best > 0:
        return {result.id: max(0.0, result.score / best) for result in results}
    return {result.id: 1 - rank / len(results) for rank, result in enumerate(results)}


def count_left_out(items: Sequence[PacketItem]) -> dict[str, int]:
    """Return by section how many items had no room; plain sentences do not count."""
    counts = {section.value: 0 for section in PacketSection}
    for item in items:
        if item.item_type != "said":
            counts[item.section.value] += 1
    return counts


def conclude_resume(owner: Owner, packet: ResumePacket, *, now: datetime) -> None:
    """Count the reads of the memories in the packet, and log them where the audit level keeps reads."""
    kinds = {item.id: item.kind for item in packet.items if item.id and item.kind}
    channels = {item.id: item.channel for item in packet.items if item.id and item.channel}
    count_memory_reads(owner, kinds, now=now)
    named: dict[str, Any] = {"conversation_id": packet.conversation_id} if packet.conversation_id else {}
    record_read(
        owner,
        memory_type="all",
        affected_ids=list(kinds),
        target_channels=sorted(set(channels.values())),
        query_text=packet.query,
        result_count=len(kinds),
        cross_channel_count=count_other_channels(owner, channels.values()),
        **named,
    )
