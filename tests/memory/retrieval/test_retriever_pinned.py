"""Pinned memories: found for any question by all owners that may see them, and by no others."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory.models import Account, Kind
from memory.owner import Owner
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.retrievers.always import MAX_PINNED
from tests.memory.episodes import NOW
from tests.memory.gatherings import asked, found, gathered
from tests.memory.graphs import node

pytestmark = pytest.mark.django_db

NO_ANALYSIS = QueryAnalysis()


def pinned(owner: Owner, **fields: Any) -> set[str]:
    return found(owner, asked("anything", **fields), NO_ANALYSIS, "pinned")


def test_pinned_memories_are_found_for_any_question(owner: Owner) -> None:
    node(owner, "Never deploy on Fridays.", kind=Kind.GOAL, pinned=True)
    node(owner, "not pinned")

    assert pinned(owner) == {"Never deploy on Fridays."}


def test_at_most_five_pinned_memories_are_found_most_salient_then_newest(owner: Owner) -> None:
    for number in range(MAX_PINNED):
        node(owner, f"number {number}", pinned=True, event_time=NOW - timedelta(days=number))
    node(owner, "salient", pinned=True, salience=0.9, event_time=NOW - timedelta(days=99))

    assert pinned(owner) == {"salient", *(f"number {number}" for number in range(MAX_PINNED - 1))}


@pytest.mark.parametrize(
    "hidden",
    [
        {"agent_id": "colleague"},
        {"channel": "elsewhere"},
        {"archived": True},
        {"quarantined": True},
        {"buried": True},
        {"expires_at": NOW},
        {"kind": Kind.TURN, "conversation_id": "theirs"},
    ],
    ids=str,
)
def test_pinned_memories_hidden_from_the_owner_are_not_found(owner: Owner, hidden: dict[str, Any]) -> None:
    node(owner, "hidden", pinned=True, **hidden)

    assert pinned(owner) == set()


def test_pinned_memories_of_other_accounts_and_users_are_not_found(owner: Owner, stranger: Account) -> None:
    node(Owner(account_id=stranger.id, agent_id=owner.agent_id), "a stranger's", pinned=True)
    node(owner, "of ben", user_id="ben", pinned=True)
    node(owner, "of nobody", pinned=True)

    assert pinned(replace(owner, user_id="ana")) == {"of nobody"}


def test_filters_leave_pinned_ones_out_as_well(owner: Owner) -> None:
    kept = node(owner, "kept", pinned=True)

    assert pinned(owner, kinds=(Kind.GOAL,)) == set()
    assert pinned(owner, since=NOW + timedelta(seconds=1)) == set()
    assert pinned(owner, without=[kept.id]) == set()


def test_a_pinned_candidate_is_marked_and_names_its_retriever(owner: Owner) -> None:
    node(owner, "kept", pinned=True)

    [candidate] = gathered(owner, asked("kept"), NO_ANALYSIS, "pinned").candidates

    assert (candidate.pinned, candidate.hops) == (True, None)
    assert candidate.ways == {"pinned"}
