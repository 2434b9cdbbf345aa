"""Scopes (E1): how far a search opens, in the order that the agent's posture asks for.

Without a conversation and without scopes everything that the owner sees is searched, and nothing preferred. With a
conversation, its scopes are preferred in the posture's order. Scopes that a client sends filter as well, and are
preferred in the order in which they were sent. A memory may be in several scopes; the first one in the order counts.

- turn: the request at hand, that is what was said since the user spoke last, results of tools among it, and the slots
  of what is recorded of it: of structured turns that are open, or about these messages.
- session: the conversation, whatever the kind.
- lineage: the conversations that it continues, with their decisions, blockers and next steps.
- workspace: what lasts beyond a conversation: contexts, learnings, artifacts, strategies, goals, work episodes; and in
  a project's channel its knowledge and the reasons that decisions were made for.
- profile: what is known of the user.

What is in a scope is said twice, in SQL to filter (CONDITIONS) and in Python to prefer (MEMBERS), and is the same.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from memory.errors import Unprocessable
from memory.models import Kind, TurnSlot
from memory.models.memory import KNOWLEDGE
from memory.owner import GLOBAL_CHANNEL
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Orientation
from memory.retrieval.queries import Posture, Query, Scope

ORDERS: Mapping[Posture, Sequence[Scope]] = {
    Posture.ACTIVE_TURN: (Scope.TURN, Scope.SESSION, Scope.LINEAGE, Scope.WORKSPACE, Scope.PROFILE),
    Posture.RESUME: (Scope.LINEAGE, Scope.SESSION, Scope.WORKSPACE, Scope.PROFILE, Scope.TURN),
    Posture.RECOVERY: (Scope.LINEAGE, Scope.SESSION, Scope.WORKSPACE, Scope.PROFILE, Scope.TURN),
    Posture.AUDIT: (Scope.SESSION, Scope.LINEAGE, Scope.WORKSPACE, Scope.PROFILE, Scope.TURN),
}
"""The first two are documented. A recovery resumes what broke off; an audit begins with what was done."""

BOOSTS = (1.3, 1.2, 1.1, 1.05, 1.0)
"""By the place of its scope in the order; what is in none of them counts 1."""

WORKSPACE_KINDS = frozenset(
    {Kind.CONTEXT_ENTRY, Kind.LEARNING, Kind.ARTIFACT, Kind.STRATEGY, Kind.WORK_EPISODE, Kind.GOAL}
)
PROFILE_KINDS = KNOWLEDGE - {Kind.GOAL}
"""Preferences, boundaries and relationships; what is to be done is of the workspace."""

DECIDING = TurnSlot.Slot.REASONING.value
"""The slot that says what was decided, and why."""

OF_A_CONVERSATION = frozenset({Scope.TURN, Scope.SESSION, Scope.LINEAGE})
KINDS_IN: Mapping[Scope, Collection[Kind]] = {
    Scope.TURN: {Kind.TURN, Kind.TURN_SLOT},
    Scope.WORKSPACE: WORKSPACE_KINDS | KNOWLEDGE | {Kind.TURN_SLOT},
    Scope.PROFILE: PROFILE_KINDS,
}
"""Which kinds can be in a scope, where not all can."""


def listed(kinds: Collection[Kind]) -> str:
    return ", ".join(repr(kind.value) for kind in sorted(kinds))


CONDITIONS: Mapping[Scope, str] = {
    Scope.TURN: """conversation_id = %(conversation_id)s AND (
        kind = 'turn' AND (SELECT index FROM turns WHERE memory_ptr_id = {memory_id}) >= %(first_of_turn)s::int
        OR kind = 'turn_slot' AND (
            SELECT record_id FROM turn_slots WHERE memory_ptr_id = {memory_id}) = ANY(%(records_of_turn)s::uuid[]))""",
    Scope.SESSION: "conversation_id = %(conversation_id)s",
    Scope.LINEAGE: "conversation_id = ANY(%(lineage)s::text[])",
    Scope.WORKSPACE: f"""(kind IN ({listed(WORKSPACE_KINDS)})
        OR channel <> '{GLOBAL_CHANNEL}' AND (kind IN ({listed(KNOWLEDGE)})
            OR kind = 'turn_slot' AND (
                SELECT slot FROM turn_slots WHERE memory_ptr_id = {{memory_id}}) = '{DECIDING}'))""",
    Scope.PROFILE: f"user_id = %(user_id)s AND kind IN ({listed(PROFILE_KINDS)})",
}
"""What is in a scope, as a condition on the columns that memories and vectors share; `memory_id` is the table's own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a question is asked. Empty ids are in no scope."""

    conversation_id: str
    lineage: frozenset[str]
    first_of_turn: int | None
    """The index of the message that the request at hand begins with; None without a conversation that there is."""
    records_of_turn: frozenset[UUID]
    """The structured turns that are of the request at hand."""
    user_id: str

    @classmethod
    def of(cls, query: Query, orientation: Orientation, *, user_id: str) -> Self:
        return cls(
            conversation_id=query.conversation_id,
            lineage=frozenset(orientation.lineage),
            first_of_turn=orientation.first_of_turn,
            records_of_turn=frozenset(orientation.records_of_turn),
            user_id=user_id,
        )


