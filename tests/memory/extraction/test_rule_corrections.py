"""Statements that correct, end or replace what was said or known before."""

import pytest

from memory.extraction.rules.attributes import read_claim
from memory.extraction.rules.words import SINGLE_RELATIONS
from tests.memory.extraction.spoken import claims, extracted, only, said, turn


@pytest.mark.parametrize(
    ("first", "second", "claim"),
    [
        ("I live in Lisbon.", "Sorry, I live in Porto.", "The user lives in Porto"),
        ("I live in Lisbon.", "Actually, I live in Porto.", "The user lives in Porto"),
        ("I live in Lisbon.", "No, I meant Porto.", "The user lives in Porto"),
        ("I live in Lisbon.", "Sorry, it's Porto, not Lisbon.", "The user lives in Porto"),
        ("I live in Lisbon.", "I misspoke: I live in Porto.", "The user lives in Porto"),
        ("I live in Lisbon.", "Correction: I live in Porto.", "The user lives in Porto"),
        ("I'm 30 years old.", "Oops, I'm 31.", "The user is 31 years old"),
        ("I work for Acme.", "Wait, no, I work for Globex.", "The user works for Globex"),
        ("I'm married to Bruno.", "Sorry, I meant Otto.", "The user is married to Otto"),
        ("My sister is called Rita.", "Sorry, I meant my sister is called Rosa.", "The user's sister is Rosa"),
        ("I bought a red car.", "I misspoke, I bought a blue car.", "The user bought a blue car"),
    ],
)
def test_a_correction_retracts_the_earlier_statement(first: str, second: str, claim: str) -> None:
    wrong, right = said(first, second).facts

    assert (right.claim, right.corrects, right.contradicts) == (claim, (wrong.number,), ())
    assert wrong.corrects == wrong.contradicts == ()


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("I'm allergic to nuts, no wait, to shellfish.", ["The user is allergic to shellfish"]),
        ("Let's meet at 5, no, at 6.", ["The user decided to meet at 6"]),
        ("We use Postgres, no, MySQL.", ["The user's team uses MySQL"]),
        ("The release is on Monday, sorry, Tuesday.", ["The release is on 23 May 2023"]),
        ("I live in Lisbon, I mean Porto.", ["The user lives in Porto"]),
        ("I work at Acme, or rather at Globex.", ["The user works at Globex"]),
        ("My name is Ana, actually Anna.", ["The user's name is Anna"]),
        ("I live in Lisbon - scratch that, I live in Porto.", ["The user lives in Porto"]),
        ("I live in Lisbon, no, I live in Porto.", ["The user lives in Porto"]),
        ("I'm allergic to nuts, no, I'm allergic to shellfish.", ["The user is allergic to shellfish"]),
        (
            "I'm allergic to nuts, no wait, to shellfish, and I live in Porto.",
            ["The user is allergic to shellfish", "The user lives in Porto"],
        ),
        ("I'm allergic to peanuts, sorry, I mean tree nuts", ["The user is allergic to tree nuts"]),
        ("I'm allergic to peanuts, I mean tree nuts.", ["The user is allergic to tree nuts"]),
        ("I hate mushrooms, no wait, I meant olives.", ["The user hates olives"]),
        ("I have two cats, make that three cats.", ["The user has three cats"]),
        ("I work at Acme, no, Globex, no, Initech.", ["The user works at Initech"]),
        ("My favourite colour is blue, no wait, green.", ["The user's favorite colour is green"]),
        ("I have two cats, make that three.", []),
        ("My phone number is 555 1234, no, 555 9999.", ["The user's phone number is 555 9999"]),
        ("I'm vegan, or rather vegetarian.", ["The user is vegetarian"]),
        ("I live in Porto, strike that.", []),
        ("I have two cats, no dogs.", ["The user has two cats"]),
        ("I live in Porto, I mean it.", ["The user lives in Porto"]),
        ("Oh sorry, wait, no, I live in Porto.", ["The user lives in Porto"]),
    ],
)
def test_what_a_sentence_takes_back_is_not_stated_and_what_replaces_it_is(text: str, stated: list[str]) -> None:
    assert claims(text) == stated


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("I'm allergic to shellfish. No wait, to nuts.", ["The user is allergic to nuts"]),
        ("I'm allergic to shellfish. No wait, nuts.", ["The user is allergic to nuts"]),
        ("I'm allergic to shellfish. Sorry, I meant tree nuts.", ["The user is allergic to tree nuts"]),
        ("I live in Lisbon. No, Porto.", ["The user lives in Porto"]),
        ("My sister is vegan. Wait, no, vegetarian.", ["The user's sister is vegetarian"]),
        ("I was born in 1984. Sorry, 1985.", ["The user was born in 1985"]),
        ("I have a dog. No cats.", ["The user has a dog"]),
        ("I love coffee. No, thanks.", ["The user loves coffee"]),
        ("I live in Porto. Sorry, John.", ["The user lives in Porto"]),
        ("I'm allergic to nuts. No wait, never mind.", ["The user is allergic to nuts"]),
        ("I'm allergic to nuts. Sorry, I mean it.", ["The user is allergic to nuts"]),
        ("I live in Porto. Wait, Ana lives there too.", ["The user lives in Porto"]),
    ],
)
def test_a_sentence_takes_back_the_value_at_the_end_of_the_one_before(text: str, stated: list[str]) -> None:
    assert claims(text) == stated


