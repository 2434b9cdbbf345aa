"""Claims from a queue: they examine only as many rows as they take, however many are due."""

from collections.abc import Callable

import pytest
from django.db import connection

from memory.models import Account, Conversation, Fact, Kind
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, claim_conversations
from memory.services.embedding.queue import claim_due_rows
from tests.memory.episodes import NOW
from tests.memory.gatherings import Sent, rows_read

pytestmark = pytest.mark.django_db

WAITING = 2_000
LIMIT = 10


def claim_memories() -> int:
    return len(claim_due_rows(now=NOW, limit=LIMIT, account_id=None))


def claim_summaries() -> int:
    return len(
        claim_conversations(SUMMARIES, now=NOW, limit=LIMIT, account_id=None, target_of=lambda row: row.turn_count)
    )


def claim_extractions() -> int:
    return len(
        claim_conversations(EXTRACTION, now=NOW, limit=LIMIT, account_id=None, target_of=lambda row: row.turn_count)
    )


@pytest.fixture
def waiting(account: Account) -> None:
    """Make all rows due together, as after a new embedding model or an outage."""
    Fact.objects.bulk_create(
        Fact(
            account=account,
            kind=Kind.FACT,
            identity=f"{number}",
            text="x",
            event_time=NOW,
            recorded_at=NOW,
            embed_after=NOW,
        )
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


@pytest.mark.slow
@pytest.mark.parametrize("claim", [claim_memories, claim_summaries, claim_extractions])
def test_a_claim_looks_at_no_more_than_it_takes(waiting: None, claim: Callable[[], int]) -> None:
    with Sent() as sent:
        assert claim() == LIMIT
    sent.statements = [each for each in sent.statements if "FOR " in each[0]]

    # those that are under a lease now may come first
    assert rows_read(sent, of=("memories", "conversations"), cursor_for=connection.cursor) <= 3 * LIMIT
