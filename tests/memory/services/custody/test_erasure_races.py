"""Knowledge that is derived from a memory while this is being erased: whichever commits first, none remains."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction

from memory.errors import NotFound, Unprocessable
from memory.extraction.model_extractor import knowledge_extractor
from memory.models import Entity, Fact, Memory, UserProfile
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.conversations.queue import EXTRACTION, ClaimOutcome, claim_conversations
from memory.services.custody.conversations import erase_conversation, erase_turn
from memory.services.custody.memories import erase_derived
from memory.services.custody.single import erase_fact
from memory.services.duplicates.merge import merge_pair
from memory.services.extraction.extract import extract_from_work, read_extraction_work, store_extraction_result
from memory.services.facts.globalize import globalize_fact
from memory.services.forgetting import forget_memory
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import know
from tests.memory.knowledge import extract_all
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db(transaction=True)

WAITING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
Erase = Callable[[Owner, Any], object]


@pytest.fixture
def user(owner: Owner) -> Owner:
    return Owner(account_id=owner.account_id, agent_id=owner.agent_id, user_id="u1", channel="atlas")


def say_where_ana_lives(user: Owner) -> Any:
    return say(user, turn("My name is Ana. I live in Oslo. I prefer tea."), turn("Noted.", role="assistant")).turns[0]


def erase_its_turn(owner: Owner, said: Any) -> object:
    return erase_turn(owner, "c1", said.id, now=NOW)


def erase_its_conversation(owner: Owner, said: Any) -> object:
    return erase_conversation(owner, "c1", now=NOW)


def erase(owner: Owner, *memory_ids: Any) -> Callable[[], object]:
    return lambda: over_own_connection(lambda: erase_derived(owner, memory_ids, now=NOW))


@pytest.mark.parametrize("erase_source", [erase_its_turn, erase_its_conversation])
def test_what_extraction_committed_during_an_erasure_goes(
    user: Owner, start_concurrently: Start, erase_source: Erase
) -> None:
    said = say_where_ana_lives(user)

    with transaction.atomic():
        extract_all(NOW)
        assert Fact.objects.exists()
        eraser = start_concurrently(lambda: over_own_connection(lambda: erase_source(user, said)))
    eraser.result(PATIENCE_SECONDS)

    assert not Fact.objects.exists()
    assert not Entity.objects.exists()
    assert not UserProfile.objects.exclude(preferences={}).exists()


@pytest.mark.parametrize(
    "erase_one",
    [
        pytest.param(lambda owner, fact_id: forget_memory(owner, fact_id, now=NOW), id="memory"),
        pytest.param(lambda owner, fact_id: erase_fact(owner, fact_id, expected=None, now=NOW), id="fact"),
    ],
)
def test_a_memory_is_erased_once_and_not_found_afterwards(
    user: Owner, start_concurrently: Start, erase_one: Erase
) -> None:
    fact = know(user, "Ana lives in Oslo")

    with transaction.atomic():
        erase_one(user, fact.id)
        second = start_concurrently(lambda: over_own_connection(lambda: erase_one(user, fact.id)))

    with pytest.raises(NotFound):
        second.result(PATIENCE_SECONDS)


@pytest.mark.parametrize("erase_source", [erase_its_turn, erase_its_conversation])
def test_extraction_that_read_before_an_erasure_stores_nothing(
    user: Owner, start_concurrently: Start, erase_source: Erase
) -> None:
    said = say_where_ana_lives(user)
    [claim] = claim_conversations(EXTRACTION, now=NOW, limit=1, account_id=None, target_of=lambda row: row.turn_count)
    work = read_extraction_work(claim)
    extracting: Future[Any] = Future()
    extracting.set_result(extract_from_work(work, knowledge_extractor()))

    with transaction.atomic():
        erase_source(user, said)
        storing = start_concurrently(
            lambda: over_own_connection(lambda: store_extraction_result(work, extracting, now=NOW))
        )

    assert storing.result(PATIENCE_SECONDS).outcome == ClaimOutcome.OUTDATED  # type: ignore[attr-defined]
    assert not Fact.objects.exists()


def test_a_copy_that_was_globalized_during_the_erasure_of_its_fact_goes(user: Owner, start_concurrently: Start) -> None:
    fact = know(user, "Ana lives in Oslo.")

    with transaction.atomic():
        copy = globalize_fact(user, fact.id, reason="known", embedded=NOTHING, now=NOW)
        eraser = start_concurrently(
            lambda: over_own_connection(lambda: erase_fact(user, fact.id, expected=None, now=NOW))
        )
    eraser.result(PATIENCE_SECONDS)

    assert copy.channel == GLOBAL_CHANNEL
    assert not Fact.objects.exists()


def test_a_fact_that_is_being_erased_is_not_globalized(user: Owner, start_concurrently: Start) -> None:
    fact = know(user, "Ana lives in Oslo.")

    with transaction.atomic():
        erase_fact(user, fact.id, expected=None, now=NOW)
        copying = start_concurrently(
            lambda: over_own_connection(
                lambda: globalize_fact(user, fact.id, reason="known", embedded=NOTHING, now=NOW)
            )
        )

    with pytest.raises(NotFound):
        copying.result(PATIENCE_SECONDS)
    assert not Fact.objects.exists()


def test_a_duplicate_that_was_merged_during_the_erasure_of_its_survivor_goes(
    user: Owner, start_concurrently: Start
) -> None:
    one, other = know(user, "Ana lives in Oslo.", confidence=0.9), know(user, "Ana really lives in Oslo.")

    with transaction.atomic():
        done = merge_pair(Owner(account_id=user.account_id), (one.id, other.id), similarity=1.0, now=NOW)
        assert done is not None
        eraser = start_concurrently(erase(user, done.survivor_id))
    eraser.result(PATIENCE_SECONDS)

    assert not Memory.objects.exists()


def test_a_fact_that_is_being_erased_takes_no_duplicate(user: Owner, start_concurrently: Start) -> None:
    one, other = know(user, "Ana lives in Oslo.", confidence=0.9), know(user, "Ana really lives in Oslo.")

    with transaction.atomic():
        erase_derived(user, [one.id], now=NOW)
        merging = start_concurrently(
            lambda: over_own_connection(
                lambda: merge_pair(Owner(account_id=user.account_id), (one.id, other.id), similarity=1.0, now=NOW)
            )
        )

    assert merging.result(PATIENCE_SECONDS) is None
    assert list(Memory.objects.values_list("id", "archived")) == [(other.id, False)]


@pytest.mark.parametrize("user_id", ["u1", ""])
def test_only_one_of_two_that_erase_a_turn_at_once_has_erased_it(
    user: Owner, start_concurrently: Start, user_id: str
) -> None:
    owner = replace(user, user_id=user_id)
    said = say(owner, turn("Ana lives in Oslo.")).turns[0]

    with transaction.atomic():
        erase_turn(owner, "c1", said.id, now=NOW)
        late = start_concurrently(lambda: over_own_connection(lambda: erase_turn(owner, "c1", said.id, now=NOW)))

    with pytest.raises(NotFound, match="no such turn"):
        late.result(PATIENCE_SECONDS)


def test_a_fact_of_two_turns_goes_when_both_are_erased_at_once(user: Owner, start_concurrently: Start) -> None:
    first = say(user, turn("Ana lives in Oslo."), conversation_id="c1").turns[0]
    second = say(user, turn("Ana lives in Oslo."), conversation_id="c2").turns[0]
    know(user, "Ana lives in Oslo.", turn_ids=[first.id, second.id])

    with transaction.atomic():
        erase_derived(user, [first.id], now=NOW)
        eraser = start_concurrently(erase(user, second.id))
    eraser.result(PATIENCE_SECONDS)

    assert not Fact.objects.exists()


def test_a_fact_that_was_derived_from_two_turns_during_the_erasures_of_both_goes(user: Owner) -> None:
    first = say(user, turn("Ana lives in Oslo."), conversation_id="c1").turns[0]
    second = say(user, turn("Ana lives in Oslo."), conversation_id="c2").turns[0]

    with ThreadPoolExecutor(2) as pool, psycopg.connect(**connection.get_connection_params()) as guard:
        # each erasure stops behind its locks, until the other one is there, too
        guard.execute("LOCK TABLE idempotent_requests IN SHARE MODE")
        with transaction.atomic():
            know(user, "Ana lives in Oslo.", turn_ids=[first.id, second.id])
            erasers = [pool.submit(erase(user, each.id)) for each in (first, second)]
            wait_until_two_wait()
        wait_until_two_wait()
        guard.commit()
        for eraser in erasers:
            eraser.result(PATIENCE_SECONDS)

    assert not Fact.objects.exists()


def wait_until_two_wait() -> None:
    """Wait until two sessions of this database wait for locks."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while count_waiting() < 2:
        assert time.monotonic() < deadline, "two sessions never waited at once"
        time.sleep(0.05)


def count_waiting() -> int:
    with connection.cursor() as cursor:
        # or a transaction sees what it saw first
        cursor.execute("SELECT pg_stat_clear_snapshot()")
        cursor.execute(WAITING)
        return int(cursor.fetchone()[0])


def test_a_fact_that_a_client_derives_from_a_turn_that_is_being_erased_is_refused(
    user: Owner, start_concurrently: Start
) -> None:
    said = say_where_ana_lives(user)

    with transaction.atomic():
        erase_turn(user, "c1", said.id, now=NOW)
        learning = start_concurrently(
            lambda: over_own_connection(lambda: know(user, "Ana lives in Oslo.", turn_ids=[said.id]))
        )

    with pytest.raises(Unprocessable, match="there is no turn"):
        learning.result(PATIENCE_SECONDS)
    assert not Fact.objects.exists()