@pytest.mark.parametrize(
    ("first", "second", "right"),
    [
        ("I'm allergic to nuts.", "Wait, not nuts, I mean eggs.", "The user is allergic to eggs"),
        ("I'm allergic to nuts.", "Actually it's not nuts, it's eggs I'm allergic to.", "The user is allergic to eggs"),
        ("I'm allergic to nuts.", "Sorry, eggs, not nuts.", "The user is allergic to eggs"),
        ("I hate olives.", "Not olives, I mean capers.", "The user hates capers"),
        ("I love jazz.", "No, I meant blues.", "The user loves blues"),
        (
            "I have a dentist appointment on 4 December at 3pm.",
            "no wait, 3.30pm",
            "The user has a dentist appointment on 4 December 2023 at 3.30pm",
        ),
        ("My flight is on Saturday 2 December.", "Oops, Sunday the 3rd.", "The user's flight is on 3 December 2023"),
        ("My exam is on 4 June.", "No, the 5th.", "The user's exam is on 5 June 2023"),
        ("My sister's name is Priya.", "Actually it's Pria", "The user's sister is Pria"),
        ("I'm allergic to milk and I live in Leeds.", "No wait, York.", "The user lives in York"),
    ],
)
def test_the_next_turn_takes_back_the_end_of_the_last_one(first: str, second: str, right: str) -> None:
    [*_, wrong, corrected] = said(first, second).facts
    assert (corrected.claim, corrected.corrects) == (right, (wrong.number,))

    known = claims(first)
    later = only(extracted([turn(second, index=1)], before=[turn(first)], known=known))
    assert (later.claim, later.corrects) == (right, (len(known),))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I'm vegan.", "Actually it's raining."),
        ("I live in Leeds.", "Actually it's Friday."),
        ("I live in Leeds.", "Sorry, John."),
        ("I'm allergic to nuts.", "No, thanks."),
        ("I'm allergic to nuts.", "Wait, not nuts, I forgot."),
        ("I'm allergic to nuts.", "No, not cheese, fish is what I want for dinner."),
        ("My flight is on 2 December.", "Wait, 3 things I forgot."),
        ("I live in Leeds.", "Not sure, I mean it."),
    ],
)
def test_the_next_turn_takes_nothing_back(first: str, second: str) -> None:
    assert [fact.claim for fact in said(first, second).facts] == claims(first)


