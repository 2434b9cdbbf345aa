"""Claims as subject, attribute and value, and which pairs of them contradict each other."""

import pytest

from memory.extraction.rules.attributes import (
    ClaimReading,
    contradicts,
    is_same_meaning,
    read_claim,
    read_meaning,
)
from memory.extraction.rules.denials import opposites_of
from memory.identity import normalize_claim
from tests.memory.extraction.spoken import said


def replaces(new: str, old: str) -> bool:
    """Return True if a later claim ends the other, as the service decides."""
    reading: ClaimReading = read_meaning(new)
    return normalize_claim(old) in opposites_of(new) or contradicts(reading, read_meaning(old))


@pytest.mark.parametrize(
    ("claim", "parts"),
    [
        ("Ana lives in Porto now", ("Ana", "residence", "Porto")),
        ("The user's parents live in Braga", ("The user's parents", "residence", "Braga")),
        ("Ben has moved to Munich", ("Ben", "residence", "Munich")),
        ("Ben has moved back to Munich", ("Ben", "residence", "Munich")),
        ("Ana is employed at Nordlicht", ("Ana", "employer", "Nordlicht")),
        ("The user's boss is Sharon now", ("The user", "only:boss", "Sharon")),
        ("The user's new manager is Priya", ("The user", "only:manager", "Priya")),
        ("The user's birthday is on 4 May", ("The user", "birthday", "on 4 May")),
        ("The user's daughter is 4", ("The user's daughter", "age", "4")),
        ("Ana cannot swim", ("Ana", "ability:swim", "no")),
        ("Ana never learned to swim", ("Ana", "ability:swim", "no")),
        ("Ana can swim now", ("Ana", "ability:swim", "yes")),
        ("Ana is on the night shift", ("Ana", "shift", "night shift")),
        ("Ana has been at Nordlicht for six years", ("Ana", "employer", "Nordlicht")),
        ("Ana earns 38k", ("Ana", "income", "38k")),
        ("Ana is in year 5", ("Ana", "grade", "year 5")),
        ("The user is a vegetarian", ("The user", "diet", "vegetarian")),
        ("The user reports to Mei", ("The user", "boss", "Mei")),
        ("Ana got divorced", ("Ana", "marital status", "divorced")),
        ("The release is on 4 May", ("release", "date", "4 may")),
        ("The session timeout is 30s", ("session timeout", "amount", "30s")),
        ("The release was postponed to May 11th", ("release", "date", "may 11")),
        ("The demo has moved to Wednesdays at eleven", ("demo", "date", "wednesdays eleven")),
        ("The standup is at 10:30", ("standup", "time", "10:30")),
        ("The user's batch size is 64", ("batch size", "amount", "64")),
        ("The batch size is now 64", ("batch size", "amount", "64")),
        ("Our batch size was raised from 32 to 64", ("batch size", "amount", "64")),
        ("The proofing cabinet stands at 25 degrees", ("proofing cabinet", "amount", "25 degrees")),
    ],
)
def test_a_claim_is_read_as_subject_attribute_and_value(claim: str, parts: tuple[str, str, str]) -> None:
    read = read_claim(claim)

    assert read is not None
    assert (read.subject, read.attribute, read.value) == parts


