"""Paraphrases: what vectors of at least 0.92 do not see keeps two texts apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.services.duplicates.paraphrases import paraphrase_words
from tests.memory.services.duplicates.test_texts import EXCHANGED, OTHER

PARAPHRASES = (
    ("Ana prefers tea over coffee.", "Ana likes tea more than coffee."),
    ("Ana moved to Lisbon in March.", "In March, Ana relocated to Lisbon."),
    ("Ben is allergic to peanuts.", "Ben has a peanut allergy."),
    ("Ana's favourite colour is green.", "Green is Ana's favourite colour."),
    ("The backup job runs at midnight every day.", "Every day the backup job runs at midnight."),
    ("Clara leads the design team.", "The design team is led by Clara."),
    ("The office closes early on Fridays.", "On Fridays the office closes early."),
    ("Ana enjoys cooking Italian food.", "Ana loves cooking Italian food."),
    ("Ana's dog is called Rex.", "Ana has a dog named Rex."),
    ("Use the blue button to save the form.", "To save the form, use the blue button."),
    ("The user dislikes long emails.", "The user hates long emails."),
    ("Tom is scared of spiders.", "Tom is afraid of spiders."),
    ("At night, Ana does not drink coffee.", "Ana does not drink coffee at night."),
)
"""Pairs whose vectors have a similarity of at least 0.92 with the shipped model."""

SIMILAR = (
    ("Ana moved to Lisbon from Porto.", "Ana moved to Porto from Lisbon."),
    ("Ana prefers tea over coffee.", "Ana prefers coffee over tea."),
    ("Ana introduced Ben to Clara.", "Clara was introduced to Ana by Ben."),
    ("Tom owes Maria money.", "Maria owes Tom money."),
    ("Tom hired Ben.", "Ben fired Tom."),
    ("The design team is led by Clara.", "The design team leads Clara."),
    ("The dog chased the cat.", "The cat followed the dog."),
    ("The team has a manager.", "The manager has a team."),
    ("The key is in the box.", "The box is in the key."),
    ("The cache is written before the database.", "The database is written before the cache."),
    ("The report is sent to the finance team.", "The report is sent by the finance team."),
    ("The backup was stored in the archive.", "The backup is stored in the archive."),
    ("The rate limit is 100 requests.", "The limit of requests is 200 at this rate."),
    ("The call is on Monday.", "The call is held on Tuesday."),
    ("Ana likes the tea.", "Ana does not like the tea."),
    ("Ana denies the theft.", "Ana admits the theft."),
    ("The door opens inward.", "The door opens outward."),
    ("The team uses Python for the backend.", "The team uses Python for the frontend."),
    ("Ana lives with her parents.", "Ana lives with her grandparents."),
    ("The light in the kitchen is on.", "The light in the kitchen is off."),
    ("The doctor advised more salt for Tom.", "The doctor advised less salt for Tom."),
    ("Maria speaks fluent Italian and Greek.", "Maria speaks fluent Italian."),
    ("Press “stop” to end the job.", "Press “pause” to end the job."),
    (
        "Ana files the invoice of the new kitchen in the red folder.",
        "Ana files the invoice of the new kitchen in the blue folder.",
    ),
    ("Ana kommt am Montag mit dem Auto.", "Mit dem Auto kommt Ana am Montag."),
    ("the office closes early on fridays", "on fridays the office closes early"),
)
"""Pairs that say something else or are not recognized; most have vectors of at least 0.92."""

RECOGNIZED = {
    ("The backup job runs at midnight every day.", "Every day the backup job runs at midnight."),
    ("Anna likes hiking.", "Anna likes to hike."),
    # the vectors of these are less similar than 0.92 with the shipped model
    ("Ana drinks coffee in the kitchen", "Ana drinks tea in the kitchen"),
    ("Ana lives in berlin", "Ana lives in munich"),
    ("Ana works with maria", "Ana works with petra"),
    ("Ana paints the wall red", "Ana paints the wall orange"),
    ("The patient takes aspirin", "The patient takes ibuprofen"),
    ("The user agreed to the plan", "The user objected to the plan"),
    ("The meeting was postponed", "The meeting was moved"),
    ("Ana trusts the vendor", "Ana fears the vendor"),
    ("The api key for prod rotates weekly", "The api key for staging rotates weekly"),
    ("The main branch is protected", "The develop branch is protected"),
    ("The service runs on postgres", "The service runs on mysql"),
    ("Ana prefers vim", "Ana prefers emacs"),
    ("The cache uses lru", "The cache uses lfu"),
    ("Ana has a house near the harbour in lisbon", "Ana has a house near the harbour in porto"),
}
"""Pairs of `test_texts` that are paraphrases as far as their words tell."""


@pytest.mark.parametrize(("one", "other"), PARAPHRASES)
def test_paraphrases_are_recognized(one: str, other: str) -> None:
    assert paraphrase_words(one, other) is not None
    assert paraphrase_words(other, one) is not None


@pytest.mark.parametrize(("one", "other"), SIMILAR)
def test_texts_that_differ_in_what_vectors_do_not_see_stay_apart(one: str, other: str) -> None:
    assert paraphrase_words(one, other) is None
    assert paraphrase_words(other, one) is None


def test_of_texts_with_similar_vectors_that_say_something_else_none_is_a_paraphrase() -> None:
    assert {pair for pair in (*OTHER, *EXCHANGED) if paraphrase_words(*pair) is not None} == RECOGNIZED


@given(one=st.text(max_size=100), other=st.text(max_size=100))
def test_any_two_texts_can_be_compared(one: str, other: str) -> None:
    assert paraphrase_words(one, other) == paraphrase_words(other, one)
