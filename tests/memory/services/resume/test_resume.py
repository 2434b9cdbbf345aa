"""The packet that resumes work: what it tells, of whom, and what it costs."""

from datetime import timedelta
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import NotFound, Unprocessable
from memory.extraction.turn_slots import Action, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Memory
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.conversations.lifecycle import Opening, create_conversation
from memory.services.profiles import ProfileChanges, write_profile
from memory.services.resume.pieces import Section
from memory.services.resume.resume import ResumePacket, ResumeRequest, conclude_resume, resume_work
from tests.memory.audits import told_reads
from tests.memory.episodes import NOW
from tests.memory.goals import aim, finish
from tests.memory.records import put_record
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


def packet(owner: Owner, **asked: object) -> ResumePacket:
    return resume_work(owner, ResumeRequest(**asked), now=NOW)  # type: ignore[arg-type]


def reasoned(**points: str) -> Slots:
    """A turn that decided, rejected, or was blocked by this."""
    rationale = Rationale(**{name: [Point(what=what)] for name, what in points.items()})
    reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale)
    return Slots(reasoning=reasoning, action=Action(text="Looked around."))


def test_without_anything_there_is_an_empty_packet(owner: Owner) -> None:
    found = packet(owner)
    assert (found.text, found.tokens, found.conversation_id, found.pieces) == ("", 0, "", [])


def test_goals_come_as_a_tree_the_overdue_first(owner: Owner) -> None:
    aim(owner, "Paint the fence.", deadline=NOW + timedelta(days=3))
    late = aim(owner, "Plant the roses.", deadline=NOW - timedelta(days=1))
    hole = aim(owner, "Dig a hole.", parent_id=late.id)
    aim(owner, "Water them.", parent_id=late.id, blocked_by=[hole.id])

    goals = packet(owner).of(Section.GOALS)

    assert [(goal.text, goal.facts["depth"], goal.facts["overdue"]) for goal in goals] == [
        ("Plant the roses.", 0, True),
        ("Dig a hole.", 1, False),
        ("Water them.", 1, False),
        ("Paint the fence.", 0, False),
    ]
    assert [each["description"] for each in goals[2].facts["blocked_by"]] == ["Dig a hole."]


def test_closed_parts_of_open_goals_say_what_came_of_them(owner: Owner) -> None:
    roses = aim(owner, "Plant the roses.")
    hole = aim(owner, "Dig a hole.", parent_id=roses.id)
    finish(owner, hole, result="Sixty centimetres deep.")

    assert "Dig a hole. (completed, result: Sixty centimetres deep.)" in packet(owner).text


def test_what_was_recorded_stands_in_its_sections(owner: Owner) -> None:
    goal = aim(owner)
    put_record(
        owner, slots=reasoned(decisions="Plant them by the wall.", rejected="Pots on the roof."), goal_id=goal.id
    )
    put_record(owner, slots=reasoned(blockers="The ground is frozen."), goal_id=goal.id)
    done = Slots(action=Action(text="Dug."), outcome=Outcome(status="failed", text="The spade broke in two."))
    put_record(owner, slots=done, goal_id=goal.id)

    text = packet(owner).text

    assert "[Last Outcome]\n- failed: The spade broke in two.\n[Open Ends]\n" in text
    assert "- (2026-05-04) blocked by: The ground is frozen.\n[Decisions]\n" in text
    assert "- rejected: Pots on the roof." in text
    assert "Plant them by the wall." in text


def test_turns_alone_carry_what_was_said(owner: Owner) -> None:
    said = ("Never cut the old rose.", "We go with the red roses.", "I am waiting for the spade of Ana.")
    say(owner, *(turn(each) for each in said))

    found = packet(owner)

    assert [piece.text for piece in found.of(Section.CONSTRAINTS)] == ["Never cut the old rose."]
    assert [piece.text for piece in found.of(Section.EVIDENCE)] == ["We go with the red roses."]
    assert [piece.text for piece in found.of(Section.OPEN_ENDS)] == ["I am waiting for the spade of Ana."]


