"""Facts that several callers learn or change concurrently: one is first, the others see its result."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import transaction

from memory.errors import Conflict, Unprocessable
from memory.models import Entity, Fact, Link
from memory.owner import Owner
from memory.services.facts.learn import learn_facts
from memory.services.facts.supersede import (
    correct_fact,
    reject_fact,
    replace_wrong_fact,
    retract_fact,
    supersede_fact,
)
from memory.services.memories.correct import mark_memories
from memory.services.memories.links import MENTIONS, NewLink, insert_links
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection, run_in_thread
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, fact_draft, know, learn_claim, reread, versions_of
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db(transaction=True)

MUNICH = "Ana lives in Munich."


@pytest.fixture
def ana(owner: Owner) -> Entity:
    return entity_of(owner, "Ana")


def supersede(owner: Owner, fact: Fact) -> Fact:
    return supersede_fact(owner, fact.id, fact_draft(MUNICH), embedded=NOTHING, now=NOW)


def replace(owner: Owner, fact: Fact) -> Fact:
    return replace_wrong_fact(owner, fact.id, fact_draft(MUNICH), embedded=NOTHING, now=NOW)


def correct(owner: Owner, fact: Fact) -> Fact:
    return correct_fact(owner, fact.id, changes={"claim": MUNICH}, embedded=NOTHING, now=NOW)


def retract(owner: Owner, fact: Fact) -> Fact:
    return retract_fact(owner, fact.id, now=NOW)


def reject(owner: Owner, fact: Fact) -> Fact:
    return reject_fact(owner, fact.id, now=NOW)


def learn_beside(owner: Owner, claim: str = CLAIM, **fields: Any) -> Callable[[], bool]:
    return lambda: over_own_connection(lambda: learn_claim(owner, claim, **fields).is_new)


def test_concurrent_learners_of_one_claim_store_one_fact(owner: Owner) -> None:
    with ThreadPoolExecutor(8) as pool:
        learners = [pool.submit(learn_beside(owner, confidence=0.5 + number / 20)) for number in range(8)]
        new = [learner.result(PATIENCE_SECONDS) for learner in learners]

    assert sum(new) == 1
    fact = Fact.objects.get()
    assert fact.confidence == pytest.approx(0.85)
    versions = versions_of(fact)
    assert [version.number for version in versions] == list(range(1, len(versions) + 1))
    assert [version.retracted_at is None for version in versions].count(True) == 1


def test_learning_the_same_facts_in_any_order_does_not_deadlock(owner: Owner) -> None:
    sources = [f"number {number}" for number in range(6)]

    def learn(start: int) -> None:
        drafts = [fact_draft(claim) for claim in sources[start:] + sources[:start]]
        over_own_connection(lambda: learn_facts(owner, drafts, embedded=NOTHING, now=NOW))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(learn, range(4)))

    assert Fact.objects.count() == 6


def test_a_fact_about_an_entity_deleted_meanwhile_is_refused(
    owner: Owner, ana: Entity, start_concurrently: Start
) -> None:
    with transaction.atomic():
        mark_memories(owner, [ana.id], mark="archive", now=NOW)
        learner = start_concurrently(learn_beside(owner, entity_ids=[ana.id]))

    with pytest.raises(Unprocessable, match="there is no entity"):
        learner.result(PATIENCE_SECONDS)
    assert not Fact.objects.exists()


def test_a_fact_superseded_while_it_is_repeated_is_learned_as_a_new_one(
    owner: Owner, start_concurrently: Start
) -> None:
    fact = know(owner)

    with transaction.atomic():
        supersede_fact(owner, fact.id, fact_draft("Ana lives in Munich."), embedded=NOTHING, now=NOW)
        learner = start_concurrently(learn_beside(owner))

    assert learner.result(PATIENCE_SECONDS) is True
    assert Fact.objects.count() == 3


def test_learning_waits_for_a_concurrent_learner_and_finds_its_fact(owner: Owner, start_concurrently: Start) -> None:
    with transaction.atomic():
        know(owner)
        learner = start_concurrently(learn_beside(owner))

    assert learner.result(PATIENCE_SECONDS) is False


@pytest.mark.parametrize("second", [supersede, replace])
def test_only_one_of_two_concurrent_successors_wins(
    owner: Owner, start_concurrently: Start, second: Callable[[Owner, Fact], Fact]
) -> None:
    fact = know(owner)

    with transaction.atomic():
        supersede(owner, fact)
        other = start_concurrently(lambda: over_own_connection(lambda: second(owner, fact)))

    with pytest.raises(Conflict, match="superseded"):
        other.result(PATIENCE_SECONDS)
    assert Fact.objects.filter(text=MUNICH).count() == 1
    assert Link.objects.filter(type="SUPERSEDES").count() == 1


@pytest.mark.parametrize("second", [retract, reject])
def test_retracting_a_fact_that_is_being_superseded_retracts_the_rest(
    owner: Owner, start_concurrently: Start, second: Callable[[Owner, Fact], Fact]
) -> None:
    fact = know(owner)

    with transaction.atomic():
        supersede(owner, fact)
        other = start_concurrently(lambda: over_own_connection(lambda: second(owner, fact)))

    other.result(PATIENCE_SECONDS)
    assert reread(owner, fact).retracted_at == NOW
    rows = Fact.objects
    assert rows.filter(text=MUNICH, status="active").count() == 1


def test_referring_to_a_turn_does_not_block_other_facts_that_refer_to_it(owner: Owner, ana: Entity) -> None:
    """A transaction that refers to the turn might lock the fact next: the two would deadlock."""
    fact = know(owner, entity_ids=[ana.id])
    sources = say(owner, turn("I live in Munich.")).turns[0]
    draft = fact_draft(MUNICH, turn_ids=[sources.id])

    with transaction.atomic():
        insert_links(owner.account_id, [NewLink(source_id=sources.id, type=MENTIONS, target_id=ana.id)])
        new = run_in_thread(lambda: supersede_fact(owner, fact.id, draft, embedded=NOTHING, now=NOW))

    assert new.source_turn_id == sources.id


def test_of_two_corrections_to_one_claim_the_second_is_refused(owner: Owner, start_concurrently: Start) -> None:
    fact, other = know(owner), know(owner, "Ana lives in Bern.")

    with transaction.atomic():
        correct(owner, fact)
        second = start_concurrently(lambda: over_own_connection(lambda: correct(owner, other)))

    with pytest.raises(Conflict, match="another fact"):
        second.result(PATIENCE_SECONDS)
    assert reread(owner, other).text == "Ana lives in Bern."
