"""Tests for the packet that resumes work: its sections, whom it is visible to, and its statements."""

from datetime import timedelta
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import NotFound, Unprocessable
from memory.extraction.turn_slots import Action, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Memory
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation
from memory.services.profiles import ProfileChanges, write_profile
from memory.services.resume.items import PacketSection
from memory.services.resume.read import ResumeRequest
from memory.services.resume.resume import ResumePacket, conclude_resume, resume_work
from tests.memory.audits import told_reads
from tests.memory.episodes import NOW
from tests.memory.goals import aim, finish
from tests.memory.records import add_record
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


def resume_packet(owner: Owner, **asked: object) -> ResumePacket:
    return resume_work(owner, ResumeRequest(**asked), now=NOW)  # type: ignore[arg-type]


def reasoning_slots(**points: str) -> Slots:
    """Return the slots of a turn that decided, rejected, or was blocked by this."""
    rationale = Rationale(**{name: [Point(what=what)] for name, what in points.items()})
    reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale)
    return Slots(reasoning=reasoning, action=Action(text="Looked around."))


def test_the_packet_is_empty_if_nothing_is_stored(owner: Owner) -> None:
    found = resume_packet(owner)
    assert (found.text, found.tokens, found.conversation_id, found.items) == ("", 0, "", [])


def test_goals_are_trees_with_the_overdue_ones_first(owner: Owner) -> None:
    aim(owner, "Paint the fence.", deadline=NOW + timedelta(days=3))
    late = aim(owner, "Plant the roses.", deadline=NOW - timedelta(days=1))
    hole = aim(owner, "Dig a hole.", parent_id=late.id)
    aim(owner, "Water them.", parent_id=late.id, blocked_by=[hole.id])

    goals = resume_packet(owner).items_in(PacketSection.GOALS)

    assert [(goal.text, goal.details["depth"], goal.details["overdue"]) for goal in goals] == [
        ("Plant the roses.", 0, True),
        ("Dig a hole.", 1, False),
        ("Water them.", 1, False),
        ("Paint the fence.", 0, False),
    ]
    assert [each["description"] for each in goals[2].details["blocked_by"]] == ["Dig a hole."]


def test_closed_subgoals_of_open_goals_show_their_result(owner: Owner) -> None:
    roses = aim(owner, "Plant the roses.")
    hole = aim(owner, "Dig a hole.", parent_id=roses.id)
    finish(owner, hole, result="Sixty centimetres deep.")

    assert "Dig a hole. (completed, result: Sixty centimetres deep.)" in resume_packet(owner).text


def test_recorded_slots_are_shown_in_their_sections(owner: Owner) -> None:
    goal = aim(owner)
    add_record(
        owner, slots=reasoning_slots(decisions="Plant them by the wall.", rejected="Pots on the roof."), goal_id=goal.id
    )
    add_record(owner, slots=reasoning_slots(blockers="The ground is frozen."), goal_id=goal.id)
    done = Slots(action=Action(text="Dug."), outcome=Outcome(status="failed", text="The spade broke in two."))
    add_record(owner, slots=done, goal_id=goal.id)

    text = resume_packet(owner).text

    assert "[Last Outcome]\n- failed: The spade broke in two.\n[Open Ends]\n" in text
    assert "- (2026-05-04) blocked by: The ground is frozen.\n[Decisions]\n" in text
    assert "- rejected: Pots on the roof." in text
    assert "Plant them by the wall." in text


def test_turns_without_records_fill_the_sections(owner: Owner) -> None:
    stored = ("Never cut the old rose.", "We go with the red roses.", "I am waiting for the spade of Ana.")
    say(owner, *(turn(each) for each in stored))

    found = resume_packet(owner)

    assert [item.text for item in found.items_in(PacketSection.CONSTRAINTS)] == ["Never cut the old rose."]
    assert [item.text for item in found.items_in(PacketSection.EVIDENCE)] == ["We go with the red roses."]
    assert [item.text for item in found.items_in(PacketSection.OPEN_ENDS)] == ["I am waiting for the spade of Ana."]