def test_a_long_sentence_takes_back_nothing_of_the_one_before() -> None:
    long = f"No wait, to nuts, {'no wait, to milk, ' * 30}to fish."

    assert "The user is allergic to shellfish" in claims(f"I'm allergic to shellfish. {long}")


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("I am allergic to nuts, wait, is that a problem.", "The user is allergic to nuts"),
        ("I am allergic to nuts, strike that from the menu.", "The user is allergic to nuts"),
        ("I am allergic to nuts, no, not to milk.", "The user is allergic to nuts"),
        ("I am allergic to nuts, no, to be honest.", "The user is allergic to nuts"),
        ("I am allergic to nuts, no, I do not eat fish.", "The user is allergic to nuts"),
        ("I am allergic to nuts, wait, I am late.", "The user is allergic to nuts"),
        ("I live in Porto, no, I live alone.", "The user lives in Porto"),
        ("I have a dog, no, I have no cats.", "The user has a dog"),
        ("I work at Acme, make that clear to everyone.", "The user works at Acme"),
        ("My favourite colour is blue, make that your default.", "The user's favorite colour is blue"),
        ("I live in Porto - sorry, forgot to mention that.", "The user lives in Porto"),
        ("I live in Porto, I mean in the old town.", "The user lives in Porto"),
        ("I am vegan, so for me: no, cheese is not fine.", "The user is vegan"),
    ],
)
def test_what_replaces_no_value_takes_nothing_back(text: str, stated: str) -> None:
    assert stated in claims(text)


def test_a_message_about_another_number_takes_no_number_back() -> None:
    found = claims("My phone number is 555 1234, wait, I will send the other one later.")

    assert [claim for claim in found if "555 1234" in claim]


def test_a_correction_retracts_a_known_fact() -> None:
    fact = only(said("Actually, I live in Porto.", known=["The user sings", "The user lives in Lisbon"]))

    assert (fact.number, fact.corrects) == (3, (2,))


def test_another_kind_of_what_is_preferred_corrects_the_known_preference() -> None:
    fact = only(said("Actually, I prefer aisle seats.", known=["The user prefers window seats"]))

    assert (fact.claim, fact.corrects) == ("The user prefers aisle seats", (1,))


def test_a_correction_of_a_turn_before_the_chunk_retracts_the_known_fact() -> None:
    before = [turn("I live in Lisbon.", index=1)]

    extraction = extracted([turn("No, I meant Porto.", index=2)], before=before, known=["The user lives in Lisbon"])

    assert (only(extraction).claim, only(extraction).corrects) == ("The user lives in Porto", (1,))


def test_a_speaker_cannot_correct_another_speaker() -> None:
    turns = [turn("I live in Lisbon.", speaker="Lena"), turn("Sorry, I meant Porto.", speaker="Otto", index=1)]

    assert [fact.claim for fact in extracted(turns).facts] == ["Lena lives in Lisbon"]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("I live in Porto.", "The user lives in Lisbon"),
        ("Actually, I live in Porto now.", "The user lives in Lisbon"),
        ("I just moved to Porto.", "The user lives in Lisbon"),
        ("I moved to Porto last month.", "The user moved to Lisbon in March 2020"),
        ("I no longer live in Lisbon.", "The user lives in Lisbon"),
        ("I used to live in Lisbon.", "The user lives in Lisbon."),
        ("I work at Globex.", "The user works for Acme"),
        ("I'm 31 years old.", "The user is 30"),
        ("I was born in Porto.", "The user was born in Lisbon in 1990"),
        ("I was born on 3 May 1990.", "The user was born on 4 May 1990"),
        ("I'm married to Otto.", "The user is married to Bruno"),
        ("My wife is called Rita.", "The user's wife is Rosa"),
        ("My favorite color is green.", "The user's favorite color is red"),
        ("I hate olives.", "The user loves olives"),
        ("I don't like olives.", "The user likes olives"),
        ("I like olives.", "The user no longer likes olives"),
        ("I live in Lisbon now.", "The user is based in Toronto"),
        ("I'm not allergic to peanuts after all, the test was wrong.", "The user is allergic to peanuts"),
        ("I'm allergic to peanuts.", "The user is not allergic to peanuts"),
        ("I don't eat meat.", "The user eats meat"),
        ("I don't have a car anymore.", "The user has a car"),
        ("I stopped smoking.", "The user smokes"),
        ("I'm no longer working at Acme.", "The user works at Acme"),
        ("I'm not training for the marathon anymore.", "The user is training for a marathon"),
        ("I got divorced.", "The user is married to Eva"),
        ("Call me Annie from now on.", "The user asks to be called Ana"),
        ("My dog Bolt died last week.", "The user's dog is Bolt"),
        ("I prefer detailed answers with examples from now on.", "The user prefers short answers"),
        ("My phone number changed, it's +351 999 888 777.", "The user's phone number is +351 912 345 678"),
        ("My new phone number is +351 999 888 777.", "The user's phone number is +351 912 345 678"),
        ("I changed my email address to ana@example.org.", "The user's email address is ana@example.com"),
        ("I'm based in Toronto.", "The user lives in Lisbon"),
    ],
)
def test_another_value_of_a_single_valued_attribute_contradicts_the_known_fact(text: str, known: str) -> None:
    # a move is followed by the home that it begins
    fact, *_home = said(text, known=[known]).facts

    assert (fact.contradicts, fact.corrects) == ((1,), ())


