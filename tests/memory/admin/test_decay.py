"""Decayed values on pages, with their values before the decay."""

import doctest

import pytest
from django.test import Client

from memory.admin import text
from memory.models import Account, Fact, Kind, Memory
from memory.owner import Owner
from memory.services.memories.decay import CONFIDENCE, SALIENCE, DecayBatch, decay_rows
from tests.memory.admin.pages import form_values, list_url, page_url, shown
from tests.memory.entities import entity_of
from tests.memory.episodes import NOW
from tests.memory.facts import day, know

pytestmark = pytest.mark.django_db


def wait_a_month(account: Account) -> None:
    Memory.objects.update(updated_at=NOW)
    for what, kind in ((SALIENCE, Kind.FACT), (CONFIDENCE, Kind.FACT), (SALIENCE, Kind.ENTITY)):
        decay_rows(what, DecayBatch(account_id=account.id, kind=kind, limit=10), now=day(30))


def test_a_page_shows_the_value_before_decay(staff: Client, owner: Owner, account: Account) -> None:
    fact = know(owner, certainty="inferred")
    wait_a_month(account)

    page = shown(staff.get(page_url("fact", fact.pk)))

    assert "0.107, 0.5 before decay" in page
    assert "0.57, 0.7 before decay (inferred)" in page


def test_saving_a_page_leaves_unedited_decayed_values_unchanged(staff: Client, owner: Owner, account: Account) -> None:
    fact = know(owner, certainty="inferred")
    wait_a_month(account)
    before = Fact.objects.get()

    url = page_url("fact", fact.pk)
    staff.post(url, form_values(staff.get(url)) | {"trust": "0.5"}, follow=True)

    row = Fact.objects.get()
    assert (row.trust, row.salience, row.confidence) == (0.5, before.salience, before.confidence)
    assert (row.belief_number, row.salience) == (1, row.faded_salience)


def test_the_list_of_entities_shows_values_before_decay(staff: Client, owner: Owner, account: Account) -> None:
    entity_of(owner)
    wait_a_month(account)

    assert "0.107, 0.5 before decay" in shown(staff.get(list_url("entity")))


def test_the_examples_in_the_docstring_are_correct() -> None:
    assert doctest.testmod(text).failed == 0