def is_of_turn(candidate: Candidate, place: Place) -> bool:
    if not is_of_session(candidate, place):
        return False
    if candidate.kind == Kind.TURN_SLOT:
        return candidate.record_id in place.records_of_turn
    return candidate.index is not None and place.first_of_turn is not None and candidate.index >= place.first_of_turn


def is_of_session(candidate: Candidate, place: Place) -> bool:
    return bool(place.conversation_id) and candidate.conversation_id == place.conversation_id


def is_of_lineage(candidate: Candidate, place: Place) -> bool:
    return candidate.conversation_id in place.lineage


def is_of_workspace(candidate: Candidate, _place: Place) -> bool:
    if candidate.kind in WORKSPACE_KINDS:
        return True
    lasts = candidate.kind in KNOWLEDGE or candidate.slot == DECIDING
    return lasts and candidate.channel != GLOBAL_CHANNEL


def is_of_profile(candidate: Candidate, place: Place) -> bool:
    return bool(place.user_id) and candidate.user_id == place.user_id and candidate.kind in PROFILE_KINDS


MEMBERS: Mapping[Scope, Callable[[Candidate, Place], bool]] = {
    Scope.TURN: is_of_turn,
    Scope.SESSION: is_of_session,
    Scope.LINEAGE: is_of_lineage,
    Scope.WORKSPACE: is_of_workspace,
    Scope.PROFILE: is_of_profile,
}
"""Whether a memory is in a scope."""


def check_scopes(query: Query, *, has_user: bool) -> None:
    """Raises Unprocessable for scopes that nothing can be in, alone or with the kinds that are asked for."""
    needing = OF_A_CONVERSATION & set(query.scopes)
    if needing and not query.conversation_id:
        raise Unprocessable(f"the scopes {', '.join(sorted(needing))} are of a conversation: name one")
    if Scope.PROFILE in query.scopes and not has_user:
        raise Unprocessable("the scope profile is of a user: name one")
    if query.scopes and query.kinds and not any(can_hold(scope, query.kinds) for scope in query.scopes):
        raise Unprocessable("none of the scopes holds any of the kinds")


def can_hold(scope: Scope, kinds: Collection[Kind]) -> bool:
    return scope not in KINDS_IN or not set(kinds).isdisjoint(KINDS_IN[scope])


def order_of(query: Query) -> Sequence[Scope]:
    """Which scopes are preferred, the most preferred first; none without a conversation and without scopes."""
    if query.scopes:
        return tuple(dict.fromkeys(query.scopes))
    return ORDERS[query.posture] if query.conversation_id else ()


def factor_of_place(number: int) -> float:
    """How much the scope at that place of the order counts, 0 the first."""
    return BOOSTS[number]
