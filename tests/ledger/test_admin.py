"""Tests of the journal's admin: it can be listed and searched, but not changed."""

from datetime import UTC, datetime

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from ledger.journal import sortable_stream_id
from ledger.models import Injection
from memory.models import Account

CHANGE_LIST = "/admin/ledger/injection/"


@pytest.fixture
def _history(account: Account) -> None:
    Injection.objects.bulk_create(
        Injection(
            account=account,
            conversation_id=f"call {number}",
            item_key=f"skill:{number}",
            event="marked",
            at=datetime(2030, 1, 2, tzinfo=UTC),
            stream_id=sortable_stream_id(f"{number}-0"),
        )
        for number in range(50)
    )


@pytest.mark.usefixtures("_history")
def test_the_journal_is_listed_in_few_queries(
    admin_client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(6):
        page = admin_client.get(CHANGE_LIST).content.decode()

    assert "skill:0<" in page
    assert "skill:49<" in page


@pytest.mark.usefixtures("_history")
def test_the_journal_can_be_searched(admin_client: Client) -> None:
    page = admin_client.get(f"{CHANGE_LIST}?q=skill:17").content.decode()

    assert "skill:17<" in page
    assert "skill:18<" not in page


@pytest.mark.usefixtures("_history")
def test_the_journal_is_read_only(admin_client: Client) -> None:
    row = Injection.objects.in_order()[0]

    answers = [
        admin_client.get(f"{CHANGE_LIST}add/"),
        admin_client.post(f"{CHANGE_LIST}{row.pk}/change/", {"item_key": "other"}),
        admin_client.post(f"{CHANGE_LIST}{row.pk}/delete/", {"post": "yes"}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert Injection.objects.get(pk=row.pk).item_key == row.item_key
