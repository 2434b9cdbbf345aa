"""Scopes (E1), in the order of the agent's posture, or in that in which the client sent them (`retrieval.scopes`)."""

from collections.abc import Mapping, Sequence

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting
from memory.retrieval.queries import Scope
from memory.retrieval.scopes import MEMBERS, Place, factor_of_place, order_of

REASONS: Mapping[Scope, str] = {
    Scope.TURN: "said just now",
    Scope.SESSION: "of this conversation",
    Scope.LINEAGE: "of a conversation that this one resumes",
    Scope.WORKSPACE: "of the workspace",
    Scope.PROFILE: "known of the user",
}


def scope(candidates: Sequence[Candidate], setting: Setting) -> None:
    order = order_of(setting.query)
    if not order:
        return
    place = Place.of(setting.query, setting.orientation, user_id=setting.owner.user_id)
    for candidate in candidates:
        for number, each in enumerate(order):
            if MEMBERS[each](candidate, place):
                candidate.multiply("scope", factor_of_place(number), REASONS[each])
                break
