"""Statements of another conversation, days later, that replace what was said before."""

import re
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from threading import Barrier, local

import pytest
from django.db import connection

from memory.extraction.knowledge import Extraction
from memory.extraction.model_extractor import knowledge_extractor
from memory.models import Fact, Link, Turn
from memory.owner import Owner
from memory.scoring import POSSIBLE_REPLACEMENT, SURE_REPLACEMENT
from memory.services.conversations.queue import EXTRACTION, claim_conversations
from memory.services.embedding.queue import embed_pending
from memory.services.extraction.extract import (
    extract_due,
    extract_from_work,
    read_extraction_work,
    store_extraction_result,
)
from memory.services.facts.store import visible_facts
from memory.services.memories.links import REPLACES, NewLink, insert_links
from memory.services.replaced_evidence import PART_OF_TURN, WHOLE_TURN
from tests.concurrency import PATIENCE_SECONDS, over_own_connection
from tests.memory.episodes import NOW
from tests.memory.knowledge import TURN_TIME, claims, extract_all, say_sentences

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def user(owner: Owner) -> Owner:
    return replace(owner, user_id="u1")


def extract_sentences(owner: Owner, *sentences: str, days: int, name: str = "") -> None:
    """Say sentences in a conversation of that day, and extract them."""
    at = TURN_TIME + timedelta(days=days)
    say_sentences(owner, *sentences, name=name, conversation_id=f"day-{days}", at=at)
    extract_all(NOW)


def current(owner: Owner) -> list[str]:
    rows = visible_facts(owner, now=NOW).filter(status=Fact.Status.ACTIVE)
    return sorted(fact.text for fact in rows)


@pytest.mark.parametrize(
    ("first", "later", "replaced"),
    [
        ("I work at Brightwave.", "I work for Nordlicht now.", "The user works at Brightwave"),
        ("I work at Brightwave.", "I left Brightwave.", "The user works at Brightwave"),
        ("I work at Brightwave.", "I quit Brightwave last week.", "The user works at Brightwave"),
        ("My wife is Ana.", "My wife is Sharon now.", "The user's wife is Ana"),
        ("My dentist is Ana.", "My dentist is Sharon now.", "The user's dentist is Ana"),
        ("I'm vegetarian.", "I'm not vegetarian anymore.", "The user is vegetarian"),
        ("I drive a Tesla.", "I sold the Tesla.", "The user drives a Tesla"),
        ("I live in Lisbon.", "I moved to Porto last month.", "The user lives in Lisbon"),
        ("I live in Lisbon.", "Actually, it's Porto, not Lisbon.", "The user lives in Lisbon"),
        ("I live in Lisbon.", "No wait, I live in Porto.", "The user lives in Lisbon"),
        ("My sister lives in Porto.", "My sister has moved to Lisbon.", "The user's sister lives in Porto"),
        ("Our dog Biscuit is two years old.", "Biscuit turned three yesterday.", "Biscuit is 2 years old"),
        ("My colleague Ben lives in Berlin.", "Ben has moved to Munich.", "Ben lives in Berlin"),
        (
            "The release is on 4 December.",
            "The release was postponed to 11 December.",
            "The release is on 4 December 2026",
        ),
        ("The batch size is 32.", "From now on the batch size is 64.", "The batch size is 32"),
        ("Our standup is at 10:30.", "Our standup is at 9:30 instead.", "The user's standup is at 10:30"),
        ("My favorite color is blue.", "My favorite color is green now.", "The user's favorite color is blue"),
        ("I play the guitar.", "I no longer play the guitar.", "The user plays the guitar"),
        (
            "Nadia owns the refunds module.",
            "Nadia's on leave, Jens takes over refunds.",
            "Nadia owns the refunds module",
        ),
        ("Nadia is release captain.", "Jens takes over as release captain.", "Nadia is release captain"),
        ("The staging database is called shop_a.", "staging moved to shop_b", "The staging database is called shop_a"),
        ("The Adyen timeout is 10 seconds.", "make the Adyen timeout 30 seconds", "The Adyen timeout is 10 seconds"),
        ("retries: 4 with backoff", "retries: 6 with backoff", "Retries: 4 with backoff"),
        (
            "Release is planned for 12 December.",
            "release slips to December 19, sales wants to check it",
            "Release is planned for 12 December 2026",
        ),
    ],
)
def test_a_statement_of_another_conversation_replaces_the_former(
    user: Owner, first: str, later: str, replaced: str
) -> None:
    extract_sentences(user, first, days=0)
    extract_sentences(user, later, days=30)

    assert claims(status="superseded") == [replaced]
    assert replaced not in current(user)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        ("My daughter is Mia.", "My daughter is Lea."),
        ("My dentist is Ana.", "My dentist is Sharon."),
        ("I live in Lisbon.", "I want to move to Porto."),
        ("I live in Lisbon.", "I moved to Porto in 1999."),
        ("I live in Portugal.", "I live in Lisbon."),
        ("I live in Lisbon.", "Maybe I live in Porto."),
        ("I own a Tesla.", "I own a Volvo."),
        ("I'm a nurse.", "I'm a writer."),
        ("I play the guitar.", "I play the piano."),
        ("The meeting is on 4 March.", "The meeting is on 11 March."),
        ("The release is on 6 February.", "The release is on 20 March."),
        ("The sprint demo is on 4 May.", "The customer demo is on 11 May."),
    ],
)
def test_statements_that_may_both_hold_stay_side_by_side(user: Owner, first: str, later: str) -> None:
    extract_sentences(user, first, days=0)
    known = claims()
    extract_sentences(user, later, days=30)

    assert claims(status="superseded") == []
    assert set(known) < set(claims())


