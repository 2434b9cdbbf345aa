"""Requests to forget something: which sentences are some, and which claims they cover."""

import pytest

from memory.extraction.forget_requests import (
    ForgetRequest,
    only_asks_to_forget,
    read_forget_requests,
    without_requests,
)
from memory.extraction.given_secrets import choose_secrets, find_given_secrets, read_secret_words


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
        ("Don't remember that my son has asthma.", ForgetRequest(stated="my son has asthma")),
        ("Don’t store that I'm vegan, please.", ForgetRequest(stated="I'm vegan")),
        ("Delete the fact that I live in Porto.", ForgetRequest(stated="I live in Porto")),
        ("Forget the fact that I live in Porto.", ForgetRequest(stated="I live in Porto")),
        ("Delete what I told you about my job.", ForgetRequest(topic="job", is_own=True)),
        ("Don't save my phone number.", ForgetRequest(topic="phone number", is_own=True)),
        ("Remove my home address.", ForgetRequest(topic="address", is_own=True)),
        ("Will you please forget my birthday?", ForgetRequest(topic="birthday", is_own=True)),
        ("Would you forget my birthday, please?", ForgetRequest(topic="birthday", is_own=True)),
        ("Delete everything you know about me.", ForgetRequest()),
        ("pls forget my address", ForgetRequest(topic="address", is_own=True)),
        ("Can you delete my phone number?", ForgetRequest(topic="phone number", is_own=True)),
        ("Could you please forget where I live?", ForgetRequest(topic="home", is_own=True)),
        ("Forget how old I am.", ForgetRequest(topic="age", is_own=True)),
        ("Forget my address please, I'm moving anyway.", ForgetRequest(topic="address", is_own=True)),
        ("Forget my home address because I'm moving.", ForgetRequest(topic="address", is_own=True)),
        ("Please forget my salary, that was private.", ForgetRequest(topic="salary", is_own=True)),
        ("Forget that Gemma is coeliac.", ForgetRequest(stated="Gemma is coeliac")),
        ("Please forget that she's pregnant.", ForgetRequest(stated="she's pregnant")),
        ("Forget I said my rent is 950.", ForgetRequest(stated="my rent is 950")),
        ("I don't want you to remember my allergy.", ForgetRequest(topic="allergy", is_own=True)),
        ("I don't want you to remember that I'm diabetic.", ForgetRequest(stated="I'm diabetic")),
        ("I'd rather you forgot my birthday.", ForgetRequest(topic="birthday", is_own=True)),
        ("Please don't remember my address.", ForgetRequest(topic="address", is_own=True)),
        ("Forget the wifi password.", ForgetRequest(topic="wifi password")),
        ("Forget the code for the gate.", ForgetRequest(topic="code for the gate")),
        ("Forget the address I gave you.", ForgetRequest(topic="address", is_own=True)),
        ("Forget about Alex.", ForgetRequest(topic="Alex", is_name=True)),
        ("Forget Gemma's allergy.", ForgetRequest(topic="Gemma's allergy")),
        ("Forget that I told you about my cat.", ForgetRequest(topic="cat", is_own=True)),
        ("Forget that I mentioned my cat.", ForgetRequest(topic="cat", is_own=True)),
        ("Forget where my sister lives.", ForgetRequest()),
        ("Delete my data.", ForgetRequest()),
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
        "Don't remember that song.",
        "Don't remember my PIN.",
        "Don't keep my dog waiting.",
        "Don't store our passwords.",
        "Don't save my draft.",
        "Remove my address from the invoice.",
        'She said "forget my address".',
        "Please forget my address. " * 20,
        "Will you forget my address?",
        "Don't forget my appointment.",
        "I don't want you to forget my birthday.",
        "I forgot my Netflix password.",
        "I don't remember my PIN.",
        "I want to forget my ex.",
        "What happens if you forget my address?",
        "Can you delete my last order from the cart?",
        "Can you delete my last order?",
        "Can you delete my account?",
        "Can you remove my phone number from the contact form?",
        "Delete my branch.",
        "Forget about Friday.",
        "Forget about Paris.",
        "Forget about the budget.",
        "Forget that it's raining.",
        "Forget that idea.",
        "Forget the code.",
        "Forget the old code, write it in Rust.",
        "Forget my diet, it's Christmas.",
        "Forget my bike, it's broken.",
        "Forget my job, I hate it.",
        "Delete everything about Redis.",
        "Forget my budget, I want the best one.",
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
        ("Forget my allergy.", "The user is allergic to peanuts", True),
        ("Forget my salary.", "The user earns £52k", True),
        ("Forget my mobile number.", "The user's phone number is 07700 900123", True),
        ("Forget where I live.", "The user lives in Leeds", True),
        ("Forget where I live.", "The user's address is 12 Rose Street", True),
        ("Forget about my therapist.", "The user is seeing a therapist on Mondays", True),
        ("Forget about Alex.", "Alex lives in Paris", True),
        ("Forget Gemma's allergy.", "Gemma is allergic to nuts", True),
        ("Forget that Gemma is coeliac.", "Gemma is coeliac", True),
        ("Forget that Gemma is coeliac.", "The user's daughter Gemma is coeliac", True),
        ("Forget the door code.", "The door code is 4455", True),
        # of others
        ("Forget my allergy.", "The user's sister is allergic to nuts", False),
        ("Forget about Alex.", "Alexandra lives in Paris", False),
        ("Forget that Gemma is coeliac.", "Gemma is not coeliac", False),
        ("Forget that Gemma is coeliac.", "Gemma is five", False),
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
        ("Forget about my therapist.", "The user is a therapist", False),
        ("Forget about my therapist.", "The user wants a therapist", False),
        ("Forget the password.", "The user's passport expires in May", False),
        ("Forget the wifi password.", "The wifi password is kept in the drawer", False),
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
        ("Please forget my salary, that was private.", True),
        ("Forget my address, it is 12 Rose Street.", False),
        ("Forget my budget and book a table at Luigi.", False),
    ],
)
def test_a_turn_only_asks_if_no_other_sentence_states_something(text: str, *, asks_only: bool) -> None:
    assert only_asks_to_forget(text) is asks_only