def test_a_decision_that_was_taken_back_is_left_out(owner: Owner) -> None:
    say(owner, turn("We go with red roses by the wall."), turn("Forget the red roses by the wall, tulips are cheaper."))

    text = packet(owner).text

    assert "We go with red roses" not in text
    assert "tulips are cheaper" in text


def test_what_waited_is_open_no_longer_once_it_came(owner: Owner) -> None:
    say(owner, turn("I am waiting for the new spade.", role="assistant"), turn("The new spade was sent, and came."))
    assert packet(owner).of(Section.OPEN_ENDS) == []


def test_the_same_said_twice_stands_once(owner: Owner) -> None:
    goal = aim(owner)
    say(owner, turn("We go with the red roses by the wall."), conversation_id="chat-1")
    put_record(owner, slots=reasoned(decisions="Go with the red roses by the wall."), goal_id=goal.id)

    assert packet(owner).text.count("red roses") == 1


def test_the_conversations_that_one_continues_are_its_lineage(owner: Owner) -> None:
    say(owner, turn("We go with the red roses."), conversation_id="first")
    create_conversation(owner, "second", opening=Opening(continues="first"), now=NOW)
    say(owner, turn("Something else entirely."), conversation_id="other", now=NOW + timedelta(hours=1))

    found = packet(owner, conversation_id="second")

    assert (found.conversation_id, found.lineage) == ("second", ["first"])
    assert "We go with the red roses." in found.text


def test_without_a_conversation_the_latest_is_resumed(owner: Owner) -> None:
    say(owner, turn("We go with the red roses."), conversation_id="first")
    say(owner, turn("We go with the blue pump."), conversation_id="second", now=NOW + timedelta(hours=1))

    assert packet(owner).conversation_id == "second"


def test_the_profile_is_among_the_constraints(owner: Owner) -> None:
    user = Owner(account_id=owner.account_id, agent_id=owner.agent_id, user_id="ana")
    write_profile(user, "ana", ProfileChanges(preferences={"watering": "in the evening"}), now=NOW)
    aim(user)

    assert "[Constraints]\n- watering: in the evening\n" in packet(user).text


def test_who_takes_no_part_finds_no_conversation(owner: Owner) -> None:
    other_agent = Owner(account_id=owner.account_id, agent_id="neighbour")
    say(owner, turn("We go with the red roses."))

    with pytest.raises(NotFound):
        packet(other_agent, conversation_id="c1")
    assert packet(other_agent).text == ""


def test_goals_that_there_are_not_are_refused(owner: Owner) -> None:
    with pytest.raises(Unprocessable):
        packet(owner, goal_ids=[uuid4()])


def test_it_costs_the_same_statements_whatever_is_stored(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    goal = aim(owner)
    for number in range(3):
        say(owner, turn(f"We go with {number} roses."), turn(f"Bed {number} is done."), conversation_id="chat-1")
        put_record(owner, slots=reasoned(decisions=f"Plant {number} roses."), goal_id=goal.id)
    packet(owner)

    # lineage, goals, turns, slots, episodes, facts of the user (none here); orientation, candidates, links; strategies;
    # artifacts
    with django_assert_num_queries(10):
        packet(owner)


def test_reads_are_counted_once_it_is_told(owner: Owner) -> None:
    said = say(owner, turn("We go with the red roses."))
    found = packet(owner)

    conclude_resume(owner, found, now=NOW)

    assert Memory.objects.get(id=said.turns[0].id).access_count == 1


@pytest.mark.parametrize("asked", ["Which roses?", ""])
def test_the_audit_log_has_the_question_that_somebody_asked(
    owner: Owner, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memory.conf.AUDIT_LEVEL", "verbose")
    say(owner, turn("We go with the red roses."))

    conclude_resume(owner, packet(owner, query=asked), now=NOW)

    assert told_reads()[-1].query_text == asked


@pytest.mark.parametrize("role", ["system", "developer", "user"])
def test_words_that_are_not_the_agents_name_who_said_them(owner: Owner, role: str) -> None:
    say(owner, turn("We go with the red roses.", role=role))

    assert f"{role}: We go with the red roses." in packet(owner).text
