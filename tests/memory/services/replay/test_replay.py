"""Replay: the smallest slice of what was done that answers, within a budget, each piece with why it is there."""

from datetime import timedelta
from uuid import UUID

import pytest
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.errors import NotFound, Unprocessable
from memory.models import Goal, Memory, TurnSlot
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval.queries import Posture
from memory.services.replay.replay import ReplayRequest, Slice, conclude_replay, replay
from memory_project.ids import uuid7
from tests.memory.audits import told_read
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.reasonings import RATIONALE, merge, thought

pytestmark = pytest.mark.django_db

RATIONALE_TIER = ReasoningTier.STRUCTURED_RATIONALE


def ask(owner: Owner, **asked: object) -> Slice:
    return replay(owner, ReplayRequest(**asked), now=NOW)  # type: ignore[arg-type]


def told(found: Slice) -> list[str]:
    return [piece.text for piece in found.pieces]


@pytest.fixture
def goal(owner: Owner) -> Goal:
    return aim(owner, "Have a garden.")


def work(owner: Owner, goal: Goal, number: int, **reasoning: object) -> UUID:
    """The turn of that number, an hour after the one before."""
    fields = {"goal_id": goal.id, "event_time": NOW - timedelta(hours=100 - number)}
    return thought(owner, did=f"did {number}", came=f"came {number}", fields=fields, **reasoning).id  # type: ignore[arg-type]


def test_of_a_goal_outcomes_and_why_are_told_in_order_of_time(owner: Owner, goal: Goal) -> None:
    work(owner, goal, 1, summary="why 1")
    work(owner, goal, 2, rationale=RATIONALE)

    found = ask(owner, goal_id=goal.id)

    line = "Decided: plant the roses (because it is spring)"
    assert told(found) == ["why 1", "came 1", line, "came 2"]
    assert [piece.slot for piece in found.pieces] == ["reasoning", "outcome", "reasoning", "outcome"]
    assert (found.tier, found.allowed, found.degraded) == ("decision_summary", "structured_rationale", [])


def test_each_piece_says_why_it_is_there_and_where_it_comes_from(owner: Owner, goal: Goal) -> None:
    record_id = work(owner, goal, 1, summary="why 1")

    why, outcome = ask(owner, goal_id=goal.id).pieces

    assert (why.provenance, why.tier, outcome.provenance, outcome.tier) == (
        "runtime_projection", "decision_summary", "", "",
    )  # fmt: skip
    assert (why.reason, outcome.reason) == ("why the turn went this way", "where the goal stands: its latest turn")
    assert {why.record_id, outcome.record_id} == {record_id}
    assert (why.kind, why.level, why.episode_id) == ("turn_slot", 0, None)


def test_the_newest_state_goes_into_the_budget_first(owner: Owner, goal: Goal) -> None:
    for number in range(40):
        work(owner, goal, number, summary=f"why {number}")

    found = ask(owner, goal_id=goal.id, max_tokens=50)

    assert told(found)[-2:] == ["why 39", "came 39"]
    assert found.tokens <= 50
    assert found.left_out + len(found.pieces) == 80


def test_rationales_are_told_when_they_are_asked_for_in_place_of_their_summaries(owner: Owner, goal: Goal) -> None:
    work(owner, goal, 1, rationale=RATIONALE, summary="why 1")

    (why, _) = ask(owner, goal_id=goal.id, tier=RATIONALE_TIER).pieces

    assert why.text.splitlines() == [
        "why 1", "Decided: plant the roses (because it is spring)", "Rejected: wait (because it may freeze)",
    ]  # fmt: skip
    assert (why.tier, why.reason) == (RATIONALE_TIER, "what was decided, rejected and in the way: asked for")


def test_where_a_rationale_has_no_room_its_summary_is_told(owner: Owner, goal: Goal) -> None:
    work(owner, goal, 1, rationale=RATIONALE, summary="word " * 30)

    found = ask(owner, goal_id=goal.id, tier=RATIONALE_TIER, max_tokens=50)

    assert (found.tier, found.left_out) == ("decision_summary", 1)


def test_without_an_outcome_yet_what_was_done_is_the_state(owner: Owner, goal: Goal) -> None:
    record_id = work(owner, goal, 1)
    TurnSlot.objects.filter(record=record_id, slot="outcome").delete()

    assert told(ask(owner, goal_id=goal.id)) == ["did 1"]


def test_a_record_is_told_whole_and_then_what_led_to_it(owner: Owner, goal: Goal) -> None:
    first = work(owner, goal, 1, summary="why 1")
    second = work(owner, goal, 2, summary="why 2")
    work(owner, goal, 3)

    found = ask(owner, record_id=second)

    assert told(found) == ["why 1", "did 1", "came 1", "The bed is empty.", "why 2", "did 2", "came 2"]
    assert [piece.reason for piece in found.pieces if piece.record_id == first] == [
        "in the chain of the goal's turns that led there"
    ] * 3


def test_the_record_itself_comes_before_what_led_to_it(owner: Owner, goal: Goal) -> None:
    work(owner, goal, 1, summary="word " * 40)
    second = work(owner, goal, 2, summary="word " * 40)

    found = ask(owner, record_id=second, max_tokens=60)

    assert [piece.record_id for piece in found.pieces if piece.slot == "reasoning"] == [second]
    assert found.left_out > 0


