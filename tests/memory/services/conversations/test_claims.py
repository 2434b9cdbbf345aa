"""Claiming from a queue: it looks at as many rows as it takes, however many became due in the same moment."""

from collections.abc import Callable

import pytest
from django.db import connection

from memory.models import Account, Conversation, Kind, Memory
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, claim_rows
from memory.services.embedding.queue import claim_due
from tests.memory.episodes import NOW
from tests.memory.gatherings import Sent, rows_read

pytestmark = pytest.mark.django_db

WAITING = 2_000
LIMIT = 10


def claim_memories() -> int:
    return len(claim_due(now=NOW, limit=LIMIT, account_id=None))


def claim_summaries() -> int:
    return len(claim_rows(SUMMARIES, now=NOW, limit=LIMIT, account_id=None, target_of=lambda row: row.turn_count))


def claim_extractions() -> int:
    return len(claim_rows(EXTRACTION, now=NOW, limit=LIMIT, account_id=None, target_of=lambda row: row.turn_count))


@pytest.fixture
def waiting(account: Account) -> None:
    """As after a new embedding model, or an outage: all of them due at once."""
    Memory.objects.bulk_create(
        Memory(account=account, kind=Kind.FACT, identity=f"{number}", text="x", event_time=NOW, embed_after=NOW)
        for number in range(WAITING)
    )
    Conversation.objects.bulk_create(
        Conversation(
            account=account, conversation_id=f"c{number}", started_at=NOW, extract_after=NOW, summarize_after=NOW
        )
        for number in range(WAITING)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memories, conversations")


@pytest.mark.parametrize("claim", [claim_memories, claim_summaries, claim_extractions])
def test_a_claim_looks_at_no_more_than_it_takes(waiting: None, claim: Callable[[], int]) -> None:
    with Sent() as sent:
        assert claim() == LIMIT
    sent.statements = [each for each in sent.statements if "FOR " in each[0]]

    # those that are under a lease now may come first
    assert rows_read(sent, of=("memories", "conversations"), cursor_for=connection.cursor) <= 3 * LIMIT
