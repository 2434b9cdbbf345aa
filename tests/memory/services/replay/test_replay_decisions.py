"""Tests for replays of a decision in words: the turn that contains it, its outcome, and later decisions."""

from datetime import timedelta
from uuid import UUID

import pytest

from memory.errors import NotFound
from memory.models import Goal
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.replay.candidates import ReplayRequest
from memory.services.replay.replay import ReplaySlice, replay
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.reasonings import RATIONALE, allow, merge, thought

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]


def ask_decision(owner: Owner, decision: str, **asked: object) -> ReplaySlice:
    return replay(owner, ReplayRequest(decision=decision, **asked), now=NOW)  # type: ignore[arg-type]


def item_texts(found: ReplaySlice) -> list[str]:
    return [item.text for item in found.items]


@pytest.fixture
def goal(owner: Owner) -> Goal:
    return aim(owner, "Keep the boiler alive.")


def record_decision(
    owner: Owner, summary: str, goal: Goal | None = None, *, hours: int = 0, where: str = "chat-1"
) -> UUID:
    fields = {"event_time": NOW - timedelta(hours=100 - hours), "goal_id": None if goal is None else goal.id}
    return thought(owner, where, did="did it", came="it worked", fields=fields, summary=summary).id


def test_a_decision_is_replayed_with_its_action_and_outcome(owner: Owner) -> None:
    record_decision(owner, "Use the blue paint for the fence.")
    record_id = record_decision(owner, "Replace the boiler valve with brass.", hours=1)

    found = ask_decision(owner, "boiler valve brass")

    assert item_texts(found) == ["Replace the boiler valve with brass.", "did it", "it worked"]
    assert {item.record_id for item in found.items} == {record_id}
    assert found.target_id == found.items[0].memory_id
    assert found.items[0].reason.startswith("says what was decided; shares words with the question")


def test_later_decisions_for_the_same_goal_follow(owner: Owner, goal: Goal) -> None:
    record_decision(owner, "Replace the boiler valve with brass, the boiler valve is old.", goal, hours=1)
    later = record_decision(owner, "Keep the steel one in the boiler instead of brass.", goal, hours=2)
    record_decision(owner, "Sell the boiler of the other house.", hours=3)

    found = ask_decision(owner, "Replace the boiler valve with brass, the boiler valve is old")

    follows = [item for item in found.items if item.reason == "decided later for the same goal"]
    assert {item.record_id for item in follows} == {later}
    assert [item.slot for item in follows] == ["reasoning", "outcome"]


def test_an_episode_may_contain_the_decision(owner: Owner, goal: Goal) -> None:
    episode = merge(owner, goal, [record_decision(owner, "Plant.", goal)])

    found = ask_decision(owner, "plant the roses")

    assert (found.target_id, [item.kind for item in found.items]) == (episode.id, ["work_episode"])


def test_a_conversation_limits_where_a_decision_is_searched(owner: Owner) -> None:
    record_decision(owner, "Replace the boiler valve.", where="there")
    here = record_decision(owner, "Mend the boiler.", where="here")

    assert {item.record_id for item in ask_decision(owner, "boiler valve", conversation_id="here").items} == {here}


def test_an_unknown_decision_has_an_empty_replay(owner: Owner) -> None:
    thought(owner, did="boiler")

    found = ask_decision(owner, "boiler")

    assert (found.target_id, item_texts(found), found.tokens) == (None, [], 0)


@pytest.mark.parametrize("is_recorded", [True, False], ids=["with other records", "without records"])
def test_a_replay_says_that_nothing_says_the_decision(owner: Owner, *, is_recorded: bool) -> None:
    if is_recorded:
        record_decision(owner, "Use the blue paint for the fence.")

    found = ask_decision(owner, "boiler valve brass")

    assert (found.target_id, "nothing_says_it" in found.degraded) == (None, True)


def test_shared_function_words_do_not_match_a_question(owner: Owner) -> None:
    record_decision(owner, "The fence has the blue paint, which the neighbour has chosen.")

    found = ask_decision(owner, "which colour has the sofa of the tenant upstairs?")

    assert (found.target_id, item_texts(found)) == (None, [])
    assert "nothing_says_it" in found.degraded


@pytest.mark.parametrize(
    ("question", "tier", "is_hidden"),
    [
        ("was it an option to wait, or was that rejected", ReasoningTier.DECISION_SUMMARY, True),
        ("was it an option to wait, or was that rejected", ReasoningTier.STRUCTURED_RATIONALE, False),
        ("plant the roses", ReasoningTier.DECISION_SUMMARY, False),
    ],
    ids=["hidden", "allowed", "in-the-summary"],
)
def test_the_answer_says_if_a_rationale_would_answer_more(
    owner: Owner, question: str, tier: ReasoningTier, is_hidden: bool
) -> None:
    thought(owner, rationale=RATIONALE)

    assert ("deeper_tier_available" in ask_decision(owner, question, tier=tier).degraded) is is_hidden


def test_a_rationale_that_may_not_be_read_is_not_mentioned(owner: Owner) -> None:
    thought(owner, rationale=RATIONALE)
    allow(owner, "decision_summary")

    assert "deeper_tier_available" not in ask_decision(owner, "was the option to wait rejected").degraded


def test_other_agents_find_neither_decision_nor_conversation(owner: Owner) -> None:
    record_decision(owner, "Replace the boiler valve.")
    other = Owner(account_id=owner.account_id, agent_id="planner")

    assert ask_decision(other, "boiler valve").items == []
    with pytest.raises(NotFound):
        ask_decision(other, "boiler valve", conversation_id="chat-1")


def test_a_reasoning_that_may_not_be_read_any_more_is_not_replayed(owner: Owner) -> None:
    thought(owner, rationale=RATIONALE)
    allow(owner, "none")

    found = ask_decision(owner, "plant the roses")

    assert found.items == []
    assert "decision_summary_not_allowed" in found.degraded


def test_a_requested_rationale_is_returned(owner: Owner) -> None:
    thought(owner, rationale=RATIONALE)

    found = ask_decision(owner, "plant the roses", tier=ReasoningTier.STRUCTURED_RATIONALE)

    assert found.tier == ReasoningTier.STRUCTURED_RATIONALE


def test_words_find_a_decision_without_the_embedder(owner: Owner, embedding_server: EmbeddingServer) -> None:
    record_decision(owner, "Replace the boiler valve with brass.")
    embedding_server.fail()

    found = ask_decision(owner, "boiler valve")

    assert (len(found.items), found.degraded) == (3, ["embedder_unavailable"])