def test_a_retracted_decision_is_left_out(owner: Owner) -> None:
    say(owner, turn("We go with red roses by the wall."), turn("Forget the red roses by the wall, tulips are cheaper."))

    text = resume_packet(owner).text

    assert "We go with red roses" not in text
    assert "tulips are cheaper" in text


def test_a_blocker_is_left_out_once_it_is_resolved(owner: Owner) -> None:
    say(owner, turn("I am waiting for the new spade.", role="assistant"), turn("The new spade was sent, and came."))
    assert resume_packet(owner).items_in(PacketSection.OPEN_ENDS) == []


def test_repeated_content_is_shown_once(owner: Owner) -> None:
    goal = aim(owner)
    say(owner, turn("We go with the red roses by the wall."), conversation_id="chat-1")
    add_record(owner, slots=reasoning_slots(decisions="Go with the red roses by the wall."), goal_id=goal.id)

    assert resume_packet(owner).text.count("red roses") == 1


def test_the_lineage_is_the_conversations_that_one_continues(owner: Owner) -> None:
    say(owner, turn("We go with the red roses."), conversation_id="first")
    create_conversation(owner, "second", defaults=ConversationDefaults(continues="first"), now=NOW)
    say(owner, turn("Something else entirely."), conversation_id="other", now=NOW + timedelta(hours=1))

    found = resume_packet(owner, conversation_id="second")

    assert (found.conversation_id, found.lineage) == ("second", ["first"])
    assert "We go with the red roses." in found.text


def test_the_latest_conversation_is_resumed_by_default(owner: Owner) -> None:
    say(owner, turn("We go with the red roses."), conversation_id="first")
    say(owner, turn("We go with the blue pump."), conversation_id="second", now=NOW + timedelta(hours=1))

    assert resume_packet(owner).conversation_id == "second"


def test_the_profile_is_among_the_constraints(owner: Owner) -> None:
    user = Owner(account_id=owner.account_id, agent_id=owner.agent_id, user_id="ana")
    write_profile(user, "ana", ProfileChanges(preferences={"watering": "in the evening"}), now=NOW)
    aim(user)

    assert "[Constraints]\n- watering: in the evening\n" in resume_packet(user).text


def test_other_agents_do_not_find_the_conversation(owner: Owner) -> None:
    other_agent = Owner(account_id=owner.account_id, agent_id="neighbour")
    say(owner, turn("We go with the red roses."))

    with pytest.raises(NotFound):
        resume_packet(other_agent, conversation_id="c1")
    assert resume_packet(other_agent).text == ""


def test_unknown_goals_are_refused(owner: Owner) -> None:
    with pytest.raises(Unprocessable):
        resume_packet(owner, goal_ids=[uuid4()])


def test_the_number_of_statements_does_not_depend_on_what_is_stored(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    goal = aim(owner)
    for number in range(3):
        say(owner, turn(f"We go with {number} roses."), turn(f"Bed {number} is done."), conversation_id="chat-1")
        add_record(owner, slots=reasoning_slots(decisions=f"Plant {number} roses."), goal_id=goal.id)
    resume_packet(owner)

    # lineage, goals, turns, slots, episodes, facts of the user (none here); orientation, candidates, links; strategies;
    # artifacts
    with django_assert_num_queries(10):
        resume_packet(owner)


def test_concluding_counts_the_reads(owner: Owner) -> None:
    stored = say(owner, turn("We go with the red roses."))
    found = resume_packet(owner)

    conclude_resume(owner, found, now=NOW)

    assert Memory.objects.get(id=stored.turns[0].id).access_count == 1


@pytest.mark.parametrize("asked", ["Which roses?", ""])
def test_the_audit_log_has_the_query_of_the_client_only(
    owner: Owner, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.conf.AUDIT_LEVEL", "verbose")
    say(owner, turn("We go with the red roses."))

    conclude_resume(owner, resume_packet(owner, query=asked), now=NOW)

    assert told_reads()[-1].query_text == asked


@pytest.mark.parametrize("role", ["system", "developer", "user"])
def test_words_of_other_roles_are_labelled(owner: Owner, role: str) -> None:
    say(owner, turn("We go with the red roses.", role=role))

    assert f"{role}: We go with the red roses." in resume_packet(owner).text
