"""Doubts that stay in claims, irony that states nothing, and sentences that leave a part out."""

import pytest

from tests.memory.extraction.spoken import claims, only, said


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("I think I'm pregnant.", "The user may be pregnant"),
        ("I think I'm allergic to cats.", "The user may be allergic to cats"),
        ("Maybe I'll move to Spain.", "The user may move to Spain"),
        ("I live in Leeds, I think.", "The user may live in Leeds"),
        ("I guess I like jazz.", "The user may like jazz"),
        ("I think I moved to Leeds in 2010.", "The user may have moved to Leeds in 2010"),
        ("I think I no longer work at Aldi.", "The user may no longer work at Aldi"),
        ("I think my sister is called Priya.", "The user's sister may be Priya"),
        ("We're thinking about adopting a cat.", "The user is thinking about adopting a cat"),
    ],
)
def test_a_doubt_stays_in_the_claim(text: str, claim: str) -> None:
    fact = only(said(text))

    assert (fact.claim, fact.certainty) == (claim, "uncertain")


def test_a_doubt_is_about_its_own_clause() -> None:
    assert claims("I think my sister lives in Porto and I live in Hull.") == [
        "The user's sister may live in Porto",
        "The user lives in Hull",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Wow I adore paperwork 🙄",
        "I love paperwork. 🙄",
        "Oh great, I just love being stuck in traffic.",
        "Oh joy, I work at Aldi.",
        "Yeah right, I live in a castle.",
        "Wow, I just love waiting rooms.",
    ],
)
def test_irony_states_nothing(text: str) -> None:
    assert claims(text) == []


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("Oh, I love jazz!", "The user loves jazz"),
        ("Wow, I love jazz!", "The user loves jazz"),
        ("Great, I live in Leeds.", "The user lives in Leeds"),
        ("Oh great! I live in Leeds.", "The user lives in Leeds"),
        ("I live in Hull. I adore paperwork 🙄", "The user lives in Hull"),
        ("My wife Gemma is gluten intolerant.", "Gemma is gluten intolerant"),
        ("My son is dairy-intolerant.", "The user's son is dairy-intolerant"),
        ("I'm not allergic to nuts but my son is.", "The user's son is allergic to nuts"),
        ("I'm vegan but my wife isn't.", "The user's wife is not vegan"),
        ("I'm allergic to nuts and so is my son.", "The user's son is allergic to nuts"),
        ("My sister is not allergic to nuts but I am.", "The user is allergic to nuts"),
        ("I'm vegetarian btw, have been since uni.", "The user is vegetarian"),
        ("We're going with Postgres.", "The user decided to go with Postgres"),
        ("We drop Redis: it is slow.", "The user decided to drop Redis"),
        ("We drop Redis.", "The user decided to drop Redis"),
        ("Let's drop the cache at 5 percent.", "The user decided to drop the cache at 5 percent"),
    ],
)
def test_what_looks_alike_is_stated(text: str, stated: str) -> None:
    assert stated in claims(text)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("I'm staying with my mum in Hull until Christmas.", "decided"),
        ("I'm going with my sister to Rome.", "decided"),
        ("I'm tall but my son is taller.", "tall "),
        ("I'm not sure but my son is.", "sure"),
        ("My birthday is in May and so is my sister.", "sister"),
        ("My birthday is on 3 May and so is my sister.", "sister"),
        ("The wedding is off, Sam and I split up.", "off, Sam"),
    ],
)
def test_what_is_not_said_is_not_stated(text: str, wrong: str) -> None:
    assert not [claim for claim in claims(text) if wrong in claim]


@pytest.mark.parametrize(
    "text", ["Oh great, I got a job at Google!", "Well fun fact, I live in Berlin.", "Yeah sure, I live in Rome."]
)
def test_a_sincere_statement_behind_such_words_is_kept(text: str) -> None:
    assert claims(text) != []
