"""Changing and deleting entities, their costs, and simultaneous writes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Conflict, Forbidden, NotFound, Unprocessable
from memory.models import Account, AuditEntry, Entity, EntityName, Memory, Vector
from memory.owner import Owner
from memory.services.entities.change import EntityChanges, change_entity, remove_entity
from memory.services.entities.learn import (
    ResolvedEntity,
    upsert_entities,
    upsert_entities_leniently,
)
from memory.services.entities.store import find_entity, lock_entities
from memory.services.memories.correct import delete_memories
from tests.concurrency import PATIENCE_SECONDS, Start, over_own_connection, run_in_thread
from tests.memory.entities import entities_of, entity_draft, entity_of, meet
from tests.memory.episodes import NOTHING, NOW
from tests.memory.services.entities.known import known, stored

pytestmark = pytest.mark.django_db


SAVEPOINT = 2


def change(owner: Owner, entity: Entity, **changes: Any) -> Entity:
    return change_entity(owner, entity.id, changes=EntityChanges(**changes), embedded=NOTHING, now=NOW)


def test_an_entity_is_visible_to_its_user_and_agent_only(owner: Owner, stranger: Account) -> None:
    nobodys, anas = entity_of(owner), entity_of(replace(owner, user_id="ana"), "Bo")

    assert known(replace(owner, agent_id="other", user_id="ana")) == ["Bo"]
    assert known(replace(owner, user_id="ana")) == ["Ana Lima", "Bo"]
    assert known(replace(owner, user_id="bo")) == ["Ana Lima"]
    assert known(replace(owner, agent_id="other")) == known(Owner(account_id=stranger.id)) == []
    assert find_entity(replace(owner, agent_id=""), anas.id, now=NOW) == anas
    with pytest.raises(NotFound):
        find_entity(replace(owner, agent_id="other"), nobodys.id, now=NOW)


def test_a_change_stores_values_and_frees_removed_names(owner: Owner) -> None:
    first = entity_of(owner, aliases=["Anita", "Nita"])

    change(owner, first, name="Ana Souza", aliases=["Nita"], description="A baker.", properties={"a": 1}, salience=0.9)

    row = stored(first)
    assert (row.names, row.text) == (["Ana Souza", "Nita"], "Ana Souza (Nita). A baker.")
    assert (row.description, row.properties, row.salience, row.version) == ("A baker.", {"a": 1}, 0.9, 2)
    assert entity_of(owner, "Ana Souza") == first
    assert meet(owner, "Ana Lima").is_new
    assert meet(owner, "Anita").is_new


def test_a_former_name_becomes_an_alias(owner: Owner) -> None:
    first = entity_of(owner, aliases=["Anita"])

    change(owner, first, name="ana souza")

    assert stored(first).names == ["ana souza", "Ana Lima", "Anita"]
    assert entity_of(owner) == first


def test_a_name_may_change_its_spelling(owner: Owner) -> None:
    first = entity_of(owner)

    change(owner, first, name="ANA LIMA")

    assert stored(first).names == ["ANA LIMA"]


def test_equal_values_change_nothing(owner: Owner) -> None:
    first = entity_of(owner, aliases=["Anita"])

    change(owner, first, name="Ana Lima", aliases=["Anita"], description="")

    assert stored(first).version == 1


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": "BO"}, Conflict),
        ({"aliases": ["bo"]}, Conflict),
        ({"name": ""}, Unprocessable),
        ({"salience": 2.0}, Unprocessable),
        ({"aliases": [str(number) for number in range(101)]}, Unprocessable),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_invalid_change_is_refused_as_a_whole(owner: Owner, changes: dict[str, Any], error: type[Exception]) -> None:
    meet(owner, "Bo")
    first = entity_of(owner, aliases=["Anita"])

    with pytest.raises(error):
        change(owner, first, **{"description": "new", **changes})

    assert (stored(first).version, stored(first).names) == (1, ["Ana Lima", "Anita"])


def test_only_the_holder_and_the_account_may_write(owner: Owner) -> None:
    nobodys, anas = entity_of(owner), entity_of(replace(owner, user_id="ana"), "Bo")
    user, colleague = replace(owner, user_id="ana"), replace(owner, agent_id="other")

    for act in (
        lambda who, entity: change(who, entity, description="x"),
        lambda who, entity: remove_entity(who, entity.id, now=NOW),
    ):
        with pytest.raises(Forbidden):
            act(user, nobodys)
        with pytest.raises(NotFound):
            act(colleague, nobodys)
        with pytest.raises(Forbidden):
            act(owner, anas)
        with pytest.raises(NotFound):
            act(replace(colleague, user_id="bo"), anas)

    change(replace(owner, agent_id=""), nobodys, description="by the account")
    change(replace(colleague, user_id="ana"), anas, description="by another agent of ana's")


def test_a_deleted_entity_leaves_no_name_or_vector_and_may_be_created_again(owner: Owner) -> None:
    first = entity_of(owner, aliases=["Anita"], angle=0.0)

    remove_entity(owner, first.id, now=NOW)

    assert not Memory.objects.exists()
    assert not Vector.objects.exists()
    assert not EntityName.objects.exists()
    assert meet(owner).is_new
    with pytest.raises(NotFound):
        remove_entity(owner, first.id, now=NOW)


def test_the_audit_log_records_operations_and_no_names(owner: Owner) -> None:
    first = entity_of(owner)
    meet(owner, aliases=["Anita"])
    change(owner, first, description="A baker.")
    remove_entity(owner, first.id, now=NOW)

    entries = AuditEntry.objects.filter(affected_ids=[str(first.id)]).order_by("id")

    assert list(entries.values_list("operation", "memory_type")) == [
        *(("store", "semantic"), ("update", "semantic"), ("update", "semantic"), ("delete", "semantic")),
    ]
    assert not any("Ana" in str(entry.__dict__) for entry in AuditEntry.objects.all())


def test_upserts_cost_as_many_queries_as_stated_however_many_they_are(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for count in (1, 50):
        names = [f"of {count}: {number}" for number in range(count)]
        # the holder's lock, names, misspellings; rows, children, vectors, agent, audit, names
        with django_assert_num_queries(8 + SAVEPOINT):
            entities_of(owner, *names, angle=0.0)
        # the lock, names, rows
        with django_assert_num_queries(3 + SAVEPOINT):
            entities_of(owner, *names)
        # in addition: texts, vectors, rows, audit
        with django_assert_num_queries(7 + SAVEPOINT):
            entities_of(owner, *names, description="new")


def test_upserting_and_locking_no_entities_takes_no_statement(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        assert upsert_entities_leniently(owner, [], embedded=NOTHING, now=NOW) == []
        assert lock_entities(owner, []) == []


@pytest.mark.django_db(transaction=True)
def test_concurrent_upserts_of_one_name_create_one_entity(owner: Owner, start_concurrently: Start) -> None:
    with transaction.atomic():
        mine = meet(owner, aliases=["Anita"])
        other = start_concurrently(lambda: meet(owner, "Anita", aliases=["Nita"]))

    theirs: Any = other.result(PATIENCE_SECONDS)
    assert (mine.is_new, theirs.is_new, theirs.entity) == (True, False, mine.entity)
    assert stored(mine.entity).names == ["Ana Lima", "Anita", "Nita"]


@pytest.mark.django_db(transaction=True)
def test_concurrent_upserts_in_any_order_create_one_entity_for_each_name(owner: Owner) -> None:
    names = ["Ana", "Bo", "Cy"]

    def upsert(number: int) -> list[ResolvedEntity]:
        turned = names[number % 3 :] + names[: number % 3]
        drafts = [entity_draft(name, aliases=[f"{name} {number}"]) for name in turned]
        return over_own_connection(lambda: upsert_entities(owner, drafts, embedded=NOTHING, now=NOW))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(upsert, range(24)))

    assert sum(each.is_new for resolved in found for each in resolved) == 3
    rows = Entity.objects.all()
    assert [len(entity.aliases) for entity in rows] == [24, 24, 24]
    assert EntityName.objects.count() == 75


@pytest.mark.django_db(transaction=True)
def test_an_entity_deleted_meanwhile_is_created_again(owner: Owner, start_concurrently: Start) -> None:
    first = entity_of(owner)

    with transaction.atomic():
        delete_memories(owner, [first.id], now=NOW)
        writing = start_concurrently(lambda: meet(owner, aliases=["Anita"]))

    again: Any = writing.result(PATIENCE_SECONDS)
    assert (again.is_new, again.entity.id != first.id) == (True, True)
    assert stored(again.entity).names == ["Ana Lima", "Anita"]


@pytest.mark.django_db(transaction=True)
def test_deleting_an_entity_waits_for_a_write(owner: Owner, start_concurrently: Start) -> None:
    first = entity_of(owner)

    with transaction.atomic():
        meet(owner, aliases=["Anita"])
        deleting = start_concurrently(lambda: remove_entity(owner, first.id, now=NOW))

    deleting.result(PATIENCE_SECONDS)
    assert not Entity.objects.exists()
    assert not EntityName.objects.exists()


def refer_to(owner: Owner, entity: Entity) -> list[Entity]:
    with transaction.atomic():
        return lock_entities(owner, [entity.id])


@pytest.mark.django_db(transaction=True)
def test_deleting_an_entity_waits_for_a_reference(owner: Owner, start_concurrently: Start) -> None:
    first = entity_of(owner)

    with transaction.atomic():
        lock_entities(owner, [first.id])
        deleting = start_concurrently(lambda: remove_entity(owner, first.id, now=NOW))
        # another reference waits for neither
        assert run_in_thread(lambda: refer_to(owner, first)) == [first]

    deleting.result(PATIENCE_SECONDS)
    with transaction.atomic():
        assert lock_entities(owner, [first.id]) == []
