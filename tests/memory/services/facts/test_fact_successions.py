"""Successors of facts: of several facts, of facts that were over long ago, and learned again afterwards."""

from dataclasses import replace
from typing import Any

import pytest

from memory.errors import Conflict, Unprocessable
from memory.models import AuditEntry, Fact, Link
from memory.owner import Owner
from memory.services.facts.store import read_fact_history
from memory.services.facts.supersede import correct_fact, replace_wrong_fact, retract_fact, supersede_fact
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, claims, day, fact_draft, know, learn_claim, reread, versions_of

pytestmark = pytest.mark.django_db

MUNICH = "Ana lives in Munich."
BOTH = pytest.mark.parametrize("follow", [supersede_fact, replace_wrong_fact])


@pytest.fixture
def atlas(owner: Owner) -> Owner:
    return replace(owner, channel="atlas")


def supersede(owner: Owner, fact: Fact, claim: str = MUNICH, *also: Fact, **fields: Any) -> Fact:
    also_ids = [each.id for each in also]
    return supersede_fact(owner, fact.id, fact_draft(claim, **fields), also=also_ids, embedded=NOTHING, now=day(1))


def replace_wrong(owner: Owner, fact: Fact, *also: Fact, **fields: Any) -> Fact:
    also_ids = [each.id for each in also]
    return replace_wrong_fact(owner, fact.id, fact_draft(MUNICH, **fields), also=also_ids, embedded=NOTHING, now=day(1))


@BOTH
def test_one_fact_can_replace_several(owner: Owner, atlas: Owner, follow: Any) -> None:
    first, second, third = know(owner), know(atlas), know(owner, "Ana lives in Bern.")
    also = [second.id, third.id, second.id]

    new = follow(atlas, first.id, fact_draft(MUNICH), also=also, embedded=NOTHING, now=day(1))

    assert claims(atlas, now=day(1)) == [MUNICH]
    assert [reread(atlas, each).status for each in (first, second, third)] == ["superseded"] * 3
    assert set(read_fact_history(new).supersedes) == {first.id, second.id, third.id}
    assert AuditEntry.objects.filter(operation="supersede").get().affected_ids == [
        str(each.id) for each in (new, first, second, third)
    ]


@BOTH
def test_several_facts_are_replaced_all_or_none(owner: Owner, follow: Any) -> None:
    first, second = know(owner), know(owner, "Ana lives in Bern.")
    retract_fact(owner, second.id, now=NOW)

    with pytest.raises(Conflict, match="retracted"):
        follow(owner, first.id, fact_draft(MUNICH), also=[second.id], embedded=NOTHING, now=day(1))

    assert claims(owner) == [CLAIM]


def test_a_successor_is_about_the_entities_of_all_replaced_facts(owner: Owner) -> None:
    ana, bern = entity_of(owner, "Ana"), entity_of(owner, "Bern", type="place")
    first, second = know(owner, entity_ids=[ana.id]), know(owner, "Bern is hers.", entity_ids=[bern.id, ana.id])

    new = supersede(owner, first, MUNICH, second)

    assert set(read_fact_history(new).entities) == {ana.id, bern.id}


@pytest.mark.parametrize(("starts", "begins"), [((day(-3), day(-9)), day(-9)), ((day(-3), None), day(-3))])
def test_wrong_facts_are_replaced_from_the_earliest_start(owner: Owner, starts: Any, begins: Any) -> None:
    wrong = [know(owner, f"number {number}", valid_from=start) for number, start in enumerate(starts)]

    assert replace_wrong(owner, *wrong).valid_from == begins


def test_a_successor_of_a_global_fact_is_global_from_any_agent_and_channel(owner: Owner, atlas: Owner) -> None:
    assert supersede(atlas, know(owner)).channel == "_global"


def test_a_successor_that_ended_before_the_wrong_fact_began_has_no_start(owner: Owner) -> None:
    new = replace_wrong(owner, know(owner, valid_from=day(-9)), temporal="past", valid_to=day(-9))

    assert (new.valid_from, new.valid_to) == (None, day(-9))


def test_a_successor_that_is_over_already_has_no_start(owner: Owner) -> None:
    old = know(owner)

    new = supersede(owner, old, "Ana lived in Munich.", temporal="past", valid_to=day(-9))

    assert (new.valid_from, new.valid_to, reread(owner, old).valid_to) == (None, day(-9), day(1))


@BOTH
def test_a_successor_that_ends_before_it_begins_is_refused(owner: Owner, follow: Any) -> None:
    old = know(owner)

    draft = fact_draft(MUNICH, valid_from=day(-8), valid_to=day(-9))
    with pytest.raises(Unprocessable, match="valid_to"):
        follow(owner, old.id, draft, embedded=NOTHING, now=day(1))

    assert reread(owner, old).status == "active"


def test_a_superseded_fact_is_known_by_its_times(owner: Owner) -> None:
    old = know(owner)
    supersede(owner, old, valid_from=day(-9))

    again = learn_claim(owner, valid_to=day(-9), confidence=1.0, now=day(2))

    assert (again.is_new, again.fact.id, again.fact.status) == (False, old.id, "superseded")
    assert claims(owner, now=day(2), as_of=day(-10)) == [CLAIM]
    assert learn_claim(owner, valid_to=day(-8)).is_new


def test_a_superseded_fact_keeps_its_id_as_identity_if_another_has_its_times(owner: Owner) -> None:
    known = know(owner, valid_to=day(-9))
    old = know(owner)

    supersede(owner, old, valid_from=day(-9))

    assert learn_claim(owner, valid_to=day(-9)).fact.id == known.id
    assert reread(owner, old).status == "superseded"


def test_a_superseded_fact_is_known_by_its_corrected_claim(owner: Owner) -> None:
    old = know(owner)
    supersede(owner, old, valid_from=day(-9))

    correct_fact(owner, old.id, changes={"valid_to": day(-7)}, embedded=NOTHING, now=day(2))

    assert learn_claim(owner, valid_to=day(-9)).is_new
    assert not learn_claim(owner, valid_to=day(-7)).is_new


def test_a_closed_fact_is_known_when_learned_with_its_end(owner: Owner) -> None:
    old = know(owner)

    same = supersede(owner, old, CLAIM, valid_to=day(1))

    assert (same.id, reread(owner, old).valid_to, len(versions_of(old))) == (old.id, day(1), 2)
    assert not Link.objects.filter(type="SUPERSEDES").exists()
