"""Tests of the live ledger: first marks, lasting values, one round trip per call. They must not touch PostgreSQL."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from ledger import store
from ledger.store import Mark
from memory_project.ids import uuid7
from memory_project.redis import ConversationRef, client, conversation_key, scan_conversations
from tests.round_trips import counted_commands

pytestmark = pytest.mark.usefixtures("kept")

SKILL = "skill:spacing-calculation"


def test_the_first_mark_wins_and_its_value_stays(anywhere: ConversationRef) -> None:
    assert store.mark(anywhere, SKILL) == Mark(value="injected", first=True)
    assert store.mark(anywhere, SKILL, "again") == Mark(value="injected", first=False)
    assert store.check(anywhere, SKILL) == "injected"


def test_an_item_never_marked_is_not_injected(anywhere: ConversationRef) -> None:
    assert store.check(anywhere, SKILL) is None
    assert store.get_all(anywhere) == {}


def test_an_evicted_item_may_be_injected_again(anywhere: ConversationRef) -> None:
    store.mark(anywhere, SKILL, "1")

    assert store.evict(anywhere, SKILL) is True
    assert store.evict(anywhere, SKILL) is False
    assert store.check(anywhere, SKILL) is None
    assert store.mark(anywhere, SKILL, "2") == Mark(value="2", first=True)


def test_the_ledger_ends_with_its_conversation(anywhere: ConversationRef) -> None:
    store.mark(anywhere, SKILL)

    assert store.end_ledger(anywhere) is True
    assert store.end_ledger(anywhere) is False
    assert store.get_all(anywhere) == {}


def test_each_of_several_marks_has_its_own_outcome(anywhere: ConversationRef) -> None:
    store.mark(anywhere, "entity:2", "before")

    marks = store.mark_many(anywhere, {"entity:1": "1", "entity:2": "2"}, agent_id="ana")

    assert marks == {"entity:1": Mark(value="1", first=True), "entity:2": Mark(value="before", first=False)}
    assert store.get_all(anywhere) == {"entity:1": "1", "entity:2": "before"}


def test_marking_nothing_returns_nothing(anywhere: ConversationRef) -> None:
    assert store.mark_many(anywhere, {}) == {}


def test_a_ledger_never_expires(anywhere: ConversationRef) -> None:
    store.mark(anywhere, SKILL)

    assert client().ttl(conversation_key("ledger", anywhere)) == -1


def test_conversations_and_accounts_have_separate_ledgers(anywhere: ConversationRef) -> None:
    store.mark(anywhere, SKILL)

    assert store.get_all(ConversationRef(account_id=anywhere.account_id, conversation_id="other")) == {}
    assert store.get_all(ConversationRef(account_id=uuid7(), conversation_id=anywhere.conversation_id)) == {}


def test_exactly_one_of_many_concurrent_marks_is_first(anywhere: ConversationRef) -> None:
    with ThreadPoolExecutor(8) as pool:
        marks = list(pool.map(lambda number: store.mark(anywhere, SKILL, f"agent-{number}"), range(64)))

    (first,) = [mark for mark in marks if mark.first]
    assert {mark.value for mark in marks} == {first.value}


def test_every_call_is_one_round_trip(anywhere: ConversationRef) -> None:
    def call_everything() -> None:
        store.mark(anywhere, SKILL)
        store.mark_many(anywhere, {"a": "1", "b": "2"})
        store.check(anywhere, SKILL)
        store.get_all(anywhere)
        store.evict(anywhere, SKILL)
        store.end_ledger(anywhere)

    call_everything()
    with counted_commands() as commands:
        call_everything()

    assert [command.split()[0] for command in commands] == ["EVALSHA"] * 6


@pytest.mark.parametrize("item_key", ["", "k" * 301, "a\x00b", "\ud800"])
def test_an_invalid_item_key_is_refused(anywhere: ConversationRef, item_key: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        store.mark(anywhere, item_key)

    assert store.get_all(anywhere) == {}


@pytest.mark.parametrize("value", ["", "v" * 201, "a\x00b"])
def test_an_invalid_value_is_refused(anywhere: ConversationRef, value: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        store.mark(anywhere, SKILL, value)


def test_texts_of_the_maximum_length_are_accepted(anywhere: ConversationRef) -> None:
    assert store.mark(anywhere, "ü" * 300, "ä" * 200, agent_id="ö" * 100).first


def test_conversations_are_listed_page_by_page(anywhere: ConversationRef) -> None:
    wanted = {f"{{call}} {number}" for number in range(30)}
    for conversation_id in wanted:
        store.mark(ConversationRef(account_id=anywhere.account_id, conversation_id=conversation_id), SKILL)

    found, cursor = scan_conversations(store.KEY_NAME, account_id=anywhere.account_id, cursor=0)
    while cursor:
        page, cursor = scan_conversations(store.KEY_NAME, account_id=anywhere.account_id, cursor=cursor)
        found += page

    assert set(found) == wanted
