"""Scorers by links: open goals, provenance, named entities."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import LinkBetween, QueryAnalysis, ScoringContext
from memory.retrieval.scorers import SCORERS
from tests.memory.candidates import asking, found, goals, link


def scored(name: str, context: ScoringContext, *candidates: Candidate) -> dict[int, float]:
    """Return the factor of each candidate, by its number."""
    SCORERS[name](candidates, context)
    return {each.id.int: each.signals.get(name, 1.0) for each in candidates}


def at_work(*links: LinkBetween, conversation_id: str = "") -> ScoringContext:
    """Return a context with the open goals 1 and 2; 1 is the more urgent one."""
    return replace(asking(*links, conversation_id=conversation_id), analysis=QueryAnalysis(goals=goals(1, 2)))


@pytest.mark.parametrize(
    ("links", "factor", "reason"),
    [
        pytest.param([link(9, "SUBGOAL_OF", 1)], 1.225, "part of an open goal", id="part of the most urgent"),
        pytest.param([link(9, "SUBGOAL_OF", 2)], 1.2025, "part of an open goal", id="part of the next"),
        pytest.param([link(9, "ABOUT", 1)], 1.15, "linked to an open goal", id="linked to the most urgent"),
        pytest.param([link(1, "BLOCKED_BY", 9)], 1.15, "linked to an open goal", id="linked from the most urgent"),
        pytest.param([link(9, "ABOUT", 2)], 1.135, "linked to an open goal", id="linked to the next"),
        pytest.param([link(9, "ABOUT", 2), link(9, "ABOUT", 1)], 1.15, "linked to an open goal", id="to both"),
        pytest.param([link(9, "ABOUT", 1), link(9, "SUBGOAL_OF", 2)], 1.2025, "part of an open goal", id="the nearer"),
    ],
)
def test_candidates_linked_to_open_goals_are_boosted(links: list[LinkBetween], factor: float, reason: str) -> None:
    candidate = found(9)

    assert scored("active_work", at_work(*links), candidate) == {9: pytest.approx(factor)}
    assert candidate.reasons == [reason]


def test_open_goals_are_boosted_the_most_urgent_the_most() -> None:
    found_goals = [found(number, kind=Kind.GOAL) for number in (1, 2, 3)]

    assert scored("active_work", at_work(link(3, "ABOUT", 4)), *found_goals) == {1: 1.3, 2: pytest.approx(1.27), 3: 1.0}


@pytest.mark.parametrize(
    "here",
    [
        pytest.param(found(2, kind=Kind.GOAL, conversation_id="c1"), id="of the conversation"),
        pytest.param(found(7, conversation_id="c1"), id="linked to a turn of the conversation"),
    ],
)
def test_a_goal_of_the_active_conversation_counts_as_the_most_urgent(here: Candidate) -> None:
    links = [link(7, "ABOUT", 2), link(9, "ABOUT", 2)]

    factors = scored("active_work", at_work(*links, conversation_id="c1"), here, found(9, conversation_id="c2"))

    assert factors[9] == pytest.approx(1.15)


def test_without_open_goals_no_candidate_is_boosted() -> None:
    assert scored("active_work", asking(link(1, "SUBGOAL_OF", 2)), found(1), found(2)) == {1: 1.0, 2: 1.0}


@pytest.mark.parametrize(
    ("fields", "factor"),
    [
        pytest.param({}, 1.0, id="nothing known"),
        pytest.param({"trust": 0.0}, 0.65, id="not trusted"),
        pytest.param({"confidence": 0.5}, 0.9, id="half believed"),
        pytest.param({"confidence": 1.0}, 1.0, id="fully believed"),
        pytest.param({"source": "staff"}, 1.05, id="written by staff"),
        pytest.param({"pinned": True}, 1.2, id="pinned"),
        pytest.param({"trust": 0.5, "confidence": 0.5, "pinned": True}, 0.825 * 0.9 * 1.2, id="several"),
    ],
)
def test_provenance_combines_trust_confidence_source_and_pinning(fields: dict[str, Any], factor: float) -> None:
    assert scored("provenance", asking(), found(1, **fields)) == {1: pytest.approx(factor)}


def test_a_turn_supports_a_fact_derived_from_it_but_not_the_reverse() -> None:
    fact, said = found(1, kind=Kind.FACT), found(2)

    assert scored("provenance", asking(link(1, "DERIVED_FROM", 2)), fact, said) == {1: pytest.approx(1.05), 2: 1.0}
    assert (fact.reasons, said.reasons) == (["what was said supports it"], [])


@pytest.mark.parametrize(
    ("fields", "links", "factor", "reasons"),
    [
        pytest.param({}, [], 1.0, [], id="not linked"),
        pytest.param({"hops": 0}, [], 1.3, ["named in the question"], id="named, as a walk found"),
        pytest.param({"hops": 1}, [], 1.15, ["linked to what the question names"], id="a link away"),
        pytest.param({"hops": 3}, [], 1.0375, ["linked to what the question names"], id="three links away"),
        pytest.param({}, [link(9, "ABOUT", 5)], 1.15, ["linked to what the question names"], id="linked to it"),
        pytest.param({}, [link(5, "MENTIONS", 9)], 1.15, ["linked to what the question names"], id="linked from it"),
        pytest.param({"hops": 2}, [link(9, "ABOUT", 5)], 1.15, ["linked to what the question names"], id="the shorter"),
        pytest.param({}, [link(9, "ABOUT", 6)], 1.075, ["linked to what is known of the user"], id="to the user's own"),
        pytest.param(
            {}, [link(9, "ABOUT", 6), link(9, "ABOUT", 5)], 1.15, ["linked to what the question names"], id="both"
        ),
        pytest.param({}, [link(9, "ABOUT", 7)], 1.0, [], id="to something else"),
    ],
)
def test_links_to_named_entities_count_by_their_number(
    fields: dict[str, Any], links: list[LinkBetween], factor: float, reasons: list[str]
) -> None:
    owner = Owner(account_id=UUID(int=1), user_id="ana")
    context = replace(asking(*links), owner=owner, analysis=QueryAnalysis(entities=[UUID(int=5)]))
    candidate, own = found(9, **fields), found(6, kind=Kind.FACT, user_id="ana")

    assert scored("relationship", context, candidate, own)[9] == pytest.approx(factor)
    assert candidate.reasons == reasons


def test_an_entity_named_in_the_question_is_boosted() -> None:
    entity = found(5, kind=Kind.ENTITY)
    context = replace(asking(), analysis=QueryAnalysis(entities=[UUID(int=5)]))

    assert scored("relationship", context, entity) == {5: 1.3}
    assert entity.reasons == ["named in the question"]
