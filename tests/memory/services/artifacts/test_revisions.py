"""Revisions that staff erase: the rest of the chain has a latest one and no gap."""

import pytest

from memory.models import Account, Artifact, Link
from memory.owner import Owner
from memory.services.memories.correct import delete_memories
from tests.memory.artifacts import kept, stored
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(account: Account) -> Owner:
    return Owner(account_id=account.id, actor="staff:chief")


def superseding() -> set[tuple[int, int]]:
    """Return the pairs of revisions that are linked, by number."""
    revision = dict(Artifact.objects.values_list("id", "revision"))
    links = Link.objects.filter(type="SUPERSEDES").values_list("source_id", "target_id")
    return {(revision[source], revision[target]) for source, target in links}


@pytest.mark.parametrize(
    ("gone", "latest", "links"),
    [([4], 3, {(3, 2), (2, 1)}), ([3, 4], 2, {(2, 1)}), ([2, 3], 4, {(4, 1)}), ([1], 4, {(4, 3), (3, 2)}),
     ([2, 4], 3, {(3, 1)}), ([1, 2, 3], 4, set())],
    ids=["latest", "two_latest", "middle", "first", "every_other", "all_but_latest"],
)  # fmt: skip
def test_the_chain_is_closed_around_what_is_erased(
    staff: Owner, owner: Owner, gone: list[int], latest: int, links: set[tuple[int, int]]
) -> None:
    rows = {number: kept(owner, digest=str(number)) for number in range(1, 5)}

    delete_memories(staff, [rows[number].id for number in gone], now=NOW)

    assert [number for number in rows if number not in gone and stored(rows[number]).is_latest] == [latest]
    assert superseding() == links
    assert kept(owner, digest="new").revision == latest + 1


def test_a_chain_that_is_erased_begins_anew(staff: Owner, owner: Owner) -> None:
    rows = [kept(owner, digest=digest) for digest in ("1", "2")]

    assert delete_memories(staff, [row.id for row in rows], now=NOW) == 2

    assert kept(owner, digest="3").revision == 1


def test_other_chains_are_left_alone(staff: Owner, owner: Owner) -> None:
    gone, other = kept(owner, "one", digest="1"), kept(owner, "two", digest="1")
    version = stored(other).version

    delete_memories(staff, [gone.id], now=NOW)

    assert (stored(other).is_latest, stored(other).version) == (True, version)
