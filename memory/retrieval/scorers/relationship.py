"""Relationship fit (E6): how few links lie between a memory and what the question names, or the user's knowledge."""

from collections.abc import Sequence
from uuid import UUID

from memory.models.memory import KNOWLEDGE
from memory.retrieval.candidates import IS_LINKED_TO_NAMED, IS_NAMED, Candidate
from memory.retrieval.plans import Setting
from memory.scoring import relationship_factor

HOPS_OF_OWN = 2
"""A link to the user's own knowledge counts as two to what the question names."""


def relationship(candidates: Sequence[Candidate], setting: Setting) -> None:
    named = frozenset(setting.orientation.entities)
    linked = neighbours(named, setting)
    near_own = neighbours(ids_of_own(candidates, setting), setting)
    for candidate in candidates:
        hops = hops_of(candidate, named, linked)
        if hops is not None:
            candidate.multiply("relationship", relationship_factor(hops), IS_LINKED_TO_NAMED if hops else IS_NAMED)
        elif candidate.id in near_own:
            candidate.multiply("relationship", relationship_factor(HOPS_OF_OWN), "linked to what is known of the user")


def hops_of(candidate: Candidate, named: frozenset[UUID], linked: frozenset[UUID]) -> int | None:
    """As the graph walk counted them, or fewer; None where no link is known."""
    if candidate.id in named:
        return 0
    return 1 if candidate.id in linked else candidate.hops


def ids_of_own(candidates: Sequence[Candidate], setting: Setting) -> frozenset[UUID]:
    """Knowledge of the user who asks."""
    user_id = setting.owner.user_id
    if not user_id or not setting.links:
        return frozenset()
    return frozenset(each.id for each in candidates if each.user_id == user_id and each.kind in KNOWLEDGE)


def neighbours(ids: frozenset[UUID], setting: Setting) -> frozenset[UUID]:
    """What is at the other end of links of these."""
    if not ids:
        return frozenset()
    ends = {link.target for link in setting.links if link.source in ids}
    return frozenset(ends | {link.source for link in setting.links if link.target in ids})
