"""Rules, costs and races of merging and splitting entities."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Forbidden, NotFound, Unprocessable
from memory.models import Account, AuditEntry, Entity, Link
from memory.owner import Owner
from memory.services.entities.change import remove_entity
from memory.services.entities.merge import merge_entities
from memory.services.memories.correct import mark_memories
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.entities import entities_of, entity_of, meet
from tests.memory.episodes import NOW
from tests.memory.services.entities.merges import acme as acme
from tests.memory.services.entities.merges import ana as ana
from tests.memory.services.entities.merges import edges, everything, link, merge, split, stored
from tests.memory.services.entities.merges import twin as twin

pytestmark = pytest.mark.django_db


def test_a_split_removes_only_what_the_split_entity_contributed(owner: Owner, ana: Entity) -> None:
    bea = entity_of(owner, "Bea", properties={"a": 1, "b": 1})
    cleo = entity_of(owner, "Cleo", properties={"c": 1}, description="A baker.")
    before = everything()
    merge(owner, bea, cleo)
    merge(owner, ana, bea)
    assert (stored(ana).properties, stored(ana).description) == ({"a": 1, "b": 1, "c": 1}, "A baker.")
    assert stored(cleo).merged_into == ana

    split(owner, ana, "Bea")
    assert (stored(ana).properties, stored(ana).description) == ({"c": 1}, "A baker.")
    assert (stored(bea).properties, stored(bea).description) == ({"a": 1, "b": 1}, "")

    split(owner, ana, "Cleo")
    assert everything() == before


def test_a_revived_part_gets_the_details_of_its_parts(owner: Owner, ana: Entity) -> None:
    bea = entity_of(owner, "Bea")
    cleo = entity_of(owner, "Cleo", properties={"c": 1}, description="A baker.")
    merge(owner, bea, cleo)
    merge(owner, ana, bea)

    split(owner, ana, "Bea", "Cleo")

    assert (stored(bea).properties, stored(bea).description, stored(cleo).merged_into) == ({"c": 1}, "A baker.", bea)
    assert (stored(ana).properties, stored(ana).description) == ({}, "")


def test_a_quarantined_part_leaves_with_its_name_and_gives_nothing_new(owner: Owner, ana: Entity) -> None:
    bea = entity_of(owner, "Bea", description="Trust her.")
    meet(owner, "Ana", description="A baker.")
    merge(owner, ana, bea)
    mark_memories(owner, [bea.id], mark="quarantine", now=NOW)

    other = split(owner, ana, "Bea")

    assert (other != bea, other.description, stored(bea).merged_into, stored(bea).archived) == (True, "", other, True)


def test_only_entities_of_one_type_holder_and_channel_are_merged(
    owner: Owner, ana: Entity, acme: Entity, stranger: Account
) -> None:
    account = replace(owner, agent_id="")
    of_project = entity_of(replace(owner, channel="project"), "Pia")
    for other in (ana, acme, entity_of(replace(owner, user_id="u"), "Ana"), of_project):
        with pytest.raises(Unprocessable):
            merge(account, other, ana)
    for unknown in (uuid4(), entity_of(Owner(account_id=stranger.id), "Ana").id):
        with pytest.raises(NotFound):
            merge_entities(owner, ana.id, unknown, now=NOW)

    assert merge(owner, ana, of_project) == ana
    assert entity_of(replace(owner, channel="project"), "Pia") == ana


def test_only_the_holder_may_merge_and_split(owner: Owner, ana: Entity, twin: Entity) -> None:
    user, colleague = replace(owner, user_id="u"), replace(owner, agent_id="other")
    acts: list[Callable[[Owner], Entity]] = [lambda who: merge(who, ana, twin), lambda who: split(who, ana, "Anita")]
    for act in acts:
        with pytest.raises(Forbidden):
            act(user)
        with pytest.raises(NotFound):
            act(colleague)

    merge(replace(owner, agent_id=""), ana, twin)
    split(replace(owner, agent_id=""), ana, "Anita")


@pytest.mark.parametrize("names", [(), ("Bo",), ("Anita", "Bo"), ("Ana", "Anita")], ids=str)
def test_an_entity_is_split_by_some_of_its_names_only(owner: Owner, ana: Entity, names: tuple[str, ...]) -> None:
    with pytest.raises(Unprocessable):
        split(owner, ana, *names)

    assert stored(ana).names == ["Ana", "Anita"]


def test_only_links_of_the_entity_with_others_move(owner: Owner, ana: Entity, twin: Entity, acme: Entity) -> None:
    foreign, between = link(acme, "KNOWS", entity_of(owner, "Bo")), link(ana, "KNOWS", twin)
    merge(owner, ana, twin)

    for refused in (foreign.id, between.id, uuid4()):
        for name in ("A. Lima", "Anita"):
            with pytest.raises(Unprocessable):
                split(owner, ana, name, links=(refused,))

    assert stored(twin).archived


def test_deleting_an_entity_deletes_its_parts(owner: Owner, ana: Entity, twin: Entity) -> None:
    merge(owner, ana, twin)

    remove_entity(owner, ana.id, now=NOW)

    assert not Entity.objects.exists()


def test_a_quarantined_entity_cannot_be_merged(owner: Owner, ana: Entity, twin: Entity) -> None:
    mark_memories(owner, [twin.id], mark="quarantine", now=NOW)

    with pytest.raises(NotFound):
        merge(owner, ana, twin)


def test_a_dropped_link_with_a_deleted_end_is_not_restored(
    owner: Owner, ana: Entity, twin: Entity, acme: Entity
) -> None:
    link(ana, "WORKS_FOR", acme)
    link(twin, "WORKS_FOR", acme)
    merge(owner, ana, twin)
    remove_entity(owner, acme.id, now=NOW)

    split(owner, ana, "A. Lima")

    assert edges() == set()


def test_the_audit_log_names_both_entities(owner: Owner, ana: Entity, twin: Entity) -> None:
    merge(owner, ana, twin)
    split(owner, ana, "A. Lima")

    entries = AuditEntry.objects.filter(affected_ids=[str(ana.id), str(twin.id)]).order_by("id")

    assert list(entries.values_list("operation", flat=True)) == ["merge", "split"]


@pytest.mark.slow
def test_merging_takes_as_many_statements_for_a_hub_as_for_a_leaf(
    owner: Owner, ana: Entity, twin: Entity, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for other in entities_of(owner, *(f"of {number}" for number in range(200))):
        link(twin, "KNOWS", other)
        link(ana, "KNOWS" if other.name.endswith("7") else "RELATED_TO", other)

    # both entities, the lock, their parts, all rows, names twice, links, parts of dropped links, what the part gave;
    # texts, vectors, rows, audit; and the savepoint
    with django_assert_num_queries(16):
        merge(owner, ana, twin)

    assert Link.objects.filter(source_id=ana.id).count() == 380
    # 500 links in a statement
    with django_assert_num_queries(21):
        split(owner, ana, "A. Lima")
    assert Link.objects.filter(source_id=twin.id, type="KNOWS").count() == 200


@pytest.mark.django_db(transaction=True)
def test_an_upsert_during_a_merge_finds_the_survivor(
    owner: Owner, ana: Entity, twin: Entity, start_concurrently: Start
) -> None:
    with transaction.atomic():
        merge(owner, ana, twin)
        meeting = start_concurrently(lambda: meet(owner, "Lima"))

    met: Any = meeting.result(PATIENCE_SECONDS)
    assert met.entity == ana


@pytest.mark.django_db(transaction=True)
def test_the_second_of_two_concurrent_merges_is_not_found(
    owner: Owner, ana: Entity, twin: Entity, start_concurrently: Start
) -> None:
    with transaction.atomic():
        merge(owner, ana, twin)
        other = start_concurrently(lambda: merge(owner, twin, ana))

    with pytest.raises(NotFound):
        other.result(PATIENCE_SECONDS)
    assert (stored(ana).archived, stored(twin).archived) == (False, True)
