"""Merging two entities into one, and splitting one into two: names and links move, and move back."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from memory.models import Entity, Link
from memory.owner import Owner
from memory.services.entities.change import EntityChanges, change_entity, remove_entity
from memory.services.entities.store import visible_entities
from tests.memory.entities import entity_of, meet
from tests.memory.episodes import NOTHING, NOW
from tests.memory.services.entities.merges import acme as acme
from tests.memory.services.entities.merges import ana as ana
from tests.memory.services.entities.merges import edges, everything, link, merge, split, stored
from tests.memory.services.entities.merges import twin as twin

pytestmark = pytest.mark.django_db


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
