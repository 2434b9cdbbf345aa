"""Open subgoals and blockers of found goals, with the same isolation, ranked by the goal they belong to."""

from dataclasses import replace
from typing import Any

import pytest

from memory.models import Account, Kind, Memory
from memory.owner import Owner
from memory.retrieval.candidates import IS_BENEATH_FOUND, Candidate
from memory.retrieval.gathering import GatheredCandidates
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.ranking import Weights, fuse_standardized, rank_by_weights
from memory.retrieval.ranking.signals import parent
from memory.retrieval.ranking.table import make_table
from memory.retrieval.retrievers.around import MAX_LINKED_GOALS, SOURCES, SUBGOALS
from memory.retrieval.techniques import choose_plan
from tests.memory.candidates import asking
from tests.memory.candidates import found as candidate
from tests.memory.episodes import NOW
from tests.memory.gatherings import asked, gathered, recall_context
from tests.memory.goals import aim, finish
from tests.memory.graphs import node
from tests.memory.recalls import recall_by_words


def looked(owner: Owner, text: str = "roses", *names: str, **fields: Any) -> GatheredCandidates:
    """Gather by words and meaning, or the named retrievers, and beneath what they find."""
    query = asked(text, **fields)
    return gathered(owner, query, analyze_query(owner, query, recall_context(owner)), *(names or SOURCES), "subgoals")


def found(owner: Owner, text: str = "roses", **fields: Any) -> set[str]:
    return {each.text for each in looked(owner, text, **fields).candidates}


def ranked(*fields: dict[str, Any]) -> list[Candidate]:
    """Return goals numbered from 1 in ranked order."""
    return [candidate(number, kind=Kind.GOAL, **each) for number, each in enumerate(fields, start=1)]


@pytest.mark.django_db
def test_a_subgoal_of_a_found_goal_is_found_without_words_of_the_question(owner: Owner) -> None:
    roses = aim(owner, "Plant the roses.")
    aim(owner, "Dig a hole.", parent_id=roses.id)

    beneath = {each.text: (set(each.ways), each.part_of) for each in looked(owner).candidates}

    assert beneath == {
        "Plant the roses.": ({"lexical"}, None),
        "Dig a hole.": ({"subgoals"}, roses.id),
    }


@pytest.mark.django_db
def test_subgoals_of_vector_results_are_found_too(owner: Owner) -> None:
    roses = aim(owner, "Plant the roses.", angle=0.1)
    aim(owner, "Dig a hole.", parent_id=roses.id)

    assert found(owner, "", angle=0.0) == {"Plant the roses.", "Dig a hole."}


@pytest.mark.django_db
def test_goals_blocking_a_found_goal_are_found_but_not_goals_it_blocks(owner: Owner) -> None:
    permit = aim(owner, "Get a permit.")
    roses = aim(owner, "Plant the roses.", blocked_by=[permit.id])
    aim(owner, "Invite the neighbours.", blocked_by=[roses.id])

    assert found(owner) == {"Plant the roses.", "Get a permit."}


@pytest.mark.django_db
def test_parents_and_grandchildren_of_a_found_goal_are_not_found(owner: Owner) -> None:
    garden = aim(owner, "Lay out the garden.")
    roses = aim(owner, "Plant the roses.", parent_id=garden.id)
    hole = aim(owner, "Dig a hole.", parent_id=roses.id)
    aim(owner, "Buy a spade.", parent_id=hole.id)

    assert found(owner) == {"Plant the roses.", "Dig a hole."}


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["completed", "abandoned"])
def test_closed_subgoals_are_not_found(owner: Owner, status: str) -> None:
    roses = aim(owner, "Plant the roses.")
    finish(owner, aim(owner, "Dig a hole.", parent_id=roses.id), status=status)

    assert found(owner) == {"Plant the roses."}


@pytest.mark.django_db
def test_open_subgoals_of_a_closed_goal_are_found(owner: Owner) -> None:
    roses = aim(owner, "Plant the roses.")
    aim(owner, "Dig a hole.", parent_id=roses.id)
    finish(owner, roses)

    assert found(owner) == {"Plant the roses.", "Dig a hole."}


@pytest.mark.django_db
def test_a_subgoal_found_by_its_own_words_is_still_marked_as_a_part(owner: Owner) -> None:
    roses = aim(owner, "Plant the roses.")
    aim(owner, "Water the roses.", parent_id=roses.id)

    [water] = [each for each in looked(owner).candidates if each.text == "Water the roses."]

    assert (set(water.ways), water.part_of) == ({"lexical", "subgoals"}, roses.id)


@pytest.mark.django_db
def test_a_subgoal_of_two_found_goals_is_found_once_as_part_of_the_better(owner: Owner) -> None:
    hole = aim(owner, "Dig a hole.")
    better, _worse = (
        aim(owner, text, blocked_by=[hole.id]) for text in ("roses", "roses, tulips and many other flowers in a bed")
    )

    [beneath] = [each for each in looked(owner).candidates if each.ways == {"subgoals"}]

    assert beneath.part_of == better.id


