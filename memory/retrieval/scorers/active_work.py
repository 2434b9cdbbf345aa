"""Active work (E6): open goals, what is part of one, and what is linked to one; of the most urgent goals the most.

A goal that this conversation is at, since it or something of the conversation is linked to it, counts as the most
urgent one.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

from memory.models.goals import SUBGOAL_OF
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import LinkBetween, Setting
from memory.scoring import work_factor

OPEN_GOAL, PART, LINKED = 1.0, 0.75, 0.5
REASONS: Mapping[float, str] = {
    OPEN_GOAL: "an open goal",
    PART: "part of an open goal",
    LINKED: "linked to an open goal",
}


def active_work(candidates: Sequence[Candidate], setting: Setting) -> None:
    places = {goal.id: place for place, goal in enumerate(setting.orientation.goals)}
    if not places:
        return
    links = [link for link in setting.links if link.source in places or link.target in places]
    places |= dict.fromkeys(at_hand(candidates, setting.query.conversation_id, links) & places.keys(), 0)
    near = {goal_id: (work_factor(OPEN_GOAL, place), OPEN_GOAL) for goal_id, place in places.items()}
    for link in links:
        if link.target in places:
            closeness = PART if link.type == SUBGOAL_OF else LINKED
            keep_best(near, link.source, (work_factor(closeness, places[link.target]), closeness))
        if link.source in places:
            keep_best(near, link.target, (work_factor(LINKED, places[link.source]), LINKED))
    for candidate in candidates:
        if candidate.id in near:
            factor, closeness = near[candidate.id]
            candidate.multiply("active_work", factor, REASONS[closeness])


def keep_best(near: dict[UUID, tuple[float, float]], memory_id: UUID, found: tuple[float, float]) -> None:
    near[memory_id] = max(near.get(memory_id, found), found)


def at_hand(candidates: Sequence[Candidate], conversation_id: str, links: Sequence[LinkBetween]) -> set[UUID]:
    """What the conversation is at: its memories, and what is linked to them."""
    if not conversation_id:
        return set()
    here = {each.id for each in candidates if each.conversation_id == conversation_id}
    return here.union(
        (link.target for link in links if link.source in here), (link.source for link in links if link.target in here)
    )
