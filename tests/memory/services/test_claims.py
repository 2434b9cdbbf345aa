"""Claims of due rows: every account gets its share, whatever the others have queued."""

from collections import Counter
from datetime import timedelta

import pytest
from django.db import transaction

from memory.models import Account, Conversation
from memory.services.claims import lock_due_rows
from memory_project.ids import uuid7
from tests.memory.episodes import NOW

pytestmark = pytest.mark.django_db


def queue_conversations(name: str, count: int) -> Account:
    account = Account.objects.create(id=uuid7(), name=name)
    Conversation.objects.bulk_create(
        Conversation(
            account=account,
            conversation_id=f"c{number}",
            started_at=NOW,
            extract_after=NOW + timedelta(seconds=number),
        )
        for number in range(count)
    )
    return account


def claimed(limit: int, account: Account | None = None) -> Counter[str]:
    due = Conversation.objects.filter(extract_after__isnull=False)
    with transaction.atomic():
        rows = lock_due_rows(due, order_by="extract_after", limit=limit, account_id=account.id if account else None)
    return Counter(row.account.name for row in rows)


def test_an_account_with_many_due_rows_does_not_hold_up_the_others() -> None:
    queue_conversations("busy", 50)
    queue_conversations("quiet", 2)
    queue_conversations("idle", 0)

    assert all(claimed(10)["quiet"] == 2 for _ in range(5))
    assert min(claimed(10)["busy"] for _ in range(5)) >= 5


def test_accounts_share_a_batch_equally() -> None:
    for name in ("one", "two", "three"):
        queue_conversations(name, 20)

    assert claimed(9) == {"one": 3, "two": 3, "three": 3}


def test_more_accounts_than_rows_in_a_batch_take_turns() -> None:
    for number in range(6):
        queue_conversations(f"account {number}", 3)

    batches = [claimed(2) for _ in range(40)]

    assert all(sorted(batch.values()) == [1, 1] for batch in batches)
    assert len({name for batch in batches for name in batch}) == 6


def test_the_earliest_rows_of_an_account_are_claimed_first() -> None:
    account = queue_conversations("one", 5)
    due = Conversation.objects.filter(extract_after__isnull=False)

    with transaction.atomic():
        rows = lock_due_rows(due, order_by="extract_after", limit=2, account_id=account.id)

    assert [row.conversation_id for row in rows] == ["c0", "c1"]


def test_a_claim_for_one_account_takes_nothing_of_others() -> None:
    account = queue_conversations("one", 3)
    queue_conversations("two", 3)

    assert claimed(10, account) == {"one": 3}
