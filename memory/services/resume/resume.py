"""The pipeline of a resume (E8): read, make items, drop what was retracted, pack and render."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from time import perf_counter
from typing import TypeVar
from uuid import UUID

from memory.errors import NotFound
from memory.extraction.terms import content_words, repeated_terms
from memory.models import ToolInvocation
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.providers.embeddings import token_counter
from memory.retrieval.candidates import Bundle, Candidate, RecallUsage, to_milliseconds
from memory.retrieval.kind_searches import StrategyHit, search_strategies
from memory.retrieval.queries import Posture, Query
from memory.retrieval.resume import (
    ResumedArtifact,
    ResumedEpisode,
    ResumedGoal,
    ResumedLineage,
    ResumedMemory,
    ResumedSlot,
    ResumedTurn,
    read_resumed_artifacts,
    read_resumed_episodes,
    read_resumed_goals,
    read_resumed_lineage,
    read_resumed_slots,
    read_resumed_turns,
    read_user_facts,
)
from memory.services.audit import count_other_channels, record_read
from memory.services.recall.recall import RecallRequest, count_memory_reads, embed_search_query, recall, start_deadline
from memory.services.replay.candidates import ReplayRequest
from memory.services.replay.replay import MAX_REPLAY_TOKENS, MIN_REPLAY_TOKENS, ReplaySlice, replay
from memory.services.resume.focus import Focus, demote_settled, keep_facts, keep_recalled, keep_rows, keep_turns
from memory.services.resume.goals import PlacedGoal, choose_goals, find_given_up, goal_items
from memory.services.resume.items import (
    PacketItem,
    PacketSection,
    artifact_items,
    fact_items,
    profile_items,
    replay_items,
    strategy_items,
)
from memory.services.resume.pack import RenderedPacket, keep_heaviest, render_packet
from memory.services.resume.records import (
    last_outcome_items,
    snippets_of_episodes,
    snippets_of_recalled,
    snippets_of_slots,
)
from memory.services.resume.retract import drop_retracted
from memory.services.resume.snippets import (
    SentenceContext,
    item_from_snippet,
    items_of_turns,
    mark_repeats,
    snippets_of_turns,
)
from memory.services.resume.tools import failed_tool_items, read_failed_tools
from memory.tokens import BYTES_PER_TOKEN
from memory_project.tracing import traced

RESUME_TOKENS = 1_500
MAX_RECALLED = 60
MAX_STRATEGIES = 3
MAX_QUERY_GOALS = 5
"""Number of open goals in the default query."""
MAX_QUERY_PART_CHARACTERS = 300
"""Characters of each goal, and of the user's last message, in the default query."""
MAX_READ_CHARACTERS, MIN_READ_CHARACTERS = 300_000, 500
"""Characters of all texts together, spent on the newest first; and the least of each text."""
MAX_LATE_READ_CHARACTERS = 60_000
"""The limit of all texts together once the deadline has passed."""
REPLAY_SHARE = 0.3
"""Share of the packet's tokens."""

Row = TypeVar("Row", bound=ResumedMemory)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """A request for a packet. Default: the conversation that the owner wrote to last, and all open goals.

    Without a `query`, the open goals and the user's last message are the query. `wants_replay` adds a replay of the
    most pressing goal.
    """

    conversation_id: str = ""
    query: str = ""
    goal_ids: Sequence[UUID] = ()
    max_tokens: int = RESUME_TOKENS
    wants_replay: bool = False
    deadline_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeMaterial:
    """Everything that was read for a packet. `query` and `requested` goals are the request's, empty if it had none."""

    lineage: ResumedLineage
    goals: Sequence[ResumedGoal]
    placed: Sequence[PlacedGoal]
    turns: Sequence[ResumedTurn]
    slots: Sequence[ResumedSlot]
    episodes: Sequence[ResumedEpisode]
    user_facts: Sequence[ResumedMemory]
    query: str
    requested: Collection[UUID] = ()
    own_agent: str = ""
    bundle: Bundle | None = None
    strategies: Sequence[StrategyHit] = ()
    artifacts: Sequence[ResumedArtifact] = ()
    failed_tools: Sequence[ToolInvocation] = ()
    replay: ReplaySlice | None = None
    degraded: frozenset[str] = field(default=frozenset())
    stages_ms: Mapping[str, float] = field(default_factory=dict)

    @property
    def focus(self) -> Focus:
        shown = {each.goal.id for each in self.placed} - find_given_up(self.goals, self.requested)
        return Focus.of(self.goals, shown, self.lineage.conversations, self.query, self.turns)

    @property
    def open_goals(self) -> list[ResumedGoal]:
        return [each.goal for each in self.placed if each.goal.is_open]


