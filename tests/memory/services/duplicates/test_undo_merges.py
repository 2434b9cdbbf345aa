"""A merge of equivalent memories can be undone, and what was separated is not merged again."""

import pytest

from memory.errors import Conflict, NotFound
from memory.models import AuditEntry, Fact
from memory.owner import Owner
from memory.services.duplicates.merge import undo_merge
from memory.services.memories.links import ABOUT
from tests.memory.duplicates import link_to, linked, live, merged, reload, set_columns
from tests.memory.duplicates import test_model as test_model
from tests.memory.entities import entity_of
from tests.memory.facts import know
from tests.memory.services.duplicates.test_deduplicate import LATER, ONE, OTHER
from tests.memory.services.duplicates.test_deduplicate import staff as staff
from tests.memory.services.duplicates.test_deduplicate import two as two

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("test_model")]


def test_undoing_a_merge_restores_both_for_good(owner: Owner, staff: Owner, two: tuple[Fact, Fact]) -> None:
    ana = entity_of(owner, "Ana", type="person")
    for fact in two:
        link_to(owner, fact, ABOUT, ana)
    link_to(owner, two[1], "SEEN_IN", entity_of(owner, "Berlin", type="place"))
    set_columns(two[0], access_count=4)
    set_columns(two[1], access_count=3)
    before = [linked(fact) for fact in two]
    assert merged() == 1
    set_columns(two[0], access_count=10)

    back = undo_merge(staff, two[1].id, now=LATER)

    assert (back.archived, back.access_count) == (False, 3)
    assert reload(two[0]).access_count == 7
    assert [linked(fact) for fact in two] == before
    assert AuditEntry.objects.filter(operation="undo_deduplicate").exists()
    assert merged() == 0
    with pytest.raises(NotFound):
        undo_merge(staff, two[1].id, now=LATER)


def test_a_contribution_of_two_merged_facts_stays_when_one_merge_is_undone(owner: Owner, staff: Owner) -> None:
    [stays, first, second] = [know(owner, claim, angle=0.0) for claim in (ONE, OTHER, "Ana also lives in Berlin.")]
    place = entity_of(owner, "Berlin", type="place")
    set_columns(stays, access_count=100)
    for fact, salience in ((first, 0.7), (second, 0.9)):
        link_to(owner, fact, "SEEN_IN", place)
        set_columns(fact, salience=salience)
    assert merged() == 2

    undo_merge(staff, first.id, now=LATER)
    kept = reload(stays)
    assert linked(kept) == {("SEEN_IN", place.id)}
    assert kept.salience == 0.9

    undo_merge(staff, second.id, now=LATER)
    kept = reload(stays)
    assert linked(kept) == set()
    assert kept.salience == 0.5


def test_the_last_merge_of_a_chain_must_be_undone_first(owner: Owner, staff: Owner, two: tuple[Fact, Fact]) -> None:
    assert merged() == 1
    better = know(owner, "Ana just lives in Berlin.", angle=0.0)
    set_columns(better, access_count=50)
    assert merged() == 1

    with pytest.raises(Conflict):
        undo_merge(staff, two[1].id, now=LATER)
    undo_merge(staff, two[0].id, now=LATER)
    undo_merge(staff, two[1].id, now=LATER)

    assert len(live()) == 3
    assert reload(better).access_count == 50


def test_separated_memories_are_not_merged_by_a_third(owner: Owner, staff: Owner, two: tuple[Fact, Fact]) -> None:
    assert merged() == 1
    undo_merge(staff, two[1].id, now=LATER)
    third = know(owner, "Ana just lives in Berlin.", angle=0.0)
    set_columns(third, access_count=50)

    assert merged() == 1

    assert len(live()) == 2
