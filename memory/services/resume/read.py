"""Step 1 of a resume: read what the work left behind, and recall what bears on the next move."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from memory.errors import NotFound
from memory.owner import Owner
from memory.providers.deadlines import Deadline
from memory.retrieval.candidates import Bundle
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
from memory.retrieval.strategies import StrategyHit, search_strategies
from memory.services.recall.recall import RecallRequest, recall
from memory.services.recall.search import embed_search_query
from memory.services.replay.replay import MAX_REPLAY_TOKENS, MIN_REPLAY_TOKENS, ReplaySlice, replay
from memory.services.replay.targets import ReplayRequest
from memory.services.resume.goals import PlacedGoal, choose_goals
from memory.services.resume.items import PacketItem

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
    """Everything that was read for a packet. `query` is the request's, empty if it had none."""

    lineage: ResumedLineage
    goals: Sequence[ResumedGoal]
    placed: Sequence[PlacedGoal]
    turns: Sequence[ResumedTurn]
    slots: Sequence[ResumedSlot]
    episodes: Sequence[ResumedEpisode]
    user_facts: Sequence[ResumedMemory]
    query: str
    bundle: Bundle | None = None
    strategies: Sequence[StrategyHit] = ()
    artifacts: Sequence[ResumedArtifact] = ()
    replay: ReplaySlice | None = None
    degraded: frozenset[str] = field(default=frozenset())

    @property
    def open_goals(self) -> list[ResumedGoal]:
        return [each.goal for each in self.placed if each.goal.is_open]

    @property
    def read_ids(self) -> frozenset[UUID]:
        rows: list[ResumedMemory] = [*self.turns, *self.slots, *self.episodes, *self.user_facts]
        return frozenset(row.id for row in rows)


def read_material(owner: Owner, request: ResumeRequest, deadline: Deadline, *, now: datetime) -> ResumeMaterial:
    """Read what the request's work left behind: a bounded number of statements, whatever is stored.

    Raises NotFound for an unknown conversation, or one in which the agent takes no part; Unprocessable for an unknown
    goal.
    """
    material = read_stored_work(owner, request, now=now)
    material = limit_texts(add_recalled(owner, material, deadline, now=now), deadline)
    goal_ids = [each.goal.id for each in material.placed]
    record_ids = sorted({slot.record_id for slot in material.slots})
    return replace(
        material,
        artifacts=read_resumed_artifacts(owner, goal_ids, record_ids, now=now),
        replay=replay_top_goal(owner, request, material, now=now) if request.wants_replay else None,
    )


def read_stored_work(owner: Owner, request: ResumeRequest, *, now: datetime) -> ResumeMaterial:
    """Read the lineage of conversations with its turns, records and work episodes, and the goals."""
    lineage = read_resumed_lineage(owner, request.conversation_id, now=now)
    if request.conversation_id and not lineage.conversations:
        raise NotFound("no such conversation")
    turns = read_resumed_turns(owner, lineage, now=now)
    requested = list(dict.fromkeys(request.goal_ids))
    slots = read_resumed_slots(owner, lineage, requested, now=now)
    episodes = read_resumed_episodes(owner, lineage, requested, now=now)
    goal_ids = [*(slot.goal_id for slot in slots), *(episode.goal_id for episode in episodes)]
    worked_on = {each for each in goal_ids if each}
    goals = read_resumed_goals(owner, requested, worked_on, now=now)
    return ResumeMaterial(
        lineage=lineage,
        goals=goals,
        placed=choose_goals(goals, requested, worked_on, now=now),
        turns=turns,
        slots=slots,
        episodes=episodes,
        user_facts=read_user_facts(owner, now=now),
        query=request.query,
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
    )
    bundle = recall(owner, RecallRequest(query=query, deadline=deadline), now=now)
    material = replace(material, bundle=bundle, degraded=frozenset(bundle.degraded))
    if deadline.left_seconds() <= 0:
        return replace(material, degraded=material.degraded | {"strategies_deadline"})
    found = search_strategies(owner, embed_search_query(text, top_k=MAX_STRATEGIES, own=None), now=now)
    return replace(material, strategies=found.hits, degraded=material.degraded | frozenset(found.degraded))


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


def replay_top_goal(
    owner: Owner, request: ResumeRequest, material: ResumeMaterial, *, now: datetime
) -> ReplaySlice | None:
    """Replay the most pressing open goal within a share of the packet's tokens; None without an open goal."""
    if not material.open_goals:
        return None
    max_tokens = min(max(int(REPLAY_SHARE * request.max_tokens), MIN_REPLAY_TOKENS), MAX_REPLAY_TOKENS)
    return replay(owner, ReplayRequest(goal_id=material.open_goals[0].id, max_tokens=max_tokens), now=now)


def limit_slice_to_items(replayed: ReplaySlice, items: Sequence[PacketItem]) -> ReplaySlice:
    """Return the slice without what has no room among the packet's items."""
    ids = {item.id for item in items}
    kept = [each for each in replayed.items if each.memory_id in ids]
    return replace(replayed, items=kept, left_out=replayed.left_out + len(replayed.items) - len(kept))
