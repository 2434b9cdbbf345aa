"""Relationship fit (E6): how few links lie between a memory and what the question names, or the user's knowledge."""

from collections.abc import Collection, Iterator, Sequence
from uuid import UUID

from memory.models.memory import KNOWLEDGE
from memory.retrieval.candidates import IS_LINKED_TO_NAMED, IS_NAMED, Candidate
from memory.retrieval.plans import LinkBetween, Setting
from memory.scoring import relationship_factor

IS_LINKED_TO_OWN = "linked to what is known of the user"
HOPS_TO_OWN = 1
"""The user's own knowledge lies as near as what is linked to what the question names."""

Near = tuple[int, str]
"""How many links away, and why."""


def relationship(candidates: Sequence[Candidate], setting: Setting) -> None:
    walked = {each.id: (each.hops, IS_LINKED_TO_NAMED) for each in candidates if each.hops}
    named = dict.fromkeys(setting.orientation.entities, (0, IS_NAMED))
    near = walked | {each.id: (0, IS_NAMED) for each in candidates if each.hops == 0} | named
    for memory_id, found in linked_to(named, ids_of_own(candidates, setting), setting.links):
        near[memory_id] = min(near.get(memory_id, found), found)
    for candidate in candidates:
        if candidate.id in near:
            hops, reason = near[candidate.id]
            candidate.multiply("relationship", relationship_factor(hops), reason)


def linked_to(
    named: Collection[UUID], own: Collection[UUID], links: Sequence[LinkBetween]
) -> Iterator[tuple[UUID, Near]]:
    """What is at the other end of links of either."""
    of_ends: dict[UUID, Near] = dict.fromkeys(own, (HOPS_TO_OWN + 1, IS_LINKED_TO_OWN))
    of_ends |= dict.fromkeys(named, (1, IS_LINKED_TO_NAMED))
    for link in links if of_ends else ():
        if link.source in of_ends:
            yield link.target, of_ends[link.source]
        if link.target in of_ends:
            yield link.source, of_ends[link.target]


def ids_of_own(candidates: Sequence[Candidate], setting: Setting) -> Collection[UUID]:
    """Knowledge of the user who asks."""
    user_id = setting.owner.user_id
    if not user_id:
        return ()
    return [each.id for each in candidates if each.user_id == user_id and each.kind in KNOWLEDGE]
