"""The summary that stands for a conversation: its owner, which one is the latest, and what follows its loss."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory import conf
from memory.models import Account, EpisodicMemory
from memory.owner import Owner
from memory.services.conversations.lifecycle import ConversationDefaults, create_conversation
from memory.services.conversations.staff_edits import delete_conversation
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from memory.services.sessions import MemoryManager
from memory.services.summaries.summarize import latest_summary, request_summary
from tests.language_model_server import LanguageModelServer
from tests.memory.episodes import NOW
from tests.memory.summaries import (
    NOTHING_DUE,
    ONE_STORED,
    conversation,
    covered,
    progress,
    summaries,
    summarize,
    superseding,
)
from tests.memory.turns import say, talk, turn

# a summary's copies are those that one transaction stored
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]

Lose = Callable[[Owner, EpisodicMemory], object]


def mark(name: str) -> Lose:
    return lambda owner, row: mark_memories(owner, [row.id], mark=name, now=NOW)


def delete(owner: Owner, row: EpisodicMemory) -> None:
    delete_memories(owner, [row.id], now=NOW)


def expire(owner: Owner, row: EpisodicMemory) -> None:
    correct_memory(owner, row.id, changes={"expires_at": NOW - timedelta(days=9_999)}, version=row.version, now=NOW)


LOSSES = [
    pytest.param(delete, id="deleted"),
    pytest.param(expire, id="expired"),
    pytest.param(mark("archive"), id="archived"),
    pytest.param(mark("quarantine"), id="quarantined"),
]


def summarized_up_to(row: EpisodicMemory | None) -> int | None:
    return row.metadata["last_index"] if row else None


def test_a_new_conversation_with_a_deleted_id_has_no_summary(account: Account) -> None:
    ana, bob = (Owner(account_id=account.id, agent_id="assistant", user_id=user) for user in ("ana", "bob"))
    say(ana, *[turn(f"Ana decided to sell boat {number}.") for number in range(50)])
    summarize()
    delete_conversation(Owner(account_id=account.id), "c1")
    say(bob, *[turn(f"Bob buys {number} oranges.") for number in range(50)])

    before = MemoryManager(bob).find_memory("c1").get_context(now=NOW).summary
    summarize()

    (of_bob,) = summaries(user_id="bob")
    assert (before, covered(of_bob), superseding()) == ("", (0, 39, 40), [])
    assert "boat" not in of_bob.text
    assert not summaries(user_id="ana")[0].archived


def test_a_summary_names_its_conversation(owner: Owner) -> None:
    talk(owner, 50)

    summarize()

    assert summaries()[0].metadata["log"] == str(conversation().id)


def test_an_unarchived_summary_is_not_the_latest(owner: Owner) -> None:
    for start in (0, 50):
        talk(owner, 50, start=start)
        summarize()
    first, second = summaries()
    mark_memories(owner, [first.id], mark="unarchive", now=NOW)
    correct_memory(owner, first.id, changes={"text": "Older."}, version=first.version + 1, now=NOW)

    assert latest_summary(owner, conversation()) == second
    talk(owner, 50, start=100)
    summarize()

    assert covered(summaries()[-1]) == (0, 139, 140)
    assert [row.archived for row in summaries()] == [True, True, False]


def test_a_summary_that_is_released_is_not_the_latest(owner: Owner) -> None:
    talk(owner, 50)
    summarize()
    mark("quarantine")(owner, summaries()[0])
    talk(owner, 50, start=50)
    summarize()

    mark("release")(owner, summaries()[0])

    assert summarized_up_to(latest_summary(owner, conversation())) == 89


@pytest.mark.parametrize("lose", LOSSES)
def test_the_next_summary_covers_the_turns_of_a_lost_one(
    owner: Owner, lose: Lose, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 50)
    summarize()
    lose(owner, summaries()[0])
    assert latest_summary(owner, conversation()) is None
    talk(owner, 50, start=50)

    summarize()

    (live,) = summaries(archived=False, expires_at=None, quarantined=False)
    assert covered(live) == (0, 89, 90)
    assert language_model_server.materials[-1].count('"text": "message') == 90
    assert "a summary" not in language_model_server.materials[-1]


def test_a_lost_summary_is_made_again_on_request(owner: Owner) -> None:
    talk(owner, 20)
    request_summary(owner, "c1", now=NOW)
    summarize()
    for loss in (mark("archive"), mark("quarantine"), delete):
        loss(owner, summaries()[-1])

        request_summary(owner, "c1", now=NOW)

        assert (summarize(), summarize()) == (ONE_STORED, NOTHING_DUE)
        assert summarized_up_to(latest_summary(owner, conversation())) == 19


@pytest.mark.slow
def test_a_lost_summary_is_made_again_part_by_part(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    talk(owner, 90)
    summarize()
    delete(owner, summaries()[0])
    talk(owner, 50, start=90)
    monkeypatch.setattr(conf, "SUMMARY_INPUT_TOKENS", 1_000)
    progresses = []

    while summarize() == ONE_STORED:
        progresses.append((progress()[1], summarized_up_to(latest_summary(owner, conversation()))))

    assert progresses[0][0] == 80
    assert (progresses[0][1] or 80) < 79
    assert progresses[-1] == (130, 129)
    assert covered(summaries()[-1]) == (0, 129, 130)


def test_a_summary_with_a_quarantined_copy_is_neither_included_nor_shown(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    second = replace(owner, agent_id="second")
    talk(owner, 25)
    talk(second, 25, start=25)
    summarize()
    mark("quarantine")(owner, summaries(agent_id="assistant")[0])

    assert (latest_summary(owner, conversation()), latest_summary(second, conversation())) == (None, None)
    talk(owner, 50, start=50)
    summarize()

    assert "a summary" not in language_model_server.materials[-1]
    # the other copy is superseded
    assert [row.agent_id for row in summaries(archived=False, quarantined=False)] == ["assistant", "second"]


def test_the_copy_that_was_corrected_is_the_one_that_counts(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    talk(owner, 25)
    talk(replace(owner, agent_id="second"), 25, start=25)
    summarize()
    row = summaries()[0]
    correct_memory(owner, row.id, changes={"text": "They met in Lisbon."}, version=row.version, now=NOW)
    talk(owner, 50, start=50)

    summarize()

    assert "They met in Lisbon." in language_model_server.materials[-1]


@pytest.mark.parametrize("metadata", [{}, {"last_index": "x", "turns": [], "first_index": None}, {"last_index": -7}])
def test_a_summary_with_invalid_metadata_is_included_with_all_turns(owner: Owner, metadata: dict[str, Any]) -> None:
    talk(owner, 50)
    summarize()
    row = summaries()[0]
    changes = {"metadata": {"log": row.metadata["log"], **metadata}}
    correct_memory(owner, row.id, changes=changes, version=row.version, now=NOW)
    talk(owner, 50, start=50)

    assert summarize() == ONE_STORED

    assert covered(summaries(archived=False)[0]) == (0, 89, 90)


def test_an_agent_that_joins_later_sees_the_summary(owner: Owner) -> None:
    talk(owner, 50)
    summarize()
    late = replace(owner, agent_id="late")
    assert latest_summary(late, conversation()) is None

    talk(late, 1, start=50)

    assert latest_summary(late, conversation()) == summaries()[0]


@pytest.mark.parametrize(("user_id", "is_shown"), [("ana", True), ("", True), ("bob", False)])
def test_a_resumed_conversation_shows_its_summary_to_its_own_user(
    account: Account, user_id: str, is_shown: bool
) -> None:
    ana = Owner(account_id=account.id, agent_id="assistant", user_id="ana")
    talk(replace(ana, user_id=user_id), 50, conversation_id="before")
    summarize()
    create_conversation(ana, "c1", defaults=ConversationDefaults(continues="before"), now=NOW)

    assert (latest_summary(ana, conversation()) is not None) is is_shown


def test_a_resumed_conversation_shows_its_summary_to_participants(owner: Owner) -> None:
    talk(owner, 50, conversation_id="before")
    summarize()
    create_conversation(owner, "c1", defaults=ConversationDefaults(continues="before"), now=NOW)
    late = replace(owner, agent_id="late")
    talk(late, 1)

    assert latest_summary(late, conversation()) is None
    assert latest_summary(owner, conversation()) == summaries()[0]
