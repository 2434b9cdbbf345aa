"""Merging two entities into one, and splitting one into two: names and links move, and move back."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction
from pytest_django import DjangoAssertNumQueries

from memory.errors import Forbidden, NotFound, Unprocessable
from memory.models import Account, AuditEntry, Entity, EntityName, Link
from memory.owner import Owner
from memory.services.entities.change import EntityChanges, change_entity, remove_entity
from memory.services.entities.merge import merge_entities, split_entity
from memory.services.entities.store import visible_entities
from memory.services.memories.correct import mark_memories
from tests.beside import PATIENCE_SECONDS, Start
from tests.memory.entities import entities_of, entity_of, meet
from tests.memory.episodes import NOTHING, NOW

pytestmark = pytest.mark.django_db

Edge = tuple[str, str, str]


@pytest.fixture
def ana(owner: Owner) -> Entity:
    return entity_of(owner, "Ana", aliases=["Anita"])


@pytest.fixture
def twin(owner: Owner) -> Entity:
    """Return the same person, met under another name."""
    return entity_of(owner, "A. Lima", aliases=["Lima"])


@pytest.fixture
def acme(owner: Owner) -> Entity:
    return entity_of(owner, "Acme", type="organization")


def merge(owner: Owner, into: Entity, other: Entity) -> Entity:
    return merge_entities(owner, into.id, other.id, now=NOW)


def split(owner: Owner, entity: Entity, *names: str, links: tuple[UUID, ...] = ()) -> Entity:
    return split_entity(owner, entity.id, names=names, link_ids=links, now=NOW)


def link(source: Entity, type_: str, target: Entity, **fields: Any) -> Link:
    ends = {"source_id": source.id, "target_id": target.id}
    return Link.objects.create(account_id=source.account_id, type=type_, **ends, **fields)


def stored(entity: Entity) -> Entity:
    return Entity.objects.get(id=entity.id)


def edges() -> set[Edge]:
    rows: Any = Entity.objects.all()
    names = {entity.id: entity.name for entity in rows}
    return {(names[link.source_id], link.type, names[link.target_id]) for link in Link.objects.all()}


def everything() -> tuple[set[Any], set[Any], set[Any]]:
    """Return all rows that a merge changes and a split restores."""
    rows: Any = Entity.objects.all()
    entities = {
        (row.name, str(row.aliases), row.description, str(row.properties), row.archived, row.merged_into_id)
        for row in rows
    }
    links = {(row.source_id, row.type, row.target_id, str(row.properties), row.weight) for row in Link.objects.all()}
    names = set(EntityName.objects.values_list("entity_id", "identity"))
    return entities, links, names


def test_the_loser_is_archived_and_its_names_move(owner: Owner, ana: Entity, twin: Entity) -> None:
    merged = merge(owner, ana, twin)

    assert (merged, stored(ana).names) == (ana, ["Ana", "Anita", "A. Lima", "Lima"])
    assert (stored(ana).text, stored(ana).version) == ("Ana (Anita, A. Lima, Lima)", 2)
    assert (stored(twin).archived, stored(twin).merged_into, stored(twin).names) == (True, ana, ["A. Lima", "Lima"])
    assert list(visible_entities(owner, now=NOW)) == [ana]
    assert [entity_of(owner, name) for name in ("A. LIMA", "lima", "ana")] == [ana, ana, ana]


def test_the_survivor_gets_the_details_it_lacks(owner: Owner, ana: Entity) -> None:
    earlier = NOW - timedelta(days=1)
    values: dict[str, Any] = {"description": "A baker.", "properties": {"a": 1}, "salience": 0.9, "event_time": earlier}
    meet(owner, "Ana", properties={"a": 2, "b": 2})

    row = merge(owner, ana, entity_of(owner, "Lima", **values))

    assert (row.description, row.properties, row.salience, row.event_time) == (
        *("A baker.", {"a": 2, "b": 2}, 0.9, earlier),
    )


def test_every_link_moves(owner: Owner, ana: Entity, twin: Entity, acme: Entity) -> None:
    link(twin, "WORKS_FOR", acme)
    link(acme, "KNOWS", twin, weight=0.3, properties={"since": 2020})

    merge(owner, ana, twin)

    assert edges() == {("Ana", "WORKS_FOR", "Acme"), ("Acme", "KNOWS", "Ana")}
    moved = Link.objects.get(type="KNOWS")
    assert (moved.properties, moved.weight) == ({"since": 2020}, 0.3)


def test_a_link_that_both_have_is_one_until_they_are_split(
    owner: Owner, ana: Entity, twin: Entity, acme: Entity
) -> None:
    kept = link(ana, "WORKS_FOR", acme, weight=0.9, properties={"as": "cook"})
    dropped = link(twin, "WORKS_FOR", acme, weight=0.5, properties={"as": "baker"})

    merge(owner, ana, twin)

    row = Link.objects.get()
    assert (row.id, row.weight, row.properties) == (kept.id, 0.9, {"as": "cook"})
    assert split(owner, ana, "A. Lima") == twin
    again = Link.objects.get(id=dropped.id)
    assert (again.source_id, again.weight, again.properties) == (twin.id, 0.5, {"as": "baker"})
    assert again.created_at == dropped.created_at


def test_links_between_the_two_stay_on_the_loser(owner: Owner, ana: Entity, twin: Entity) -> None:
    link(ana, "KNOWS", twin)
    link(twin, "RELATED_TO", ana)

    merge(owner, ana, twin)

    assert edges() == {("Ana", "KNOWS", "A. Lima"), ("A. Lima", "RELATED_TO", "Ana")}


def test_a_split_restores_everything_before_the_merge(owner: Owner, ana: Entity, acme: Entity) -> None:
    twin = entity_of(owner, "A. Lima", aliases=["Lima"], description="A baker.", properties={"a": 1})
    place = entity_of(owner, "Lisbon", type="place")
    link(ana, "WORKS_FOR", acme, weight=0.9, properties={"as": "cook"})
    link(twin, "WORKS_FOR", acme, weight=0.5, properties={"as": "baker"})
    link(twin, "LOCATED_IN", place)
    link(acme, "KNOWS", twin)
    link(ana, "KNOWS", twin)
    before = everything()

    merge(owner, ana, twin)
    revived = split(owner, ana, "A. Lima", "lima")

    assert (revived, everything()) == (twin, before)
    assert stored(twin).metadata == {}
    assert [entity_of(owner, name) for name in ("a. lima", "Lima", "Ana")] == [twin, twin, ana]


def test_details_learned_since_stay_with_the_survivor(owner: Owner, ana: Entity, twin: Entity, acme: Entity) -> None:
    merge(owner, ana, twin)
    link(ana, "WORKS_FOR", acme)

    split(owner, ana, "A. Lima")

    assert edges() == {("Ana", "WORKS_FOR", "Acme")}
    assert (stored(ana).names, stored(twin).names) == (["Ana", "Anita", "Lima"], ["A. Lima"])


def test_a_split_moves_the_named_links(owner: Owner, ana: Entity, twin: Entity, acme: Entity) -> None:
    merge(owner, ana, twin)
    named, stays = link(ana, "WORKS_FOR", acme), link(acme, "KNOWS", ana)

    split(owner, ana, "A. Lima", links=(named.id,))

    assert edges() == {("A. Lima", "WORKS_FOR", "Acme"), ("Acme", "KNOWS", "Ana")}
    assert Link.objects.get(id=stays.id).properties == {}


def test_splitting_by_a_name_of_no_part_creates_an_entity(owner: Owner, ana: Entity, acme: Entity) -> None:
    worked = link(ana, "WORKS_FOR", acme)

    other = split(owner, ana, "ANITA", links=(worked.id,))

    assert (other.name, other.type, other.agent_id, other.channel) == ("Anita", "person", "assistant", "_global")
    assert (stored(ana).names, edges()) == (["Ana"], {("Anita", "WORKS_FOR", "Acme")})
    assert [entity_of(owner, name) for name in ("anita", "ana")] == [other, ana]


def test_an_entity_may_be_split_by_its_first_name(owner: Owner, ana: Entity) -> None:
    other = split(owner, ana, "Ana")

    assert (stored(ana).names, stored(other).names) == (["Anita"], ["Ana"])
    assert [entity_of(owner, name) for name in ("ana", "anita")] == [other, ana]
    remove_entity(owner, other.id, now=NOW)
    assert meet(owner, "Ana").is_new


def test_merges_of_merges_are_undone_in_any_order(owner: Owner, ana: Entity, twin: Entity, acme: Entity) -> None:
    third = entity_of(owner, "Nita")
    for each in (ana, twin, third):
        link(each, "WORKS_FOR", acme, properties={"said": each.name})
        link(acme, "KNOWS" if each is ana else f"KNOWS_{each.name[0]}", each)
    before = everything()
    merge(owner, twin, third)
    merge(owner, ana, twin)
    assert edges() == {
        *(("Ana", "WORKS_FOR", "Acme"), ("Acme", "KNOWS", "Ana"), ("Acme", "KNOWS_A", "Ana")),
        *(("Acme", "KNOWS_N", "Ana"),),
    }

    split(owner, ana, "A. Lima", "Lima", "Nita")
    assert stored(third).merged_into == twin
    split(owner, twin, "Nita")

    assert everything() == before


def test_the_inner_part_of_two_merges_may_be_split_alone(owner: Owner, ana: Entity, twin: Entity, acme: Entity) -> None:
    third = entity_of(owner, "Nita")
    link(third, "WORKS_FOR", acme)
    merge(owner, twin, third)
    merge(owner, ana, twin)

    revived = split(owner, ana, "Nita")

    assert (revived, stored(third).merged_into, stored(third).archived) == (third, None, False)
    assert edges() == {("Nita", "WORKS_FOR", "Acme")}
    assert Link.objects.get().properties == {}


@pytest.mark.parametrize("aliases", [(), ("Beatrice",)], ids=["the only name", "beside another"])
def test_a_name_in_two_channels_returns_to_each(owner: Owner, aliases: tuple[str, ...]) -> None:
    rust = replace(owner, channel="rust")
    there, here = entity_of(rust, "Bea"), entity_of(owner, "Bea", aliases=aliases)
    before = everything()
    merge(owner, here, there)
    assert entity_of(rust, "Bea") == here

    assert split(owner, here, "BEA") == there

    assert (entity_of(rust, "Bea"), entity_of(owner, "Bea"), everything()) == (there, here, before)


def test_of_two_parts_with_one_name_the_other_names_decide(owner: Owner, ana: Entity) -> None:
    rust, garden = (replace(owner, channel=channel) for channel in ("rust", "garden"))
    in_rust, in_garden = entity_of(rust, "Bea"), entity_of(garden, "Bea", aliases=["Bee"])
    for each in (in_rust, in_garden):
        merge(owner, ana, each)

    assert split(owner, ana, "Bea", "Bee") == in_garden

    assert (entity_of(rust, "Bea"), stored(ana).names) == (ana, ["Ana", "Anita", "Bea"])
    assert split(owner, ana, "Bea") == in_rust


def test_a_removed_name_is_free_in_every_channel(owner: Owner) -> None:
    rust = replace(owner, channel="rust")
    there, here = entity_of(rust, "Bea"), entity_of(owner, "Ana", aliases=["Bea"])
    merge(owner, here, there)

    change_entity(owner, here.id, changes=EntityChanges(aliases=[]), embedded=NOTHING, now=NOW)

    assert meet(rust, "Bea").is_new
    assert meet(owner, "Bea").is_new


def test_a_revived_part_has_its_own_names_and_the_given_ones(owner: Owner) -> None:
    bea = entity_of(replace(owner, channel="rust"), "Bea", aliases=["ANITA", "Bee"])
    ana = entity_of(owner, "Ana", aliases=["Anita"])
    merge(owner, ana, bea)

    assert split(owner, ana, "Bee", "Anita", "Bea") == bea
    assert (stored(bea).names, stored(ana).names) == (["Bea", "ANITA", "Bee"], ["Ana", "Anita"])
    assert split(owner, bea, "bee", "Anita").names == ["Bee", "ANITA"]


def test_a_dropped_link_is_restored(owner: Owner, ana: Entity, twin: Entity, acme: Entity) -> None:
    third = entity_of(owner, "Nita")
    ours = link(third, "WORKS_FOR", acme, weight=0.5)
    link(ana, "WORKS_FOR", acme)
    merge(owner, twin, third)
    merge(owner, ana, twin)

    split(owner, ana, "Nita")

    assert edges() == {("Nita", "WORKS_FOR", "Acme"), ("Ana", "WORKS_FOR", "Acme")}
    assert Link.objects.get(source_id=third.id).id == ours.id
    split(owner, ana, "A. Lima")
    assert len(edges()) == 2


def test_a_staying_part_keeps_a_link_that_a_leaving_one_has_as_well(
    owner: Owner, ana: Entity, twin: Entity, acme: Entity
) -> None:
    third = entity_of(owner, "Nita")
    link(twin, "WORKS_FOR", acme)
    link(third, "WORKS_FOR", acme)
    merge(owner, ana, twin)
    merge(owner, ana, third)

    split(owner, ana, "A. Lima")

    assert edges() == {("A. Lima", "WORKS_FOR", "Acme"), ("Ana", "WORKS_FOR", "Acme")}


def test_a_dropped_link_is_restored_to_the_current_whole_of_its_end(
    owner: Owner, ana: Entity, twin: Entity, acme: Entity
) -> None:
    acme_inc = entity_of(owner, "Acme Inc", type="organization")
    link(ana, "WORKS_FOR", acme)
    link(twin, "WORKS_FOR", acme)
    merge(owner, ana, twin)
    merge(owner, acme_inc, acme)

    split(owner, ana, "A. Lima")
    assert edges() == {("Ana", "WORKS_FOR", "Acme Inc"), ("A. Lima", "WORKS_FOR", "Acme Inc")}

    split(owner, acme_inc, "Acme")
    assert edges() == {("Ana", "WORKS_FOR", "Acme"), ("A. Lima", "WORKS_FOR", "Acme")}


def test_parts_leave_with_what_they_gave_only(owner: Owner, ana: Entity) -> None:
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
    owner: Owner, ana: Entity, twin: Entity, start_beside: Start
) -> None:
    with transaction.atomic():
        merge(owner, ana, twin)
        meeting = start_beside(lambda: meet(owner, "Lima"))

    met: Any = meeting.result(PATIENCE_SECONDS)
    assert met.entity == ana


@pytest.mark.django_db(transaction=True)
def test_the_second_of_two_concurrent_merges_is_not_found(
    owner: Owner, ana: Entity, twin: Entity, start_beside: Start
) -> None:
    with transaction.atomic():
        merge(owner, ana, twin)
        other = start_beside(lambda: merge(owner, twin, ana))

    with pytest.raises(NotFound):
        other.result(PATIENCE_SECONDS)
    assert (stored(ana).archived, stored(twin).archived) == (False, True)
