"""Facts are believed again once their successor is retracted, rejected or erased."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from redis.exceptions import RedisError

from ledger.store import mark
from memory.errors import StaleVersion
from memory.models import AuditEntry, Fact
from memory.owner import Owner
from memory.services.custody.single import erase_fact
from memory.services.facts.store import read_fact_history
from memory.services.facts.supersede import (
    correct_fact,
    reject_fact,
    replace_wrong_fact,
    retract_fact,
    supersede_fact,
)
from memory.services.forgetting import forget_memory
from memory_project.redis import ConversationRef
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, claims, day, fact_draft, know, reread, versions_of
from tests.redis_elsewhere import redis_away

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

MUNICH = "Ana lives in Munich."
BERN = "Ana lives in Bern."
NEXT_DAY = day(1)


def erase(owner: Owner, fact_id: Any, *, now: datetime) -> None:
    erase_fact(owner, fact_id, expected=None, now=now)


WITHDRAW = pytest.mark.parametrize("withdraw", [retract_fact, reject_fact, erase, forget_memory])
ERASE = pytest.mark.parametrize("erase_it", [erase, forget_memory])


def supersede(owner: Owner, fact: Fact, claim: str = MUNICH, *, now: datetime = NEXT_DAY, **fields: Any) -> Fact:
    return supersede_fact(owner, fact.id, fact_draft(claim, **fields), embedded=NOTHING, now=now)


@WITHDRAW
def test_the_end_that_a_withdrawn_successor_made_is_undone(owner: Owner, withdraw: Any) -> None:
    fact = know(owner, valid_to=day(90))
    new = supersede(owner, fact)

    withdraw(owner, new.id, now=day(2))

    assert claims(owner, now=day(3)) == [CLAIM]
    after = reread(owner, fact)
    assert (after.status, after.valid_from, after.valid_to) == ("active", NOW, day(90))
    assert [each.reason for each in versions_of(fact)] == ["learned", "superseded", "corrected"]
    assert claims(owner, now=day(3), as_of=day(1.5), known_at=day(1.5)) == [MUNICH] * (
        withdraw in (retract_fact, reject_fact)
    )


@WITHDRAW
def test_the_end_that_a_successor_of_a_later_day_would_have_made_is_undone(owner: Owner, withdraw: Any) -> None:
    fact = know(owner)
    new = supersede(owner, fact, valid_from=day(30))

    withdraw(owner, new.id, now=day(2))

    assert claims(owner, now=day(3), as_of=day(60)) == [CLAIM]


@ERASE
def test_the_former_text_of_a_memory_that_was_updated_is_not_believed_again(owner: Owner, erase_it: Any) -> None:
    fact, other = know(owner), know(owner, BERN)
    new = supersede(owner, fact, metadata={"mem0_id": str(fact.id)})
    world = supersede(owner, other, "Ana lives in Basel.", metadata={"topic": "homes"})

    erase_it(owner, new.id, now=day(2))
    erase_it(owner, world.id, now=day(2))

    assert claims(owner, now=day(3)) == [BERN]


@pytest.mark.parametrize("accepts", [None, "before", "now"])
def test_an_erasure_that_failed_after_the_retraction_is_repeated(owner: Owner, accepts: str | None) -> None:
    fact = know(owner)
    new = supersede(owner, fact)
    mark(ConversationRef(account_id=owner.account_id, conversation_id="c1"), f"fact:{new.id}")
    with redis_away(), pytest.raises(RedisError):
        erase(owner, new.id, now=day(2))
    retracted = reread(owner, new)
    assert (retracted.status, retracted.version) == ("retracted", new.version + 1)
    versions = {"before": new.version, "now": retracted.version}
    expected = None if accepts is None else frozenset([versions[accepts]])

    erase_fact(owner, new.id, expected=expected, now=day(3))

    assert not Fact.objects.filter(id=new.id).exists()
    assert claims(owner, now=day(3)) == [CLAIM]


def test_a_memory_whose_deletion_failed_after_the_retraction_is_deleted(owner: Owner) -> None:
    new = supersede(owner, know(owner))
    retract_fact(owner, new.id, now=day(2))

    forget_memory(owner, new.id, now=day(3))

    assert not Fact.objects.filter(id=new.id).exists()


def test_a_retracted_fact_is_not_erased_by_who_read_an_older_version(owner: Owner) -> None:
    fact = know(owner)
    correct_fact(owner, fact.id, changes={"confidence": 0.5}, embedded=NOTHING, now=day(1))
    retract_fact(owner, fact.id, now=day(2))

    with pytest.raises(StaleVersion):
        erase_fact(owner, fact.id, expected=frozenset([fact.version]), now=day(3))


def test_what_was_over_before_its_successor_began_has_ended(owner: Owner) -> None:
    fact = know(owner, valid_to=day(0.5))
    new = supersede(owner, fact)

    retract_fact(owner, new.id, now=day(2))

    after = reread(owner, fact)
    assert (after.status_at(day(3)), after.valid_to) == ("ended", day(0.5))


def test_an_end_that_was_corrected_since_stays(owner: Owner) -> None:
    fact = know(owner)
    new = supersede(owner, fact)
    correct_fact(owner, fact.id, changes={"valid_to": day(0.5)}, embedded=NOTHING, now=day(1))

    retract_fact(owner, new.id, now=day(2))

    assert reread(owner, fact).valid_to == day(0.5)
    assert claims(owner, now=day(3)) == []


def test_the_beginning_that_went_with_the_end_comes_back(owner: Owner) -> None:
    fact = know(owner)
    new = supersede(owner, fact, valid_from=day(-9))
    assert reread(owner, fact).valid_from is None

    retract_fact(owner, new.id, now=day(2))

    after = reread(owner, fact)
    assert (after.valid_from, after.valid_from_source, after.valid_to) == (NOW, "said", None)


def test_a_fact_of_whose_time_nothing_was_left_is_believed_again(owner: Owner) -> None:
    fact = know(owner, valid_from=day(-5))
    new = supersede(owner, fact, valid_from=day(-9))
    assert reread(owner, fact).retracted_at == day(1)

    retract_fact(owner, new.id, now=day(2))

    assert claims(owner, now=day(3)) == [CLAIM]
    assert claims(owner, now=day(3), known_at=day(1.5)) == [MUNICH]


def test_a_fact_that_was_wrong_stays_replaced(owner: Owner) -> None:
    fact = know(owner)
    new = replace_wrong_fact(owner, fact.id, fact_draft(MUNICH), embedded=NOTHING, now=day(1))

    retract_fact(owner, new.id, now=day(2))

    assert claims(owner, now=day(3)) == []


def test_withdrawing_a_fact_that_was_superseded_in_turn_reopens_nothing(owner: Owner) -> None:
    first = know(owner)
    second = supersede(owner, first)
    third = supersede(owner, second, BERN, now=day(2))

    retract_fact(owner, second.id, now=day(3))
    assert claims(owner, now=day(4)) == [BERN]

    retract_fact(owner, third.id, now=day(4))
    assert [reread(owner, each).status for each in (first, second, third)] == ["superseded", "retracted", "retracted"]


def test_successors_are_withdrawn_one_after_the_other(owner: Owner) -> None:
    first = know(owner)
    second = supersede(owner, first)
    third = supersede(owner, second, BERN, now=day(2))

    retract_fact(owner, third.id, now=day(3))
    assert claims(owner, now=day(3)) == [MUNICH]

    retract_fact(owner, second.id, now=day(4))
    assert claims(owner, now=day(4)) == [CLAIM]


def test_what_something_else_superseded_since_stays_superseded(owner: Owner) -> None:
    fact = know(owner)
    second = supersede(owner, fact)
    retract_fact(owner, second.id, now=day(2))
    third = supersede(owner, fact, BERN, now=day(3))

    erase(owner, second.id, now=day(4))

    assert claims(owner, now=day(5)) == [BERN]
    assert read_fact_history(reread(owner, fact)).superseded_by == [third.id]


def test_a_claim_that_was_learned_again_is_believed_once(owner: Owner) -> None:
    fact = know(owner)
    new = supersede(owner, fact)
    again = know(owner, now=day(2))

    retract_fact(owner, new.id, now=day(3))

    assert claims(owner, now=day(4)) == [CLAIM]
    assert (reread(owner, fact).status, reread(owner, again).status) == ("superseded", "active")


def test_a_rejected_claim_is_not_believed_again(owner: Owner) -> None:
    fact = know(owner)
    new = supersede(owner, fact)
    reject_fact(owner, fact.id, now=day(2))

    retract_fact(owner, new.id, now=day(3))

    assert claims(owner, now=day(4)) == []


def test_all_that_one_fact_superseded_is_believed_again(owner: Owner) -> None:
    first, second = know(owner), know(replace(owner, channel="atlas"), BERN)
    new = supersede_fact(owner, first.id, fact_draft(MUNICH), also=[second.id], embedded=NOTHING, now=day(1))

    retract_fact(owner, new.id, now=day(2))

    assert claims(replace(owner, channel="atlas"), now=day(3)) == [CLAIM, BERN]
    entry = AuditEntry.objects.get(operation="retract")
    assert entry.affected_ids == [str(each.id) for each in (new, first, second)]
