"""Tests for the packet that resumes work: its sections, whom it is visible to, its limits and its statements."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from memory.errors import NotFound, Unprocessable
from memory.extraction.messages import ChatMessage
from memory.extraction.turn_slots import Action, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Kind, Memory
from memory.owner import Owner
from memory.providers.embeddings import token_counter
from memory.reasoning import ReasoningTier
from memory.retrieval.resume import ResumedMemory
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation
from memory.services.profiles import ProfileChanges, write_profile
from memory.services.records.record import RecordDraft, add_slots, prepare_record
from memory.services.resume.items import EPOCH, NOTES, PacketItem, PacketSection
from memory.services.resume.pack import HEADINGS, render_packet
from memory.services.resume.resume import (
    MAX_READ_CHARACTERS,
    MIN_READ_CHARACTERS,
    ResumePacket,
    ResumeRequest,
    conclude_resume,
    limit_characters,
    resume_work,
)
from memory.services.resume.snippets import Snippet, mark_repeats
from memory.services.turns import TurnDraft
from memory.tokens import estimate_tokens
from tests.memory.audits import written_reads
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim, finish
from tests.memory.records import add_record
from tests.memory.turns import say, turn
from tests.properties import examples

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]
TEXTS = st.text(max_size=200) | st.sampled_from(
    ["The pump stopped with E-17.", "[Goals]", "漢字の長い文", "a" * 400, "x\u2028[End of Packet]"]
)


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


@pytest.mark.parametrize("status", ["failed", "succeeded"])
def test_an_outcome_that_is_reported_late_is_the_last_one(owner: Owner, status: str) -> None:
    run = Slots(action=Action(text="Dug the hole."), outcome=Outcome(status="open", text="The hole is half as deep."))
    record = add_record(owner, slots=run, event_time=NOW - timedelta(hours=3)).record
    add_record(owner, event_time=NOW - timedelta(hours=2))
    outcome = Outcome(status=status, text="The hole is full of water.")
    late = RecordDraft(slots=Slots(outcome=outcome), event_time=NOW - timedelta(hours=1))

    add_slots(owner, record.id, prepare_record(owner, late, now=NOW), embedded=NOTHING, now=NOW)

    assert f"[Last Outcome]\n- {status}: The hole is full of water." in resume_packet(owner).text


def test_turns_without_records_fill_the_sections(owner: Owner) -> None:
    stored = ("Never cut the old rose.", "We go with the red roses.", "I am waiting for the spade of Ana.")
    say(owner, *(turn(each) for each in stored))

    found = resume_packet(owner)

    assert [item.text for item in found.items_in(PacketSection.CONSTRAINTS)] == ["Never cut the old rose."]
    assert [item.text for item in found.items_in(PacketSection.EVIDENCE)] == ["We go with the red roses."]
    assert [item.text for item in found.items_in(PacketSection.OPEN_ENDS)] == ["I am waiting for the spade of Ana."]


def test_orders_that_are_carried_out_are_no_decisions_and_what_is_said_to_be_open_is_an_open_end(owner: Owner) -> None:
    said = (
        "Run the migration.",
        "Stop the reporting job, then again.",
        "Use batches of 500.",
        "CHF rounding is still open.",
    )
    filler = [turn(f"Table {name} has rows.") for name in ("one", "two", "three", "four", "five")]
    say(owner, *(turn(each) for each in said), *filler)

    packet = resume_work(owner, ResumeRequest(conversation_id="c1"), now=NOW)

    decided = [item.text for item in packet.items if item.item_type == "decision"]
    assert decided == ["Use batches of 500."]
    assert [item.text for item in packet.items_in(PacketSection.OPEN_ENDS)] == ["CHF rounding is still open."]


def test_what_is_still_to_be_done_is_an_open_end_however_few_words_say_it(owner: Owner) -> None:
    filler = [turn(f"Table {name} has rows.") for name in ("one", "two", "three", "four", "five")]
    say(owner, turn("Streaming works. Compression is still to be done."), *filler)

    packet = resume_work(owner, ResumeRequest(conversation_id="c1"), now=NOW)

    assert [item.text for item in packet.items_in(PacketSection.OPEN_ENDS)] == ["Compression is still to be done."]


def test_what_was_to_be_done_is_no_open_end_once_it_is_done(owner: Owner) -> None:
    say(owner, turn("Compression is still to be done."), turn("Compression is done."))

    packet = resume_work(owner, ResumeRequest(conversation_id="c1"), now=NOW)

    assert packet.items_in(PacketSection.OPEN_ENDS) == []


@pytest.mark.parametrize("request_text", ["Fix the lexer.", "Deploy the parser.", "Can you fix the lexer?"])
def test_the_last_request_is_shown_whatever_its_length(owner: Owner, request_text: str) -> None:
    earlier = turn("Feed the cat."), turn("Done.", role="assistant")
    say(owner, *earlier, turn(request_text), turn("I am on it.", role="assistant"), turn("Thanks."))

    assert [item.text for item in resume_packet(owner).items_in(PacketSection.EVIDENCE)] == [request_text]


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


def test_the_number_of_statements_does_not_grow_with_the_stored_data(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    goal = aim(owner)
    for number in range(3):
        say(owner, turn(f"We go with {number} roses."), turn(f"Bed {number} is done."), conversation_id="chat-1")
        add_record(owner, slots=reasoning_slots(decisions=f"Plant {number} roses."), goal_id=goal.id)
    resume_packet(owner)

    # lineage, goals, turns, slots, episodes, tools, facts of the user (none here); orientation, candidates, links;
    # strategies; artifacts
    with django_assert_num_queries(11):
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

    assert written_reads()[-1].query_text == asked


@pytest.mark.parametrize("role", ["system", "developer", "user"])
def test_words_of_other_roles_are_labelled(owner: Owner, role: str) -> None:
    say(owner, turn("We go with the red roses.", role=role))

    assert f"{role}: We go with the red roses." in resume_packet(owner).text


@st.composite
def packet_items(draw: st.DrawFn) -> list[PacketItem]:
    """Draw items of all sections but goals, whose texts are anything on one line."""
    sections = [section for section in PacketSection if section != PacketSection.GOALS]
    drawn = draw(st.lists(st.tuples(st.sampled_from(sections), TEXTS, st.floats(0, 12)), max_size=40))
    return [
        PacketItem(
            section=section,
            item_type="decision" if number % 2 else "said",
            text=" ".join(text.split()) or "-",
            weight=weight,
            position=(NOTES, EPOCH + timedelta(days=number), number, 0),
            event_time=EPOCH + timedelta(days=number),
        )
        for number, (section, text, weight) in enumerate(drawn)
    ]


@examples(40)
@given(packet_items(), st.integers(200, 2_000))
def test_a_packet_never_has_more_tokens_than_asked_for(items: list[PacketItem], max_tokens: int) -> None:
    for count in (token_counter(), estimate_tokens):
        rendered = render_packet(items, max_tokens, count=count)

        assert rendered.tokens == count(rendered.text) <= max_tokens
        assert render_packet(list(reversed(items)), max_tokens, count=count) == rendered


@examples(40)
@given(packet_items())
def test_no_text_passes_for_a_heading(items: list[PacketItem]) -> None:
    rendered = render_packet(items, 50_000, count=estimate_tokens)

    headings = [line for line in rendered.text.splitlines() if line.startswith("[")]
    known = {f"[{name}]" for name in (*HEADINGS.values(), "Decisions", "Resume Packet", "End of Packet")}
    assert set(headings) <= known
    assert len(headings) == len(set(headings))


@pytest.mark.parametrize("max_tokens", [200, 300])
def test_the_heaviest_item_is_shown_if_there_is_little_room(max_tokens: int) -> None:
    items = [
        PacketItem(
            section=PacketSection.EVIDENCE,
            item_type="said",
            text=f"word{n} " * 30,
            weight=n,
            position=(NOTES, EPOCH, n, 0),
        )
        for n in range(20)
    ]

    rendered = render_packet(items, max_tokens, count=estimate_tokens)

    assert "word19" in rendered.text
    assert "word0 " not in rendered.text


def make_row(text: str, number: int = 0) -> ResumedMemory:
    return ResumedMemory(
        id=UUID(int=number), kind=Kind.TURN, text=text, conversation_id="c1", channel="_global", event_time=NOW
    )


def make_snippet(text: str, number: int) -> Snippet:
    return Snippet(
        source=make_row(text), text=text, note=None, position=(NOTES, NOW + timedelta(hours=number), number, 0)
    )


def test_the_newest_of_many_long_texts_are_read_whole() -> None:
    kept = limit_characters([make_row("ab" * 2_000, number) for number in range(400)])

    sizes = [len(each.text) for each in kept]
    assert sum(sizes) <= MAX_READ_CHARACTERS + len(kept)
    assert min(sizes) >= MIN_READ_CHARACTERS
    assert sizes[-20:] == [4_000] * 20
    assert [each.id.int for each in kept] == [*range(400)]


@pytest.mark.parametrize("most", [10, 30_000])
def test_short_texts_are_left_as_they_are(most: int) -> None:
    rows = [make_row("A short text.", number) for number in range(30)]
    assert limit_characters(rows, most) == rows


def test_both_ends_of_a_long_text_are_kept() -> None:
    [kept] = limit_characters([make_row("a" * 3_000 + "b" * 3_000)], 1_000)
    assert kept.text == "a" * 500 + "\n" + "b" * 500


def test_snippets_that_differ_in_a_number_are_repeats_but_for_the_latest() -> None:
    notes = [make_snippet(f"Wall {number} of the house is painted.", number) for number in range(6)]

    repeats = {
        each.text
        for each in mark_repeats([*notes, make_snippet("The roof of the house is green.", 7)])
        if each.is_repeat
    }

    assert repeats == {f"Wall {number} of the house is painted." for number in range(3)}


def test_the_packet_says_which_person_and_which_other_agent_speaks(owner: Owner) -> None:
    aim(owner)
    decided = ChatMessage(role="user", text="We decided to water the roses at six.", name="ana")
    say(owner, TurnDraft(message=decided), turn("I will order roses for the bed on Friday.", role="assistant"))

    own = resume_packet(owner).text
    whole = resume_packet(replace(owner, agent_id="", user_id="")).text

    assert "user ana: We decided to water the roses at six." in own
    assert ") I will order roses" in own
    assert f"assistant {owner.agent_id}: I will order roses" in whole


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        ("Not done yet.", "Swapped the key of the shed. -> Not done yet."),
        ("It fits.", "Swapped the key of the shed. -> It fits."),
        ("The new key opens the shed.", "The new key opens the shed."),
    ],
)
def test_an_outcome_that_does_not_say_of_what_stands_after_its_action(owner: Owner, outcome: str, shown: str) -> None:
    action = Action(text="Swapped the key of the shed.")
    add_record(owner, slots=Slots(action=action, outcome=Outcome(status="open", text=outcome)))

    [last] = resume_packet(owner).items_in(PacketSection.LAST_OUTCOME)

    assert last.text == shown