def read_material(owner: Owner, request: ResumeRequest, deadline: Deadline, *, now: datetime) -> ResumeMaterial:
    """Read what the request's work left behind: a bounded number of statements, whatever is stored.

    Raises NotFound for an unknown conversation, or one in which the agent takes no part; Unprocessable for an unknown
    goal.
    """
    began = perf_counter()
    material = read_stored_work(owner, request, now=now)
    material = replace(material, stages_ms=to_milliseconds({"read": perf_counter() - began}))
    material = limit_texts(add_recalled(owner, material, deadline, now=now), deadline)
    goal_ids = [each.goal.id for each in material.placed]
    record_ids = sorted({slot.record_id for slot in material.slots})
    material = replace(material, artifacts=read_resumed_artifacts(owner, goal_ids, record_ids, now=now))
    if not request.wants_replay or not material.open_goals:
        return material
    max_tokens = min(max(int(REPLAY_SHARE * request.max_tokens), MIN_REPLAY_TOKENS), MAX_REPLAY_TOKENS)
    top_goal = ReplayRequest(goal_id=material.open_goals[0].id, max_tokens=max_tokens)
    return replace(material, replay=replay(owner, top_goal, now=now))


def read_stored_work(owner: Owner, request: ResumeRequest, *, now: datetime) -> ResumeMaterial:
    """Read the lineage of conversations with its turns, records and work episodes, and the goals."""
    lineage = read_resumed_lineage(owner, request.conversation_id, now=now)
    if request.conversation_id and not lineage.conversations:
        raise NotFound("no such conversation")
    turns = read_resumed_turns(owner, lineage, now=now)
    requested = list(dict.fromkeys(request.goal_ids))
    slots = read_resumed_slots(owner, lineage, requested, now=now)
    episodes = read_resumed_episodes(owner, lineage, requested, now=now)
    worked_on = {each for each in [*(row.goal_id for row in slots), *(row.goal_id for row in episodes)] if each}
    goals = read_resumed_goals(owner, requested, worked_on, now=now)
    return ResumeMaterial(
        lineage=lineage,
        goals=goals,
        placed=choose_goals(goals, requested, worked_on, now=now),
        turns=turns,
        slots=slots,
        episodes=episodes,
        user_facts=read_user_facts(owner, now=now),
        failed_tools=read_failed_tools(owner, lineage),
        query=request.query,
        requested=requested,
        own_agent=owner.agent_id,
    )


def add_recalled(owner: Owner, material: ResumeMaterial, deadline: Deadline, *, now: datetime) -> ResumeMaterial:
    """Return the material with what a recall finds for the query, and strategies for it."""
    text = material.query or default_query(material)
    if not text:
        return material
    query = Query(
        text=text,
        top_k=MAX_RECALLED,
        conversation_id=next(iter(material.lineage.conversations), ""),
        posture=Posture.RESUME,
        has_floor=bool(material.query),
    )
    bundle = recall(owner, RecallRequest(query=query, deadline=deadline), now=now)
    stages_ms = {**material.stages_ms, **bundle.stages_ms}
    material = replace(material, bundle=bundle, degraded=frozenset(bundle.degraded), stages_ms=stages_ms)
    if deadline.left_seconds() <= 0:
        return replace(material, degraded=material.degraded | {"strategies_deadline"})
    began = perf_counter()
    found = search_strategies(owner, embed_search_query(text, top_k=MAX_STRATEGIES, own=None), now=now)
    stages_ms |= to_milliseconds({"strategies": perf_counter() - began})
    degraded = material.degraded | frozenset(found.degraded)
    return replace(material, strategies=found.hits, degraded=degraded, stages_ms=stages_ms)


