"""Scorers by what a memory has to do with the question: whose words it asks for, in which scope, about which work."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from uuid import UUID

from memory.kinds import Audience, spec_of
from memory.models.goals import SUBGOAL_OF
from memory.retrieval.candidates import IS_LINKED_TO_NAMED, IS_NAMED, Candidate
from memory.retrieval.plans import LinkBetween, ScoringContext
from memory.retrieval.queries import Scope
from memory.retrieval.scopes import BOOSTS, SCOPE_TESTS, SearchScope, scope_order
from memory.scoring import SPEAKER_BOOST, relationship_factor, work_factor

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
    for candidate in candidates:
        for number, scope in enumerate(order):
            if SCOPE_TESTS[scope](candidate, asked):
                candidate.apply_factor("scope", BOOSTS[number], SCOPE_REASONS[scope])
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
    for candidate in candidates:
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
