"""Queries over references within an account compare the accounts, so that they use the keys and stay on one machine."""

import re
from typing import Any

import pytest
from django.db import connection
from django.db.models import Count, QuerySet
from django.test.utils import CaptureQueriesContext

from memory.models import Account, Entity, Fact, FactVersion, Link, MemoryPool, Team, ToolInvocation, Vector
from tests.memory.models.tenant_rows import store_row

JOIN = re.compile(r"JOIN \S+(?: \w+)? ON \((.*?)\)")
COMPARISON = re.compile(r'\S+\."(\w+)" = \S+\."(\w+)"')


def compared_columns(rows: "QuerySet[Any]") -> list[set[tuple[str, str]]]:
    """Return which columns each join of the query compares."""
    return [set(COMPARISON.findall(condition)) for condition in JOIN.findall(str(rows.query))]


ACCOUNTS = ("account_id", "account_id")


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (FactVersion.objects.filter(fact__status="active"), [("fact_id", "id")]),
        (Fact.objects.filter(versions__number=1), [("id", "fact_id")]),
        (Link.objects.select_related("source", "target"), [("source_id", "id"), ("target_id", "id")]),
        (Entity.objects.filter(merged_into__name="x"), [("merged_into_id", "id")]),
        (Vector.objects.exclude(memory__archived=True), [("memory_id", "id")]),
        (MemoryPool.objects.select_related("team"), [("team_id", "id")]),
        (Team.objects.filter(members__agent_id="x"), [("id", "team_id")]),
        (Team.objects.annotate(size=Count("members")), [("id", "team_id")]),
        (ToolInvocation.objects.filter(record__log__turn_count=1), [("record_id", "id"), ("log_id", "id")]),
    ],
    ids=[
        *("filter", "reverse filter", "select related", "of the same table", "exclude", "outer", "reverse", "count"),
        "two steps",
    ],
)
def test_joins_compare_accounts(rows: "QuerySet[Any]", columns: list[tuple[str, str]]) -> None:
    assert compared_columns(rows) == [{pair, ACCOUNTS} for pair in columns]


@pytest.mark.django_db
def test_a_referenced_row_is_loaded_by_account(account: Account) -> None:
    version = FactVersion.objects.get(id=store_row(FactVersion, account.id).id)

    with CaptureQueriesContext(connection) as statements:
        assert version.fact.id == version.fact_id

    (statement,) = [each["sql"] for each in statements]
    assert account.id.hex in statement