@pytest.mark.parametrize(
    "claim",
    ["The release is late", "The user sings", "The weather is fine at 10", "The house is on the hill", "x " * 50_000],
)
def test_other_claims_have_no_parts(claim: str) -> None:
    assert read_claim(claim) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ana works at Brightwave", "Ana works for Nordlicht"),
        ("Ana works at Brightwave", "Ana left Brightwave"),
        ("Ana works at Brightwave as a designer", "Ana left Brightwave"),
        ("Ana works at Brightwave", "Ana left their job at Brightwave"),
        ("Ana works at Brightwave", "Ana quit Brightwave"),
        ("Ana works at Brightwave", "Ana is no longer at Brightwave"),
        ("Ana works at Brightwave", "Ana no longer works for Brightwave"),
        ("Ana works at Brightwave", "Ana was laid off by Brightwave"),
        ("Ana no longer works at Brightwave", "Ana works at Brightwave"),
        ("The user's wife is Ana", "The user's wife is Sharon"),
        ("The session timeout is 30s", "The session timeout was raised to 60s"),
        ("The user's boss is Tom", "The user's boss is Sharon now"),
        ("The user's manager is Tom", "The user's new manager is Priya"),
        ("The user's phone number is 555 1234", "The user's phone number is 555 9999"),
        ("The user is vegetarian", "The user is no longer vegetarian"),
        ("The user is vegetarian", "The user is not vegetarian anymore"),
        ("The user is a vegetarian", "The user is vegan"),
        ("Ana is single", "Ana is married"),
        ("Ana plays the guitar", "Ana no longer plays the guitar"),
        ("Ana owns a Tesla", "Ana sold the Tesla"),
        ("Ana drives a Tesla", "Ana has sold their Tesla"),
        ("Ana uses Postgres", "Ana switched from Postgres to MySQL"),
        ("Ana uses Postgres", "Ana stopped using Postgres"),
        ("Ana drinks coffee", "Ana drinks tea instead of coffee"),
        ("The user's sister lives in Porto", "The user's sister has moved to Lisbon"),
        ("Ben lives in Berlin", "Ben has moved to Munich"),
        ("Ben moved to Berlin", "Ben lives in Munich"),
        ("Ben lives in Germany", "Ben lives in France"),
        ("Ana was born in Porto", "Ana was born in Braga"),
        ("Ana's favorite color is blue", "Ana's favorite color is green"),
        ("The release is on 4 May", "The release was postponed to 11 May"),
        ("The release is on 4 May", "The release is on 11 May"),
        ("The meeting is on Tuesday", "The meeting was moved to Thursday"),
        ("The demo is on Thursdays at three", "The demo has moved to Wednesdays at eleven"),
        ("The batch size is 32", "The batch size is 64"),
        ("The user's batch size is 32", "The batch size is now 64"),
        ("Batch size is 128 rays", "The batch size is now 512 rays"),
        ("The API deadline is on 20 November", "API deadline slipped to 27 November"),
        ("The price is 9.99", "The price was raised to 11.99"),
        ("The cache limit is 32 MB", "The cache limit is 64 MB"),
        ("The standup is at 10:30", "The standup is at 9:30"),
        ("Ana is allergic to nuts", "Ana is not allergic to nuts"),
        ("Ana reports to Daniel", "Ana reports to Mei"),
        ("Ana gets up at 6", "Ana gets up at 7"),
        ("Ana is on the Pro plan", "Ana is on the free plan"),
        ("Ana is allergic to nuts", "Ana isn't allergic to nuts after all."),
        ("Ana is not allergic to nuts", "Ana is allergic to nuts"),
        ("Ana is no longer allergic to nuts", "Ana is allergic to nuts."),
        ("Ana eats fish", "Ana doesn't eat fish anymore"),
        ("Ana doesn't eat fish anymore", "Ana eats fish"),
        ("Ana does not eat fish", "Ana eats fish"),
        ("Ana has a car", "Ana does not have a car"),
        ("Ana has an electric car", "Ana no longer has the electric car"),
        ("Ana smokes", "Ana quit smoking"),
        ("Ana's dog is Bolt", "Ana's dog Bolt died in May 2026"),
        ("Ana can drive", "Ana can't drive anymore"),
        ("Ana likes jazz", "Ana doesn't like jazz anymore"),
        ("Ana does not enjoy jazz", "Ana loves jazz"),
        ("Ana's favourite food is sushi", "Ana's favourite food isn't sushi anymore"),
        ("Ana drinks coffee", "Ana quit coffee"),
        ("Ana is married to Eva", "Ana is divorced"),
        ("Ana is married to Eva", "Ana got divorced from Eva"),
        ("Ana is divorced", "Ana is married to Eva"),
        ("Ana's timezone is CET", "Ana's timezone is PST"),
        ("Ana's favourite colour is blue", "Ana's favorite color is green"),
        ("Ana's favorite flavor is mint", "Ana's favourite flavour is lemon"),
        ("The user's rent is £950", "The user's rent is £995"),
        ("The user's rent is £950 a month", "The user's rent is £995 a month"),
        ("The user's weight is 80 kg", "The user's weight is 78 kg"),
        ("The user's dentist appointment is on 12 November", "The user's dentist appointment is on 26 November"),
        ("The user's GP appointment is at 10:30", "The user's GP appointment is at 11:30"),
        ("The user's phone is 07700 900123", "The user's number is 07700 900456"),
        ("The user's phone number is 07700 900123", "The user's phone is 07700 900456"),
        ("The user's mobile is 07700 900123", "The user's cell number is 07700 900456"),
        ("The user's email is a@example.com", "The user's email address is b@example.com"),
        ("Nadia owns the refunds module", "Jens takes over refunds"),
        ("Nadia owns billing", "Jens owns billing"),
        ("The search index is owned by Nadia", "Jens owns the search index"),
        ("Nadia is release captain", "Jens takes over as release captain"),
        ("Release is planned for 12 October 2031", "Release slips to 19 October"),
        ("The go-live is on 4 May", "Go-live gets pushed to 11 May"),
        ("The QA database is called shop_qa", "QA database moved to shop_qa2"),
        ("Staging is called shop_a", "Staging moved to shop_b"),
        ("The staging db runs on pg 13", "The staging db runs on pg 14"),
        ("The Adyen timeout is 10 seconds", "The user asks to make the Adyen timeout 30 seconds"),
        ("Timeouts to Adyen: 10 seconds, 3 retries", "The user asks to make the Adyen timeout 30 seconds"),
        ("The pool size is 10", "The user asks to bump the pool size to 20"),
        ("Retries: 4 with backoff", "Retries: 6 with backoff"),
        ("Line length is 96", "Line length is 88"),
        ("The request timeout is 30 seconds", "The user raised the request timeout to 60 seconds"),
        ("The request timeout is 30 seconds", "The user lowered the request timeout from 30 to 20 seconds"),
        ("The docs server runs on port 8137", "The user moved the docs server to port 8200"),
        ("The demo is on 4 May", "The user's team pushed the demo back to 9 May"),
        ("Python version is 3.12", "The user upgraded to Python 3.13"),
        ("The Node version is 20", "The user's team has moved to Node 22"),
        ("The user upgraded to Python 3.12", "The Python version is now 3.13"),
        ("The user's team uses Redis for the job queue", "The user dropped Redis"),
        ("The user uses Kafka", "The user decided to drop Kafka"),
    ],
)
def test_a_later_claim_replaces_what_it_contradicts(old: str, new: str) -> None:
    assert replaces(new, old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Nadia owns refunds", "Nadia owns invoices"),
        ("Nadia owns the house", "Jens owns the house"),
        ("Nadia owns land", "Jens owns land"),
        ("Nadia owns two cats", "Jens owns two cats"),
        ("Nadia leads the team", "Jens leads the team"),
        ("The server is a.acme.internal", "The server is b.acme.internal"),
        ("The QA database is called shop_qa", "The QA host is qa.acme.com"),
        ("The staging db runs on pg 13", "The staging db runs on port 6432"),
        ("The user's daughter is Mia", "The user's daughter is Lea"),
        ("The user's sister is Rita", "The user's sister is Rosa"),
        ("The user's dentist is Ana", "The user's dentist is Bo"),
        ("The user's wife is Ana", "The user's wife is Ana Silva"),
        ("The user's office is in Porto", "The user's office is in Braga"),
        ("Ana lives in Portugal", "Ana lives in Lisbon"),
        ("Ana lives in Lisbon", "Ana lives in a small flat"),
        ("Ana lives in Lisbon", "Ana moved to a bigger flat"),
        ("Ana lives in Lisbon", "Ana lives in Lisbon, Portugal"),
        ("Ana lives in Lisbon", "Ana used to live in Porto"),
        ("Ana used to live in Lisbon", "Ana lives in Lisbon"),
        ("Ana lives in Lisbon", "Ana wants to move to Porto"),
        ("Ana lives in Lisbon", "Ana's sister lives in Porto"),
        ("Ana works at Brightwave", "Ana works at Nordlicht on weekends"),
        ("Ana works at Brightwave", "Ana also works at Nordlicht part-time"),
        ("Ana works at Brightwave", "Ana works at Brightwave as a designer"),
        ("Ana works at Brightwave", "Ana works at a bakery"),
        ("Ana works at Brightwave", "Ana left Nordlicht"),
        ("Ana works at Brightwave", "Ana left the house"),
        ("Ana is a nurse", "Ana is a writer"),
        ("Ana owns a Tesla", "Ana owns a Volvo"),
        ("Ana owns a Tesla", "Ana sold the Volvo"),
        ("Ana owns a Tesla", "Ana sold the Tesla shares"),
        ("Ana plays the guitar", "Ana plays the piano"),
        ("Ana plays the guitar", "Ana no longer plays the piano"),
        ("Ana drinks coffee", "Ana drinks tea"),
        ("Ana uses Postgres", "Ana uses Redis"),
        ("Ana likes olives", "Ana likes figs"),
        ("Ana gets up at 6", "Ana gets up at 9 on Sundays"),
        ("Ana is on the phone", "Ana is on the free plan"),
        ("Ana reports to Daniel", "Ana reports the errors"),
        ("Ana is vegetarian", "Ana is married"),
        ("The release is on 4 May", "The release is at 10:00"),
        ("The release is on 4 May", "The release is on Monday 4 May at 10"),
        ("The sprint demo is on 4 May", "The customer demo is on 11 May"),
        ("The meeting is on Tuesday", "The meeting is on Thursday"),
        ("Lunch with mum is on 4 May", "Lunch with mum is on 11 May"),
        ("Another team lunch is on 4 May", "Another team lunch is on 11 May"),
        ("Yoga is on Tuesday", "Yoga is on Thursday"),
        ("The limit is 100 calls", "The limit is 5,000 calls"),
        ("The cache limit is 64 MB", "The cache limit is 5 minutes"),
        ("The shop lease is until 2031", "The warehouse lease is until 2027"),
        ("The batch size is 64", "The batch size of the trainer is 32"),
        ("The user's daughter is 4", "The user's niece is 9"),
        ("Ana is allergic to nuts", "Ana is not allergic to milk"),
        ("Ana is allergic to nuts", "Ben is not allergic to nuts"),
        ("Ana likes jazz", "Ana doesn't like rock"),
        ("Ana's friend is Tom", "Ana's friend Tom died laughing"),
        ("Ana is married to Eva", "Ana's sister is divorced"),
        ("The rent is £950", "The rent is £995"),
        ("The rent is £950", "The user's rent is £995"),
        ("The user's rent is £950 a month", "The user's rent is £12,000 a year"),
        ("The user's budget is £950", "The user's budget is £995"),
        ("The user's meeting is on Tuesday", "The user's meeting is on Thursday"),
        ("The user's dog walk is on 12 November", "The user's dog walk is on 13 November"),
        ("The user's phone is an iPhone 15", "The user's phone number is 07700 900456"),
        ("The user's phone number is 0113 496 0000", "The user's mobile number is 07700 900456"),
        ("The user's phone number is 07700 900123", "Ana's phone is 07700 900456"),
        ("Ana is married to Eva", "Ana is married"),
        ("The request timeout is 30 seconds", "The user raised the upload timeout to 60 seconds"),
        ("The request timeout is 30 seconds", "The user raised the request timeout to the maximum"),
        ("The dev server runs on port 8137", "The user moved the docs server to port 8200"),
        ("The first release is on 4 May", "The user moved the second release to 9 May"),
        ("The Node version is 20", "The user upgraded to Python 3.13"),
        ("Python version is 3.12", "The user moved to Porto"),
        ("The user's team uses Redis for the job queue", "The user dropped Redis for sessions"),
        ("The user's team uses Redis for the job queue", "The user dropped Kafka"),
        ("The user's team uses RedisInsight for debugging", "The user dropped Redis"),
        ("Ana uses Redis for the job queue", "The user dropped Redis"),
    ],
)
def test_claims_that_may_both_hold_stay_side_by_side(old: str, new: str) -> None:
    assert not replaces(new, old)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ana lives in Lisbon", "Ana resides in Lisbon.", True),
        ("Ana works at Acme", "Ana works for Acme", True),
        ("Ana drives a Tesla", "Ana owns the Tesla", True),
        ("Ana lives in Lisbon", "Ana no longer lives in Lisbon", False),
        ("Ana lives in Lisbon", "Ana lives in Porto", False),
        ("Ana lives in Lisbon", "Ben lives in Lisbon", False),
        ("Ana sings", "Ana sings", False),
    ],
)
def test_claims_in_other_words_mean_the_same(one: str, other: str, same: bool) -> None:
    assert is_same_meaning(read_meaning(one), read_meaning(other)) is same


