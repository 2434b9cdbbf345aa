"""Keys of entries that were merged: aliases of the entry that stayed, until they are written or removed."""

from typing import Any

import pytest

from memory.errors import NotFound
from memory.models import ContextEntry, Link
from memory.owner import Owner
from memory.services.contexts.manage import ensure_own_context, find_keyed_value
from memory.services.custody.memories import erase_derived
from memory.services.duplicates.merge import undo_merge
from memory.services.memories.links import DUPLICATE_OF
from memory.services.router import LongTermTier
from memory.tiers.base import TierScope
from tests.api_client import ServiceClient
from tests.memory.contexts import LATER, entry, keep, restore_entries, take_snapshot
from tests.memory.duplicates import live, merged, reload
from tests.memory.duplicates import test_model as test_model
from tests.memory.episodes import NOW

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("test_model", "empty_redis")]

TEXT, OTHER = "Clara leads the design team.", "The design team is led by Clara."
HERE = TierScope()


@pytest.fixture
def keyed(owner: Owner) -> list[Any]:
    """Store an entry without a key and two with one, all of one text, and merge them. Returns them in this order."""
    context = ensure_own_context(owner, now=NOW)
    drafts = (entry(TEXT, angle=0.0, key=key) for key in ("", "lead", "boss"))
    rows = [keep(owner, context, draft)[0] for draft in drafts]
    assert merged() == 2
    return rows


def read(owner: Owner, key: str) -> Any:
    found = find_keyed_value(owner, key, now=LATER)
    return None if found is None else (found.value, found.is_alias)


def test_entries_with_keys_become_one_that_is_read_under_each_key(owner: Owner, keyed: list[Any]) -> None:
    tier = LongTermTier(owner)

    assert [row.key for row in ContextEntry.objects.filter(archived=False)] == ["lead"]
    assert (read(owner, "lead"), read(owner, "boss"), read(owner, "none")) == ((TEXT, False), (TEXT, True), None)
    assert tier.keys(HERE, now=LATER) == ["boss", "lead"]
    assert tier.read("boss", HERE, now=LATER) == TEXT


def test_an_alias_is_found_over_http(api: ServiceClient, owner: Owner, keyed: list[Any]) -> None:
    path = f"/contexts/{keyed[0].context_id}/entries?agent_id={owner.agent_id}"

    found = [api.get(f"{path}&key={key}").json()["results"] for key in ("boss", "lead")]

    assert [[each["id"] for each in results] for results in found] == [[str(keyed[1].id)]] * 2


def test_writing_to_an_alias_makes_it_an_entry_of_its_own(owner: Owner, keyed: list[Any]) -> None:
    keep(owner, keyed[0].context, entry("Ben leads the design team.", angle=0.0, key="boss"))

    assert read(owner, "boss") == ("Ben leads the design team.", False)
    assert read(owner, "lead") == (TEXT, False)
    assert not Link.objects.filter(type=DUPLICATE_OF, source_id=keyed[2].id).exists()
    assert merged() == 0


def test_deleting_an_alias_leaves_the_entry(owner: Owner, keyed: list[Any]) -> None:
    tier = LongTermTier(owner)

    tier.delete("boss", HERE, now=LATER)

    assert tier.keys(HERE, now=LATER) == ["lead"]
    assert (read(owner, "boss"), read(owner, "lead")) == (None, (TEXT, False))
    with pytest.raises(NotFound):
        tier.delete("boss", HERE, now=LATER)


def test_removing_the_entry_removes_its_aliases(owner: Owner, keyed: list[Any]) -> None:
    tier = LongTermTier(owner)

    tier.delete("lead", HERE, now=LATER)

    assert (tier.keys(HERE, now=LATER), read(owner, "boss"), live()) == ([], None, [])


def test_an_undone_merge_makes_an_alias_an_entry_again(owner: Owner, keyed: list[Any]) -> None:
    undo_merge(Owner(account_id=owner.account_id), keyed[2].id, now=LATER)

    assert (read(owner, "boss"), reload(keyed[2]).archived) == ((TEXT, False), False)


def test_values_under_two_keys_must_be_equal(owner: Owner) -> None:
    context = ensure_own_context(owner, now=NOW)
    keep(owner, context, entry(TEXT, angle=0.0, key="lead"), entry(OTHER, angle=0.0, key="boss"))
    keep(owner, context, entry(TEXT, angle=0.0, key="data", value={"lead": "Clara"}))

    assert merged() == 0


def test_a_paraphrase_without_a_key_is_merged_into_the_entry_with_one(owner: Owner) -> None:
    context = ensure_own_context(owner, now=NOW)
    keep(owner, context, entry(OTHER, angle=0.0), entry(TEXT, angle=0.0, key="lead"))

    assert (merged(), live()) == (1, [TEXT])


def test_a_restored_snapshot_makes_aliases_entries_again(owner: Owner) -> None:
    context = ensure_own_context(owner, now=NOW)
    rows = [keep(owner, context, entry(TEXT, angle=0.0, key=key))[0] for key in ("lead", "boss")]
    snapshot_id = take_snapshot(owner, context)
    assert merged() == 1

    restore_entries(owner, context, snapshot_id)

    assert not Link.objects.filter(type=DUPLICATE_OF).exists()
    assert [read(owner, key) for key in ("lead", "boss")] == [(TEXT, False)] * 2
    survivor, former = sorted(rows, key=lambda row: row.key != "lead")
    erase_derived(owner, [survivor.id], now=NOW)
    assert live() == [TEXT]
    assert reload(former).key == "boss"
