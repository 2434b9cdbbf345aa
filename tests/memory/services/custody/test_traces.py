"""Traces of deleted memories in the audit log: reads that wait in Redis are moved there before the transaction."""

from dataclasses import replace

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import Account, AuditEntry
from memory.owner import Owner
from memory.services.audit import record_read
from memory.services.custody.memories import erase_derived
from memory.services.entities.change import remove_entity
from memory.tiers.audit_reads import read_audit_lines
from tests.memory.entities import entity_of
from tests.memory.episodes import NOW
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]


@pytest.mark.parametrize("kind", ["fact", "entity"])
def test_waiting_reads_of_the_account_alone_are_moved_before_the_transaction_of_a_deletion(
    owner: Owner, stranger: Account, kind: str
) -> None:
    row = know(owner, "Likes tea.") if kind == "fact" else entity_of(owner)
    reader = replace(owner, audit_level="verbose")
    other = Owner(account_id=stranger.pk, audit_level="verbose")
    for each in (reader, other):
        record_read(each, memory_type="semantic", affected_ids=[row.pk], query_text="Who likes tea?")

    with CaptureQueriesContext(connection) as done:
        if kind == "fact":
            erase_derived(owner, [row.pk], now=NOW)
        else:
            remove_entity(owner, row.pk, now=NOW)

    assert AuditEntry.objects.get(account_id=owner.account_id, operation="retrieve").query_text == ""
    assert [line.account_id for line in read_audit_lines(10, after="", account_id=None)[0]] == [stranger.pk]
    statements = [each["sql"] for each in done.captured_queries]
    moved = next(number for number, each in enumerate(statements) if "INSERT INTO memory_audit_log SELECT" in each)
    first_lock = next(number for number, each in enumerate(statements) if "FOR UPDATE" in each or "FOR NO KEY" in each)
    assert moved < first_lock
    assert "COMMIT" in statements[moved:first_lock]
