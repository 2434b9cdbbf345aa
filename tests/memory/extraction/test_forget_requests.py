"""Requests to forget something: which sentences are some, and which claims they cover."""

import pytest

from memory.extraction.forget_requests import ForgetRequest, only_asks_to_forget, read_forget_requests


@pytest.mark.parametrize(
    ("text", "request_read"),
    [
        ("Forget what I said about my address.", ForgetRequest(topic="address", is_own=True)),
        ("please forget my address", ForgetRequest(topic="address", is_own=True)),
        ("Can you please forget my phone number?", ForgetRequest(topic="phone number", is_own=True)),
        ("Hello again. Forget everything I told you about Globex, please.", ForgetRequest(topic="Globex")),
        ("Delete what you know about my job.", ForgetRequest(topic="job", is_own=True)),
        ("Remove my birthday from your memory.", ForgetRequest(topic="birthday", is_own=True)),
        ("Forget that I live in Porto.", ForgetRequest(stated="I live in Porto")),
        ("Forget that I told you that I live in Porto.", ForgetRequest(stated="I live in Porto")),
        ("Please don't remember that I'm vegan.", ForgetRequest(stated="I'm vegan")),
        ("Will you please forget my birthday?", ForgetRequest(topic="birthday", is_own=True)),
        ("Would you forget my birthday, please?", ForgetRequest(topic="birthday", is_own=True)),
        ("Delete everything you know about me.", ForgetRequest()),
    ],
)
def test_a_request_is_read(text: str, request_read: ForgetRequest) -> None:
    assert list(read_forget_requests(text)) == [request_read]


@pytest.mark.parametrize(
    "text",
    [
        "Don't forget my birthday.",
        "I always forget my keys.",
        "We must not forget that I am vegan.",
        "Forget it.",
        "Forget about that.",
        "Forget what I said.",
        "Forget my last message.",
        "Forget that I asked.",
        "Did you forget my address?",
        "Will you forget that I'm vegan?",
        "Would you forget my birthday?",
        "Forget my diet tonight.",
        "Forget my diet for now.",
        "Forget my budget for a moment.",
        "Don't remember my address, let me look.",
        "I don't remember that I live in Porto.",
        'She said "forget my address".',
        "Please forget my address. " * 20,
    ],
)
def test_what_only_sounds_like_one_is_none(text: str) -> None:
    assert list(read_forget_requests(text)) == []


@pytest.mark.parametrize(
    ("text", "claim", "is_covered"),
    [
        ("Forget my address.", "The user's address is 12 Rose Street", True),
        ("Forget my address.", "The user lives at 12 Rose Street", True),
        ("Forget my address.", "The user lives in Porto", False),
        ("Forget my address.", "Eva's address is 3 Elm Road", False),
        ("Forget my job.", "The user works at Globex", True),
        ("Forget what I said about my sister.", "The user's sister is Eva", True),
        ("Forget what I said about my sister.", "The user lives in Porto", False),
        ("Forget what I said about Globex.", "The user works at Globex", True),
        ("Forget what I said about Globex.", "Globex pays well", True),
        ("Forget everything you know about me.", "The user works at Globex", False),
        ("Forget my birthday.", "The user was born on 3 May", True),
        ("Forget my name.", "The user's name is Eva", True),
        ("Forget my email.", "The user's email address is eva@example.com", True),
        ("Forget my sister.", "The user's sister lives in Braga", True),
        ("Forget my sister.", "The user's sister Eva moved to Braga", True),
        ("Forget my dog.", "The user has a black dog called Rex", True),
        ("Forget my dog.", "The user walks their dog at six", True),
        ("Forget my dog.", "The user's dog's name is Rex", True),
        ("Forget my sister's address.", "The user's sister's address is 3 Elm Road", True),
        # of others
        ("Forget my address.", "The user's sister's address is 3 Elm Road", False),
        ("Forget my birthday.", "The user's sister's birthday is 3 May", False),
        ("Forget my birthday.", "The user's sister was born on 3 May", False),
        ("Forget my home.", "The user's sister lives in Braga", False),
        ("Forget my job.", "The user's brother works at Acme", False),
        ("Forget my name.", "The user's dog's name is Rex", False),
        ("Forget my dog.", "The user's sister has a dog", False),
        ("Forget what I said about work.", "Eva worked at Acme", False),
        ("Forget my sister.", "The user's sister-in-law is Ana", False),
        # of something else
        ("Forget my mother.", "The user's mother tongue is Polish", False),
        ("Forget my home.", "The user works from home", False),
        ("Forget my address.", "The user lives on a farm", False),
        ("Forget my work.", "The user worked out at the gym", False),
        ("Forget my email.", "The user's email provider is Proton", False),
        ("Forget my email.", "The user wrote an email to Bob", False),
        ("Forget my job.", "The user has a job interview on Monday", False),
    ],
)
def test_a_topic_covers_the_claims_with_its_words(text: str, claim: str, is_covered: bool) -> None:
    [found] = read_forget_requests(text)

    assert found.covers(claim, speaker="The user", claims_stated=()) is is_covered


def test_a_statement_covers_the_claims_that_say_the_same() -> None:
    [found] = read_forget_requests("Forget that I live in Porto.")

    said = ("The user lives in Porto",)
    assert found.covers("The user lives in Porto", speaker="The user", claims_stated=said)
    assert found.covers("The user is based in Porto", speaker="The user", claims_stated=said)
    assert not found.covers("The user lives in Braga", speaker="The user", claims_stated=said)


@pytest.mark.parametrize(
    ("text", "asks_only"),
    [
        ("Forget my address.", True),
        ("Ok. Forget my address. Thanks!", True),
        ("Forget that I live in Porto. I live in Braga now.", False),
        ("Forget my budget. What is the best laptop overall?", False),
        ("Forget my budget and book a table at Luigi.", False),
    ],
)
def test_a_turn_only_asks_if_no_other_sentence_states_something(text: str, *, asks_only: bool) -> None:
    assert only_asks_to_forget(text) is asks_only