@pytest.mark.parametrize(
    ("known", "text", "claim"),
    [
        ("The user lives in Bristol", "I moved to Leeds last month.", "The user lives in Leeds"),
        ("The user lives in Bristol", "I just moved to Leeds.", "The user lives in Leeds"),
        ("The user's parents live in Braga", "My parents moved to Porto in April.", "The user's parents live in Porto"),
        (
            "The user lives at 14 Cardigan Lane, Leeds",
            "We moved to 3 Elm Road, York last month.",
            "The user lives at 3 Elm Road, York",
        ),
    ],
)
def test_a_move_from_a_known_home_says_where_somebody_lives_since_then(known: str, text: str, claim: str) -> None:
    move, home = said(text, known=[known]).facts

    assert (home.claim, home.temporal, home.valid_from) == (claim, "current", move.valid_from)
    assert move.contradicts == home.contradicts == (1,)


@pytest.mark.parametrize(
    "text", ["We moved to Leeds in 1999.", "I moved to Marketing last month.", "I moved to a flat."]
)
def test_a_former_move_and_one_to_what_may_be_no_place_begin_no_home(text: str) -> None:
    assert [fact.temporal for fact in said(text, known=["The user lives in Bristol"]).facts] == ["past"]


@pytest.mark.parametrize(
    ("known", "text", "claim"),
    [
        (
            "The user's number is 07700 900456",
            "I got a new number, it's 07700 900123.",
            "The user's number is 07700 900123",
        ),
        ("The user's number is 07700 900456", "Got a new number: 07700 900123", "The user's number is 07700 900123"),
        (
            "The user's number is 07700 900456",
            "I've changed my number, it's 07700 900123",
            "The user's number is 07700 900123",
        ),
        (
            "The user's email is a@example.org",
            "I got a new email, it's b@example.org",
            "The user's email is b@example.org",
        ),
        ("The user earns £40,000", "I'm on £45,000 now.", "The user earns £45,000"),
        ("The user earns £40,000", "I'm on 45k a year.", "The user earns 45k a year"),
        (
            "The user's rate is £48 an hour",
            "I put my rates up, it's £52 an hour now, call out still £60.",
            "The user's rates are now £52 an hour",
        ),
        ("The user's rent is £950 a month", "My rent has gone up, it's £995 now.", "The user's rent is now £995"),
    ],
)
def test_what_somebody_has_instead_is_learned_with_the_end_of_the_former(known: str, text: str, claim: str) -> None:
    fact = only(said(text, known=[known]))

    assert (fact.claim, fact.contradicts) == (claim, (1,))


