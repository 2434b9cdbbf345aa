"""The migration of the audit log, with partitions of the previous version."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection

from memory.models import AuditEntry
from tests.memory.audits import partitions
from tests.memory.migrations import empty_database, migrate_forward, migrate_to

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]

FORMER = """
CREATE TABLE memory_audit_log_20200102 PARTITION OF memory_audit_log
    FOR VALUES FROM ('2020-01-02 00:00:00+00') TO ('2020-01-03 00:00:00+00')
"""


@pytest.fixture(autouse=True)
def _own_database(transactional_db: None) -> Iterator[None]:
    with empty_database():
        yield


def test_partitions_of_the_previous_version_keep_their_entries_and_cannot_be_truncated() -> None:
    old = migrate_to("0014_time")
    account = old.get_model("memory", "Account").objects.create(name="workshop")
    entry = old.get_model("memory", "AuditEntry").objects
    with connection.cursor() as cursor:
        cursor.execute(FORMER)
    for day in (2, 5):
        entry.create(account_id=account.id, timestamp=datetime(2020, 1, day, tzinfo=UTC), operation="store")

    migrate_forward()

    for name in ("memory_audit_log_20200102", "memory_audit_log_20200105"):
        assert name in partitions()
        with pytest.raises(DatabaseError, match="neither changed nor deleted"), connection.cursor() as cursor:
            cursor.execute(f"TRUNCATE {name}")
    assert AuditEntry.objects.count() == 2