def default_query(material: ResumeMaterial) -> str:
    """Return the owner's open goals, the most pressing first, and the user's last message, a line each."""
    last_message = [turn.text for turn in material.turns if turn.role == "user"][-1:]
    ranked = sorted(material.placed, key=lambda each: each.rank)
    own_goals = [each.goal.text for each in ranked if each.is_own and each.goal.is_open]
    return "\n".join(text[:MAX_QUERY_PART_CHARACTERS] for text in [*own_goals[:MAX_QUERY_GOALS], *last_message])


def limit_texts(material: ResumeMaterial, deadline: Deadline) -> ResumeMaterial:
    """Return the material with as much of its texts as can be processed in bounded time; less past the deadline."""
    is_late = deadline.left_seconds() <= 0
    max_characters = MAX_LATE_READ_CHARACTERS if is_late else MAX_READ_CHARACTERS
    turns = limit_characters(material.turns, max_characters)
    slots = limit_characters(material.slots, max_characters)
    is_cut = is_late and (turns != list(material.turns) or slots != list(material.slots))
    degraded = material.degraded | ({"resume_deadline"} if is_cut else set())
    return replace(material, turns=turns, slots=slots, degraded=degraded)


def limit_characters(rows: Sequence[Row], max_characters: int = MAX_READ_CHARACTERS) -> list[Row]:
    """Return the rows, oldest first as given, with both ends of texts that are too long; the newest keep most."""
    left = max(0, max_characters - MIN_READ_CHARACTERS * len(rows))
    kept: list[Row] = []
    for row in reversed(rows):
        size = min(len(row.text), MIN_READ_CHARACTERS + left)
        left -= max(0, size - MIN_READ_CHARACTERS)
        both_ends = f"{row.text[: size // 2]}\n{row.text[-(size // 2) :]}"
        kept.append(row if size == len(row.text) else replace(row, text=both_ends))
    return kept[::-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePacket:
    """A packet as text and as data.

    `items` are the lines of the text, in its order. `conversation_id` is empty if there is nothing to resume; `lineage`
    are the conversations that it continues and in which the owner takes part, the latest first. `left_out` counts by
    section what had no room. `replay` holds what of it stands in the text. `abstained` is True if the recall for the
    client's query found nothing that is likely enough to help.
    """

    conversation_id: str
    lineage: Sequence[str]
    items: Sequence[PacketItem]
    text: str
    tokens: int
    left_out: Mapping[str, int]
    degraded: Sequence[str]
    query: str
    usage: RecallUsage
    replay: ReplaySlice | None = None
    abstained: bool = False

    def items_in(self, section: PacketSection) -> list[PacketItem]:
        return [item for item in self.items if item.section == section]


@traced("resume", attributes=lambda packet: {"pieces": len(packet.items)})
def resume_work(owner: Owner, request: ResumeRequest, *, now: datetime) -> ResumePacket:
    """Return the packet for the owner's next move. Writes nothing: `conclude_resume` counts the reads.

    Takes a bounded number of statements, whatever is stored. Raises NotFound and Unprocessable as `read_material`.
    """
    given = read_material(owner, request, start_deadline(request.deadline_ms), now=now)
    began = perf_counter()
    material = focus_material(given)
    # what was said for a closed goal is left out, and may withdraw what is not
    said = items_of_turns(given.turns, sentence_context(given)) if given.focus.closed_ids else ()
    items = drop_retracted(keep_heaviest(collect_items(material, now=now)), said)
    rendered = render_packet(items, request.max_tokens, count=token_counter())
    # plain sentences do not count
    left_out = Counter(item.section for item in rendered.left_out if item.item_type != "said")
    return ResumePacket(
        conversation_id=next(iter(material.lineage.conversations), ""),
        lineage=material.lineage.conversations[1:],
        items=rendered.items,
        text=rendered.text,
        tokens=rendered.tokens,
        left_out={section.value: left_out[section] for section in PacketSection},
        degraded=sorted(material.degraded),
        query=request.query,
        usage=usage_of_packet(material, rendered, pack_seconds=perf_counter() - began),
        replay=material.replay.limited_to({item.id for item in rendered.items}) if material.replay else None,
        abstained=material.bundle is not None and material.bundle.abstained,
    )


def focus_material(material: ResumeMaterial) -> ResumeMaterial:
    """Return the material without what belongs to neither the lineage, nor an open goal, nor the client's query.

    Without an open goal, everything of the lineage stays.
    """
    focus, given = material.focus, material
    material = replace(material, user_facts=keep_facts(material.user_facts, focus))
    if material.open_goals:
        material = replace(
            material,
            turns=keep_turns(material.turns, focus),
            slots=keep_rows(material.slots, focus),
            episodes=keep_rows(material.episodes, focus),
            artifacts=[each for each in material.artifacts if each.goal_id not in focus.closed_ids],
        )
    if material.bundle is None:
        return material
    kept, results = ids_read(material), material.bundle.results
    relevance = relevance_by_id(results, has_query=True) if material.query else {}
    recalled = keep_recalled(results, focus, relevance, dropped=ids_read(given) - kept)
    return replace(material, bundle=replace(material.bundle, results=recalled))


def ids_read(material: ResumeMaterial) -> set[UUID]:
    """Return the memories that were read without a recall."""
    return {row.id for rows in (material.turns, material.slots, material.episodes) for row in rows}


def usage_of_packet(material: ResumeMaterial, rendered: RenderedPacket, *, pack_seconds: float) -> RecallUsage:
    """Return the cost of a packet. Its sources are read anyway; where a long text lacks its middle, so does the sum."""
    rows = (*material.turns, *material.slots, *material.episodes, *material.user_facts, *material.goals)
    texts = {row.id: row.text for row in (*rows, *material.artifacts)}
    recalled = material.bundle.results if material.bundle else ()
    tokens = {result.id: result.token_count for result in recalled}
    shown = {item.id for item in rendered.items if item.id}
    read = sum(len(texts[each].encode()) // BYTES_PER_TOKEN for each in shown - tokens.keys() if each in texts)
    return RecallUsage(
        candidates=material.bundle.candidates if material.bundle else 0,
        tokens=rendered.tokens,
        source_tokens=read + sum(tokens[each] for each in shown & tokens.keys()),
        stages_ms={**material.stages_ms, **to_milliseconds({"pack": pack_seconds})},
    )


def collect_items(material: ResumeMaterial, *, now: datetime) -> list[PacketItem]:
    """Return an item for everything that may stand in the packet."""
    bundle, allowed = material.bundle, material.lineage.allowed
    context = sentence_context(material)
    read: list[ResumedMemory] = [*material.turns, *material.slots, *material.episodes, *material.user_facts]
    snippets = [
        *snippets_of_slots(material.slots, allowed, open_goals={goal.id for goal in material.open_goals}),
        *snippets_of_episodes(material.episodes),
        *snippets_of_turns(material.turns),
        *snippets_of_recalled(bundle.results if bundle else (), {row.id for row in read}, allowed),
    ]
    held = demote_settled(snippets, material.turns, material.focus)
    return [
        *goal_items(material.placed, material.goals, now=now),
        *last_outcome_items(material.slots, material.episodes, material.turns),
        *profile_items((bundle and bundle.profile) or {}),
        *fact_items(material.user_facts),
        *(item_from_snippet(snippet, context) for snippet in mark_repeats(list(held))),
        *strategy_items(material.strategies),
        *artifact_items(material.artifacts),
        *failed_tool_items(material.failed_tools),
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
        own_agent=material.own_agent,
    )


def relevance_by_id(results: Sequence[Candidate], *, has_query: bool) -> dict[UUID, float]:
    """Return the relevance of each result from 0 to 1: by score for a query of the client's, else by rank."""
    best = max((result.score for result in results), default=0.0)
    if has_query and best > 0:
        return {result.id: max(0.0, result.score / best) for result in results}
    return {result.id: 1 - rank / len(results) for rank, result in enumerate(results)}


def conclude_resume(owner: Owner, packet: ResumePacket, *, now: datetime) -> None:
    """Count the reads of the memories in the packet, and log them where the audit level keeps reads."""
    kinds = {item.id: item.kind for item in packet.items if item.id and item.kind}
    channels = {item.id: item.channel for item in packet.items if item.id and item.channel}
    count_memory_reads(owner, kinds, now=now)
    record_read(
        owner,
        memory_type="all",
        affected_ids=list(kinds),
        target_channels=sorted(set(channels.values())),
        query_text=packet.query,
        result_count=len(kinds),
        cross_channel_count=count_other_channels(owner, channels.values()),
        conversation_id=packet.conversation_id,
    )