def test_claims_about_the_users_people_are_nobodys_without_a_user(owner: Owner) -> None:
    extract_sentences(owner, "My wife is Ana.", days=0)

    assert claims() == []


def test_a_colleague_of_another_user_is_not_moved(owner: Owner, user: Owner) -> None:
    extract_sentences(replace(owner, user_id="u2"), "My colleague Ben lives in Berlin.", days=0)
    extract_sentences(user, "My colleague Ben lives in Berlin.", "My colleague Ben has moved to Munich.", days=30)

    assert "Ben lives in Berlin" in current(replace(owner, user_id="u2"))


def replaced_turns() -> dict[tuple[str, str], float]:
    rows = Link.objects.filter(type="REPLACES").select_related("source", "target")
    return {(row.source.text, row.target.text): row.weight for row in rows}


def test_the_turn_behind_a_fact_replaces_the_turn_behind_the_fact_that_it_superseded(user: Owner) -> None:
    extract_sentences(user, "I work at Brightwave.", days=0)
    extract_sentences(user, "I left Brightwave.", days=5)

    assert replaced_turns() == {("I left Brightwave.", "I work at Brightwave."): WHOLE_TURN}


def test_a_turn_that_says_more_than_what_was_superseded_is_not_marked(user: Owner) -> None:
    before, now_true = "I work at Brightwave. My sister lives in Porto.", "I work for Nordlicht now."
    extract_sentences(user, before, days=0)
    extract_sentences(user, now_true, days=5)

    assert replaced_turns() == {(now_true, before): PART_OF_TURN}
    assert PART_OF_TURN < SURE_REPLACEMENT <= WHOLE_TURN


def test_a_turn_with_a_sentence_of_which_nothing_was_learned_is_not_marked(user: Owner) -> None:
    before, now_true = "I work at Brightwave. Parking there is really horrible.", "I work for Nordlicht now."
    extract_sentences(user, before, days=0)
    extract_sentences(user, now_true, days=5)

    assert claims(status="superseded") == ["The user works at Brightwave"]
    assert replaced_turns() == {(now_true, before): PART_OF_TURN}


def test_a_turn_all_of_whose_facts_ended_is_marked(user: Owner) -> None:
    before = "Hi! I work at Brightwave. I live in Porto."
    extract_sentences(user, before, days=0)
    extract_sentences(user, "I work for Nordlicht now.", days=5)
    extract_sentences(user, "I live in Braga now.", days=6)

    assert replaced_turns() == {
        ("I work for Nordlicht now.", before): PART_OF_TURN,
        ("I live in Braga now.", before): WHOLE_TURN,
    }


RENT, RISE = "My rent is £950 a month at the new flat, it's 14 Cardigan Lane.", "My rent went up to £995."
NURSE = "My sister Priya lives in Manchester, she's a nurse and she's vegan."
MANAGER = "Priya got a new job, she's a ward manager at St James's now."


