"""Tests for replay: the smallest slice that answers, within a budget, each item with its reason."""

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
from memory.services.replay.candidates import ReplayRequest
from memory.services.replay.replay import ReplaySlice, conclude_replay, replay
from memory_project.ids import uuid7
from tests.memory.audits import written_read
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.reasonings import RATIONALE, merge, thought

pytestmark = pytest.mark.django_db

RATIONALE_TIER = ReasoningTier.STRUCTURED_RATIONALE


def ask_replay(owner: Owner, **asked: object) -> ReplaySlice:
    return replay(owner, ReplayRequest(**asked), now=NOW)  # type: ignore[arg-type]


def item_texts(found: ReplaySlice) -> list[str]:
    return [item.text for item in found.items]


@pytest.fixture
def goal(owner: Owner) -> Goal:
    return aim(owner, "Have a garden.")


def record_turn(owner: Owner, goal: Goal, number: int, **reasoning: object) -> UUID:
    """Record the turn of that number, an hour after the one before."""
    fields = {"goal_id": goal.id, "event_time": NOW - timedelta(hours=100 - number)}
    return thought(owner, did=f"did {number}", came=f"came {number}", fields=fields, **reasoning).id  # type: ignore[arg-type]


def test_a_goal_is_replayed_as_outcomes_and_reasons_in_order_of_time(owner: Owner, goal: Goal) -> None:
    record_turn(owner, goal, 1, summary="why 1")
    record_turn(owner, goal, 2, rationale=RATIONALE)

    found = ask_replay(owner, goal_id=goal.id)

    line = "Decided: plant the roses (because it is spring)"
    assert item_texts(found) == ["why 1", "came 1", line, "came 2"]
    assert [item.slot for item in found.items] == ["reasoning", "outcome", "reasoning", "outcome"]
    assert (found.tier, found.allowed, found.degraded) == ("decision_summary", "structured_rationale", [])


def test_each_item_has_its_reason_and_provenance(owner: Owner, goal: Goal) -> None:
    record_id = record_turn(owner, goal, 1, summary="why 1")

    why, outcome = ask_replay(owner, goal_id=goal.id).items

    assert (why.provenance, why.tier, outcome.provenance, outcome.tier) == (
        "runtime_projection", "decision_summary", "", "",
    )  # fmt: skip
    assert (why.reason, outcome.reason) == ("why the turn went this way", "where the goal stands: its latest turn")
    assert {why.record_id, outcome.record_id} == {record_id}
    assert (why.kind, why.level, why.episode_id) == ("turn_slot", 0, None)


def test_the_newest_state_goes_into_the_budget_first(owner: Owner, goal: Goal) -> None:
    for number in range(40):
        record_turn(owner, goal, number, summary=f"why {number}")

    found = ask_replay(owner, goal_id=goal.id, max_tokens=50)

    assert item_texts(found)[-2:] == ["why 39", "came 39"]
    assert found.tokens <= 50
    assert found.left_out + len(found.items) == 80


def test_requested_rationales_replace_their_summaries(owner: Owner, goal: Goal) -> None:
    record_turn(owner, goal, 1, rationale=RATIONALE, summary="why 1")

    (why, _) = ask_replay(owner, goal_id=goal.id, tier=RATIONALE_TIER).items

    assert why.text.splitlines() == [
        "why 1", "Decided: plant the roses (because it is spring)", "Rejected: wait (because it may freeze)",
    ]  # fmt: skip
    assert (why.tier, why.reason) == (RATIONALE_TIER, "what was decided, rejected and in the way: asked for")


def test_the_summary_is_returned_if_the_rationale_has_no_room(owner: Owner, goal: Goal) -> None:
    record_turn(owner, goal, 1, rationale=RATIONALE, summary="word " * 30)

    found = ask_replay(owner, goal_id=goal.id, tier=RATIONALE_TIER, max_tokens=50)

    assert (found.tier, found.left_out) == ("decision_summary", 1)


def test_the_action_is_the_state_of_a_turn_without_an_outcome(owner: Owner, goal: Goal) -> None:
    record_id = record_turn(owner, goal, 1)
    TurnSlot.objects.filter(record=record_id, slot="outcome").delete()

    assert item_texts(ask_replay(owner, goal_id=goal.id)) == ["did 1"]


def test_a_replayed_record_includes_the_earlier_records_of_its_goal(owner: Owner, goal: Goal) -> None:
    first = record_turn(owner, goal, 1, summary="why 1")
    second = record_turn(owner, goal, 2, summary="why 2")
    record_turn(owner, goal, 3)

    found = ask_replay(owner, record_id=second)

    assert item_texts(found) == ["why 1", "did 1", "came 1", "The bed is empty.", "why 2", "did 2", "came 2"]
    assert [item.reason for item in found.items if item.record_id == first] == [
        "in the chain of the goal's turns that led there"
    ] * 3


def test_the_record_itself_takes_precedence_over_earlier_records(owner: Owner, goal: Goal) -> None:
    record_turn(owner, goal, 1, summary="word " * 40)
    second = record_turn(owner, goal, 2, summary="word " * 40)

    found = ask_replay(owner, record_id=second, max_tokens=60)

    assert [item.record_id for item in found.items if item.slot == "reasoning"] == [second]
    assert found.left_out > 0


