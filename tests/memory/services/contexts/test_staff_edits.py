"""Tests of corrections of entries by staff: they make versions, and old versions can be deleted."""

import pytest

from memory.errors import NotFound
from memory.models import ContextEntry, ContextEntryVersion, Vector
from memory.owner import Owner
from memory.services.contexts.entries import EntryDraft
from memory.services.contexts.manage import ensure_own_context, find_keyed_value
from memory.services.contexts.versions import delete_old_versions
from memory.services.memories.correct import correct_memory, delete_memories
from tests.memory.contexts import context_of, entry, keep, rewrite
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(owner: Owner) -> Owner:
    return Owner(account_id=owner.account_id, actor="staff:ana")


def history(row: ContextEntry) -> list[tuple[int, str, str]]:
    rows = ContextEntryVersion.objects.filter(entry_id=row.id).order_by("number")
    return list(rows.values_list("number", "content", "editor"))


def test_a_corrected_text_is_the_next_version_and_waits_for_its_vector(owner: Owner, staff: Owner) -> None:
    (row,) = keep(owner, context_of(owner), entry("The key is 1234", angle=0.1))

    correct_memory(staff, row.id, changes={"text": "The key is secret"}, version=1, now=NOW)

    assert history(row) == [(1, "The key is 1234", "assistant"), (2, "The key is secret", "staff:ana")]
    row.refresh_from_db()
    assert (row.content_version, row.version, row.embed_after) == (2, 2, NOW)
    assert not Vector.objects.filter(memory_id=row.id).exists()


def test_the_value_of_a_key_becomes_the_corrected_text(owner: Owner, staff: Owner) -> None:
    context = ensure_own_context(owner, now=NOW)
    (row,) = keep(owner, context, EntryDraft(key="door", value={"code": "1234"}))

    correct_memory(staff, row.id, changes={"text": "(removed)"}, version=1, now=NOW)

    found = find_keyed_value(owner, "door", now=NOW)
    assert found is not None
    assert found.value == "(removed)"


def test_weights_are_corrected_without_a_version(owner: Owner, staff: Owner) -> None:
    (row,) = keep(owner, context_of(owner), entry("steady"))

    correct_memory(staff, row.id, changes={"importance": 0.9, "entry_type": "fact"}, version=1, now=NOW)

    row.refresh_from_db()
    assert (row.importance, row.entry_type, row.content_version) == (0.9, "fact", 1)


def test_old_versions_are_deleted_for_good(owner: Owner, staff: Owner) -> None:
    (row,) = keep(owner, context_of(owner), entry("secret"))
    rewrite(owner, row, "less so")
    rewrite(owner, row, "harmless")

    assert delete_old_versions(staff, row.id) == 2

    assert history(row) == [(3, "harmless", "assistant")]
    assert ContextEntryVersion.objects.get(entry_id=row.id).previous_version is None


def test_versions_of_another_account_cannot_be_deleted(owner: Owner, stranger: object) -> None:
    (row,) = keep(owner, context_of(owner), entry("mine"))

    with pytest.raises(NotFound):
        delete_old_versions(Owner(account_id=stranger.id), row.id)  # type: ignore[attr-defined]

    assert len(history(row)) == 1


def test_deleting_an_entry_deletes_its_history(owner: Owner, staff: Owner) -> None:
    (row,) = keep(owner, context_of(owner), entry("gone", angle=0.1))
    rewrite(owner, row, "soon")

    delete_memories(staff, [row.id], now=NOW)

    assert not ContextEntry.objects.exists()
    assert not ContextEntryVersion.objects.exists()
