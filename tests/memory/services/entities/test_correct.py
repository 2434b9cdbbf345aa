"""Corrections by staff keep names, types and merged parts of entities consistent."""

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from memory.errors import Conflict, NotFound, StaleVersion, Unprocessable
from memory.models import Account, AuditEntry, Entity, EntityName
from memory.owner import Owner
from memory.services.entities.change import EntityChanges, change_entity
from memory.services.entities.merge import merge_entities, split_entity
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.entities import entity_of, meet
from tests.memory.episodes import NOTHING, NOW


@pytest.fixture
def staff(account: Account) -> Owner:
    return Owner(account_id=account.id, actor="staff:chief")


def correct(staff: Owner, entity: Entity, **changes: Any) -> Any:
    version = Entity.objects.values_list("version", flat=True).get(pk=entity.pk)
    given = EntityChanges(**changes)
    change_entity(staff, entity.pk, changes=given, expected=frozenset({version}), embedded=NOTHING, now=NOW)
    return Entity.objects.get(pk=entity.pk)


def test_another_type_moves_every_name(staff: Owner, owner: Owner) -> None:
    ana = entity_of(owner, aliases=["Anita"])

    row = correct(staff, ana, type=" Public  Figure ")

    assert (row.type, row.version) == ("public figure", 2)
    assert [meet(owner, name, type="public figure").entity.pk for name in ("Ana Lima", "Anita")] == [ana.pk] * 2
    assert meet(owner, "Ana Lima").is_new


def test_names_in_another_channel_keep_it(staff: Owner, owner: Owner) -> None:
    in_garden = replace(owner, channel="garden")
    ana, other = entity_of(owner), entity_of(in_garden, "Ana L.")
    merge_entities(staff, ana.pk, other.pk, now=NOW)

    correct(staff, ana, type="artist")

    assert meet(in_garden, "Ana L.", type="artist").entity.pk == ana.pk
    assert meet(owner, "Ana L.", type="artist").is_new


def test_parts_get_the_new_type_as_well(staff: Owner, owner: Owner) -> None:
    ana, other = entity_of(owner), entity_of(owner, "Ana L.")
    merge_entities(staff, ana.pk, other.pk, now=NOW)
    correct(staff, ana, type="artist")

    back = split_entity(staff, ana.pk, names=["Ana L."], now=NOW)

    assert (back.pk, back.type) == (other.pk, "artist")


def test_type_and_name_are_corrected_together_or_not_at_all(staff: Owner, owner: Owner) -> None:
    ana, _ = entity_of(owner), entity_of(owner, "Ben", type="artist")

    with pytest.raises(Conflict):
        correct(staff, ana, type="artist", name="Ben")
    row = correct(staff, ana, type="artist", name="Ann")

    assert (row.name, row.type, row.aliases) == ("Ann", "artist", ["Ana Lima"])


def test_a_type_in_which_another_entity_has_the_name_is_refused(staff: Owner, owner: Owner) -> None:
    ana = entity_of(owner)
    entity_of(owner, type="cat")

    with pytest.raises(Conflict):
        correct(staff, ana, type="cat")

    assert EntityName.objects.count() == 2


def test_names_of_another_holder_do_not_conflict(staff: Owner, owner: Owner) -> None:
    ana = entity_of(owner)
    entity_of(replace(owner, user_id="ben"), type="cat")

    assert correct(staff, ana, type="cat").type == "cat"


def test_a_correction_of_another_version_is_refused(staff: Owner, owner: Owner) -> None:
    ana = entity_of(owner)

    with pytest.raises(StaleVersion):
        change_entity(
            staff, ana.pk, changes=EntityChanges(name="Ann"), expected=frozenset({7}), embedded=NOTHING, now=NOW
        )


def test_an_entity_of_another_account_is_not_found(stranger: Account, owner: Owner) -> None:
    ana, elsewhere = entity_of(owner), Owner(account_id=stranger.id)

    with pytest.raises(NotFound):
        change_entity(elsewhere, ana.pk, changes=EntityChanges(), expected=frozenset({1}), embedded=NOTHING, now=NOW)


@pytest.mark.parametrize("column", ["text", "user_id", "channel", "name", "type"])
def test_general_corrections_cannot_change_names_or_types(staff: Owner, owner: Owner, column: str) -> None:
    ana = entity_of(owner)

    with pytest.raises(Unprocessable):
        correct_memory(staff, ana.pk, changes={column: "x"}, version=1, now=NOW)


def test_unarchiving_does_not_restore_a_merged_entity(staff: Owner, owner: Owner) -> None:
    ana, other, third = entity_of(owner), entity_of(owner, "Ana L."), entity_of(owner, "Ben")
    merge_entities(staff, ana.pk, other.pk, now=NOW)
    mark_memories(staff, [third.pk], mark="archive", now=NOW)

    assert mark_memories(staff, [other.pk, third.pk], mark="unarchive", now=NOW) == 1


def test_deleting_an_entity_as_a_memory_deletes_its_parts(staff: Owner, owner: Owner) -> None:
    ana, other, third = entity_of(owner), entity_of(owner, "Ana L."), entity_of(replace(owner, user_id="u"), "Ben")
    merge_entities(staff, ana.pk, other.pk, now=NOW)

    assert delete_memories(staff, [third.pk, ana.pk], now=NOW) == 3

    assert not Entity.objects.exists()
    entry = AuditEntry.objects.get(operation="delete")
    assert sorted(entry.affected_ids) == sorted(str(entity.pk) for entity in (ana, other, third))


@pytest.mark.django_db(transaction=True)
def test_deleting_waits_for_a_merge_and_deletes_the_part(staff: Owner, owner: Owner, start_concurrently: Start) -> None:
    ana, other = entity_of(owner), entity_of(owner, "Ana L.")

    with transaction.atomic():
        merge_entities(owner, ana.pk, other.pk, now=NOW)
        deleting = start_concurrently(lambda: delete_memories(staff, [ana.pk], now=NOW))

    assert deleting.result(PATIENCE_SECONDS) == 2
    assert not Entity.objects.exists()


def test_an_entity_without_names_cannot_be_restored(staff: Owner, owner: Owner) -> None:
    ana, third = entity_of(owner), entity_of(owner, "Ben")
    mark_memories(staff, [ana.pk, third.pk], mark="archive", now=NOW)
    EntityName.objects.filter(entity=ana).delete()

    with pytest.raises(Unprocessable, match="no name"):
        mark_memories(staff, [ana.pk, third.pk], mark="unarchive", now=NOW)

    assert mark_memories(staff, [third.pk], mark="unarchive", now=NOW) == 1
