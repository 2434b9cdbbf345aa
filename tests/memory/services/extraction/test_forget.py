"""Users ask to forget what they said: facts are retracted, turns are buried, and the rest waits for staff."""

from dataclasses import replace
from datetime import timedelta

import pytest

from memory.models import Account, Conversation, Fact, Link, Turn, UserProfile
from memory.owner import Owner
from memory.services.embedding.queue import embed_pending
from memory.services.extraction.forget import FORGET_KEY, find_requests, forget_requested, read_evidence
from tests.memory.episodes import NOW
from tests.memory.knowledge import TURN_TIME, claims, extract_all, say_sentences
from tests.memory.recalls import found_by_words
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

ADDRESS = "My address is 12 Rose Street."
CLAIM = "The user's address is 12 Rose Street"
ASKS = "Please forget my address."


@pytest.fixture
def user(owner: Owner) -> Owner:
    return replace(owner, user_id="u1")


def say_one(owner: Owner, *sentences: str, days: int, name: str = "", is_embedded: bool = False) -> None:
    at = TURN_TIME + timedelta(days=days)
    say_sentences(owner, *sentences, name=name, conversation_id=f"day-{days}", at=at)
    if is_embedded:
        embed_pending(now=NOW + timedelta(minutes=1), limit=10)
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


def test_an_address_is_the_home_where_nothing_else_fits(user: Owner) -> None:
    say_one(user, "I live in Porto.", days=0)
    say_one(user, ASKS, days=5)
    say_one(user, ADDRESS, days=6)

    assert claims(status=Fact.Status.RETRACTED) == ["The user lives in Porto"]
    assert (state_of(ASKS), claims(status=Fact.Status.ACTIVE)) == ("done", [CLAIM])


def test_the_home_stays_if_the_address_is_forgotten_already(user: Owner) -> None:
    again = "Forget my address!"
    say_one(user, ADDRESS, "I live in Porto.", days=0)
    say_one(user, ASKS, days=5)
    say_one(user, again, days=6)

    assert claims(status=Fact.Status.ACTIVE) == ["The user lives in Porto"]
    assert state_of(again) == "done"


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("My Netflix password is hunter2.", "Forget my Netflix password."),
        ("My PIN is 1234. I love jazz.", "Forget my PIN please."),
        ("The code for the gate is 4455.", "Please forget the gate code."),
    ],
)
def test_turns_that_gave_a_secret_are_found_no_more(user: Owner, said: str, asks: str) -> None:
    other = "My wifi password is blue77."
    say_one(user, said, other, days=0)
    say_one(user, asks, days=5)

    assert (buried(), state_of(asks)) == ([said, asks], "done")


def test_a_secret_that_an_assistant_repeated_is_found_no_more(user: Owner) -> None:
    said, repeated = "My PIN is 1234.", "Noted, your PIN is 1234."
    answer = turn(repeated, role="assistant", timestamp=TURN_TIME)
    say_one(user, said, days=0)
    say(user, answer, conversation_id="day-0")
    say_one(user, "Forget my PIN.", days=5)

    assert buried() == [said, repeated, "Forget my PIN."]


@pytest.mark.parametrize(
    "said",
    [
        ["My bank PIN is 1234.", "My phone PIN is 9999."],
        ["My sister's PIN is 1234."],
        ["I forgot my PIN."],
        [f"My PIN is 1234. {'We went for a walk. ' * 20}"],
    ],
)
def test_a_secret_that_is_not_surely_meant_waits_for_staff(user: Owner, said: list[str]) -> None:
    say_one(user, *said, days=0)
    say_one(user, "Forget my PIN.", days=5)

    assert (buried(), state_of("Forget my PIN.")) == (["Forget my PIN."], "open")


@pytest.mark.parametrize("user_id", ["u2", "u1"])
def test_secrets_of_others_stay(user: Owner, user_id: str) -> None:
    say_one(replace(user, user_id=user_id), "My PIN is 1234.", days=0, name="Eva")
    say_one(user, "Forget my PIN.", days=5)

    assert (buried(), state_of("Forget my PIN.")) == (["Forget my PIN."], "open")


def test_an_account_that_does_not_prefer_new_facts_leaves_secrets_to_staff(user: Owner) -> None:
    Account.objects.filter(pk=user.account_id).update(contradictions="flag_review")
    say_one(user, "My PIN is 1234.", days=0)
    say_one(user, "Forget my PIN.", days=5)

    assert (buried(), state_of("Forget my PIN.")) == (["Forget my PIN."], "open")


def test_a_name_is_forgotten_if_it_is_known_to_be_somebody(user: Owner) -> None:
    say_one(user, "My brother Alex lives in Paris.", "I use Docker at work.", days=0)
    say_one(user, "Forget about Alex.", days=5)
    say_one(user, "Forget about Docker.", days=6)

    assert claims(status=Fact.Status.ACTIVE) == ["The user uses Docker at work"]
    assert (state_of("Forget about Alex."), state_of("Forget about Docker.")) == ("done", "open")


def test_a_request_replaces_nothing_that_it_repeats(user: Owner) -> None:
    asks = "Please forget that my sister is vegan."
    for days, said in enumerate(["I'm vegan.", "My sister is vegan.", asks]):
        say_one(user, said, days=days, is_embedded=True)

    assert claims(status=Fact.Status.ACTIVE) == ["The user is vegan"]
    assert (claims(status=Fact.Status.RETRACTED), state_of(asks)) == (["The user's sister is vegan"], "done")
    assert not Link.objects.filter(type="REPLACES", source__text=asks).exists()


def test_what_follows_a_request_is_learned(user: Owner) -> None:
    say_one(user, "Forget that I live in Porto, I live in Braga now.", days=0)

    assert claims() == ["The user lives in Braga"]