@pytest.mark.parametrize(
    ("before", "now_true", "replaced", "weight"),
    [
        pytest.param(NURSE, MANAGER, ["Priya is a nurse"], PART_OF_TURN, id="other facts rest upon it"),
        pytest.param(RENT, RISE, ["The user's rent is £950 a month at the new flat"], PART_OF_TURN, id="it says more"),
        pytest.param(NURSE, "Priya is doing well these days.", [], PART_OF_TURN, id="all of its facts hold"),
        pytest.param("My rent is £950.", RISE, ["The user's rent is £950"], WHOLE_TURN, id="it says no more"),
        pytest.param("Lunch was nice.", "Lunch was horrible.", [], 0.76, id="it teaches nothing"),
    ],
)
def test_a_sure_link_between_texts_marks_no_turn_that_says_more(
    user: Owner, before: str, now_true: str, replaced: list[str], weight: float
) -> None:
    extract_sentences(user, before, days=0)
    say_sentences(user, now_true, name="", conversation_id="day-5", at=TURN_TIME + timedelta(days=5))
    older, newer = Turn.objects.order_by("event_time")
    insert_links(user.account_id, [NewLink(source_id=newer.id, type=REPLACES, target_id=older.id, weight=0.76)])

    extract_all(NOW)

    assert claims(status="superseded") == replaced
    assert replaced_turns() == {(now_true, before): weight}


def test_a_turn_that_is_linked_after_it_was_extracted_is_not_marked_either(user: Owner) -> None:
    extract_sentences(user, NURSE, days=0)
    extract_sentences(user, MANAGER, days=5)

    embed_pending(now=NOW + timedelta(minutes=1), limit=10)

    assert replaced_turns() == {(MANAGER, NURSE): PART_OF_TURN}


def test_a_link_that_the_texts_suggested_becomes_as_sure_as_the_facts(user: Owner) -> None:
    extract_sentences(user, "I live in Lisbon.", days=0)
    at = TURN_TIME + timedelta(days=9)
    say_sentences(user, "I live in Porto now.", name="", conversation_id="later", at=at)
    older, newer = Turn.objects.order_by("event_time")
    insert_links(user.account_id, [NewLink(source_id=newer.id, type=REPLACES, target_id=older.id, weight=0.3)])

    extract_all(NOW)

    assert list(replaced_turns().values()) == [WHOLE_TURN]


@pytest.mark.django_db(transaction=True)
def test_conversations_extracted_at_the_same_time_leave_one_residence(user: Owner) -> None:
    towns = ("Lisbon", "Porto", "Braga", "Faro", "Evora", "Coimbra")
    for number, town in enumerate(towns):
        at = TURN_TIME + timedelta(days=number)
        say_sentences(user, f"I live in {town} now.", name="", conversation_id=f"c{number}", at=at)
    ready, here = Barrier(len(towns)), local()

    def delay_writes(execute: Callable[..., object], sql: str, *args: object) -> object:
        """Let every extraction compute before any of them stores."""
        if "pg_advisory_xact_lock" in sql and not hasattr(here, "waited"):
            here.waited = True
            ready.wait(PATIENCE_SECONDS)
        return execute(sql, *args)

    def extract_one() -> None:
        with connection.execute_wrapper(delay_writes):
            extract_due(now=NOW, limit=1)

    with ThreadPoolExecutor(len(towns)) as pool:
        done = [pool.submit(lambda: over_own_connection(extract_one)) for _town in towns]
        for each in done:
            each.result(PATIENCE_SECONDS)

    assert current(user) == ["The user lives in Coimbra"]
    assert len(claims(text__startswith="The user lives in")) == len(towns)


def extract_at_once(*, in_order: bool) -> None:
    """Extract conversations of which none sees what the others state, and store the results one after the other."""
    extractor = knowledge_extractor()
    claimed = claim_conversations(
        EXTRACTION, now=NOW, limit=4, account_id=None, target_of=lambda conversation: conversation.turn_count
    )
    works = sorted(map(read_extraction_work, claimed), key=lambda work: work.turns[0].event_time, reverse=not in_order)
    for work in works:
        done: Future[list[Extraction]] = Future()
        done.set_result(extract_from_work(work, extractor))
        store_extraction_result(work, done, now=NOW)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize(
    ("first", "later", "kept"),
    [
        ("The release is on 4 April.", "The release slips to 19 April.", {"19 April 2026"}),
        ("The release is on 4 April.", "We postponed the release to 19 April.", {"19 April 2026"}),
        ("Go live is on 4 April.", "I moved go-live to 19 April.", {"19 April 2026"}),
        ("My flight to Oslo is on 4 April.", "My flight to Oslo is on 19 April.", {"4 April 2026", "19 April 2026"}),
    ],
)
def test_conversations_that_are_extracted_at_once_see_each_others_dates(
    user: Owner, first: str, later: str, kept: set[str], *, in_order: bool
) -> None:
    for days, text in ((0, first), (10, later)):
        at = TURN_TIME + timedelta(days=days)
        say_sentences(user, text, name="", conversation_id=f"day-{days}", at=at)

    extract_at_once(in_order=in_order)

    true = Fact.objects.filter(status=Fact.Status.ACTIVE).exclude(valid_to__lte=TURN_TIME + timedelta(days=11))
    assert {re.search(r"\d+ April 2026", fact.text)[0] for fact in true} == kept  # type: ignore[index]


