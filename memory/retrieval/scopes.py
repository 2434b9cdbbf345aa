"""Scopes (E1): ranges of memories that a search prefers, or is limited to, in an order that depends on the posture.

Without a conversation and without scopes the search covers everything that the owner sees and prefers nothing. With a
conversation its scopes are preferred in the posture's order. Scopes that a client sends filter as well, and are
preferred in the order in which they were sent. A memory may be in several scopes; the first one in the order counts.

- turn: the current request: what was said since the user spoke last, results of tools included, and the slots of
  structured turns that are open or about these messages.
- session: everything from the conversation, of any kind.
- lineage: the conversations that it continues, with their decisions, blockers and next steps.
- workspace: what lasts beyond a conversation: contexts, learnings, artifacts, strategies, goals, work episodes; and in
  a project's channel its knowledge and the reasons for decisions.
- profile: what is known about the user.

Membership is defined twice, in SQL to filter (`scope_condition`) and in Python to prefer (`SCOPE_TESTS`). Tests keep
the two equal.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from memory.errors import Unprocessable
from memory.kinds import Audience, Kind, kinds_seen_by, kinds_where, spec_of
from memory.models import TurnSlot
from memory.owner import GLOBAL_CHANNEL
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.queries import Posture, Query, Scope
from memory.retrieval.statements import memory_sql

ORDERS: Mapping[Posture, Sequence[Scope]] = {
    Posture.ACTIVE_TURN: (Scope.TURN, Scope.SESSION, Scope.LINEAGE, Scope.WORKSPACE, Scope.PROFILE),
    Posture.RESUME: (Scope.LINEAGE, Scope.SESSION, Scope.WORKSPACE, Scope.PROFILE, Scope.TURN),
    Posture.RECOVERY: (Scope.LINEAGE, Scope.SESSION, Scope.WORKSPACE, Scope.PROFILE, Scope.TURN),
    Posture.AUDIT: (Scope.SESSION, Scope.LINEAGE, Scope.WORKSPACE, Scope.PROFILE, Scope.TURN),
}
"""The first two are documented. A recovery resumes work that broke off; an audit begins with what was done."""

BOOSTS = (1.3, 1.2, 1.1, 1.05, 1.0)
"""Factors by the position of the scope in the order. A memory in none of the scopes has factor 1."""

DECISION_SLOT = TurnSlot.Slot.REASONING.value
"""The slot that holds what was decided, and why."""

CONVERSATION_SCOPES = frozenset({Scope.TURN, Scope.SESSION, Scope.LINEAGE})


def kinds_in(scope: Scope) -> frozenset[Kind]:
    """Return the kinds that declare the scope."""
    return kinds_where(lambda spec: scope in spec.scopes)


def quoted_list(kinds: Collection[Kind]) -> str:
    return ", ".join(repr(kind.value) for kind in sorted(kinds))


OWN_CONDITIONS: Mapping[Scope, Mapping[Kind, str]] = {
    Scope.TURN: {
        Kind.TURN: "{own}.index >= %(first_of_turn)s::int",
        Kind.TURN_SLOT: "{own}.record_id = ANY(%(records_of_turn)s::uuid[])",
    },
    Scope.WORKSPACE: {Kind.TURN_SLOT: f"{{own}}.slot = '{DECISION_SLOT}'"},
}
"""Templates of conditions on memories of kinds that only some of are in a scope, by scope and kind."""

CONDITIONS: Mapping[Scope, str] = {
    Scope.TURN: "conversation_id = %(conversation_id)s AND ({own})",
    Scope.SESSION: "conversation_id = %(conversation_id)s",
    Scope.LINEAGE: "conversation_id = ANY(%(lineage)s::text[])",
    Scope.WORKSPACE: f"""(kind IN ({{of_scope}})
        OR channel <> '{GLOBAL_CHANNEL}' AND (kind IN ({{knowledge}}) OR {{own}}))""",
    Scope.PROFILE: "user_id = %(user_id)s AND kind IN ({of_scope})",
}
"""Templates of `scope_condition`, by scope."""


def scope_condition(scope: Scope, *, table: str) -> str:
    """Return the SQL condition on what is in a scope, for rows of `memories` or of `memory_vectors`."""
    own = OWN_CONDITIONS.get(scope, {})
    return CONDITIONS[scope].format(
        own=" OR ".join(f"kind = '{kind}' AND {memory_sql(text, table=table)}" for kind, text in own.items()),
        of_scope=quoted_list(kinds_in(scope)),
        knowledge=quoted_list(kinds_seen_by(Audience.KNOWLEDGE)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """The conversation, request and user that the scopes of a question refer to. Empty ids match nothing."""

    conversation_id: str
    lineage: frozenset[str]
    first_of_turn: int | None
    """Index of the message that the current request begins with; None if there is no such conversation."""
    records_of_turn: frozenset[UUID]
    """Structured turns that belong to the current request."""
    user_id: str

    @classmethod
    def of(cls, query: Query, analysis: QueryAnalysis, *, user_id: str) -> Self:
        return cls(
            conversation_id=query.conversation_id,
            lineage=frozenset(analysis.lineage),
            first_of_turn=analysis.first_of_turn,
            records_of_turn=frozenset(analysis.records_of_turn),
            user_id=user_id,
        )


def is_in_turn(candidate: Candidate, asked: SearchScope) -> bool:
    if not is_in_session(candidate, asked):
        return False
    if candidate.record_id is not None:
        return candidate.record_id in asked.records_of_turn
    return candidate.index is not None and asked.first_of_turn is not None and candidate.index >= asked.first_of_turn


def is_in_session(candidate: Candidate, asked: SearchScope) -> bool:
    return bool(asked.conversation_id) and candidate.conversation_id == asked.conversation_id


def is_in_lineage(candidate: Candidate, asked: SearchScope) -> bool:
    return candidate.conversation_id in asked.lineage


def is_in_workspace(candidate: Candidate, _asked: SearchScope) -> bool:
    spec = spec_of(candidate.kind)
    if Scope.WORKSPACE in spec.scopes:
        return True
    is_lasting = spec.audience is Audience.KNOWLEDGE or candidate.slot == DECISION_SLOT
    return is_lasting and candidate.channel != GLOBAL_CHANNEL


def is_in_profile(candidate: Candidate, asked: SearchScope) -> bool:
    is_own = bool(asked.user_id) and candidate.user_id == asked.user_id
    return is_own and Scope.PROFILE in spec_of(candidate.kind).scopes


SCOPE_TESTS: Mapping[Scope, Callable[[Candidate, SearchScope], bool]] = {
    Scope.TURN: is_in_turn,
    Scope.SESSION: is_in_session,
    Scope.LINEAGE: is_in_lineage,
    Scope.WORKSPACE: is_in_workspace,
    Scope.PROFILE: is_in_profile,
}
"""Tests of whether a memory is in a scope."""


def check_scopes(query: Query, *, has_user: bool) -> None:
    """Raise Unprocessable if no memory could be in the scopes, alone or together with the kinds asked for."""
    needing = CONVERSATION_SCOPES & set(query.scopes)
    if needing and not query.conversation_id:
        raise Unprocessable(f"The scopes {', '.join(sorted(needing))} need a conversation: send its id.")
    if Scope.PROFILE in query.scopes and not has_user:
        raise Unprocessable("The scope profile needs a user: send its id.")
    if query.scopes and query.kinds and not any(may_contain_kinds(scope, query.kinds) for scope in query.scopes):
        raise Unprocessable("None of the scopes can hold any of the kinds: drop the scopes or the kinds.")


def may_contain_kinds(scope: Scope, kinds: Collection[Kind]) -> bool:
    """Return True if a memory of one of these kinds can be in the scope."""
    if scope in (Scope.SESSION, Scope.LINEAGE):
        return True
    further = kinds_seen_by(Audience.KNOWLEDGE) if scope is Scope.WORKSPACE else frozenset()
    return not set(kinds).isdisjoint(kinds_in(scope) | OWN_CONDITIONS.get(scope, {}).keys() | further)


def scope_order(query: Query) -> Sequence[Scope]:
    """Return the scopes to prefer, best first; none without both a conversation and scopes."""
    if query.scopes:
        return tuple(dict.fromkeys(query.scopes))
    return ORDERS[query.posture] if query.conversation_id else ()
