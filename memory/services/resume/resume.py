"""The packet that resumes work (E8): what whoever goes on with it needs for the next move, in a bounded text.

Goals with what they wait for, what came last, what is open, what must be kept to, what was decided, and evidence for
it: from what was recorded as such first, then from what was said, since a runtime may record nothing but turns.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.errors import NotFound
from memory.models import Kind
from memory.owner import Owner
from memory.providers.deadlines import Deadline
from memory.providers.embeddings import token_counter
from memory.retrieval.candidates import Bundle, Candidate
from memory.retrieval.entries import locate_entries
from memory.retrieval.queries import Posture, Query
from memory.retrieval.resume import (
    EpisodeOfWork,
    GoalOfWork,
    Line,
    Remembered,
    SaidTurn,
    SlotOfTurn,
    read_artifacts,
    read_goals,
    read_line,
    read_slots,
    read_turns,
    read_user_facts,
    read_work_episodes,
)
from memory.retrieval.strategies import StrategyHit, search_strategies
from memory.services.audit.log import count_elsewhere, record_read
from memory.services.contexts.access_log import Action, log_reads
from memory.services.memories.reinforce import reinforce
from memory.services.recall.recall import RecallRequest, deadline_of, recall
from memory.services.recall.search import make_query
from memory.services.replay.replay import Slice
from memory.services.resume.bounds import MOST_CHARACTERS, MOST_WHEN_LATE, marked_repeats, within_characters
from memory.services.resume.episodes import notes_of_episodes
from memory.services.resume.goals import PlacedGoal, choose_goals, goal_pieces
from memory.services.resume.known import artifact_pieces, fact_pieces, profile_pieces, strategy_pieces
from memory.services.resume.notes import Bearing, Said, notes_of_turns, piece_of
from memory.services.resume.outcomes import last_outcome
from memory.services.resume.pack import heaviest
from memory.services.resume.pieces import Piece, Section, content_words, repeated_specifics
from memory.services.resume.records import notes_of_recalled, notes_of_slots
from memory.services.resume.render import lay_out_packet
from memory.services.resume.replay import only_told, replay_pieces, replay_work
from memory.services.resume.retractions import without_settled
from memory_project.tracing import traced

RESUME_TOKENS = 1_500
RECALLED = 60
MOST_STRATEGIES = 3
GOALS_ASKED = 5
"""Of the open goals so many make the question, where nobody asks one."""
ASKED_CHARACTERS = 300
"""Of each, and of what the user said last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequest:
    """What to resume: a conversation, or the one that the owner wrote to last; of its goals these, or all open ones.

    Without a `query` the open goals and the last words of the user are the question.
    """

    conversation_id: str = ""
    query: str = ""
    goal_ids: Sequence[UUID] = ()
    max_tokens: int = RESUME_TOKENS
    wants_replay: bool = False
    """Of what was done for the most pressing goal."""
    deadline_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumePacket:
    """The packet: `pieces` are the lines of its text, in that order; `left_out` counts by section what had no room.

    `conversation_id` is empty where there is nothing to resume; `lineage` are the conversations that it continues, the
    latest first, as far as the owner takes part.
    """

    conversation_id: str
    lineage: Sequence[str]
    pieces: Sequence[Piece]
    text: str
    tokens: int
    left_out: Mapping[str, int]
    degraded: Sequence[str]
    query: str
    replay: Slice | None = None
    """As far as it stands in the text."""

    def of(self, section: Section) -> list[Piece]:
        return [piece for piece in self.pieces if piece.section == section]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What was read of it."""

    line: Line
    goals: Sequence[GoalOfWork]
    placed: Sequence[PlacedGoal]
    turns: Sequence[SaidTurn]
    slots: Sequence[SlotOfTurn]
    episodes: Sequence[EpisodeOfWork]
    facts: Sequence[Remembered]
    bundle: Bundle | None = None
    strategies: Sequence[StrategyHit] = ()
    query: str = ""
    asked: str = ""
    """The question, where somebody asked one."""
    degraded: frozenset[str] = field(default=frozenset())

    @property
    def open_goals(self) -> list[GoalOfWork]:
        return [each.goal for each in self.placed if each.goal.is_open]

    @property
    def read_ids(self) -> frozenset[UUID]:
        rows: list[Remembered] = [*self.turns, *self.slots, *self.episodes, *self.facts]
        return frozenset(row.id for row in rows)


@traced("resume", told=lambda packet: {"pieces": len(packet.pieces)})
def resume_work(owner: Owner, request: ResumeRequest, *, now: datetime) -> ResumePacket:
    """The packet for the owner's next move. Writes nothing: `conclude_resume` counts the reads.

    A bounded number of statements, whatever is stored. Raises NotFound for a conversation that there is not, or in
    which the agent takes no part; Unprocessable for a goal that there is not.
    """
    deadline = deadline_of(RecallRequest(query=Query(text=""), deadline_ms=request.deadline_ms))
    work = read_work(owner, request, now=now)
    work = within_time(recall_work(owner, request, work, deadline, now=now), deadline)
    artifacts = read_artifacts(
        owner, [each.goal.id for each in work.placed], sorted({slot.record_id for slot in work.slots}), now=now
    )
    told = replay_of(owner, request, work, now=now) if request.wants_replay else None
    replayed = replay_pieces(told) if told else []
    found = [*pieces_of_work(work, now=now), *artifact_pieces(artifacts), *replayed]
    pieces = without_settled(heaviest(found))
    laid = lay_out_packet(pieces, request.max_tokens, count=token_counter())
    return ResumePacket(
        conversation_id=next(iter(work.line.conversations), ""),
        lineage=work.line.conversations[1:],
        pieces=laid.pieces,
        text=laid.text,
        tokens=laid.tokens,
        left_out=count_left_out(laid.left_out),
        degraded=sorted(work.degraded),
        query=request.query,
        replay=only_told(told, laid.pieces) if told else None,
    )


def replay_of(owner: Owner, request: ResumeRequest, work: Work, *, now: datetime) -> Slice | None:
    """Of the goal that presses most; None without an open one."""
    goals = work.open_goals
    return replay_work(owner, goals[0].id, max_tokens=request.max_tokens, now=now) if goals else None


def read_work(owner: Owner, request: ResumeRequest, *, now: datetime) -> Work:
    """What the lineage and the goals left behind."""
    line = read_line(owner, request.conversation_id, now=now)
    if request.conversation_id and not line.conversations:
        raise NotFound("no such conversation")
    turns = read_turns(owner, line, now=now)
    wanted = list(dict.fromkeys(request.goal_ids))
    slots = read_slots(owner, line, wanted, now=now)
    episodes = read_work_episodes(owner, line, wanted, now=now)
    goal_ids = [*(slot.goal_id for slot in slots), *(episode.goal_id for episode in episodes)]
    worked_on = {each for each in goal_ids if each}
    goals = read_goals(owner, wanted, worked_on, now=now)
    placed = choose_goals(goals, wanted, worked_on, now=now)
    return Work(
        line=line,
        goals=goals,
        placed=placed,
        turns=turns,
        slots=slots,
        episodes=episodes,
        facts=read_user_facts(owner, now=now),
        asked=request.query,
    )


def recall_work(owner: Owner, request: ResumeRequest, work: Work, deadline: Deadline, *, now: datetime) -> Work:
    """With what a recall finds for the question, and strategies for the goals."""
    question = request.query or question_of(work)
    if not question:
        return work
    query = Query(
        text=question,
        top_k=RECALLED,
        conversation_id=next(iter(work.line.conversations), ""),
        posture=Posture.RESUME,
    )
    bundle = recall(owner, RecallRequest(query=query, deadline=deadline), now=now)
    degraded = frozenset(bundle.degraded)
    if deadline.left_seconds() <= 0:
        return replace(work, bundle=bundle, query=question, degraded=degraded | {"strategies_deadline"})
    found = search_strategies(owner, make_query(question, top_k=MOST_STRATEGIES, own=None), now=now)
    return replace(
        work,
        bundle=bundle,
        query=question,
        strategies=found.hits,
        degraded=degraded | frozenset(found.degraded),
    )


def within_time(work: Work, deadline: Deadline) -> Work:
    """With as much of its texts as is read in bounded time; less where the deadline has passed."""
    is_late = deadline.left_seconds() <= 0
    most = MOST_WHEN_LATE if is_late else MOST_CHARACTERS
    turns, slots = within_characters(work.turns, most), within_characters(work.slots, most)
    is_cut = is_late and (turns != list(work.turns) or slots != list(work.slots))
    degraded = work.degraded | ({"resume_deadline"} if is_cut else set())
    return replace(work, turns=turns, slots=slots, degraded=degraded)


def question_of(work: Work) -> str:
    """What the open goals of the owner are, the most pressing first, and what the user said last."""
    said = [turn.text for turn in work.turns if turn.role == "user"][-1:]
    ranked = sorted(work.placed, key=lambda each: each.rank)
    own = [each.goal.text for each in ranked if each.is_own and each.goal.is_open]
    asked = [*own[:GOALS_ASKED], *said]
    return "\n".join(text[:ASKED_CHARACTERS] for text in asked)


def pieces_of_work(work: Work, *, now: datetime) -> list[Piece]:
    """Everything that may stand in the packet."""
    bearing = bearing_of(work)
    profile = work.bundle.profile if work.bundle else None
    recalled = work.bundle.results if work.bundle else []
    notes: list[Said] = [
        *notes_of_slots(work.slots, work.line.allowed, open_goals={goal.id for goal in work.open_goals}),
        *notes_of_episodes(work.episodes),
        *notes_of_turns(work.turns),
        *notes_of_recalled(recalled, work.read_ids, work.line.allowed),
    ]
    return [
        *goal_pieces(work.placed, work.goals, now=now),
        *last_outcome(work.slots, work.episodes, work.turns),
        *profile_pieces(profile or {}),
        *fact_pieces(work.facts),
        *(piece_of(said, bearing) for said in marked_repeats(notes)),
        *strategy_pieces(work.strategies),
    ]


def bearing_of(work: Work) -> Bearing:
    results = work.bundle.results if work.bundle else []
    goal_words: frozenset[str] = frozenset().union(*(content_words(goal.text) for goal in work.open_goals))
    closed = (goal for goal in work.goals if not goal.is_open)
    return Bearing(
        goal_words=goal_words,
        closed_words=frozenset().union(*(content_words(goal.text) for goal in closed)) - goal_words,
        repeated=repeated_specifics([each.text for each in (*work.turns, *work.slots)]),
        relevance=relevance_of(results, is_asked=bool(work.asked)),
        asked=content_words(work.asked),
        scores={result.id: result.score for result in results},
        why={result.id: tuple(result.reasons) for result in results},
    )


def relevance_of(results: Sequence[Candidate], *, is_asked: bool) -> dict[UUID, float]:
    """From 0 to 1: for a question that somebody asked by the scores, else by the ranks."""
    best = max((result.score for result in results), default=0.0)
    if is_asked and best > 0:
        return {result.id: max(0.0, result.score / best) for result in results}
    return {result.id: 1 - place / len(results) for place, result in enumerate(results)}


def count_left_out(pieces: Sequence[Piece]) -> dict[str, int]:
    """What had no room, by section; of plain sentences nobody misses any."""
    counts = {section.value: 0 for section in Section}
    for piece in pieces:
        if piece.says != "said":
            counts[piece.section.value] += 1
    return counts


def conclude_resume(owner: Owner, packet: ResumePacket, *, now: datetime) -> None:
    """Count the reads of what the packet tells, and note them where the audit log keeps reads."""
    kinds = {piece.id: piece.kind for piece in packet.pieces if piece.id and piece.kind}
    channels = {piece.id: piece.channel for piece in packet.pieces if piece.id and piece.channel}
    entries = [each for each, kind in kinds.items() if kind == Kind.CONTEXT_ENTRY]
    reinforce(owner, [each for each, kind in kinds.items() if kind != Kind.CONTEXT_ENTRY], now=now)
    log_reads(owner, locate_entries(owner, entries), action=Action.SEARCH, now=now)
    named: dict[str, Any] = {"conversation_id": packet.conversation_id} if packet.conversation_id else {}
    record_read(
        owner,
        memory_type="all",
        affected_ids=list(kinds),
        target_channels=sorted(set(channels.values())),
        query_text=packet.query,
        result_count=len(kinds),
        cross_channel_count=count_elsewhere(owner, channels.values()),
        **named,
    )