@pytest.mark.parametrize(
    ("first", "later", "ended"),
    [
        ("The release is on 4 April.", "The release is on 19 April.", True),
        ("The board demo is on 4 April at 10:00.", "The board demo is on 8 April at 10:00.", True),
        ("Go live is 4 April.", "No, go live is 19 April.", True),
        ("Go live is Monday the 6th of April.", "I moved go-live to Monday 13 April.", True),
        ("My dentist appointment is on 4 April.", "My dentist appointment is on 19 April.", False),
        ("My flight to Oslo is on 4 April.", "My flight to Oslo is on 19 April.", False),
        ("The release of v2 is on 4 April.", "The release of v3 is on 19 April.", False),
    ],
)
def test_another_date_of_what_takes_place_once_ends_the_former_one(
    user: Owner, first: str, later: str, *, ended: bool
) -> None:
    extract_sentences(user, first, days=0)
    extract_sentences(user, later, days=10)

    assert Fact.objects.filter(status=Fact.Status.SUPERSEDED).exists() is ended


def test_the_former_employer_is_true_until_the_new_job_begins(user: Owner) -> None:
    extract_sentences(user, "I work at Brightwave.", days=0)
    extract_sentences(user, "I start my new job at Acme on 1 June.", days=5)

    begins = datetime(2026, 6, 1, tzinfo=UTC)
    former, new = (Fact.objects.get(text=f"The user works at {name}") for name in ("Brightwave", "Acme"))
    assert (former.valid_to, new.valid_from, new.valid_to) == (begins, begins, None)
    assert replaced_turns() == {}


JUNE = datetime(2026, 6, 1, tzinfo=UTC)


def true_on(owner: Owner, at: datetime) -> list[str]:
    """Return what is believed now to be true then, without plans and events."""
    rows = Fact.objects.filter(user_id=owner.user_id, retracted_at=None, text__regex=r" (lives in|works at) ")
    rows = rows.exclude(valid_from__gt=at).exclude(valid_to__lte=at)
    return sorted(fact.text for fact in rows)


@pytest.mark.parametrize(
    ("later", "homes"),
    [
        ("I'm not moving to Berlin after all.", ["The user lives in Ghent"]),
        ("The move to Berlin is off.", ["The user lives in Ghent"]),
        ("I've cancelled the move to Berlin, we're staying in Ghent.", ["The user lives in Ghent"]),
        ("We're staying in Ghent after all.", ["The user lives in Ghent"]),
        ("I'm moving to Hamburg in June instead.", ["The user lives in Hamburg"]),
        ("I'm moving to Hamburg in October instead.", ["The user lives in Ghent"]),
        ("The move is postponed, I'm moving to Berlin in October.", ["The user lives in Ghent"]),
        ("My sister isn't moving to Berlin after all.", ["The user lives in Berlin"]),
        ("I'm moving to Hamburg in October.", ["The user lives in Berlin"]),
    ],
)
def test_a_move_that_is_called_off_does_not_come_true(user: Owner, later: str, homes: list[str]) -> None:
    extract_sentences(user, "I live in Ghent.", days=0)
    extract_sentences(user, "I'm moving to Berlin in June.", days=5)
    assert true_on(user, JUNE) == ["The user lives in Berlin"]

    extract_sentences(user, later, days=9)

    assert true_on(user, JUNE) == homes
    assert true_on(user, JUNE - timedelta(days=1)) == ["The user lives in Ghent"]


