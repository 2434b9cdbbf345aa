"""Facts that several learn or change at once: one is first, and the others find what it made of them."""

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
from tests.beside import PATIENCE_SECONDS, Start, do_beside, over_own_connection
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, fact_draft, know, reread, tell, versions_of
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
    return lambda: over_own_connection(lambda: tell(owner, claim, **fields).is_new)


def test_many_who_learn_the_same_at_once_learn_one_fact(owner: Owner) -> None:
    with ThreadPoolExecutor(8) as pool:
        learners = [pool.submit(learn_beside(owner, confidence=0.5 + number / 20)) for number in range(8)]
        new = [learner.result(PATIENCE_SECONDS) for learner in learners]

    assert sum(new) == 1
    fact: Any = Fact.objects.get()
    assert fact.confidence == pytest.approx(0.85)
    versions = versions_of(fact)
    assert [version.number for version in versions] == list(range(1, len(versions) + 1))
    assert [version.retracted_at is None for version in versions].count(True) == 1


def test_many_who_learn_the_same_facts_in_any_order_wait_for_each_other_and_not_for_ever(owner: Owner) -> None:
    said = [f"number {number}" for number in range(6)]

    def learn(start: int) -> None:
        drafts = [fact_draft(claim) for claim in said[start:] + said[:start]]
        over_own_connection(lambda: learn_facts(owner, drafts, embedded=NOTHING, now=NOW))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(learn, range(4)))

    assert Fact.objects.count() == 6


def test_an_entity_that_goes_while_a_fact_is_learnt_about_it_is_missed(
    owner: Owner, ana: Entity, start_beside: Start
) -> None:
    with transaction.atomic():
        mark_memories(owner, [ana.id], mark="archive", now=NOW)
        learner = start_beside(learn_beside(owner, entity_ids=[ana.id]))

    with pytest.raises(Unprocessable, match="there is no entity"):
        learner.result(PATIENCE_SECONDS)
    assert not Fact.objects.exists()


def test_what_is_superseded_while_it_is_told_again_is_learnt_anew(owner: Owner, start_beside: Start) -> None:
    fact = know(owner)

    with transaction.atomic():
        supersede_fact(owner, fact.id, fact_draft("Ana lives in Munich."), embedded=NOTHING, now=NOW)
        learner = start_beside(learn_beside(owner))

    assert learner.result(PATIENCE_SECONDS) is True
    assert Fact.objects.count() == 3


def test_who_learns_what_another_is_about_to_learn_waits_and_finds_it(owner: Owner, start_beside: Start) -> None:
    with transaction.atomic():
        know(owner)
        learner = start_beside(learn_beside(owner))

    assert learner.result(PATIENCE_SECONDS) is False


@pytest.mark.parametrize("second", [supersede, replace])
def test_of_two_who_follow_a_fact_at_once_one_wins(
    owner: Owner, start_beside: Start, second: Callable[[Owner, Fact], Fact]
) -> None:
    fact = know(owner)

    with transaction.atomic():
        supersede(owner, fact)
        other = start_beside(lambda: over_own_connection(lambda: second(owner, fact)))

    with pytest.raises(Conflict, match="superseded"):
        other.result(PATIENCE_SECONDS)
    assert Fact.objects.filter(text=MUNICH).count() == 1
    assert Link.objects.filter(type="SUPERSEDES").count() == 1


@pytest.mark.parametrize("second", [retract, reject])
def test_who_takes_back_what_is_being_superseded_takes_back_what_is_left(
    owner: Owner, start_beside: Start, second: Callable[[Owner, Fact], Fact]
) -> None:
    fact = know(owner)

    with transaction.atomic():
        supersede(owner, fact)
        other = start_beside(lambda: over_own_connection(lambda: second(owner, fact)))

    other.result(PATIENCE_SECONDS)
    assert reread(owner, fact).retracted_at == NOW
    rows: Any = Fact.objects
    assert rows.filter(text=MUNICH, status="active").count() == 1


def test_who_refers_to_a_turn_keeps_no_fact_waiting_that_will_refer_to_it(owner: Owner, ana: Entity) -> None:
    """It might want the fact next: the two would wait for each other for ever."""
    fact = know(owner, entity_ids=[ana.id])
    said = say(owner, turn("I live in Munich.")).turns[0]
    draft = fact_draft(MUNICH, turn_ids=[said.id])

    with transaction.atomic():
        insert_links(owner.account_id, [NewLink(source_id=said.id, type=MENTIONS, target_id=ana.id)])
        new = do_beside(lambda: supersede_fact(owner, fact.id, draft, embedded=NOTHING, now=NOW))

    assert new.source_turn_id == said.id


def test_two_corrections_to_one_claim_make_it_once(owner: Owner, start_beside: Start) -> None:
    fact, other = know(owner), know(owner, "Ana lives in Bern.")

    with transaction.atomic():
        correct(owner, fact)
        second = start_beside(lambda: over_own_connection(lambda: correct(owner, other)))

    with pytest.raises(Conflict, match="another fact"):
        second.result(PATIENCE_SECONDS)
    assert reread(owner, other).text == "Ana lives in Bern."
