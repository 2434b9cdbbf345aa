"""Scorers: multiply the relevance of candidates by factors for what else than words and meaning speaks for a memory.

Every factor lies within 0.5 and 1.5, so none overrules words and meaning alone, and is 1 if nothing is known. Each one
is recorded in `Candidate.signals` under the scorer's name. The formulas are in `memory.scoring`.

To add a scorer, write a function `(Sequence[Candidate], ScoringContext) -> None` that calls `Candidate.apply_factor`,
or `apply_factors` for all, with its name, and add its line to SCORERS.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from memory.kinds import Audience, spec_of
from memory.models.goals import SUBGOAL_OF
from memory.retrieval.candidates import (
    IS_LINKED_TO_NAMED,
    IS_NAMED,
    IS_OF_THE_TIME,
    IS_PINNED,
    Candidate,
    apply_factors,
)
from memory.retrieval.plans import LinkBetween, Scorer, ScoringContext
from memory.retrieval.queries import Scope, TimeWindow
from memory.retrieval.scopes import BOOSTS, SCOPE_TESTS, SearchScope, scope_order
from memory.scoring import (
    SPEAKER_BOOST,
    TEMPORAL_BOOSTS,
    kind_factor,
    provenance_factor,
    recency_factor,
    relationship_factor,
    salience_factor,
    window_factor,
    window_fade_seconds,
    work_factor,
)

DAY = timedelta(days=1)
MAX_FADES = 20.0
"""A memory further outside a window than this many fade times gets no boost: less than a millionth would be left."""

DERIVED_FROM = "DERIVED_FROM"
STAFF_SOURCE = "staff"

SCOPE_REASONS: Mapping[Scope, str] = {
    Scope.TURN: "said just now",
    Scope.SESSION: "of this conversation",
    Scope.LINEAGE: "of a conversation that this one resumes",
    Scope.WORKSPACE: "of the workspace",
    Scope.PROFILE: "known of the user",
}

OPEN_GOAL, PART_OF_GOAL, LINKED_TO_GOAL = 1.0, 0.75, 0.5
WORK_REASONS: Mapping[float, str] = {
    OPEN_GOAL: "an open goal",
    PART_OF_GOAL: "part of an open goal",
    LINKED_TO_GOAL: "linked to an open goal",
}

IS_LINKED_TO_OWN = "linked to what is known of the user"
HOPS_TO_OWN = 1
"""The user's own knowledge counts as near as what is linked to a named entity."""

Distance = tuple[int, str]
"""Number of links and the reason to show."""


def score_kind_weight(candidates: Sequence[Candidate], _context: ScoringContext) -> None:
    """Weigh by the documented weight of the kind (X8), relative to the largest.

    Words and meaning alone compare kinds badly: of two memories that say the same the shorter one scores higher by
    both, so names and one-line strategies would come before turns. The weights correct that, and a strategy that fits
    clearly better still comes first: the smallest weight costs it as much as 1.4 standard deviations.
    """
    factors = {kind: kind_factor(spec_of(kind).recall_weight) for kind in {each.kind for each in candidates}}
    for candidate in candidates:
        if (factor := factors[candidate.kind]) != 1.0:
            candidate.apply_factor("kind_weight", factor)


def score_salience(candidates: Sequence[Candidate], _context: ScoringContext) -> None:
    """Weigh by salience (X11). The initial salience of 0.5 changes nothing."""
    for candidate in candidates:
        if (factor := salience_factor(candidate.salience)) != 1.0:
            candidate.apply_factor("salience", factor)


