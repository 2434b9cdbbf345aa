"""Users ask to forget what they said: facts are retracted, turns are buried, and the rest waits for staff."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.models import Account, Conversation, EpisodicMemory, Fact, Turn, UserProfile
from memory.owner import Owner
from memory.services.conversations.end import end_conversation
from memory.services.extraction.forget import FORGET_KEY, find_requests, forget_requested, read_evidence
from memory.services.summaries.summarize import request_summary
from tests.memory.episodes import NOW
from tests.memory.knowledge import TURN_TIME, claims, entities, extract_all, say_sentences
from tests.memory.recalls import found_by_words
from tests.memory.summaries import summarize

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

ADDRESS = "My address is 12 Rose Street."
CLAIM = "The user's address is 12 Rose Street"
ASKS = "Please forget my address."


@pytest.fixture
def user(owner: Owner) -> Owner:
    return replace(owner, user_id="u1")


def say_one(owner: Owner, *sentences: str, days: int, name: str = "") -> None:
    at = TURN_TIME + timedelta(days=days)
    say_sentences(owner, *sentences, name=name, conversation_id=f"day-{days}", at=at)
    extract_all(NOW)


def end_and_summarize(owner: Owner, conversation_id: str) -> list[str]:
    end_conversation(owner, conversation_id, outcome="", now=NOW)
    request_summary(owner, conversation_id, now=NOW)
    summarize(NOW)
    return found_episodes()


def found_episodes() -> list[str]:
    return list(EpisodicMemory.objects.filter(archived=False, buried=False).values_list("text", flat=True))


def buried() -> list[str]:
    return list(Turn.objects.filter(buried=True).order_by("event_time", "index").values_list("text", flat=True))


def state_of(text: str) -> str:
    return str(Turn.objects.get(text=text).metadata.get(FORGET_KEY, ""))


def test_what_the_user_said_is_retracted_and_found_no_more(user: Owner) -> None:
    say_one(user, ADDRESS, "I live in Porto.", days=0)
    say_one(user, ASKS, days=5)

    assert claims(status=Fact.Status.RETRACTED) == [CLAIM]
    assert claims(status=Fact.Status.ACTIVE) == ["The user lives in Porto"]
    assert (buried(), state_of(ASKS)) == ([ADDRESS, ASKS], "done")
    assert found_by_words(user, "What is my address?") == []


def test_what_is_said_and_taken_back_at_once_is_forgotten(user: Owner) -> None:
    say_one(user, "I love jazz.", "Forget what I said about jazz.", days=0)

    assert claims(status=Fact.Status.ACTIVE) == []
    assert [profile.preferences for profile in UserProfile.objects.all()] in ([], [{}])


@pytest.mark.django_db(transaction=True)
def test_a_summary_that_repeats_it_is_made_again_without_it(user: Owner) -> None:
    say_one(user, ADDRESS, "I live in Porto.", days=0)
    assert end_and_summarize(user, "day-0") == [f"user: {ADDRESS}\nuser: I live in Porto."]

    say_one(user, ASKS, days=5)
    assert found_episodes() == []
    summarize(NOW)

    assert found_episodes() == ["user: I live in Porto."]


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


def test_it_is_learned_again_once_it_is_said_again(user: Owner) -> None:
    say_one(user, ADDRESS, days=0)
    say_one(user, ASKS, days=5)
    say_one(user, "My address is 12 Rose Street.", days=9)

    assert claims(status=Fact.Status.ACTIVE) == [CLAIM]


def test_a_turn_that_says_more_stays_and_staff_see_the_request(user: Owner) -> None:
    both = "My address is 12 Rose Street. My sister lives in Braga."
    say_one(user, both, days=0)
    say_one(user, ASKS, days=5)

    assert claims(status=Fact.Status.RETRACTED) == [CLAIM]
    assert (buried(), state_of(ASKS)) == ([ASKS], "open")


def test_a_request_that_fits_no_fact_waits_for_staff(user: Owner) -> None:
    say_one(user, "I live in Porto.", days=0)
    say_one(user, "Delete everything you know about me.", days=5)

    assert claims(status=Fact.Status.ACTIVE) == ["The user lives in Porto"]
    assert state_of("Delete everything you know about me.") == "open"


@pytest.mark.parametrize(
    "asks",
    [
        "Forget that I live in Porto. I live in Braga now.",
        "Forget my budget. What is the best laptop overall?",
        "Forget my address. I want to book a table at Luigi for 8 people.",
    ],
)
def test_a_turn_that_asks_and_says_more_is_found(user: Owner, asks: str) -> None:
    say_one(user, "I live in Porto.", days=0)
    say_one(user, asks, days=5)

    assert state_of(asks) in ("done", "open")
    assert asks not in buried()


def test_a_sentence_that_says_more_than_what_is_forgotten_is_found(user: Owner) -> None:
    both = "My address is 12 Rose Street and the spare key is under the blue pot."
    say_one(user, both, days=0)
    say_one(user, ASKS, days=5)

    assert claims(status=Fact.Status.ACTIVE) == []
    assert (buried(), state_of(ASKS)) == ([ASKS], "open")


def test_a_request_that_is_extracted_again_stays_done(user: Owner) -> None:
    say_one(user, ADDRESS, ASKS, days=0)
    Conversation.objects.update(extracted_count=0, extract_after=NOW)
    extract_all(NOW)
    Conversation.objects.update(extracted_count=1, extract_after=NOW)
    extract_all(NOW)

    assert claims(status=Fact.Status.ACTIVE) == []
    assert state_of(ASKS) == "done"


@pytest.mark.parametrize("asks", ["Forget my address. Forget my shoe size.", "Forget my shoe size. Forget my address."])
def test_a_turn_that_asks_twice_is_done_once_both_are(user: Owner, asks: str) -> None:
    say_one(user, ADDRESS, days=0)
    say_one(user, asks, days=5)

    assert claims(status=Fact.Status.RETRACTED) == [CLAIM]
    assert state_of(asks) == "open"


def test_a_second_request_for_what_is_forgotten_is_done(user: Owner) -> None:
    again = "Forget my address!"
    say_one(user, ADDRESS, days=0)
    say_one(user, ASKS, days=5)
    say_one(user, again, days=6)

    assert (buried(), state_of(ASKS), state_of(again)) == ([ADDRESS, ASKS, again], "done", "done")


def test_a_second_request_stays_open_while_a_turn_still_says_it(user: Owner) -> None:
    again = "Forget my address!"
    say_one(user, "My address is 12 Rose Street. My sister lives in Braga.", days=0)
    say_one(user, ASKS, days=5)
    say_one(user, again, days=6)

    assert (state_of(ASKS), state_of(again)) == ("open", "open")


def test_a_request_that_staff_closed_meanwhile_stays_closed(user: Owner) -> None:
    say_one(user, ASKS, days=5)
    stale = Turn.objects.get()
    Turn.objects.update(metadata={FORGET_KEY: "closed", "topic": "home"})
    stale.metadata = {}

    forget_requested(user, find_requests([stale]), may_end=(), now=NOW)

    assert Turn.objects.get().metadata == {FORGET_KEY: "closed", "topic": "home"}


def test_a_request_is_open_if_there_are_too_many_facts_to_look_at(user: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.services.extraction.forget.MAX_CANDIDATES", 2)
    asks = "Forget what I said about jazz."
    say_one(user, "I love jazz.", days=0)
    say_one(user, ADDRESS, days=1)
    say_one(user, "My sister hates jazz.", days=2)
    say_one(user, asks, days=5)

    assert "The user loves jazz" in claims(status=Fact.Status.ACTIVE)
    assert len(claims(status=Fact.Status.RETRACTED)) == 1
    assert state_of(asks) == "open"


def test_the_evidence_is_read_without_its_texts(user: Owner) -> None:
    say_one(user, ADDRESS, days=0)
    fact_id = Fact.objects.get().id

    [turn] = read_evidence(user.account_id, [fact_id])[fact_id]

    assert {"text", "payload"} <= turn.get_deferred_fields()


def test_facts_of_others_stay(user: Owner) -> None:
    say_one(replace(user, user_id="u2"), ADDRESS, days=0)
    say_one(user, ADDRESS, days=1, name="Eva")
    say_one(user, ASKS, days=5)

    assert claims(status=Fact.Status.RETRACTED) == []


def test_what_was_said_later_stays(user: Owner) -> None:
    say_one(user, ASKS, days=5)
    say_one(user, ADDRESS, days=7)
    say_one(user, ASKS, days=6)

    assert claims(status=Fact.Status.ACTIVE) == [CLAIM]


def test_an_account_that_does_not_prefer_new_facts_leaves_it_to_staff(user: Owner) -> None:
    Account.objects.filter(pk=user.account_id).update(contradictions="flag_review")
    say_one(user, ADDRESS, days=0)
    say_one(user, ASKS, days=5)

    assert claims(status=Fact.Status.ACTIVE) == [CLAIM]
    assert (buried(), state_of(ASKS)) == ([ASKS], "open")
