"""Tests for the goals of a packet: which are shown, and in which order."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.owner import Owner
from memory.services.resume.items import PacketSection
from memory.services.resume.resume import ResumePacket, ResumeRequest, default_query, read_stored_work, resume_work
from tests.memory.episodes import NOW
from tests.memory.goals import aim, finish
from tests.memory.records import add_record
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]

LONG = "with all the papers that the city wants for it, in three copies, signed by both owners and by the neighbour"


@pytest.fixture
def user(owner: Owner) -> Owner:
    return replace(owner, user_id="ana")


def add_goals_of_others(owner: Owner, *, many: int) -> None:
    """Add goals of the account for no user in particular, all of them due soon."""
    whole = replace(owner, agent_id="", user_id="")
    for number in range(many):
        aim(whole, f"Chase supplier {number}.", deadline=NOW + timedelta(days=1), priority=9)


def goal_lines(found: ResumePacket) -> list[tuple[str, int]]:
    return [(item.text, item.details["depth"]) for item in found.items_in(PacketSection.GOALS)]


def test_own_goals_come_before_goals_of_the_account(user: Owner) -> None:
    root = aim(user, "Open the shop.")
    aim(user, "Paint the door.", parent_id=root.id)
    add_goals_of_others(user, many=12)

    goals = goal_lines(resume_work(user, ResumeRequest(), now=NOW))

    assert goals[:2] == [("Open the shop.", 0), ("Paint the door.", 1)]
    assert len(goals) == 5


def test_the_default_query_names_own_goals_only(user: Owner) -> None:
    aim(user, "Open the shop.")
    add_goals_of_others(user, many=6)

    assert default_query(read_stored_work(user, ResumeRequest(), now=NOW)) == "Open the shop."


def test_goals_worked_on_count_as_own_goals(user: Owner) -> None:
    planner = replace(user, agent_id="", user_id="")
    root = aim(planner, "Run the festival.")
    stage = aim(planner, "Build the stage.", parent_id=root.id)
    add_goals_of_others(user, many=12)
    add_record(user, goal_id=stage.id)

    goals = goal_lines(resume_work(user, ResumeRequest(conversation_id="chat-1"), now=NOW))

    assert goals[:2] == [("Run the festival.", 0), ("Build the stage.", 1)]


def test_a_subgoal_is_never_shown_without_its_parent(user: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.retrieval.resume.MAX_GOALS", 3)
    root = aim(user, "Open the shop.")
    for number in range(4):
        aim(user, f"Hang shelf {number}.", parent_id=root.id, deadline=NOW + timedelta(days=number + 1))

    assert goal_lines(resume_work(user, ResumeRequest(), now=NOW)) == [
        ("Open the shop.", 0),
        *((f"Hang shelf {number}.", 1) for number in range(3)),
    ]


def test_an_open_goal_is_nested_below_an_open_ancestor_despite_a_closed_parent(owner: Owner) -> None:
    root = aim(owner, "Open the shop.", priority=0)
    between = aim(owner, "Paint the rooms.", parent_id=root.id)
    finish(owner, between)
    aim(owner, "Paint the hall again.", parent_id=between.id, deadline=NOW - timedelta(days=1))

    depths = [depth for _text, depth in goal_lines(resume_work(owner, ResumeRequest(), now=NOW))]

    assert depths == [0, 1, 2]


def test_overdue_goals_come_before_goals_worked_on(owner: Owner) -> None:
    window = aim(owner, "Clean the window.")
    say(owner, turn("Go on."), conversation_id="chat-1")
    add_record(owner, goal_id=window.id)
    aim(owner, "Pay the bill.", deadline=NOW - timedelta(days=5))
    shop = aim(owner, "Open the shop.", deadline=NOW + timedelta(days=30))
    aim(owner, "File the report.", parent_id=shop.id, deadline=NOW - timedelta(days=2))

    goals = goal_lines(resume_work(owner, ResumeRequest(conversation_id="chat-1"), now=NOW))

    assert goals == [("Pay the bill.", 0), ("Open the shop.", 0), ("File the report.", 1), ("Clean the window.", 0)]


@pytest.mark.parametrize("max_tokens", [200, 250, 300])
def test_the_most_pressing_goal_is_shown_if_there_is_little_room(owner: Owner, max_tokens: int) -> None:
    shop = aim(owner, f"Open the shop {LONG}.", deadline=NOW + timedelta(days=30))
    aim(owner, f"File the report {LONG}.", parent_id=shop.id, deadline=NOW - timedelta(days=2))
    for number in range(20):
        aim(owner, f"Hang shelf {number}.", priority=9)
        say(owner, turn(f"We go with {number} roses."), conversation_id="chat-1")

    goals = goal_lines(resume_work(owner, ResumeRequest(max_tokens=max_tokens), now=NOW))

    assert [depth for _text, depth in goals[:2]] == [0, 1]
    assert "File the report" in goals[1][0]
