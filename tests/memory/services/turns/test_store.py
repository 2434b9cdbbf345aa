"""Storing turns: numbered, once, in order, with any number of writers; and reading them."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, NotFound, Unprocessable
from memory.extraction.messages import message_of, read_message
from memory.models import Account, AuditEntry, Conversation, Participant, Turn, Vector
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation
from memory.services.turns import TurnDraft, get_conversation, get_recent_turns
from tests.concurrency import PATIENCE_SECONDS
from tests.memory.episodes import NOW
from tests.memory.turns import numbered_texts, say, talk, turn
from tests.properties import examples

pytestmark = pytest.mark.django_db

TOOL_CALL = {"id": "call_1", "type": "function", "function": {"name": "look_up", "arguments": '{"b": 1, "a": 2}'}}


def other_agent(owner: Owner) -> Owner:
    return Owner(account_id=owner.account_id, agent_id="second")


def test_turns_are_numbered_from_zero_across_calls(owner: Owner) -> None:
    talk(owner, 2)
    talk(owner, 2, start=2)

    assert numbered_texts(get_conversation(owner, "c1")) == [(number, f"message {number}") for number in range(4)]


def test_a_turn_keeps_everything_that_is_known_of_it(owner: Owner) -> None:
    earlier = NOW - timedelta(days=2)

    say(owner, turn("hello", timestamp=earlier, client_id="m-1", model="some-model", metadata={"mood": "good"}))

    (stored,) = get_conversation(owner, "c1")
    known = (stored.event_time, stored.client_id, stored.model, stored.metadata, stored.role, stored.agent_id)
    assert known == (earlier, "m-1", "some-model", {"mood": "good"}, "user", "assistant")
    assert (len(stored.content_hash), stored.token_count) == (64, 2)


def test_a_message_beyond_text_comes_back_as_it_was_sent(owner: Owner) -> None:
    parts = [{"type": "text", "text": "what is this?"}, {"type": "image_url", "image_url": {"url": "data:…"}}]

    say(owner, turn(parts))

    (stored,) = get_conversation(owner, "c1")
    assert (stored.content, stored.text) == (parts, "what is this?\n[image_url]")
    # the column keeps the order of names, too
    assert [list(part) for part in stored.content] == [["type", "text"], ["type", "image_url"]]


def test_the_same_turn_sent_twice_under_its_client_id_is_stored_once(owner: Owner) -> None:
    first = say(owner, turn("hello", client_id="m-1"))

    again = say(owner, turn("hello", client_id="m-1"), turn("more", client_id="m-2"))

    assert [each.id for each in again.turns][:1] == [first.turns[0].id]
    assert numbered_texts(get_conversation(owner, "c1")) == [(0, "hello"), (1, "more")]
    assert numbered_texts(again.new) == [(1, "more")]


def test_the_same_turn_sent_twice_at_its_index_is_stored_once(owner: Owner) -> None:
    say(owner, turn("hello", index=0))

    say(owner, turn("hello", index=0), turn("more", index=1))

    assert numbered_texts(get_conversation(owner, "c1")) == [(0, "hello"), (1, "more")]


def test_a_turn_that_was_corrected_or_erased_is_repeated_with_others_that_are_new(owner: Owner) -> None:
    first = say(owner, turn("hello", client_id="m-1"), turn("my name is Ana", client_id="m-2"))
    Turn.objects.filter(id=first.turns[1].id).update(text="[erased]", version=2, buried=True)

    again = say(
        owner,
        *(turn("hello", client_id="m-1"), turn("my name is Ana", client_id="m-2"), turn("bye", client_id="m-3")),
    )

    assert [each.index for each in again.turns] == [0, 1, 2]
    assert [each.text for each in Turn.objects.order_by("index")] == ["hello", "[erased]", "bye"]


def test_a_client_id_twice_in_one_call_is_one_turn(owner: Owner) -> None:
    stored = say(owner, turn("hello", client_id="m-1"), turn("hello", client_id="m-1"))

    assert [each.index for each in stored.turns] == [0, 0]
    assert len(get_conversation(owner, "c1")) == 1


def test_the_same_text_without_client_id_or_index_is_another_turn(owner: Owner) -> None:
    say(owner, turn("yes"))
    say(owner, turn("yes"))

    assert numbered_texts(get_conversation(owner, "c1")) == [(0, "yes"), (1, "yes")]


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (turn("other", index=0), Conflict),
        (turn("hello", role="assistant", index=0), Conflict),
        (turn("other", client_id="m-1"), Conflict),
        (turn("hello", index=1, client_id="m-1"), Conflict),
        (turn("hello", index=0, client_id="m-9"), Conflict),
        (turn("other", index=3), Unprocessable),
    ],
    ids=["taken", "another role", "another text", "another place", "another name", "jumps"],
)
def test_an_index_or_client_id_of_another_message_is_refused(
    owner: Owner, refused: Any, error: type[Exception]
) -> None:
    say(owner, turn("hello", client_id="m-1"))

    with pytest.raises(error):
        say(owner, turn("before it"), refused)

    assert numbered_texts(get_conversation(owner, "c1")) == [(0, "hello")]
    assert find_conversation(owner, "c1").turn_count == 1


@pytest.mark.parametrize(
    "refused",
    [
        turn("tomorrow", timestamp=NOW + timedelta(minutes=6)),
        turn("some day", timestamp=NOW.replace(tzinfo=None)),
        turn("nul \x00"),
        turn("x" * 2_097_153),
        turn("hello", client_id="x" * 101),
        turn("hello", model="nul \x00"),
    ],
    ids=["future", "naive", "nul", "long", "long name", "nul in a name"],
)
def test_a_turn_that_the_log_cannot_store_is_refused(owner: Owner, refused: Any) -> None:
    with pytest.raises(Unprocessable, match=r"turns\[1\]"):
        say(owner, turn("before it"), refused)

    assert not Conversation.objects.exists() or find_conversation(owner, "c1").turn_count == 0


def test_a_number_that_is_no_json_is_refused_without_its_surroundings(owner: Owner) -> None:
    with pytest.raises(ValueError, match="not JSON compliant") as refusal:
        say(owner, turn([{"type": "text", "text": "secret"}, {"type": "score", "value": float("inf")}]))

    assert "secret" not in str(refusal.value)


def test_repeats_are_found_by_index_however_many_are_sent(
    owner: Owner, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    drafts = [turn(f"number {number}", client_id=f"m-{number}") for number in range(250)]
    say(owner, *drafts)

    # the lock, three looks of 100 ids at most, the part that the agent takes, and a savepoint around them
    with django_assert_max_num_queries(8):
        again = say(owner, *[turn(f"number {number}", client_id=f"m-{number}") for number in range(250)])

    assert (len(again.turns), again.new) == (250, [])


def test_a_turn_without_user_or_channel_has_its_conversations(owner: Owner) -> None:
    first = Owner(account_id=owner.account_id, agent_id="assistant", user_id="ana", channel="boats")
    say(first, turn("hello"))
    say(owner, turn("more"))

    assert {(each.user_id, each.channel) for each in get_conversation(owner, "c1")} == {("ana", "boats")}


def test_only_participants_of_a_conversation_can_read_it(owner: Owner, stranger: Account) -> None:
    talk(owner, 1)

    for nobody in (other_agent(owner), Owner(account_id=stranger.id), Owner(account_id=stranger.id, agent_id="x")):
        with pytest.raises(NotFound):
            get_conversation(nobody, "c1")
    say(other_agent(owner), turn("may I?"))

    assert len(get_conversation(other_agent(owner), "c1")) == len(get_conversation(owner, "c1")) == 2


def test_an_agent_that_repeats_turns_of_others_takes_part_too(owner: Owner) -> None:
    say(owner, turn("hello", index=0))

    say(other_agent(owner), turn("hello", index=0))

    assert numbered_texts(get_conversation(other_agent(owner), "c1")) == [(0, "hello")]


def test_one_id_in_two_accounts_is_two_conversations(owner: Owner, stranger: Account) -> None:
    other = Owner(account_id=stranger.id, agent_id="assistant")
    say(owner, turn("ours"))
    say(other, turn("theirs"))

    assert numbered_texts(get_conversation(owner, "c1")) == [(0, "ours")]
    assert numbered_texts(get_conversation(other, "c1")) == [(0, "theirs")]


def test_turns_vectors_and_audit_entry_are_written_together(owner: Owner) -> None:
    stored = say(owner, turn("near", angle=0.0), turn("pending"))

    assert list(Vector.objects.values_list("memory_id", flat=True)) == [stored.turns[0].id]
    entry = AuditEntry.objects.get(operation="store")
    assert (entry.memory_type, entry.conversation_id, entry.result_count) == ("episodic", "c1", 2)
    assert Participant.objects.filter(conversation_id="c1", agent_id="assistant").exists()


def test_a_turn_in_an_ended_conversation_reopens_it(owner: Owner) -> None:
    talk(owner, 1)
    Conversation.objects.update(ended_at=NOW, outcome="success", archived=True, consolidated_at=NOW)

    talk(owner, 1, start=1)

    conversation = find_conversation(owner, "c1")
    state = (conversation.ended_at, conversation.outcome, conversation.archived, conversation.consolidated_at)
    assert state == (None, "", False, None)


def test_recent_turns_are_the_latest_of_the_window_newest_first(owner: Owner) -> None:
    for hours, conversation_id in ((30, "old"), (3, "c1"), (1, "c2")):
        say(
            owner,
            turn(f"{hours} hours ago", timestamp=NOW - timedelta(hours=hours)),
            conversation_id=conversation_id,
        )

    recent = get_recent_turns(owner, hours=24, limit=10, now=NOW)

    assert [each.text for each in recent] == ["1 hours ago", "3 hours ago"]
    assert len(get_recent_turns(owner, hours=24, limit=1, now=NOW)) == 1
    assert get_recent_turns(other_agent(owner), hours=24, limit=10, now=NOW) == []


def test_recent_turns_are_of_the_channel_and_the_user_that_are_asked_for(owner: Owner) -> None:
    boats = Owner(account_id=owner.account_id, agent_id="assistant", user_id="ana", channel="boats")
    trains = Owner(account_id=owner.account_id, agent_id="assistant", user_id="ben", channel="trains")
    say(boats, turn("boats"), conversation_id="c1")
    say(trains, turn("trains"), conversation_id="c2")

    assert [each.text for each in get_recent_turns(boats, hours=1, limit=9, now=NOW)] == ["boats"]
    assert get_recent_turns(owner, hours=1, limit=9, now=NOW) == []


@pytest.mark.parametrize(("count", "statements"), [(1, 9), (100, 14)])
def test_storing_takes_the_same_few_statements_for_one_turn_and_for_many(
    owner: Owner, count: int, statements: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    talk(owner, 1)
    drafts = [turn(f"a statement of number {number}", angle=0.1) for number in range(count)]

    # a savepoint and its release (the transaction itself, outside of tests), the conversation's lock, memories,
    # turns, vectors, participants, audit, the latest vectors (and the texts of near ones), the conversation's new count
    # and, for many, twice that plans are made once, and the links of statements that may replace others
    with django_assert_num_queries(statements):
        say(owner, *drafts)


turns_sent = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.booleans()), max_size=12)


@given(calls=st.lists(turns_sent, max_size=4))
@examples(30)
def test_any_sequence_of_requests_gives_the_same_log(owner: Owner, calls: list[list[tuple[str, bool]]]) -> None:
    Conversation.objects.all().delete()
    expected: list[str] = []
    for call in calls:
        drafts = [turn(text, client_id=text if is_named else "") for text, is_named in call]
        say(owner, *drafts)
        for text, is_named in call:
            if not is_named or f"named {text}" not in expected:
                expected.append(f"named {text}" if is_named else text)

    rows = Turn.objects.filter(log__conversation_id="c1")
    assert numbered_texts(list(rows.order_by("index"))) == [
        (number, text.removeprefix("named ")) for number, text in enumerate(expected)
    ]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("empty_redis")
def test_ten_concurrent_clients_lose_and_reorder_nothing(owner: Owner) -> None:
    together = Barrier(10)

    def append(client: int) -> None:
        together.wait(PATIENCE_SECONDS)
        try:
            for number in range(10):
                say(owner, turn(f"{client}:{number}", client_id=f"{client}:{number}"))
        finally:
            connection.close()

    connection.close()  # the pool has ten
    with ThreadPoolExecutor(10) as clients:
        list(clients.map(append, range(10)))

    log = get_conversation(owner, "c1")
    assert [each.index for each in log] == list(range(100))
    for client in range(10):
        own = [each.text for each in log if each.text.startswith(f"{client}:")]
        assert own == [f"{client}:{number}" for number in range(10)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("empty_redis")
def test_one_turn_sent_by_many_clients_is_stored_once(owner: Owner) -> None:
    together = Barrier(8)

    def send(_client: int) -> None:
        together.wait(PATIENCE_SECONDS)
        try:
            say(owner, turn("hello", client_id="m-1"))
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(send, range(8)))

    assert numbered_texts(get_conversation(owner, "c1")) == [(0, "hello")]


def test_a_tool_call_is_found_by_its_name_and_comes_back_whole(owner: Owner) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL]}
    say(owner, TurnDraft(message=read_message(message)))

    (stored,) = get_conversation(owner, "c1")
    assert stored.text == 'look_up({"b": 1, "a": 2})'
    assert message_of(role=stored.role, name=stored.name, text=stored.text, payload=stored.payload) == message