def test_what_was_merged_is_told_by_its_episode(owner: Owner, goal: Goal) -> None:
    merged = work(owner, goal, 1, rationale=RATIONALE)
    episode = merge(owner, goal, [merged])
    work(owner, goal, 2)

    found = ask(owner, goal_id=goal.id)

    assert told(found) == ["Goal: Have a garden.\nDecided: plant the roses\nOutcome: it grows", "came 2"]
    assert (found.pieces[0].episode_id, found.pieces[0].level) == (episode.id, 2)
    assert "Rejected: wait" in told(ask(owner, goal_id=goal.id, tier=RATIONALE_TIER))[0]
    assert told(ask(owner, record_id=merged)) == told(found)[:1]


@pytest.mark.parametrize("target", ["goal_id", "record_id", "episode_id"])
def test_what_an_episode_stands_for_follows_in_the_postures_that_justify_it(
    owner: Owner, goal: Goal, target: str
) -> None:
    merged = work(owner, goal, 1, summary="why 1")
    episode = merge(owner, goal, [merged])
    asked = {target: {"goal_id": goal.id, "record_id": merged, "episode_id": episode.id}[target]}

    assert [piece.kind for piece in ask(owner, **asked).pieces] == ["work_episode"]
    for posture in (Posture.RECOVERY, Posture.AUDIT):
        kinds = [(piece.kind, piece.slot) for piece in ask(owner, **asked, posture=posture).pieces]
        assert sorted(kinds)[:4] == [("turn_slot", slot) for slot in ("action", "observation", "outcome", "reasoning")]
        assert kinds[-1] == ("work_episode", "")


def test_an_episode_that_was_archived_since_is_still_told_when_it_is_named(owner: Owner, goal: Goal) -> None:
    episode = merge(owner, goal, [work(owner, goal, 1)])
    Memory.objects.filter(id=episode.id).update(archived=True)

    assert len(ask(owner, episode_id=episode.id).pieces) == 1
    assert ask(owner, goal_id=goal.id).pieces == []


@pytest.mark.parametrize("posture", ["resume", "audit"])
def test_what_is_quarantined_is_not_told(owner: Owner, goal: Goal, posture: str) -> None:
    merged, fresh = work(owner, goal, 1), work(owner, goal, 2)
    episode = merge(owner, goal, [merged])
    Memory.objects.filter(id=episode.id).update(quarantined=True)
    Memory.objects.filter(turnslot__slot="outcome").update(quarantined=True)

    assert "outcome" not in {piece.slot for piece in ask(owner, record_id=fresh, posture=Posture(posture)).pieces}
    with pytest.raises(NotFound):
        ask(owner, episode_id=episode.id)


@pytest.mark.parametrize("target", ["goal_id", "record_id", "episode_id"])
def test_who_takes_no_part_is_told_that_there_is_nothing(owner: Owner, goal: Goal, target: str) -> None:
    merged = work(owner, goal, 1)
    episode = merge(owner, goal, [merged])
    named = {"goal_id": goal.id, "record_id": merged, "episode_id": episode.id}[target]
    other = Owner(account_id=owner.account_id, agent_id="planner")

    for asker, each in ((other, named), (owner, uuid7())):
        with pytest.raises(NotFound):
            ask(asker, **{target: each})


def test_of_a_users_goal_an_agent_is_told_its_own_conversations_alone(owner: Owner) -> None:
    planner = Owner(account_id=owner.account_id, agent_id="planner", user_id="ana")
    assistant = Owner(account_id=owner.account_id, agent_id="assistant", user_id="ana")
    goal = aim(planner)
    thought(planner, "theirs", came="secret", fields={"goal_id": goal.id})
    thought(assistant, "ours", came="ours", fields={"goal_id": goal.id})

    assert told(ask(assistant, goal_id=goal.id)) == ["ours"]


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"goal_id": UUID(int=1), "decision": "x"},
        {"decision": " "},
        {"decision": "x" * 10_001},
        {"record_id": UUID(int=1), "conversation_id": "chat-1"},
        {"record_id": UUID(int=1), "max_tokens": 49},
        {"record_id": UUID(int=1), "max_tokens": 20_001},
    ],
    ids=["nothing", "two", "blank", "too long", "a conversation for a record", "too few", "too many"],
)
def test_a_request_that_is_none_is_refused(owner: Owner, asked: dict[str, object]) -> None:
    with pytest.raises(Unprocessable):
        ask(owner, **asked)


def test_statements_are_as_many_however_much_was_done(
    owner: Owner, goal: Goal, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        work(owner, goal, number, summary=f"why {number}")
        with django_assert_num_queries(5):
            ask(owner, goal_id=goal.id, posture=Posture.AUDIT)


def test_a_replay_counts_as_a_read_of_what_is_told(
    owner: Owner, goal: Goal, empty_redis: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")
    work(owner, goal, 1, summary="why 1")
    found = ask(owner, goal_id=goal.id)

    conclude_replay(owner, found, now=NOW)

    ids = {piece.memory_id for piece in found.pieces}
    assert set(Memory.objects.filter(access_count=1).values_list("id", flat=True)) == ids
    entry = told_read()
    assert (set(entry.affected_ids), entry.result_count) == ({str(each) for each in ids}, 2)
