"""The costs of language models are listed by day, summed up, and read-only."""

import csv
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client

from memory.models import Account, ModelUsage
from tests.memory.admin.pages import add_url, list_url, page_url, shown
from tests.memory.admin.test_exports import content

TODAY = datetime.now(UTC).date()


@pytest.fixture
def usage(account: Account, stranger: Account) -> list[ModelUsage]:
    """Yesterday's and today's of one account, another's, and one of last winter."""
    rows = [
        ("summary", "gpt-x", account, TODAY - timedelta(days=1), 2, "0.25"),
        ("summary", "gpt-x", account, TODAY, 0, "0.5"),
        ("extraction", "gpt-y", stranger, TODAY, 0, "1"),
        ("summary", "gpt-x", account, TODAY - timedelta(days=300), 0, "100"),
    ]
    return ModelUsage.objects.bulk_create(
        ModelUsage(
            use=use, model=model, account=owner, day=day, calls=10, failed_calls=failed, prompt_tokens=1_000, cost=cost
        )
        for use, model, owner, day, failed, cost in rows
    )


def sums(client: Client, **query: Any) -> tuple[int, int, Decimal]:
    found: dict[str, Any] = client.get(list_url("modelusage", **query)).context["cl"].sums
    return found["calls"], found["failed_calls"], found["cost"]


@pytest.mark.parametrize(
    ("query", "calls", "failed", "cost"),
    [
        ({"since": "month"}, 30, 2, "1.75"),
        ({"since": "year"}, 40, 2, "101.75"),
        ({}, 30, 2, "1.75"),
        ({"failed": "some"}, 10, 2, "0.25"),
        ({"failed": "none"}, 20, 0, "1.5"),
        ({"q": "extraction"}, 10, 0, "1"),
        ({"q": "gpt-x"}, 20, 2, "0.75"),
        ({"q": "gpt"}, 0, 0, "0"),
    ],
)
@pytest.mark.usefixtures("usage")
def test_usage_is_summed_over_the_filtered_rows(
    staff: Client, query: dict[str, str], calls: int, failed: int, cost: str
) -> None:
    assert sums(staff, **query) == (calls, failed, Decimal(cost))


def test_usage_is_filtered_by_account(staff: Client, usage: list[ModelUsage], stranger: Account) -> None:
    assert sums(staff, account=stranger.id) == (10, 0, Decimal(1))


@pytest.mark.usefixtures("usage")
def test_a_list_names_day_use_model_tokens_and_cost(staff: Client) -> None:
    page = shown(staff.get(list_url("modelusage")))

    for expected in (TODAY.isoformat(), "summary", "gpt-x", "1,000 in, 0 out", "10 (2 failed)", ">0.50<"):
        assert expected in page


def test_usage_cannot_be_added_edited_or_deleted(staff: Client, usage: list[ModelUsage]) -> None:
    pages = admin.site._registry[ModelUsage]
    request = staff.get(page_url("modelusage", usage[0].pk)).wsgi_request

    assert staff.get(add_url("modelusage")).status_code == 403
    assert not pages.has_change_permission(request)
    assert not pages.has_delete_permission(request)


@pytest.mark.usefixtures("usage")
def test_the_list_shows_totals(staff: Client) -> None:
    page = shown(staff.get(list_url("modelusage")))

    assert "Total: calls 30 (2 failed); tokens 3,000 in, 0 out; cost 1.75." in page


@pytest.mark.usefixtures("usage")
@pytest.mark.parametrize("format_", ["jsonl", "csv"])
def test_usage_is_exported_with_its_days_and_costs(staff: Client, account: Account, format_: str) -> None:
    found = content(staff.get(f"{list_url('modelusage')}export/", {"account": str(account.pk), "as": format_}))

    rows = map(json.loads, found.splitlines()) if format_ == "jsonl" else csv.DictReader(StringIO(found))
    days = [TODAY.isoformat(), (TODAY - timedelta(days=1)).isoformat()]
    assert [(row["day"], row["cost"]) for row in rows] == list(zip(days, ["0.50000000", "0.25000000"], strict=True))