def test_merged_turns_are_replayed_as_their_episode(owner: Owner, goal: Goal) -> None:
    merged = record_turn(owner, goal, 1, rationale=RATIONALE)
    episode = merge(owner, goal, [merged])
    record_turn(owner, goal, 2)

    found = ask_replay(owner, goal_id=goal.id)

    assert item_texts(found) == ["Goal: Have a garden.\nDecided: plant the roses\nOutcome: it grows", "came 2"]
    assert (found.items[0].episode_id, found.items[0].level) == (episode.id, 2)
    assert "Rejected: wait" in item_texts(ask_replay(owner, goal_id=goal.id, tier=RATIONALE_TIER))[0]
    assert item_texts(ask_replay(owner, record_id=merged)) == item_texts(found)[:1]


@pytest.mark.parametrize("target", ["goal_id", "record_id", "episode_id"])
def test_merged_turns_follow_their_episode_in_the_postures_that_justify_it(
    owner: Owner, goal: Goal, target: str
) -> None:
    merged = record_turn(owner, goal, 1, summary="why 1")
    episode = merge(owner, goal, [merged])
    asked = {target: {"goal_id": goal.id, "record_id": merged, "episode_id": episode.id}[target]}

    assert [item.kind for item in ask_replay(owner, **asked).items] == ["work_episode"]
    for posture in (Posture.RECOVERY, Posture.AUDIT):
        kinds = [(item.kind, item.slot) for item in ask_replay(owner, **asked, posture=posture).items]
        assert sorted(kinds)[:4] == [("turn_slot", slot) for slot in ("action", "observation", "outcome", "reasoning")]
        assert kinds[-1] == ("work_episode", "")


def test_an_archived_episode_is_replayed_by_its_id_only(owner: Owner, goal: Goal) -> None:
    episode = merge(owner, goal, [record_turn(owner, goal, 1)])
    Memory.objects.filter(id=episode.id).update(archived=True)

    assert len(ask_replay(owner, episode_id=episode.id).items) == 1
    assert ask_replay(owner, goal_id=goal.id).items == []


@pytest.mark.parametrize("posture", ["resume", "audit"])
def test_quarantined_memories_are_not_replayed(owner: Owner, goal: Goal, posture: str) -> None:
    merged, fresh = record_turn(owner, goal, 1), record_turn(owner, goal, 2)
    episode = merge(owner, goal, [merged])
    Memory.objects.filter(id=episode.id).update(quarantined=True)
    TurnSlot.objects.filter(slot="outcome").update(quarantined=True)

    assert "outcome" not in {item.slot for item in ask_replay(owner, record_id=fresh, posture=Posture(posture)).items}
    with pytest.raises(NotFound):
        ask_replay(owner, episode_id=episode.id)


@pytest.mark.parametrize("target", ["goal_id", "record_id", "episode_id"])
def test_other_agents_and_unknown_ids_are_not_found(owner: Owner, goal: Goal, target: str) -> None:
    merged = record_turn(owner, goal, 1)
    episode = merge(owner, goal, [merged])
    named = {"goal_id": goal.id, "record_id": merged, "episode_id": episode.id}[target]
    other = Owner(account_id=owner.account_id, agent_id="planner")

    for asker, each in ((other, named), (owner, uuid7())):
        with pytest.raises(NotFound):
            ask_replay(asker, **{target: each})


def test_a_users_goal_is_replayed_from_the_agents_own_conversations_only(owner: Owner) -> None:
    planner = Owner(account_id=owner.account_id, agent_id="planner", user_id="ana")
    assistant = Owner(account_id=owner.account_id, agent_id="assistant", user_id="ana")
    goal = aim(planner)
    thought(planner, "theirs", came="secret", fields={"goal_id": goal.id})
    thought(assistant, "ours", came="ours", fields={"goal_id": goal.id})

    assert item_texts(ask_replay(assistant, goal_id=goal.id)) == ["ours"]


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
def test_an_invalid_request_is_refused(owner: Owner, asked: dict[str, object]) -> None:
    with pytest.raises(Unprocessable):
        ask_replay(owner, **asked)


def test_the_number_of_statements_does_not_depend_on_how_much_was_done(
    owner: Owner, goal: Goal, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(12):
        record_turn(owner, goal, number, summary=f"why {number}")
        with django_assert_num_queries(5):
            ask_replay(owner, goal_id=goal.id, posture=Posture.AUDIT)


def test_a_replay_counts_as_a_read_of_its_items(
    owner: Owner, goal: Goal, empty_redis: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")
    record_turn(owner, goal, 1, summary="why 1")
    found = ask_replay(owner, goal_id=goal.id)

    conclude_replay(owner, found, now=NOW)

    ids = {item.memory_id for item in found.items}
    assert set(Memory.objects.filter(access_count=1).values_list("id", flat=True)) == ids
    entry = written_read()
    assert (set(entry.affected_ids), entry.result_count) == ({str(each) for each in ids}, 2)