@pytest.mark.parametrize(
    ("text", "claim", "known"),
    [
        ("I left Brightwave.", "The user left Brightwave", "The user works at Brightwave"),
        ("I'm no longer at Acme.", "The user is no longer at Acme", "The user works for Acme"),
        ("I quit Brightwave.", "The user quit Brightwave", "The user works for Brightwave"),
        ("I'm not vegetarian anymore.", "The user is no longer vegetarian", "The user is vegetarian"),
        ("I'm a vegan now.", "The user is vegan", "The user is vegetarian"),
        ("I sold the Tesla.", "The user sold the Tesla", "The user drives a Tesla"),
        ("My wife is Sharon now.", "The user's wife is Sharon", "The user's wife is Ana"),
        ("My dentist is Sharon now.", "The user's dentist is Sharon", "The user's dentist is Ana"),
        ("I'm a teacher now.", "The user is a teacher", "The user is a nurse"),
        ("Ben has moved to Munich.", "Ben has moved to Munich", "Ben lives in Berlin"),
        ("The release was postponed to 11 May.", "The release was postponed to 11 May", "The release is on 4 May"),
        ("From now on the batch size is 64.", "The batch size is 64", "The batch size is 32"),
        ("The batch size is 64 now.", "The batch size is 64", "The batch size is 32"),
        ("Our batch size is 64, not 32.", "The user's batch size is 64", "The batch size is 32"),
        ("The standup is at 9:30 instead of 10:30.", "The standup is at 9:30", "The standup is at 10:30"),
        ("The demo was moved to Friday.", "The demo was moved to 19 May 2023", "The demo is on 18 May"),
        ("We upgraded to Node 22.", "The user upgraded to Node 22", "The Node version is 20"),
        (
            "We moved the dev server to port 8200, 8137 clashes with the docs.",
            "The user moved the dev server to port 8200",
            "The dev server runs on port 8137",
        ),
        ("We switched from Postgres to MySQL.", "The user switched from Postgres to MySQL", "The user uses Postgres"),
    ],
)
def test_words_of_change_replace_a_known_fact(text: str, claim: str, known: str) -> None:
    [fact] = said(text, known=[known]).facts

    assert (fact.claim, fact.contradicts, fact.corrects) == (claim, (1,), ())


@pytest.mark.parametrize("text", ["Actually, it's Porto, not Lisbon.", "Sorry, Porto, not Lisbon."])
def test_a_known_value_is_corrected_in_another_conversation(text: str) -> None:
    [fact] = said(text, known=["The user lives in Lisbon", "The user works at Acme"]).facts

    assert (fact.claim, fact.corrects) == ("The user lives in Porto", (1,))


def test_a_denied_value_of_two_known_facts_corrects_neither() -> None:
    known = ["The user lives in Lisbon", "The user was born in Lisbon"]

    assert said("Actually, it's Porto, not Lisbon.", known=known).facts == ()