@pytest.mark.parametrize(
    ("later", "employer"),
    [
        ("I'm not starting at Acme after all.", "The user works at Brightwave"),
        ("Acme withdrew the offer.", "The user works at Brightwave"),
        ("I'm not moving to Berlin after all.", "The user works at Acme"),
    ],
)
def test_a_job_that_is_called_off_does_not_come_true(user: Owner, later: str, employer: str) -> None:
    extract_sentences(user, "I work at Brightwave.", days=0)
    extract_sentences(user, "I start my new job at Acme on 1 June, and I'm moving to Berlin in June.", days=5)
    extract_sentences(user, later, days=9)

    assert employer in true_on(user, JUNE)


def test_a_move_that_was_put_off_comes_true_later(user: Owner) -> None:
    extract_sentences(user, "I live in Ghent.", days=0)
    extract_sentences(user, "I'm moving to Berlin in June.", days=5)
    extract_sentences(user, "The move is postponed, I'm moving to Berlin in October.", days=9)

    assert true_on(user, datetime(2026, 10, 1, tzinfo=UTC)) == ["The user lives in Berlin"]


def test_a_move_with_a_date_ends_the_former_home_and_begins_the_new_one(user: Owner) -> None:
    extract_sentences(user, "I live in Bristol.", days=0)
    extract_sentences(user, "I moved to Leeds last month.", days=60)

    moved = datetime(2026, 3, 1, tzinfo=UTC)
    former, new = (Fact.objects.get(text=f"The user lives in {name}") for name in ("Bristol", "Leeds"))
    assert (former.valid_to, new.valid_from, new.valid_to, new.temporal) == (moved, moved, None, "current")
    assert current(user) == ["The user lives in Leeds", "The user moved to Leeds in March 2026"]


def test_a_move_to_what_may_be_no_place_begins_no_home(user: Owner) -> None:
    extract_sentences(user, "I live in Bristol.", days=0)
    extract_sentences(user, "I moved to Marketing last month.", days=60)

    assert claims(text__startswith="The user lives in") == ["The user lives in Bristol"]


@pytest.mark.parametrize(
    ("first", "later", "former"),
    [
        ("My rent is £950 a month.", "My rent is going up to £995 from June.", "The user's rent is £950 a month"),
        ("My rent is £950 a month.", "My rent goes up to £995 a month on 1 June.", "The user's rent is £950 a month"),
        ("Our batch size is 64.", "Our batch size will be changed to 128 from June.", "The user's batch size is 64"),
    ],
)
def test_an_amount_holds_until_the_day_of_its_change(user: Owner, first: str, later: str, former: str) -> None:
    extract_sentences(user, first, days=0)
    extract_sentences(user, later, days=5)

    begins = datetime(2026, 6, 1, tzinfo=UTC)
    old, new = Fact.objects.order_by("event_time")
    assert (old.text, old.valid_to, new.valid_from, new.valid_to) == (former, begins, begins, None)


def test_a_child_grows_older(user: Owner) -> None:
    extract_sentences(user, "My son is 7.", "My daughter is 4.", days=0)
    extract_sentences(user, "My son is 8.", days=60)

    assert current(user) == ["The user's daughter is 4 years old", "The user's son is 8 years old"]


def test_a_gym_and_a_migration_end_no_job_and_no_home(user: Owner) -> None:
    extract_sentences(user, "I work at Brightwave.", "I live in Porto.", days=0)
    extract_sentences(user, "I start at Planet Fitness on 1 June.", "We're moving to PostgreSQL on 1 June.", days=5)

    held = Fact.objects.filter(text__in=["The user works at Brightwave", "The user lives in Porto"])
    assert [fact.valid_to for fact in held] == [None, None]


@pytest.mark.parametrize(("weight", "kept"), [(SURE_REPLACEMENT, True), (POSSIBLE_REPLACEMENT, False)])
def test_what_replaces_something_known_is_kept_where_it_would_be_worth_little_alone(
    user: Owner, weight: float, *, kept: bool
) -> None:
    extract_sentences(user, "I get the Guardian every morning.", days=0)
    later = "I've swapped our paper for the Times, Margaret likes the crossword."
    say_sentences(user, later, name="", conversation_id="day-9", at=TURN_TIME + timedelta(days=9))
    older, newer = Turn.objects.order_by("event_time")
    insert_links(user.account_id, [NewLink(source_id=newer.id, type=REPLACES, target_id=older.id, weight=weight)])

    extract_all(NOW)

    assert any("for the Times" in claim for claim in current(user)) is kept