def test_a_raise_ends_the_former_pay() -> None:
    facts = said("I got a raise, I'm on £45,000 now.", known=["The user earns £40,000"]).facts

    assert [(fact.claim, fact.contradicts) for fact in facts] == [
        ("The user got a raise", ()),
        ("The user earns £45,000", (1,)),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I put my hand up, it's 9 now.",
        "I got a new address, it's lovely.",
        "I'm on 3 tablets a day.",
        "I'm on £10 a day.",
    ],
)
def test_other_words_for_what_is_new_change_no_value(text: str) -> None:
    known = ["The user's hand is 8", "The user's address is 3 Elm Road", "The user earns £40,000"]

    assert [fact.contradicts for fact in said(text, known=known).facts if fact.contradicts] == []


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("I live in Porto.", "The user lives in Porto"),
        ("I live in Porto.", "The user's sister lives in Lisbon"),
        ("I live in Porto.", "The user works for Acme"),
        ("I live in Porto.", "The user used to live in Lisbon"),
        ("I moved to Porto in 1999.", "The user lives in Lisbon"),
        ("I will move to Porto.", "The user lives in Lisbon"),
        ("I used to live in Porto.", "The user lives in Lisbon"),
        ("I like olives.", "The user loves olives"),
        ("I used to like olives.", "The user dislikes olives"),
        ("I like olives.", "The user hates figs"),
        ("My sister is called Rita.", "The user's sister is Rosa"),
        ("I'm a baker.", "The user is a nurse"),
        ("I own a boat.", "The user owns a car"),
        ("Actually, I own a boat.", "The user owns a car"),
        ("I speak Danish.", "The user speaks German"),
        ("My favorite color is green.", "The user's favorite food is rice"),
        ("I prefer aisle seats.", "The user prefers window seats"),
        ("I prefer aisle seats on trains now.", "The user prefers window seats on planes"),
        ("I prefer spicy food now.", "The user prefers window seats"),
        ("I'm not allergic to milk.", "The user is allergic to peanuts"),
        ("I live in Porto.", "Somebody says that lives in many places are good"),
    ],
)
def test_a_compatible_claim_does_not_contradict_the_known_fact(text: str, known: str) -> None:
    fact = only(said(text, known=[known]))

    assert (fact.contradicts, fact.corrects) == ((), ())


def test_facts_of_one_chunk_contradict_each_other_in_their_order() -> None:
    first, second = said("I live in Lisbon.", "I live in Porto.").facts

    assert (first.contradicts, second.contradicts) == ((), (first.number,))


def test_an_assistant_cannot_retract_a_fact() -> None:
    extraction = said("Actually, I live in Porto.", role="assistant", speaker="Lena", known=["Lena lives in Lisbon"])

    assert all(fact.corrects == () for fact in extraction.facts)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("Lena lives in Porto.", ("Lena", "residence", "Porto")),
        ("Lena moved to Porto in May 2023", ("Lena", "residence", "Porto")),
        ("Lena is 30 years old", ("Lena", "age", "30")),
        ("Lena's favourite food is rice", ("Lena", "favorite:food", "rice")),
        ("Lena's wife is Rita", ("Lena", "only:wife", "Rita")),
        ("The user's name is Bruno", ("The user", "name", "Bruno")),
        ("Lena hates olives", ("Lena", "attitude:olives", "dislikes")),
    ],
)
def test_a_claim_is_parsed_into_subject_attribute_and_value(claim: str, expected: tuple[str, str, str]) -> None:
    read = read_claim(claim, only_relations=SINGLE_RELATIONS)

    assert read is not None
    assert (read.subject, read.attribute, read.value) == expected


@pytest.mark.parametrize("claim", ["", " ", "lives in", "x" * 100_000, "a " * 50_000, "Lena sings", "is is is from"])
def test_claims_with_unknown_phrasing_are_not_parsed(claim: str) -> None:
    assert read_claim(claim, only_relations=SINGLE_RELATIONS) is None
