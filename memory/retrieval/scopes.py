"""Scopes (E1): how far a search opens, in the order that the agent's posture asks for.

Without a conversation and without scopes everything that the owner sees is searched, and nothing preferred. With a
conversation, its scopes are preferred in the posture's order. Scopes that a client sends filter as well.
"""

from collections.abc import Mapping, Sequence

from memory.errors import Unprocessable
from memory.models import Kind
from memory.models.memory import KNOWLEDGE, OF_CONTEXTS
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

BOOSTS = (1.3, 1.2, 1.1, 1.05, 1.0)
"""By the place of its scope in the order; what is in none of them counts 1."""

TURNS_OF_A_TURN = 2
"""The request at hand: the conversation's last turns."""

WORKSPACE_KINDS = frozenset({Kind.CONTEXT_ENTRY, Kind.LEARNING, Kind.ARTIFACT, Kind.STRATEGY, Kind.WORK_EPISODE})

CONDITIONS: Mapping[Scope, str] = {
    Scope.TURN: f"""conversation_id = %(conversation_id)s AND kind IN ('turn', 'turn_slot') AND event_time >= coalesce((
        SELECT min(latest.event_time) FROM (
            SELECT last.event_time FROM memories AS last WHERE last.account_id = %(account_id)s
            AND last.conversation_id = %(conversation_id)s AND last.kind = 'turn'
            ORDER BY last.event_time DESC, last.id DESC LIMIT {TURNS_OF_A_TURN}
        ) AS latest), '-infinity')""",
    Scope.SESSION: "conversation_id = %(conversation_id)s",
    Scope.LINEAGE: "conversation_id = ANY(%(lineage)s::text[])",
    Scope.WORKSPACE: f"""(kind IN ({", ".join(repr(kind.value) for kind in sorted(WORKSPACE_KINDS))})
        OR channel <> '{GLOBAL_CHANNEL}' AND kind IN ({", ".join(repr(kind.value) for kind in sorted(KNOWLEDGE))}))""",
    Scope.PROFILE: f"""user_id = %(user_id)s
        AND kind IN ({", ".join(repr(kind.value) for kind in sorted(KNOWLEDGE - {Kind.GOAL}))})""",
}
"""What is in a scope, as a condition on `memories`."""


def check_scopes(query: Query, *, has_user: bool) -> None:
    """Raises Unprocessable for scopes that nothing can be in."""
    needing = {Scope.TURN, Scope.SESSION, Scope.LINEAGE} & set(query.scopes)
    if needing and not query.conversation_id:
        raise Unprocessable(f"the scopes {', '.join(sorted(needing))} are of a conversation: name one")
    if Scope.PROFILE in query.scopes and not has_user:
        raise Unprocessable("the scope profile is of a user: name one")


def scope_of(candidate: Candidate, query: Query, orientation: Orientation, *, user_id: str) -> Scope | None:
    """The narrowest scope that the memory is in, or None."""
    if query.conversation_id and candidate.conversation_id == query.conversation_id:
        return Scope.TURN if is_of_last_turns(candidate, orientation) else Scope.SESSION
    if candidate.conversation_id and candidate.conversation_id in orientation.lineage:
        return Scope.LINEAGE
    if user_id and candidate.user_id == user_id and candidate.kind in KNOWLEDGE - {Kind.GOAL}:
        return Scope.PROFILE
    in_project = candidate.channel != GLOBAL_CHANNEL and candidate.kind in KNOWLEDGE
    return Scope.WORKSPACE if in_project or candidate.kind in WORKSPACE_KINDS | OF_CONTEXTS else None


def is_of_last_turns(candidate: Candidate, orientation: Orientation) -> bool:
    last = orientation.last_turn_index
    return candidate.index is not None and last is not None and candidate.index > last - TURNS_OF_A_TURN


def boost_of(scope: Scope | None, posture: Posture) -> float:
    """By the posture's order."""
    return 1.0 if scope is None else BOOSTS[ORDERS[posture].index(scope)]