def score_provenance(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Weigh by trust, confidence, evidence and pin (E6).

    Evidence is a DERIVED_FROM link to another candidate, or that staff wrote the memory.
    """
    derived = {link.source for link in context.links if link.type == DERIVED_FROM}
    for candidate in candidates:
        # hashing an id takes longer than the rest
        is_derived = bool(derived) and candidate.id in derived
        factor = provenance_factor(
            trust=candidate.trust,
            confidence=candidate.confidence,
            has_evidence=is_derived or candidate.source == STAFF_SOURCE,
            is_pinned=candidate.pinned,
        )
        if factor != 1.0 or is_derived:
            candidate.apply_factor("provenance", factor, "what was said supports it" if is_derived else "")
        if candidate.pinned:
            candidate.add_reason(IS_PINNED)


@dataclass(frozen=True, slots=True, kw_only=True)
class FadingWindow:
    """A time window in seconds since 1970, infinite on an open side. `fade_seconds` halve the boost outside it."""

    since: float
    until: float
    fade_seconds: float

    def fades(self, begins: float, ends: float) -> float:
        """Return the distance of a time range from the window in units of `fade_seconds`; 0 where they meet."""
        if begins > self.until:
            return (begins - self.until) / self.fade_seconds
        return (self.since - ends) / self.fade_seconds if ends < self.since else 0.0

    def overlaps(self, begins: float, ends: float) -> bool:
        """Return True if a time range overlaps the window. Both are half-open, except for a range of length 0."""
        return begins < self.until and (self.since < ends or self.since <= begins)


def score_recency(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Weigh by the days since a memory happened or was last read, whichever is later (X8)."""
    now = context.now
    latest = [
        each.event_time if each.last_accessed is None else max(each.event_time, each.last_accessed)
        for each in candidates
    ]
    apply_factors("recency", candidates, [recency_factor((now - moment) / DAY) for moment in latest])


def score_temporal_context(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Boost facts about the present over facts about the past, by the documented factors (X11).

    Questions about another time are left alone: those with `as_of`, and those whose time windows are all over.
    """
    windows = context.query.windows
    are_over = [window.until is not None and window.until <= context.now for window in windows]
    if context.query.as_of is not None or (are_over and all(are_over)):
        return
    for candidate in candidates:
        if candidate.temporal:
            candidate.apply_factor("temporal_context", TEMPORAL_BOOSTS[candidate.temporal])


def score_window(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Boost memories from the times that the question mentions, and a little less those shortly before or after.

    Nothing is left out. A fact also belongs to the time in which it was true.
    """
    windows = [fading_window(window) for window in context.query.windows]
    if not windows:
        return
    for candidate in candidates:
        times = candidate_times(candidate)
        nearest = min([window.fades(*time) for window in windows for time in times])
        if nearest < MAX_FADES:
            is_inside = nearest == 0 and any(window.overlaps(*time) for window in windows for time in times)
            candidate.apply_factor("window", window_factor(nearest), IS_OF_THE_TIME if is_inside else "")


def fading_window(window: TimeWindow) -> FadingWindow:
    since, until = timestamp_or(window.since, -math.inf), timestamp_or(window.until, math.inf)
    return FadingWindow(since=since, until=until, fade_seconds=window_fade_seconds(until - since))


def candidate_times(candidate: Candidate) -> list[tuple[float, float]]:
    """Return when a memory happened and, if known, from when until when it was true."""
    at = candidate.event_time.timestamp()
    if candidate.valid_from is None and candidate.valid_to is None:
        return [(at, at)]
    return [(at, at), (timestamp_or(candidate.valid_from, -math.inf), timestamp_or(candidate.valid_to, math.inf))]


def timestamp_or(time: datetime | None, default: float) -> float:
    return default if time is None else time.timestamp()


def score_speaker(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Boost the turns of speakers whose words the question asks for. Nobody else's are lowered."""
    asked = [frozenset(name.casefold().split()) for name in context.query.speakers if name.strip()]
    if not asked:
        return
    is_asked: dict[tuple[str, str], bool] = {}
    for candidate in candidates:
        if not candidate.role:
            continue
        speaker = (candidate.role, candidate.speaker)
        if speaker not in is_asked:
            is_asked[speaker] = is_asked_about(candidate, asked)
        if is_asked[speaker]:
            candidate.apply_factor("speaker", SPEAKER_BOOST, "said by whom the question asks about")


def is_asked_about(candidate: Candidate, asked: Sequence[frozenset[str]]) -> bool:
    """Return True if the candidate's role or name is asked about. A first name matches a longer name and vice versa."""
    if frozenset({candidate.role}) in asked:
        return True
    words = frozenset(candidate.speaker.casefold().split())
    return bool(words) and any(name <= words or words <= name for name in asked)


def score_scope(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Weigh by the first scope that holds the memory (E1), in the order of the posture or of the client's scopes."""
    order = scope_order(context.query)
    if not order:
        return
    asked = SearchScope.of(context.query, context.analysis, user_id=context.owner.user_id)
    tests = [(SCOPE_TESTS[scope], BOOSTS[number], SCOPE_REASONS[scope]) for number, scope in enumerate(order)]
    for candidate in candidates:
        for is_in, boost, reason in tests:
            if is_in(candidate, asked):
                candidate.apply_factor("scope", boost, reason)
                break


def score_active_work(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Boost open goals, their parts and what is linked to them, most of all for the most urgent goals (E6).

    A goal counts as the most urgent one if it, or something linked to it, belongs to the active conversation.
    """
    places = {goal.id: place for place, goal in enumerate(context.analysis.goals)}
    if not places:
        return
    links = [link for link in context.links if link.source in places or link.target in places]
    places |= dict.fromkeys(ids_in_conversation(candidates, context.query.conversation_id, links) & places.keys(), 0)
    near = {goal_id: (work_factor(OPEN_GOAL, place), OPEN_GOAL) for goal_id, place in places.items()}
    for link in links:
        if link.target in places:
            closeness = PART_OF_GOAL if link.type == SUBGOAL_OF else LINKED_TO_GOAL
            found = work_factor(closeness, places[link.target]), closeness
            near[link.source] = max(near.get(link.source, found), found)
        if link.source in places:
            found = work_factor(LINKED_TO_GOAL, places[link.source]), LINKED_TO_GOAL
            near[link.target] = max(near.get(link.target, found), found)
    for candidate in candidates:
        if candidate.id in near:
            factor, closeness = near[candidate.id]
            candidate.apply_factor("active_work", factor, WORK_REASONS[closeness])


def ids_in_conversation(
    candidates: Sequence[Candidate], conversation_id: str, links: Sequence[LinkBetween]
) -> set[UUID]:
    """Return the ids of the conversation's memories and of what is linked to them."""
    if not conversation_id:
        return set()
    here = {each.id for each in candidates if each.conversation_id == conversation_id}
    return here.union(
        (link.target for link in links if link.source in here), (link.source for link in links if link.target in here)
    )


def score_relationship(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Weigh by the number of links between a memory and a named entity, or the user's own knowledge (E6)."""
    walked = {each.id: (each.hops, IS_LINKED_TO_NAMED) for each in candidates if each.hops}
    named = dict.fromkeys(context.analysis.entities, (0, IS_NAMED))
    near = walked | {each.id: (0, IS_NAMED) for each in candidates if each.hops == 0} | named
    for memory_id, found in linked_memories(named, own_knowledge_ids(candidates, context), context.links):
        near[memory_id] = min(near.get(memory_id, found), found)
    for candidate in candidates if near else ():
        if candidate.id in near:
            hops, reason = near[candidate.id]
            candidate.apply_factor("relationship", relationship_factor(hops), reason)


def linked_memories(
    named: Collection[UUID], own: Collection[UUID], links: Sequence[LinkBetween]
) -> Iterator[tuple[UUID, Distance]]:
    """Yield the memories at the other end of links of named entities and of the user's own knowledge."""
    ends: dict[UUID, Distance] = dict.fromkeys(own, (HOPS_TO_OWN + 1, IS_LINKED_TO_OWN))
    ends |= dict.fromkeys(named, (1, IS_LINKED_TO_NAMED))
    for link in links if ends else ():
        if link.source in ends:
            yield link.target, ends[link.source]
        if link.target in ends:
            yield link.source, ends[link.target]


def own_knowledge_ids(candidates: Sequence[Candidate], context: ScoringContext) -> Collection[UUID]:
    """Return the candidates that are knowledge of the user who asks."""
    user_id = context.owner.user_id
    if not user_id:
        return ()
    own = (each for each in candidates if each.user_id == user_id)
    return [each.id for each in own if spec_of(each.kind).audience is Audience.KNOWLEDGE]


SCORERS: Mapping[str, Scorer] = {
    "kind_weight": score_kind_weight,
    "temporal_context": score_temporal_context,
    "salience": score_salience,
    "recency": score_recency,
    "window": score_window,
    "speaker": score_speaker,
    "scope": score_scope,
    "active_work": score_active_work,
    "provenance": score_provenance,
    "relationship": score_relationship,
}
"""Scorers by name, in the order in which they run and in which their reasons are listed."""
