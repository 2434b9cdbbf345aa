"""Tests of usage: what language models cost is summed by day, account, use and model, and nothing is lost."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import partial
from uuid import uuid4

import pytest
from django.db import IntegrityError
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, ModelUsage
from memory.providers.language_models import Usage
from memory.services.operations.usage import record_usage
from tests.concurrency import over_own_connection

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ONE = Usage(model="small", prompt_tokens=1_000, completion_tokens=200, cost=Decimal("0.00036"))
FAILED = Usage(model="small", failed_calls=1)
LARGE = Usage(model="large", prompt_tokens=7, completion_tokens=3, cost=Decimal("0.5"))


def rows() -> list[tuple[object, ...]]:
    columns = ["use", "model", "calls", "failed_calls", "prompt_tokens", "completion_tokens", "cost"]
    return list(ModelUsage.objects.order_by("day", "use", "model").values_list(*columns))


def test_the_first_requests_of_a_day_create_its_row(account: Account) -> None:
    record_usage(account.id, use="summary", usages=[ONE, FAILED, ONE], now=NOW)

    assert rows() == [("summary", "small", 3, 1, 2_000, 400, Decimal("0.00072"))]
    assert ModelUsage.objects.get().day == date(2026, 3, 1)


def test_later_requests_of_the_day_are_added(account: Account) -> None:
    record_usage(account.id, use="summary", usages=[ONE], now=NOW)

    record_usage(account.id, use="summary", usages=[ONE, FAILED], now=NOW + timedelta(hours=11))

    assert rows() == [("summary", "small", 3, 1, 2_000, 400, Decimal("0.00072"))]


def test_models_uses_and_days_are_kept_apart(account: Account) -> None:
    record_usage(account.id, use="summary", usages=[ONE, LARGE], now=NOW)
    record_usage(account.id, use="extraction", usages=[LARGE], now=NOW)
    record_usage(account.id, use="summary", usages=[LARGE], now=NOW + timedelta(days=1))

    assert [row[:3] for row in rows()] == [
        ("extraction", "large", 1),
        ("summary", "large", 1),
        ("summary", "small", 1),
        ("summary", "large", 1),
    ]


def test_accounts_are_kept_apart(account: Account, stranger: Account) -> None:
    record_usage(account.id, use="summary", usages=[ONE], now=NOW)
    record_usage(stranger.id, use="summary", usages=[ONE, ONE], now=NOW)

    assert ModelUsage.objects.in_account(account.id).get().calls == 1
    assert ModelUsage.objects.in_account(stranger.id).get().calls == 2


def test_the_day_is_that_of_utc(account: Account) -> None:
    late_in_lima = datetime(2026, 3, 1, 22, tzinfo=timezone(timedelta(hours=-5)))

    record_usage(account.id, use="summary", usages=[ONE], now=late_in_lima)

    assert ModelUsage.objects.get().day == date(2026, 3, 2)


def test_any_number_of_requests_takes_one_statement(
    account: Account, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        record_usage(account.id, use="summary", usages=[ONE, LARGE, FAILED] * 50, now=NOW)


def test_no_requests_take_no_statement(account: Account, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    with django_assert_num_queries(0):
        record_usage(account.id, use="summary", usages=[], now=NOW)


def test_sums_stop_at_the_limits_of_the_columns(account: Account) -> None:
    most = Usage(model="small", calls=2**31 - 1, failed_calls=2**31 - 1, cost=Decimal(10) ** 12)

    for _ in range(2):
        record_usage(account.id, use="summary", usages=[most, ONE], now=NOW)

    usage = ModelUsage.objects.get()
    assert (usage.calls, usage.failed_calls) == (2**31 - 1, 2**31 - 1)
    assert (usage.cost, usage.prompt_tokens) == (Decimal("9999999999.99999999"), 2_000)


@pytest.mark.django_db(transaction=True)
def test_an_unknown_account_gets_no_usage() -> None:
    with pytest.raises(IntegrityError):
        record_usage(uuid4(), use="summary", usages=[ONE], now=NOW)


@pytest.mark.django_db(transaction=True)
def test_concurrent_threads_lose_nothing() -> None:
    account = Account.objects.create(name="workshop")

    def record_often(models: list[Usage]) -> None:
        for _ in range(50):
            record_usage(account.id, use="summary", usages=models, now=NOW)

    with ThreadPoolExecutor() as pool:
        # in opposite orders, which must not deadlock either
        list(pool.map(over_own_connection, [partial(record_often, models) for models in ([ONE, LARGE], [LARGE, ONE])]))

    assert rows() == [
        ("summary", "large", 100, 0, 700, 300, Decimal(50)),
        ("summary", "small", 100, 0, 100_000, 20_000, Decimal("0.036")),
    ]
