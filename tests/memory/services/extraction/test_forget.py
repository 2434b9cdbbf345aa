"""Users ask to forget what they said: facts are retracted, turns are buried, and the rest waits for staff."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.models import Account, Conversation, Fact, Turn, UserProfile
from memory.owner import Owner
from memory.services.extraction.forget import FORGET_KEY
from tests.memory.episodes import NOW
from tests.memory.knowledge import TURN_TIME, claims, extract_all, say_sentences
from tests.memory.recalls import found_by_words

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
