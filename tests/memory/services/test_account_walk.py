"""Walks through rows of all accounts: page by page, one account after the other."""

from datetime import timedelta

import pytest
from django.conf import LazySettings

from memory.models import Account, Conversation
from memory.services.account_walk import accounts_that_have, read_account_page
from memory_project.ids import uuid7
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db


def end_conversations(name: str, count: int) -> Account:
    account = Account.objects.create(id=uuid7(), name=name)
    Conversation.objects.bulk_create(
        Conversation(
            account=account,
            conversation_id=f"{name}{number}",
            started_at=NOW,
            # the last two end at the same time
            ended_at=NOW - timedelta(seconds=min(number, count - 2)),
        )
        for number in range(count)
    )
    return account


def walk(*, limit: int, order_by: str = "id", account: Account | None = None) -> list[list[str]]:
    """Return the conversations of each page."""
    pages, cursor = [], None
    while cursor != "":
        page = read_account_page(
            Conversation.objects.filter(ended_at__isnull=False),
            after=cursor or "",
            limit=limit,
            account_id=account.id if account else None,
            order_by=order_by,
        )
        pages.append([row.conversation_id for row in page.rows])
        cursor = page.cursor
    return pages


@pytest.mark.parametrize(
    ("order_by", "pages"),
    [
        ("id", [["a0", "a1"], ["a2", "b0"], ["b1", "b2"], []]),
        ("ended_at", [["a1", "a2"], ["a0", "b1"], ["b2", "b0"], []]),
    ],
)
def test_a_page_continues_in_the_next_account(order_by: str, pages: list[list[str]]) -> None:
    end_conversations("a", 3)
    end_conversations("idle", 0)
    end_conversations("b", 3)

    assert walk(limit=2, order_by=order_by) == pages


def test_a_walk_of_an_account_leaves_the_others() -> None:
    end_conversations("a", 3)
    account = end_conversations("b", 3)

    assert walk(limit=2, account=account) == [["b0", "b1"], ["b2"]]


@pytest.mark.parametrize("is_distributed", [False, True])
def test_accounts_that_have_rows_are_found_once_by_both_forms(is_distributed: bool, settings: LazySettings) -> None:
    settings.DATABASE_IS_DISTRIBUTED = is_distributed
    end_conversations("none", 0)
    accounts = {end_conversations(name, 3).id for name in ("one", "two")}

    found = accounts_that_have(Conversation.objects.filter(ended_at__isnull=False).order_by("ended_at"))

    assert sorted(found.values_list("id", flat=True)) == sorted(accounts)
