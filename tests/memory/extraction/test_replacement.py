"""Statements that replace earlier ones, and statements that sound alike and both hold."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.replacement import (
    MAX_NEIGHBOURS,
    MAX_OF_A_PART,
    Pair,
    PairColumns,
    make_saying,
    may_replace,
    may_state,
    replacement_probability,
)
from memory.extraction.statement_words import read_words, says_of_others
from memory.scoring import POSSIBLE_REPLACEMENT, PROBABLE_REPLACEMENT, SURE_REPLACEMENT
from tests.memory.pace import takes_the_square
from tests.properties import examples

SAID = datetime(2026, 6, 1, 9, tzinfo=UTC)

REPLACED = [
    ("My dentist is Dr. Hull.", "I switched dentists, I see Dr. Farrow now."),
    ("Our sprint review is on Wednesday at 3.", "The sprint review was moved to Thursday at 2."),
    ("The upload limit is 20 MB.", "Actually the upload limit is 50 MB, not 20."),
    ("My brother works at the Brandt bakery.", "My brother quit the bakery, he is with the railway now."),
    ("We use Travis for continuous integration.", "We no longer use Travis, builds go through Drone."),
    ("Sofia handles the invoices.", "Karim took over the invoices from Sofia."),
]
RESTATED = [
    ("Our stand-up is at 8:30.", "I always eat my apple after our 10:15 stand-up."),
    ("My physiotherapist is Ludo.", "Wanda has cold hands, but she is a good physiotherapist for my shoulder."),
]
BOTH_HOLD = [
    ("My daughter Ines studies in Porto.", "My daughter Clara studies in Braga."),
    ("The production database has 64 GB.", "The staging database has 8 GB."),
    ("I usually cycle to work.", "I would like to move to Norway some day."),
    ("We are planning to use Kafka next year.", "We use RabbitMQ for the queue."),
    ("Do you know a good dentist in town?", "The dentist in town is closed on Mondays."),
    ("Invoice 1042 is due on 3 May.", "Invoice 1043 is due on 17 May."),
    ("Meeting room A seats 8 people.", "Meeting room B seats 14 people."),
    ("The user owes Max 20 euros.", "The user owes Eva 35 euros."),
    ("The importer polls every 20 seconds.", "The exporter polls every 45 seconds."),
    ("I owe Kim 25 euros.", "I owe my cousin 90 euros."),
    ("The web cache has a limit of 40 MB.", "The image proxies have a limit of 900 MB."),
    ("The user visited Lisbon in 2023.", "The user visited Madrid in 2024."),
    (
        "We're building a billing service in Go, Postgres 16 behind it, deployed on Fly",
        "if the queue is over 10k, the alert goes to #billing-oncall",
    ),
]
VALUE_DIFFERS = [
    ("The review is on Monday at 14:00.", "The review is on Wednesday at 11:00."),
    ("The user works at Brightwave as an analyst.", "The user works at Orbital as an engineer."),
    ("Project Falcon is led by Priya Shah.", "Project Falcon is led by Daniel Kim."),
    ("The spare key is under the blue pot.", "I misspoke about the spare key: it lies under the bench."),
]
"""Other values of the same thing, in the same words."""


def pair(older: str, newer: str, *, days: float = 5, conversation_id: str = "later", rank: int = 0) -> Pair:
    return Pair(
        older=make_saying(older, speaker="", conversation_id="earlier", at=SAID),
        newer=make_saying(newer, speaker="", conversation_id=conversation_id, at=SAID + timedelta(days=days)),
        rank=rank,
        nearer=0,
        neighbours=MAX_NEIGHBOURS,
    )


@pytest.mark.parametrize(("older", "newer"), REPLACED)
def test_a_statement_of_change_replaces_the_earlier_statement(older: str, newer: str) -> None:
    assert replacement_probability(pair(older, newer)) >= SURE_REPLACEMENT


@pytest.mark.parametrize(("older", "newer"), VALUE_DIFFERS)
def test_another_value_of_the_same_thing_is_not_taken_for_another_thing(older: str, newer: str) -> None:
    assert replacement_probability(pair(older, newer)) >= PROBABLE_REPLACEMENT


@pytest.mark.parametrize(("older", "newer"), RESTATED)
def test_a_statement_with_another_value_may_replace_the_earlier_one_without_a_word_of_change(
    older: str, newer: str
) -> None:
    assert replacement_probability(pair(older, newer)) >= POSSIBLE_REPLACEMENT


@pytest.mark.parametrize(("older", "newer"), BOTH_HOLD)
def test_statements_about_different_things_both_hold(older: str, newer: str) -> None:
    assert replacement_probability(pair(older, newer)) < SURE_REPLACEMENT


OTHER_ATTRIBUTES = [
    ("The conference is in Vienna.", "The conference is on 14 May."),
    ("The checkout service is written in Go.", "The checkout service runs on port 8080."),
    ("The mobile app has 4 developers.", "The mobile app supports iOS 16."),
    ("The team offsite is in Porto.", "The team offsite has 24 participants."),
    ("The checkout service has 3 replicas.", "The checkout service times out after 10 seconds."),
    ("The Miller order is 40 chairs.", "The Miller order ships on 17 December."),
    ("My dentist is Dr. Weiss.", "My dentist appointment is on 22 January."),
    ("Theo's birthday is on 14 March.", "Theo's swim class is on Thursdays at 5pm now."),
]
SAME_ATTRIBUTE = [
    ("The conference is in Vienna.", "The conference is in Prague."),
    ("The checkout service runs on port 8080.", "The checkout service runs on port 9090."),
    ("The mobile app has 4 developers.", "The mobile app has 6 developers."),
    ("The upload times out after 30 seconds.", "The upload times out after two minutes."),
    ("The Miller order ships on 17 December.", "The Miller order ships on Friday."),
    ("Theo's swim class is on Tuesdays at 4pm.", "Theo's swim class is on Thursdays at 5pm now."),
    ("The conference is on 14 May.", "The conference was moved to autumn."),
    ("The request timeout of the API is 30 seconds.", "The request timeout of the API is 45."),
    ("The cache TTL is 60s.", "The cache TTL is 2 minutes."),
    ("The nightly backup runs at 2am.", "The nightly backup runs every 6 hours."),
    ("The API key rotates every 30 days.", "The API key rotates every quarter."),
    ("My daughter is six.", "My daughter is 7 years old."),
    ("The standup of the team is at 9:30.", "The standup of the team is asynchronous."),
    ("The office of the team is at 5 Main Street.", "The office of the team is in Potsdam."),
]


@pytest.mark.parametrize(("older", "newer"), OTHER_ATTRIBUTES)
def test_a_statement_about_another_attribute_of_the_same_thing_replaces_nothing(older: str, newer: str) -> None:
    assert replacement_probability(pair(older, newer)) == 0


@pytest.mark.parametrize(("older", "newer"), SAME_ATTRIBUTE)
def test_a_statement_about_the_same_attribute_may_replace_the_earlier_one(older: str, newer: str) -> None:
    assert replacement_probability(pair(older, newer)) >= PROBABLE_REPLACEMENT


@pytest.mark.parametrize(
    ("newer", "least", "most"),
    [
        ("The standup is now at 10.", PROBABLE_REPLACEMENT, MAX_OF_A_PART),
        ("The standup of the other team takes place at 10.", 0.0, 0.0),
    ],
)
def test_an_assistant_replaces_a_statement_only_by_words_of_change_and_marks_none(
    newer: str, least: float, most: float
) -> None:
    both = pair("Our standup is at 9:30.", newer)

    said = replacement_probability(replace(both, newer=replace(both.newer, is_by_assistant=True)))

    assert least <= said <= most
    assert replacement_probability(both) > said


def test_what_an_assistant_said_is_not_marked() -> None:
    both = pair("The standup is at 9:30.", "We moved the standup to 10.")

    assert replacement_probability(both) >= SURE_REPLACEMENT
    assert replacement_probability(replace(both, older=replace(both.older, is_by_assistant=True))) == MAX_OF_A_PART


def test_a_statement_does_not_replace_the_same_one() -> None:
    assert replacement_probability(pair("Anything else I can do for you?", "anything else I can do for you? ")) == 0


SAYS_OF_OTHERS = [
    ("We have two kids, Anouk is 6 and Leo has just turned 3.", "Anouk turned seven yesterday, we had a cake."),
    ("We have two kids, Anouk is 6 and Leo's just turned 3.", "Anouk's seven now."),
    ("I see Dr. Hull for my teeth and Mira Stone for my back.", "I stopped seeing Hull."),
]
"""The earlier statement says something of others as well."""
SAYS_OF_ONE = [
    ("My brother Tom lives in Leeds.", "Tom moved to York."),
    ("My sister Ana lives in Lisbon, Portugal.", "Ana moved to Madrid now."),
    ("The review is on Monday, and Ana leads it.", "Ana moved the review to Wednesday."),
]


@pytest.mark.parametrize(("older", "newer"), SAYS_OF_OTHERS)
def test_what_says_something_of_others_as_well_is_never_surely_replaced(older: str, newer: str) -> None:
    assert says_of_others(read_words(older), read_words(newer))
    assert replacement_probability(pair(older, newer)) < SURE_REPLACEMENT


@pytest.mark.parametrize(("older", "newer"), [*SAYS_OF_ONE, *REPLACED])
def test_names_of_places_and_days_are_not_others(older: str, newer: str) -> None:
    assert not says_of_others(read_words(older), read_words(newer))


def test_a_conversation_that_goes_on_days_later_is_like_another_one() -> None:
    older, newer = REPLACED[0]

    assert replacement_probability(pair(older, newer, conversation_id="earlier")) == replacement_probability(
        pair(older, newer)
    )


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("We deliver 120 rolls a day to the hotel.", "Actually make that 150 rolls a day."),
        ("We meet on Monday at 10.", "Sorry, I meant Tuesday at 10."),
        ("Two pizzas for tonight, please.", "No wait, three pizzas for tonight."),
    ],
)
def test_who_corrects_what_they_have_just_said_replaces_it(older: str, newer: str) -> None:
    within = pair(older, newer, days=0.001, conversation_id="earlier")
    by_another = replace(within, newer=replace(within.newer, speaker="Ben"))

    assert replacement_probability(within) >= PROBABLE_REPLACEMENT
    assert replacement_probability(by_another) < PROBABLE_REPLACEMENT


def test_who_corrects_one_statement_does_not_replace_others_of_the_conversation() -> None:
    receipts, correction = "My accountant needs the receipts by the 10th.", "Actually make that 150 rolls a day."
    within = pair(receipts, correction, days=0.001, conversation_id="earlier", rank=2)

    assert replacement_probability(within) < POSSIBLE_REPLACEMENT


def test_who_adds_to_what_they_have_just_said_does_not_replace_it() -> None:
    within = pair("I love hiking in the Alps.", "Actually, I love jazz as well.", days=0.001, conversation_id="earlier")

    assert replacement_probability(within) < POSSIBLE_REPLACEMENT


def test_statements_of_one_conversation_rarely_replace_each_other() -> None:
    older, newer = REPLACED[0]

    within = replacement_probability(pair(older, newer, days=0.01, conversation_id="earlier"))

    assert within < PROBABLE_REPLACEMENT < replacement_probability(pair(older, newer))


def test_what_else_a_message_asks_or_changes_says_nothing_about_its_statement() -> None:
    older, said = "My dentist is Dr. Hull.", "My dentist is Dr. Farrow."
    plain = replacement_probability(pair(older, f"{said} The weather was nice this morning."))

    beside = replacement_probability(pair(older, f"{said} The weather has changed since noon."))
    about = replacement_probability(pair(older, "My dentist has changed to Dr. Farrow. The weather was nice at noon."))

    assert abs(beside - plain) < abs(about - plain)


def test_a_shared_name_makes_a_replacement_more_probable() -> None:
    newer = "The quiz at the Fox is on the last Wednesday of the month."

    named = replacement_probability(pair("Quiz night at the Fox is the first Tuesday of the month.", newer))

    assert named > replacement_probability(pair("Quiz night at the pub is the first Tuesday of the month.", newer))


def test_a_nearer_statement_is_more_probably_the_replaced_one() -> None:
    probabilities = [replacement_probability(pair(*REPLACED[0], rank=rank)) for rank in range(8)]

    assert probabilities == sorted(probabilities, reverse=True)


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("We deploy on Thursdays.", True),
        ("Thanks!", False),
        ("ok", False),
        ("Where does my sister live?", False),
        ("The gate is at 5. Does that work for you?", True),
    ],
)
def test_questions_and_short_replies_state_nothing(text: str, states: bool) -> None:
    assert may_state(text) is states


def test_the_name_of_the_speaker_in_front_of_a_text_is_no_part_of_the_statement() -> None:
    said = make_saying("Ana: I live in Porto.", speaker="Ana", conversation_id="c", at=SAID)

    assert said.text == "I live in Porto."


@pytest.mark.slow
@given(older=st.text(max_size=200), newer=st.text(max_size=200), days=st.floats(0, 4_000), rank=st.integers(0, 30))
@examples(200)
def test_every_pair_of_texts_has_a_probability(older: str, newer: str, days: float, rank: int) -> None:
    assert 0 <= replacement_probability(pair(older, newer, days=days, rank=rank)) <= 1


def is_kept(each: Pair, *, least: float) -> bool:
    columns = np.array([[0], [1], [each.rank], [each.nearer], [each.neighbours]])
    [kept] = may_replace([each.older, each.newer], PairColumns(*columns), least=least)
    return bool(kept)


@given(
    older=st.sampled_from([text for pair in (*REPLACED, *BOTH_HOLD) for text in pair]),
    newer=st.sampled_from([text for pair in (*REPLACED, *RESTATED) for text in pair]),
    days=st.one_of(st.just(0.5), st.floats(0, 400)),
    rank=st.integers(0, 8),
    conversation_id=st.sampled_from(["earlier", "later"]),
    least=st.sampled_from([POSSIBLE_REPLACEMENT, PROBABLE_REPLACEMENT, SURE_REPLACEMENT]),
)
@examples(300)
def test_no_pair_that_is_probable_enough_is_left_out(
    older: str, newer: str, days: float, rank: int, conversation_id: str, least: float
) -> None:
    each = pair(older, newer, days=days, rank=rank, conversation_id=conversation_id)

    assert is_kept(each, least=least) or replacement_probability(each) < least


def test_unlike_statements_of_one_conversation_are_left_out_early() -> None:
    each = pair("I usually cycle to work.", "The weather was nice in the end.", conversation_id="earlier", rank=3)

    assert not is_kept(replace(each, nearer=9), least=POSSIBLE_REPLACEMENT)


def test_long_rows_of_signs_are_read_in_linear_time() -> None:
    def judge(text: str) -> float:
        return replacement_probability(pair(text, f"The door of the cellar is 90 {text[-40:]}"))

    assert not takes_the_square(judge, lambda length: f"The port of the gateway is 80{'.' * length}", 450)