def test_an_address_is_where_somebody_lives_if_no_other_is_known() -> None:
    [found] = read_forget_requests("Forget my address.")

    assert found.wider == ForgetRequest(topic="home", is_own=True)


@pytest.mark.parametrize(
    ("claim", "is_somebody"),
    [
        ("Alex is the user's ex-boyfriend", True),
        ("The user's brother is Alex", True),
        ("The user's brother Alex lives in Leeds", True),
        ("The user's dog is called Alex", True),
        ("The user uses Alex at work", False),
        ("Alex runs on port 8000", False),
    ],
)
def test_a_name_is_one_that_a_claim_says_is_of_somebody(claim: str, *, is_somebody: bool) -> None:
    [found] = read_forget_requests("Forget about Alex.")

    assert found.is_about_one([claim]) is is_somebody


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("My sister is vegan.\nShe lives  in Braga.", "My sister is vegan.\nShe lives  in Braga."),
        ("Remember this:\n\nmy sister is vegan.", "Remember this:\n\nmy sister is vegan."),
        ("Please forget that my sister is vegan.", ""),
        ("Forget that I live in Porto. I live in Braga now.", "I live in Braga now."),
        ("Forget that I live in Porto, I live in Braga now.", "I live in Braga now"),
    ],
)
def test_a_request_is_no_part_of_what_a_text_says(text: str, rest: str) -> None:
    assert without_requests(text) == rest


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("My Netflix password is hunter2.", {"netflix password"}),
        ("hunter2 is my Netflix password.", {"netflix password"}),
        ("The passcode for Netflix is hunter2.", {"netflix password"}),
        ("I changed the wi-fi password to hunter2.", {"wifi password"}),
        ("My bank PIN is 1234 and my phone PIN is 9999.", {"bank pin", "phone pin"}),
        ("The code for the gate is 4455.", {"gate"}),
        ("My sister's PIN is 1234.", {"sister's pin"}),
        ("I forgot my Netflix password.", set()),
    ],
)
def test_secrets_are_known_by_the_words_that_name_them(text: str, given: set[str]) -> None:
    assert find_given_secrets(text) == {frozenset(words.split()) for words in given}


@pytest.mark.parametrize("topic", ["pink bike", "pineapple", "secretary", "Pinterest", "Secret Santa", "tokenizer"])
def test_words_that_begin_like_a_secret_name_none(topic: str) -> None:
    assert read_secret_words(topic) == frozenset()


@pytest.mark.parametrize(
    ("wanted", "given", "chosen"),
    [
        ("pin", ["pin", "bank pin"], ["pin"]),
        ("pin", ["bank pin"], ["bank pin"]),
        ("pin", ["bank pin", "phone pin"], []),
        ("pin", ["sister's pin"], []),
        ("netflix password", ["wifi password"], []),
    ],
)
def test_a_secret_is_chosen_if_it_is_surely_meant(wanted: str, given: list[str], chosen: list[str]) -> None:
    words = {frozenset(each.split()) for each in given}

    assert choose_secrets(frozenset(wanted.split()), words) == {frozenset(each.split()) for each in chosen}
