"""Chains and lineage of artifacts: no gap where revisions are erased, limits, visibility, and a fixed cost."""

from dataclasses import replace

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.errors import NotFound
from memory.models import Artifact, Link, Memory
from memory.owner import Owner
from memory.retrieval import artifact_lineage as walks
from memory.retrieval.queries import Query
from memory.services.artifacts.change import delete_artifact
from memory.services.artifacts.read import MAX_LINKS, MAX_REVISIONS, read_artifact_lineage, view_artifact
from memory.services.memories.correct import delete_memories
from memory.services.memories.links import NewLink, insert_links
from memory.services.recall.recall import RecallRequest, recall
from tests.memory.artifacts import kept, stored
from tests.memory.episodes import NOW
from tests.memory.facts import know
from tests.memory.records import add_record

pytestmark = pytest.mark.django_db


def steps(owner: Owner, artifact: Artifact) -> dict[str, int]:
    found = read_artifact_lineage(owner, artifact.id, now=NOW)
    return {f"{each.uri} {each.revision}": step for step, each in found.artifacts}


def test_siblings_are_not_in_a_lineage(owner: Owner) -> None:
    source = kept(owner, "source")
    first, _second = (kept(owner, uri, derived_from=[source.id]) for uri in ("first", "second"))

    assert steps(owner, first) == {"source 1": -1, "first 1": 0}
    assert steps(owner, source) == {"source 1": 0, "first 1": 1, "second 1": 1}


def test_a_lineage_with_a_cycle_ends(owner: Owner) -> None:
    first = kept(owner, "first")
    second = kept(owner, "second", derived_from=[first.id])
    insert_links(owner.account_id, [NewLink(source_id=first.id, type="DERIVED_FROM", target_id=second.id)])

    assert set(steps(owner, first)) == {"first 1", "second 1"}


def test_branches_that_join_again_count_once(owner: Owner) -> None:
    root = kept(owner, "root")
    ways = [kept(owner, f"way {number}", derived_from=[root.id]).id for number in range(3)]
    end = kept(owner, "end", derived_from=ways)

    assert steps(owner, end) == {"root 1": -2, "way 0 1": -1, "way 1 1": -1, "way 2 1": -1, "end 1": 0}


def test_a_lineage_is_cut_at_its_limit(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "MAX_ARTIFACTS", 3)
    source = kept(owner, "source")
    made = [kept(owner, f"made {number}", derived_from=[source.id]) for number in range(4)]

    cut = read_artifact_lineage(owner, source.id, now=NOW)
    delete_artifact(owner, made[0].id, now=NOW)
    whole = read_artifact_lineage(owner, source.id, now=NOW)

    assert (len(cut.artifacts), cut.truncated) == (4, True)
    assert (len(whole.artifacts), whole.truncated) == (4, False)


def test_an_invisible_artifact_ends_a_lineage(owner: Owner) -> None:
    ana = replace(owner, user_id="ana", agent_id="colleague")
    source = kept(replace(owner, agent_id=""), "source")
    hidden = kept(ana, "hidden", derived_from=[source.id])
    last = kept(ana, "last", derived_from=[hidden.id])
    Memory.objects.filter(id=hidden.id).update(quarantined=True)

    assert steps(ana, last) == {"last 1": 0}
    with pytest.raises(NotFound):
        read_artifact_lineage(owner, hidden.id, now=NOW)


def test_a_deleted_revision_leaves_no_gap(owner: Owner) -> None:
    first, second, third = (kept(owner, digest=digest) for digest in ("1", "2", "3"))

    delete_artifact(owner, second.id, now=NOW)

    assert steps(owner, third) == {"docs/roses.md 1": -1, "docs/roses.md 3": 0}
    assert (stored(first).is_latest, stored(third).is_latest) == (False, True)
    assert kept(owner, digest="4").revision == 4


@pytest.mark.slow
def test_many_revisions_and_links_are_cut(owner: Owner) -> None:
    for number in range(MAX_REVISIONS + 1):
        latest = kept(owner, digest=str(number))
    facts = [know(owner, f"Rose {number} is red.").id for number in range(3)]
    kept(owner, about=facts)

    view = view_artifact(owner, latest.id, now=NOW)

    assert [len(view.revisions), view.revisions[0].revision, view.truncated] == [MAX_REVISIONS, 51, True]
    assert (len(view.links), MAX_LINKS) == (4, 200)


def test_an_agent_that_takes_no_part_sees_no_record(owner: Owner) -> None:
    ana = replace(owner, user_id="ana")
    made = kept(ana, record_id=add_record(ana).record.id)

    mine = view_artifact(ana, made.id, now=NOW)
    theirs = view_artifact(replace(ana, agent_id="colleague"), made.id, now=NOW)

    assert mine.record is not None
    assert [linked.type for linked in mine.links] == ["PRODUCED"]
    assert (theirs.record, theirs.links) == (None, [])


def test_reading_takes_a_fixed_number_of_statements(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    first = made = kept(owner, "0", record_id=add_record(owner).record.id)
    for number in range(1, 20):
        made = kept(owner, str(number), derived_from=[made.id])

    with django_assert_num_queries(4):
        assert len(read_artifact_lineage(owner, made.id, now=NOW).artifacts) == 20
    with django_assert_num_queries(6):
        view_artifact(owner, first.id, now=NOW)
    assert Link.objects.count() == 20


def test_recall_puts_the_newer_revision_first(owner: Owner) -> None:
    kept(owner, "docs/roses.md", description="Roses, roses, roses: water the roses daily.", digest="1")
    kept(owner, "docs/roses.md", description="Water the roses weekly.", digest="2")

    request = RecallRequest(query=Query(text="When to water the roses?", top_k=5))
    found = [result.text.splitlines()[-1] for result in recall(owner, request, now=NOW).results]

    assert [text.split()[-1] for text in found] == ["weekly.", "daily."]


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
def test_erasing_revisions_relinks_the_rest_of_the_chain(
    staff: Owner, owner: Owner, gone: list[int], latest: int, links: set[tuple[int, int]]
) -> None:
    rows = {number: kept(owner, digest=str(number)) for number in range(1, 5)}

    delete_memories(staff, [rows[number].id for number in gone], now=NOW)

    assert [number for number in rows if number not in gone and stored(rows[number]).is_latest] == [latest]
    assert superseding() == links
    assert kept(owner, digest="new").revision == latest + 1


def test_a_fully_erased_chain_restarts_at_revision_1(staff: Owner, owner: Owner) -> None:
    rows = [kept(owner, digest=digest) for digest in ("1", "2")]

    assert delete_memories(staff, [row.id for row in rows], now=NOW) == 2

    assert kept(owner, digest="3").revision == 1


def test_other_chains_are_left_alone(staff: Owner, owner: Owner) -> None:
    gone, other = kept(owner, "one", digest="1"), kept(owner, "two", digest="1")
    version = stored(other).version

    delete_memories(staff, [gone.id], now=NOW)

    assert (stored(other).is_latest, stored(other).version) == (True, version)