@pytest.mark.django_db
@pytest.mark.parametrize(
    "hidden",
    [
        *({"archived": True}, {"quarantined": True}, {"buried": True}, {"expires_at": NOW}),
        *({"channel": "elsewhere"}, {"user_id": "ben"}),
    ],
    ids=str,
)
def test_invisible_subgoals_are_not_found(owner: Owner, hidden: dict[str, Any]) -> None:
    roses = aim(owner, "Plant the roses.")
    aim(owner, "Dig a hole.", parent_id=roses.id)
    seen = aim(owner, "Buy a spade.", parent_id=roses.id)
    Memory.objects.filter(text="Dig a hole.").update(**hidden)

    ana = replace(owner, user_id="ana")
    assert found(ana) == {"Plant the roses.", "Buy a spade."}
    assert found(ana, without=[seen.id]) == {"Plant the roses."}


@pytest.mark.django_db
def test_goals_of_another_account_stay_invisible(owner: Owner, stranger: Account) -> None:
    other = Owner(account_id=stranger.id, agent_id=owner.agent_id)
    aim(other, "Dig a hole.", parent_id=aim(other, "Plant the roses.").id)

    assert found(owner) == set()


@pytest.mark.django_db
def test_the_number_of_subgoals_found_for_one_goal_is_bounded(owner: Owner) -> None:
    roses = aim(owner, "Plant the roses.")
    for number in range(MAX_LINKED_GOALS + 2):
        aim(owner, f"Dig hole {number}.", parent_id=roses.id)

    assert len(found(owner)) == 1 + MAX_LINKED_GOALS


@pytest.mark.django_db
def test_the_retriever_does_not_run_without_goals_or_words(owner: Owner) -> None:
    node(owner, "roses")

    for other in (looked(owner, kinds=(Kind.FACT,)), looked(owner, "")):
        assert "subgoals" not in [metric.technique for metric in other.metrics]


@pytest.mark.django_db
def test_the_retriever_alone_finds_nothing(owner: Owner) -> None:
    aim(owner, "Dig a hole.", parent_id=aim(owner, "Plant the roses.").id)
    query = asked("roses")

    assert gathered(owner, query, analyze_query(owner, query, recall_context(owner)), "subgoals").candidates == []


def test_the_retriever_runs_unless_others_are_named_or_it_is_disabled() -> None:
    assert SUBGOALS in choose_plan().retrievers
    assert SUBGOALS not in choose_plan(["-subgoals"]).retrievers
    assert SUBGOALS not in choose_plan(["lexical"]).retrievers
    assert SUBGOALS in choose_plan(["lexical", "subgoals"]).retrievers


@pytest.mark.django_db
def test_the_reason_says_why_a_subgoal_was_found(owner: Owner) -> None:
    aim(owner, "Dig a hole.", parent_id=aim(owner, "Plant the roses.").id)

    results = recall_by_words(owner, "roses", techniques=("lexical", "subgoals")).results

    reasons = {each.text: IS_BENEATH_FOUND in each.reasons for each in results}
    assert reasons == {"Plant the roses.": False, "Dig a hole.": True}


def test_the_parent_signal_is_how_much_better_the_found_goal_matches() -> None:
    good, bad = {"bm25": 3.0, "similarity": 0.75}, {"bm25": 0.0, "similarity": 0.25}
    candidates = ranked(good, bad | {"part_of": candidate(1).id}, bad, bad | {"part_of": candidate(9).id})

    # standard scores of one value among three others: (1 - 1/4) / sqrt(3/16) and (0 - 1/4) / sqrt(3/16)
    values = parent(make_table(candidates, asking()))

    assert values.tolist() == pytest.approx([0, 2 * (3**0.5 + 3**-0.5), 0, 0])


def test_a_subgoal_that_matches_better_than_its_goal_has_no_parent_signal() -> None:
    candidates = ranked({"bm25": 0.0}, {"bm25": 3.0, "part_of": candidate(1).id})

    assert parent(make_table(candidates, asking())).tolist() == [0, 0]


def test_subgoals_of_a_found_goal_come_before_equally_distant_candidates() -> None:
    beneath = {"bm25": 0.0, "part_of": candidate(1).id}
    candidates = ranked({"bm25": 3.0}, beneath, {"bm25": 0.0})

    rank_by_weights(Weights(turns={}, others={"words": 1.0, "parent": 0.8}), candidates, asking())

    assert candidates[0].score > candidates[1].score > candidates[2].score


def test_other_fusions_ignore_the_goal_of_a_subgoal() -> None:
    candidates = ranked({"bm25": 3.0}, {"bm25": 0.0, "part_of": candidate(1).id}, {"bm25": 0.0})

    fuse_standardized(candidates, asking())

    assert candidates[1].score == candidates[2].score
