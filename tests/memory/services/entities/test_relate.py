"""Relationships: created once, extended, visible with both ends, created and deleted by the entities' holder."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.errors import Forbidden, NotFound, TooLarge, Unprocessable
from memory.models import Account, AuditEntry, Entity, Kind, Link, Memory, MemoryRow
from memory.models.links import STRUCTURAL_TYPES
from memory.owner import Owner
from memory.services.entities.relate import (
    RelationshipDraft,
    StoredRelationship,
    create_relationship,
    create_relationships,
    delete_relationship,
    explore_graph,
    find_relationship,
    visible_relationships,
)
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.audits import written_read
from tests.memory.episodes import NOW
from tests.memory.graphs import entity, link, node

pytestmark = pytest.mark.django_db


@pytest.fixture
def ana(owner: Owner) -> Entity:
    return entity(owner, "Ana")


@pytest.fixture
def acme(owner: Owner) -> Entity:
    return entity(owner, "Acme", type="organization")


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


@pytest.fixture
def whole_account(owner: Owner) -> Owner:
    return replace(owner, agent_id="")


def between(source: MemoryRow, target: MemoryRow, type: str = "WORKS_FOR", **fields: Any) -> RelationshipDraft:  # noqa: A002
    return RelationshipDraft(source_id=source.id, target_id=target.id, type=type, **fields)


def join(owner: Owner, source: MemoryRow, target: MemoryRow, **fields: Any) -> StoredRelationship:
    return create_relationship(owner, between(source, target, **fields), now=NOW)


def seen(owner: Owner) -> set[UUID]:
    return {found.id for found in visible_relationships(owner, now=NOW)}


def test_a_relationship_is_a_link_between_two_entities(owner: Owner, ana: Entity, acme: Entity) -> None:
    made = join(owner, ana, acme, properties={"since": "May"})

    stored = Link.objects.get()
    assert made.is_new
    assert (stored.id, stored.source_id, stored.target_id) == (made.link.id, ana.id, acme.id)
    assert (stored.type, stored.weight, stored.properties) == ("WORKS_FOR", 1.0, {"since": "May"})
    assert find_relationship(owner, stored.id, now=NOW) == stored


def test_creating_again_extends_the_existing_relationship(owner: Owner, ana: Entity, acme: Entity) -> None:
    first = join(owner, ana, acme, weight=0.5, properties={"since": "May", "role": "clerk"})

    again = join(owner, ana, acme, properties={"role": "head", "desk": 7})
    weighed = join(owner, ana, acme, weight=0.9)

    assert (first.is_new, again.is_new, weighed.is_new) == (True, False, False)
    assert first.link.id == again.link.id == weighed.link.id
    assert (again.link.weight, weighed.link.weight) == (0.5, 0.9)
    assert Link.objects.get().properties == {"since": "May", "role": "head", "desk": 7}


def test_another_type_or_direction_is_another_relationship(owner: Owner, ana: Entity, acme: Entity) -> None:
    made = [
        join(owner, ana, acme),
        join(owner, acme, ana),
        join(owner, ana, acme, type="KNOWS"),
    ]

    assert all(each.is_new for each in made)
    assert Link.objects.count() == 3


def test_many_relationships_are_returned_in_the_order_of_their_drafts(owner: Owner, ana: Entity, acme: Entity) -> None:
    drafts = [between(ana, acme, type_, properties={"n": n}) for n, type_ in enumerate(["KNOWS", "A", "KNOWS", "Z"])]

    links = [related.link for related in create_relationships(owner, drafts, now=NOW)]

    assert [found.type for found in links] == ["KNOWS", "A", "KNOWS", "Z"]
    assert links[0] == links[2]
    assert links[0].properties == {"n": 2}
    assert Link.objects.count() == 3


def test_no_drafts_create_nothing(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        assert create_relationships(owner, [], now=NOW) == []


@pytest.mark.parametrize("type_", ["", "knows", "1A", "_A", "A B", "A" * 51, "A\n", *sorted(STRUCTURAL_TYPES)])
def test_malformed_and_reserved_types_are_refused(owner: Owner, ana: Entity, acme: Entity, type_: str) -> None:
    with pytest.raises(Unprocessable):
        join(owner, ana, acme, type=type_)


@pytest.mark.parametrize("weight", [-0.1, 1.2, float("nan")])
def test_weights_out_of_bounds_are_refused(owner: Owner, ana: Entity, acme: Entity, weight: float) -> None:
    with pytest.raises(Unprocessable):
        join(owner, ana, acme, weight=weight)


def test_an_entity_cannot_have_a_relationship_with_itself(owner: Owner, ana: Entity) -> None:
    with pytest.raises(Unprocessable):
        join(owner, ana, ana)


def test_properties_have_a_maximum_size(owner: Owner, ana: Entity, acme: Entity) -> None:
    join(owner, ana, acme, properties={"a": "ä" * 20_000})

    with pytest.raises(TooLarge):
        join(owner, ana, acme, properties={"b": "ä" * 20_000})

    assert set(Link.objects.get().properties) == {"a"}


Ends = Callable[[Owner, Account], MemoryRow]


@pytest.mark.parametrize(
    "end",
    [
        lambda owner, stranger: Entity(id=uuid4()),
        lambda owner, stranger: entity(Owner(account_id=stranger.id, agent_id=owner.agent_id), "theirs"),
        lambda owner, stranger: entity(replace(owner, agent_id="colleague"), "a colleague's"),
        lambda owner, stranger: entity(replace(owner, user_id="ben"), "a user's"),
        lambda owner, stranger: entity(owner, "archived", archived=True),
        lambda owner, stranger: entity(owner, "quarantined", quarantined=True),
        lambda owner, stranger: entity(owner, "expired", expires_at=NOW),
        lambda owner, stranger: node(owner, "a fact", kind=Kind.FACT),
    ],
    ids=["unknown", "stranger's", "colleague's", "user's", "archived", "quarantined", "expired", "no entity"],
)
def test_entities_of_others_are_refused_like_unknown_ones(
    owner: Owner, ana: Entity, stranger: Account, end: Ends
) -> None:
    other = end(owner, stranger)

    for draft in (between(ana, other), between(other, ana)):
        with pytest.raises(Unprocessable, match=r"^there is no such entity$"):
            create_relationship(owner, draft, now=NOW)

    assert not Link.objects.exists()


def test_agents_of_a_user_may_relate_its_entities(owner: Owner, colleague: Owner) -> None:
    ana = entity(replace(owner, user_id="u"), "Ana")
    acme = entity(replace(colleague, user_id="u"), "Acme")

    assert join(replace(owner, user_id="u"), ana, acme).is_new


def test_the_account_may_relate_entities_of_one_holder(owner: Owner, colleague: Owner, whole_account: Owner) -> None:
    mine, theirs = [entity(owner, name) for name in ("a", "b")], entity(colleague, "c")

    assert join(whole_account, *mine).is_new
    with pytest.raises(Unprocessable):
        join(whole_account, mine[0], theirs)


def test_a_relationship_is_visible_to_owners_that_see_both_ends(
    owner: Owner, colleague: Owner, whole_account: Owner, stranger: Account, ana: Entity, acme: Entity
) -> None:
    made = join(owner, ana, acme).link

    assert seen(owner) == seen(whole_account) == {made.id}
    for other in (colleague, Owner(account_id=stranger.id)):
        assert seen(other) == set()
        with pytest.raises(NotFound):
            find_relationship(other, made.id, now=NOW)


def test_a_relationship_is_hidden_with_either_end(owner: Owner, ana: Entity, acme: Entity) -> None:
    made = join(owner, ana, acme).link

    Memory.objects.filter(id=acme.id).update(archived=True)

    assert seen(owner) == set()
    with pytest.raises(NotFound):
        find_relationship(owner, made.id, now=NOW)


def test_reserved_links_are_not_relationships(owner: Owner, ana: Entity, acme: Entity) -> None:
    merged = link(ana, acme, "MERGED_INTO")
    link(node(owner, "a fact", kind=Kind.FACT), ana, "CLAIMS")

    assert seen(owner) == set()
    with pytest.raises(NotFound):
        delete_relationship(owner, merged.id, now=NOW)


def test_lists_look_in_the_active_channel_and_the_global_one(owner: Owner) -> None:
    ends = [entity(owner, name, channel="mill") for name in ("a", "b")]
    made = join(owner, *ends).link

    assert seen(replace(owner, channel="mill")) == {made.id}
    assert seen(owner) == seen(replace(owner, channel="well")) == set()
    assert find_relationship(owner, made.id, now=NOW) == made


def test_the_holder_of_the_entities_may_delete_their_relationship(
    owner: Owner, whole_account: Owner, ana: Entity, acme: Entity
) -> None:
    for deleter in (owner, whole_account):
        made = join(owner, ana, acme).link

        delete_relationship(deleter, made.id, now=NOW)

        with pytest.raises(NotFound):
            delete_relationship(deleter, made.id, now=NOW)
    assert Entity.objects.count() == 2


def test_an_owner_that_only_sees_the_entities_cannot_delete_their_relationship(
    owner: Owner, colleague: Owner, ana: Entity, acme: Entity
) -> None:
    made = join(owner, ana, acme).link
    with pytest.raises(Forbidden):
        delete_relationship(replace(owner, user_id="u"), made.id, now=NOW)
    with pytest.raises(NotFound):
        delete_relationship(colleague, made.id, now=NOW)

    assert Link.objects.filter(id=made.id).exists()


def test_the_audit_log_records_operations_and_no_properties(owner: Owner, ana: Entity, acme: Entity) -> None:
    made = join(owner, ana, acme, properties={"secret": "word"}).link
    delete_relationship(owner, made.id, now=NOW)

    entries = AuditEntry.objects.filter(affected_ids=[str(made.id)]).order_by("id")

    assert list(entries.values_list("operation", "memory_type")) == [("store", "semantic"), ("delete", "semantic")]
    assert not any("secret" in str(entry.__dict__) for entry in entries)


def test_a_walk_is_recorded_if_the_audit_log_keeps_reads(
    owner: Owner, ana: Entity, empty_redis: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "reads")

    explore_graph(owner, [ana.id], depth=1, now=NOW)

    entry = written_read()
    assert (entry.operation, entry.affected_ids, entry.result_count) == ("retrieve", [str(ana.id)], 1)


def test_reads_and_writes_cost_as_many_queries_as_stated(
    owner: Owner, ana: Entity, acme: Entity, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    drafts = [between(ana, acme, f"TYPE_{number}") for number in range(20)]

    # the ends locked, the links stored, the audit entry, and a savepoint around them
    with django_assert_num_queries(5):
        made = create_relationships(owner, drafts, now=NOW)
    with django_assert_num_queries(1):
        find_relationship(owner, made[0].link.id, now=NOW)
    with django_assert_num_queries(6):
        delete_relationship(owner, made[0].link.id, now=NOW)
    with django_assert_num_queries(1):
        explore_graph(owner, [ana.id], depth=3, now=NOW + timedelta(days=1))


@pytest.mark.django_db(transaction=True)
def test_an_entity_that_is_being_deleted_gets_no_relationship(owner: Owner, start_concurrently: Start) -> None:
    ana, acme = entity(owner, "Ana"), entity(owner, "Acme")

    with transaction.atomic():
        Memory.objects.filter(id=acme.id).delete()
        joining = start_concurrently(lambda: join(owner, ana, acme))

    with pytest.raises(Unprocessable):
        joining.result(PATIENCE_SECONDS)
    assert not Link.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_concurrent_calls_create_one_relationship(owner: Owner, start_concurrently: Start) -> None:
    ana, acme = entity(owner, "Ana"), entity(owner, "Acme")

    with transaction.atomic():
        first = join(owner, ana, acme, properties={"a": 1})
        joining = start_concurrently(lambda: join(owner, ana, acme, properties={"b": 2}))

    second: Any = joining.result(PATIENCE_SECONDS)
    assert (first.is_new, second.is_new, first.link.id) == (True, False, second.link.id)
    assert Link.objects.get().properties == {"a": 1, "b": 2}
