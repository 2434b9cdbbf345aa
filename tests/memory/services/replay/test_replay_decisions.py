"""Replays of a decision in words: the turn that says it, what came of it, and what was decided later."""

from datetime import timedelta
from uuid import UUID

import pytest

from memory.errors import NotFound
from memory.models import Goal
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.replay.replay import ReplayRequest, Slice, replay
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.reasonings import RATIONALE, allow, merge, thought

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]


def ask(owner: Owner, decision: str, **asked: object) -> Slice:
    return replay(owner, ReplayRequest(decision=decision, **asked), now=NOW)  # type: ignore[arg-type]


def told(found: Slice) -> list[str]:
    return [piece.text for piece in found.pieces]


@pytest.fixture
def goal(owner: Owner) -> Goal:
    return aim(owner, "Keep the boiler alive.")


def decide(owner: Owner, summary: str, goal: Goal | None = None, *, hours: int = 0, where: str = "chat-1") -> UUID:
    fields = {"event_time": NOW - timedelta(hours=100 - hours), "goal_id": None if goal is None else goal.id}
    return thought(owner, where, did="did it", came="it worked", fields=fields, summary=summary).id


def test_the_turn_that_says_it_is_told_with_what_was_done_and_came_of_it(owner: Owner) -> None:
    decide(owner, "Use the blue paint for the fence.")
    record_id = decide(owner, "Replace the boiler valve with brass.", hours=1)

    found = ask(owner, "boiler valve brass")

    assert told(found) == ["Replace the boiler valve with brass.", "did it", "it worked"]
    assert {piece.record_id for piece in found.pieces} == {record_id}
    assert found.target_id == found.pieces[0].memory_id
    assert found.pieces[0].reason.startswith("says what was decided; shares words with the question")


def test_what_was_decided_later_for_the_same_goal_follows(owner: Owner, goal: Goal) -> None:
    decide(owner, "Replace the boiler valve with brass, the boiler valve is old.", goal, hours=1)
    later = decide(owner, "Keep the steel one in the boiler instead of brass.", goal, hours=2)
    decide(owner, "Sell the boiler of the other house.", hours=3)

    found = ask(owner, "Replace the boiler valve with brass, the boiler valve is old")

    follows = [piece for piece in found.pieces if piece.reason == "decided later for the same goal"]
    assert {piece.record_id for piece in follows} == {later}
    assert [piece.slot for piece in follows] == ["reasoning", "outcome"]


def test_an_episode_may_say_it(owner: Owner, goal: Goal) -> None:
    episode = merge(owner, goal, [decide(owner, "Plant.", goal)])

    found = ask(owner, "plant the roses")

    assert (found.target_id, [piece.kind for piece in found.pieces]) == (episode.id, ["work_episode"])


def test_a_conversation_narrows_where_it_is_looked_for(owner: Owner) -> None:
    decide(owner, "Replace the boiler valve.", where="there")
    here = decide(owner, "Mend the boiler.", where="here")

    assert {piece.record_id for piece in ask(owner, "boiler valve", conversation_id="here").pieces} == {here}


def test_where_nothing_says_it_nothing_is_told(owner: Owner) -> None:
    thought(owner, did="boiler")

    found = ask(owner, "boiler")

    assert (found.target_id, told(found), found.tokens) == (None, [], 0)


def test_what_shares_no_more_than_small_words_does_not_say_it(owner: Owner) -> None:
    decide(owner, "The fence has the blue paint, which the neighbour has chosen.")

    found = ask(owner, "which colour has the sofa of the tenant upstairs?")

    assert (found.target_id, told(found)) == (None, [])
    assert "nothing_says_it" in found.degraded


@pytest.mark.parametrize(
    ("question", "tier", "is_hidden"),
    [
        ("was it an option to wait, or was that rejected", ReasoningTier.DECISION_SUMMARY, True),
        ("was it an option to wait, or was that rejected", ReasoningTier.STRUCTURED_RATIONALE, False),
        ("plant the roses", ReasoningTier.DECISION_SUMMARY, False),
    ],
    ids=["hidden", "told", "in-the-summary"],
)
def test_where_a_rationale_says_more_of_it_the_answer_says_so(
    owner: Owner, question: str, tier: ReasoningTier, is_hidden: bool
) -> None:
    thought(owner, rationale=RATIONALE)

    assert ("deeper_tier_available" in ask(owner, question, tier=tier).degraded) is is_hidden


def test_what_may_not_be_told_is_not_offered(owner: Owner) -> None:
    thought(owner, rationale=RATIONALE)
    allow(owner, "decision_summary")

    assert "deeper_tier_available" not in ask(owner, "was the option to wait rejected").degraded


def test_who_takes_no_part_finds_no_decision_and_no_conversation(owner: Owner) -> None:
    decide(owner, "Replace the boiler valve.")
    other = Owner(account_id=owner.account_id, agent_id="planner")

    assert ask(other, "boiler valve").pieces == []
    with pytest.raises(NotFound):
        ask(other, "boiler valve", conversation_id="chat-1")


def test_a_reasoning_that_may_not_be_told_any_more_says_nothing(owner: Owner) -> None:
    thought(owner, rationale=RATIONALE)
    allow(owner, "none")

    found = ask(owner, "plant the roses")

    assert found.pieces == []
    assert "decision_summary_not_allowed" in found.degraded


def test_a_rationale_is_told_where_it_is_asked_for(owner: Owner) -> None:
    thought(owner, rationale=RATIONALE)

    found = ask(owner, "plant the roses", tier=ReasoningTier.STRUCTURED_RATIONALE)

    assert found.tier == ReasoningTier.STRUCTURED_RATIONALE


def test_without_the_embedder_words_find_it_and_the_answer_says_so(
    owner: Owner, embedding_server: EmbeddingServer
) -> None:
    decide(owner, "Replace the boiler valve with brass.")
    embedding_server.fail()

    found = ask(owner, "boiler valve")

    assert (len(found.pieces), found.degraded) == (3, ["embedder_unavailable"])
