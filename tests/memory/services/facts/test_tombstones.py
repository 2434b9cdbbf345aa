"""Tombstones: they reveal nothing, keep rejected claims away, and count how often these were met."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.core import serializers
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from pytest_django import DjangoAssertNumQueries, Settings

from memory.errors import Conflict, NotFound
from memory.models import Account, AuditEntry, Fact, FactTombstone
from memory.owner import Owner
from memory.services.facts.globalize import globalize_fact
from memory.services.facts.learn import learn_facts
from memory.services.facts.supersede import correct_fact, reject_fact, retract_fact, supersede_fact
from memory.services.facts.tombstones import add_tombstone, count_tombstone_matches, find_tombstones, lift_tombstone
from memory.services.memories.correct import delete_memories, mark_memories
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection
from tests.memory.entities import entity_of
from tests.memory.episodes import NOTHING, NOW
from tests.memory.facts import CLAIM, claims, day, fact_draft, know, learn_claim, reread

pytestmark = pytest.mark.django_db


def reject(owner: Owner, claim: str = CLAIM, **fields: Any) -> Fact:
    return reject_fact(owner, know(owner, claim, **fields).id, now=day(1))


def is_rejected(owner: Owner, claim: str = CLAIM, names: Sequence[str] = ()) -> bool:
    return find_tombstones(owner, [(claim, names)]) != [None]


def test_a_rejected_fact_is_not_believed(owner: Owner) -> None:
    fact = reject(owner)

    assert (fact.status, reread(owner, fact).retracted_at) == ("rejected", day(1))
    assert (claims(owner, now=day(1)), claims(owner, known_at=NOW)) == ([], [CLAIM])


@pytest.mark.parametrize("again", [CLAIM, "ana lives in  BERLIN"])
def test_a_rejected_claim_cannot_be_learned_again(owner: Owner, again: str) -> None:
    reject(owner)

    with pytest.raises(Conflict, match="was rejected"):
        learn_claim(owner, again, now=day(2))

    assert Fact.objects.count() == 1


def test_no_other_operation_brings_back_a_rejected_claim(owner: Owner) -> None:
    reject(owner)
    other = know(owner, "Ana lives in Bern.")
    in_project = know(replace(owner, channel="atlas"), "Ana owns a boat.")
    reject(owner, "Ana owns a boat.")

    with pytest.raises(Conflict):
        supersede_fact(owner, other.id, fact_draft(), embedded=NOTHING, now=NOW)
    with pytest.raises(Conflict):
        correct_fact(owner, other.id, changes={"claim": CLAIM}, embedded=NOTHING, now=NOW)
    with pytest.raises(Conflict):
        globalize_fact(owner, in_project.id, reason="", embedded=NOTHING, now=NOW)

    assert claims(owner) == ["Ana lives in Bern."]


def test_one_rejected_claim_refuses_the_whole_batch(owner: Owner) -> None:
    reject(owner)

    with pytest.raises(Conflict):
        learn_facts(owner, [fact_draft("Ana has a dog."), fact_draft()], embedded=NOTHING, now=NOW)

    assert claims(owner, now=day(1)) == []


def test_a_claim_is_rejected_for_its_holder_only_in_every_channel(owner: Owner, stranger: Account) -> None:
    reject(owner)

    assert is_rejected(replace(owner, channel="atlas"))
    for other in (
        replace(owner, agent_id="colleague"),
        replace(owner, user_id="ana"),
        Owner(account_id=stranger.id, agent_id="assistant"),
    ):
        assert not is_rejected(other)


def test_a_users_claim_is_rejected_for_all_agents(owner: Owner) -> None:
    reject(replace(owner, user_id="ana"))

    assert is_rejected(Owner(account_id=owner.account_id, agent_id="colleague", user_id="ana"))


@pytest.mark.parametrize(
    ("rejected", "met", "expected"),
    [
        ((), (), True),
        (("Ana",), (), True),
        ((), ("Ana",), True),
        (("Ana",), ("ana ",), True),
        (("Ana",), ("Ana Lima", "Bob"), True),
        (("Ana",), ("Bob",), False),
    ],
    ids=str,
)
def test_an_equal_claim_about_another_entity_is_not_rejected(
    owner: Owner, rejected: Sequence[str], met: Sequence[str], expected: bool
) -> None:
    entities = [entity_of(owner, name, aliases=["Ana Lima"]).id for name in rejected]

    reject(owner, "She lives in Berlin.", entity_ids=entities)

    assert is_rejected(owner, "She lives in Berlin.", met) is expected


def test_a_claim_is_matched_by_names_as_written_and_as_known(owner: Owner) -> None:
    ana = entity_of(owner, "Ana")
    reject(owner, entity_ids=[ana.id])
    known = entity_of(owner, "Ana Lima", aliases=["Anita"])
    aliased = entity_of(owner, "Ana Berlin", type="organization", aliases=["Ana"])

    assert not is_rejected(owner, names=["Anita", *known.names])
    assert is_rejected(owner, names=["Ana Berlin", *aliased.names])
    assert learn_claim(owner, entity_ids=[known.id]).is_new
    with pytest.raises(Conflict):
        learn_claim(owner, entity_ids=[aliased.id])


def test_rejecting_equal_claims_leaves_one_tombstone(owner: Owner) -> None:
    first, again = (add_tombstone(owner, claim, ["Ana"], now=NOW) for claim in (CLAIM, "ana lives in berlin"))

    assert first.id == again.id
    assert add_tombstone(owner, CLAIM, ["Bea"], now=NOW).id != first.id


def test_copies_in_other_channels_are_rejected_as_well(owner: Owner) -> None:
    fact = know(replace(owner, channel="atlas"))
    copy = globalize_fact(owner, fact.id, reason="", embedded=NOTHING, now=NOW)

    reject_fact(owner, copy.id, now=day(1))

    assert [reread(owner, each).status for each in (fact, copy)] == ["rejected"] * 2
    assert claims(replace(owner, channel="atlas"), now=day(1)) == []


def test_equal_claims_in_other_channels_are_rejected_as_well(owner: Owner) -> None:
    atlas = replace(owner, channel="atlas")
    fact = know(atlas)
    known = [know(owner, "ana lives in berlin!"), know(replace(owner, channel="zephyr"), valid_to=day(9))]
    globalize_fact(atlas, fact.id, reason="", embedded=NOTHING, now=NOW)

    reject_fact(atlas, fact.id, now=day(1))

    assert [reread(owner, each).status for each in (fact, *known)] == ["rejected"] * 3
    assert AuditEntry.objects.get(operation="reject").affected_ids == [str(each.id) for each in (fact, *known)]


def test_equal_claims_of_other_holders_or_about_others_stay(owner: Owner) -> None:
    ana, bea = (entity_of(owner, name).id for name in ("Ana", "Bea"))
    colleague, of_user = replace(owner, agent_id="colleague"), replace(owner, user_id="ana")
    others = [know(replace(owner, channel="atlas"), entity_ids=[bea]), know(colleague), know(of_user)]

    reject(owner, entity_ids=[ana])

    statuses = [reread(owned, fact).status for owned, fact in zip((owner, colleague, of_user), others, strict=True)]
    assert statuses == ["active"] * 3


@pytest.mark.parametrize("mark", ["archive", "quarantine"])
def test_a_hidden_fact_with_an_equal_claim_is_rejected_as_well(owner: Owner, mark: str) -> None:
    away = know(replace(owner, channel="atlas"))
    mark_memories(owner, [away.id], mark=mark, now=NOW)

    reject(owner)

    rows = Fact.objects
    assert rows.get(pk=away.pk).status == "rejected"


def test_a_superseded_fact_that_is_believed_can_be_rejected_and_retracted(owner: Owner) -> None:
    past, other = know(owner), know(owner, "Ana owns a boat.")
    for fact, claim in ((past, "Ana lives in Bern."), (other, "Ana owns a ship.")):
        supersede_fact(owner, fact.id, fact_draft(claim, valid_from=day(9)), embedded=NOTHING, now=NOW)
    assert len(claims(owner)) == 2

    reject_fact(owner, past.id, now=day(1))
    retract_fact(owner, other.id, now=day(1))

    assert (claims(owner, now=day(1)), is_rejected(owner)) == ([], True)
    with pytest.raises(Conflict, match="rejected, and not believed"):
        reject_fact(owner, past.id, now=day(2))


def test_a_copy_that_was_corrected_stays(owner: Owner) -> None:
    fact = know(replace(owner, channel="atlas"))
    copy = globalize_fact(owner, fact.id, reason="", embedded=NOTHING, now=NOW)
    correct_fact(owner, copy.id, changes={"claim": "Ana lives in Bern."}, embedded=NOTHING, now=NOW)

    reject_fact(owner, fact.id, now=day(1))

    assert claims(owner, now=day(1)) == ["Ana lives in Bern."]


def test_no_text_is_left_when_the_fact_is_erased(owner: Owner) -> None:
    fact = reject(owner, entity_ids=[entity_of(owner, "Ana").id])

    delete_memories(owner, [fact.id], now=NOW)

    left = serializers.serialize("json", [*FactTombstone.objects.all(), *AuditEntry.objects.all()]).casefold()
    assert not any(word in left for word in ("ana ", '"ana', "berlin", "lives"))
    assert is_rejected(owner)
    [tombstone] = FactTombstone.objects.all()
    assert all(len(digest) == 64 for digest in (tombstone.claim_digest, *tombstone.entity_digests))


def test_digests_depend_on_the_key_and_need_one(owner: Owner, settings: Settings) -> None:
    reject(owner)

    settings.TOMBSTONE_KEY = "another"
    assert not is_rejected(owner)

    settings.TOMBSTONE_KEY = ""
    with pytest.raises(ImproperlyConfigured, match="MEMORY_TOMBSTONE_KEY"):
        is_rejected(owner)


def test_matches_by_extraction_are_counted(owner: Owner) -> None:
    reject(owner)
    reject(owner, "Ana owns a boat.")
    met = find_tombstones(owner, [(CLAIM, ()), ("Ana has a dog.", ()), (CLAIM, ("Ana",)), ("Ana owns a boat.", ())])

    count_tombstone_matches(owner, [tombstone for tombstone in met if tombstone is not None], now=day(5))
    count_tombstone_matches(owner, [], now=day(6))

    assert [tombstone is not None for tombstone in met] == [True, False, True, True]
    counted = FactTombstone.objects.order_by("id").values_list("met_count", "last_met_at")
    assert list(counted) == [(2, day(5)), (1, day(5))]


def test_a_claim_may_be_learned_again_after_its_tombstone_is_lifted(owner: Owner) -> None:
    fact = reject(owner)
    tombstone = FactTombstone.objects.get()

    lift_tombstone(owner, tombstone.id)

    assert learn_claim(owner, now=day(2)).is_new
    assert reread(owner, fact).status == "rejected"
    assert AuditEntry.objects.get(operation="lift").affected_ids == [str(tombstone.id)]


def test_tombstones_of_other_accounts_cannot_be_lifted(owner: Owner, stranger: Account) -> None:
    reject(owner)

    for other, tombstone_id in ((Owner(account_id=stranger.id), FactTombstone.objects.get().id), (owner, uuid4())):
        with pytest.raises(NotFound):
            lift_tombstone(other, tombstone_id)

    assert is_rejected(owner)


def test_a_tombstone_keeps_actor_and_time(owner: Owner) -> None:
    reject(replace(owner, actor="key:abc"))

    tombstone = FactTombstone.objects.get()
    assert (tombstone.rejected_by, tombstone.rejected_at, tombstone.met_count) == ("key:abc", day(1), 0)


def test_looking_for_many_tombstones_takes_one_statement(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        find_tombstones(owner, [(f"number {number}", ("Ana",)) for number in range(50)])
    with django_assert_num_queries(0):
        assert find_tombstones(owner, []) == []


@pytest.mark.django_db(transaction=True)
def test_learning_a_claim_that_is_being_rejected_is_refused(owner: Owner, start_concurrently: Start) -> None:
    fact = know(owner)

    with transaction.atomic():
        reject_fact(owner, fact.id, now=NOW)
        learner = start_concurrently(lambda: over_own_connection(lambda: learn_claim(owner)))

    with pytest.raises(Conflict, match="was rejected"):
        learner.result(PATIENCE_SECONDS)
    assert Fact.objects.count() == 1
