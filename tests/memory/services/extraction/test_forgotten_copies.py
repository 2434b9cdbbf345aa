"""Copies of a forgotten statement go with it: summaries, turns of others, relationships and entities."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.models import EpisodicMemory, Link
from memory.owner import Owner
from memory.services.conversations.end import end_conversation
from memory.services.summaries.summarize import request_summary
from tests.memory.episodes import NOW
from tests.memory.knowledge import TURN_TIME, entities, extract_all, say_sentences
from tests.memory.services.extraction.test_forget import ADDRESS, ASKS, buried, say_one, state_of
from tests.memory.services.extraction.test_forget import user as user
from tests.memory.summaries import summarize
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


def end_and_summarize(owner: Owner, conversation_id: str) -> list[str]:
    end_conversation(owner, conversation_id, outcome="", now=NOW)
    request_summary(owner, conversation_id, now=NOW)
    summarize(NOW)
    return found_episodes()


def found_episodes() -> list[str]:
    return list(EpisodicMemory.objects.filter(archived=False, buried=False).values_list("text", flat=True))


@pytest.mark.django_db(transaction=True)
def test_a_summary_that_repeats_it_is_made_again_without_it(user: Owner) -> None:
    say_one(user, ADDRESS, "I live in Porto.", days=0)
    assert end_and_summarize(user, "day-0") == [f"user: {ADDRESS}\nuser: I live in Porto."]

    say_one(user, ASKS, days=5)
    assert found_episodes() == []
    summarize(NOW)

    assert found_episodes() == ["user: I live in Porto."]


@pytest.mark.django_db(transaction=True)
def test_what_several_agents_heard_is_forgotten_by_all(user: Owner) -> None:
    other = replace(user, agent_id="helper")
    say_one(user, ADDRESS, "I live in Porto.", days=0)
    say_sentences(other, "I like figs.", name="", conversation_id="day-0", at=TURN_TIME + timedelta(days=1))
    assert len(end_and_summarize(user, "day-0")) == 2

    say_one(user, ASKS, days=5)
    summarize(NOW)

    assert state_of(ASKS) == "done"
    assert found_episodes() == 2 * ["user: I live in Porto.\nuser: I like figs."]


def test_what_another_agent_heard_is_forgotten_too(user: Owner) -> None:
    say_one(replace(user, agent_id="helper"), ADDRESS, days=0)

    say_one(user, ASKS, days=5)

    assert (buried(), state_of(ASKS)) == ([ADDRESS, ASKS], "done")


@pytest.mark.django_db(transaction=True)
def test_a_request_leaves_summaries_of_what_was_said_before_alone(user: Owner) -> None:
    say_one(user, "I live in Porto.", days=0)
    before = end_and_summarize(user, "day-0")

    say_one(user, "Forget my zeppelin.", days=0)
    summarize(NOW)

    assert found_episodes() == before


@pytest.mark.django_db(transaction=True)
def test_a_later_request_leaves_the_summary_that_was_made_again_alone(user: Owner) -> None:
    say_one(user, ADDRESS, "I live in Porto.", days=0)
    end_and_summarize(user, "day-0")
    say_one(user, ASKS, days=5)
    summarize(NOW)

    say_one(user, "Forget my zeppelin.", days=0)
    summarize(NOW)

    assert found_episodes() == ["user: I live in Porto."]


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        ("Noted: your address is 12 Rose Street.", "done"),
        ("Your address is 12 Rose Street, and the parcel with the red lamp arrives there on Tuesday.", "open"),
        ("Nice street, I hear.", "done"),
    ],
)
def test_what_an_assistant_repeated_is_forgotten_or_waits_for_staff(user: Owner, answer: str, state: str) -> None:
    at = TURN_TIME + timedelta(days=1)
    say(user, turn(ADDRESS, timestamp=at), turn(answer, role="assistant", timestamp=at), conversation_id="day-1")
    extract_all(NOW)

    say_one(user, ASKS, days=5)

    assert state_of(ASKS) == state
    assert (answer in buried()) is answer.startswith("Noted")


def test_relationships_that_nothing_else_states_are_forgotten(user: Owner) -> None:
    say_one(user, "My sister Alex works at Acme.", days=0)
    assert Link.objects.filter(type="WORKS_FOR").exists()

    say_one(user, "Forget about Alex.", days=5)

    assert state_of("Forget about Alex.") == "done"
    assert not Link.objects.filter(type="WORKS_FOR").exists()


def test_a_summary_that_is_made_later_does_not_repeat_it(user: Owner) -> None:
    say_one(user, ADDRESS, "I live in Porto.", days=0)
    say_one(user, ASKS, days=5)

    assert end_and_summarize(user, "day-0") == ["user: I live in Porto."]


def test_entities_that_nothing_else_names_are_archived_until_they_are_named_again(user: Owner) -> None:
    say_one(user, ADDRESS, "I live in Porto.", days=0)
    say_one(user, ASKS, days=5)
    assert (set(entities(archived=True)), set(entities(archived=False))) == ({"Rose Street"}, {"Porto"})

    say_one(user, "My office is on Rose Street.", days=9)

    assert set(entities(archived=True)) == set()
