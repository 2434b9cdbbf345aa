"""Merged memories on their pages, and merges undone from the list."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from memory.models import Fact, Memory
from memory.owner import Owner
from tests.memory.admin.pages import choose, list_url, page_url, shown
from tests.memory.duplicates import merged, reload
from tests.memory.duplicates import test_model as test_model
from tests.memory.facts import know

pytestmark = pytest.mark.usefixtures("test_model")

HOSTILE = "<script>alert(1)</script> is in Berlin."


@pytest.fixture
def two(owner: Owner) -> tuple[Fact, Fact]:
    rows = (know(owner, HOSTILE, angle=0.0), know(owner, f"Really {HOSTILE}", angle=0.0))
    assert merged() == 1
    return rows


def test_pages_of_merged_facts_name_each_other(staff: Client, two: tuple[Fact, Fact]) -> None:
    stays, gone = (shown(staff.get(page_url("fact", row.pk))) for row in two)

    assert "Replaces the duplicate" in stays
    assert str(two[1].pk) in stays
    assert "Merged into" in gone
    assert "<script>alert" not in stays + gone


@pytest.mark.parametrize("model", ["fact", "memory"])
def test_a_merge_is_undone_from_the_list(staff: Client, two: tuple[Fact, Fact], model: str) -> None:
    page = shown(choose(staff, list_url(model), "undo_merge", *[row.pk for row in two]))

    assert "Made live again: 1 " in page
    assert "was not merged into another one" in page
    assert not reload(two[1]).archived
    assert "Kept apart from" in shown(staff.get(page_url("fact", two[0].pk)))


def test_the_view_permission_alone_does_not_allow_undoing_a_merge(newcomer: Client, two: tuple[Fact, Fact]) -> None:
    User.objects.get(username="newcomer").user_permissions.add(Permission.objects.get(codename="view_fact"))

    choose(newcomer, list_url("fact"), "undo_merge", two[1].pk)

    assert Memory.objects.get(id=two[1].pk).archived
