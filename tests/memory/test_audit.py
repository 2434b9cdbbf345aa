"""Tests of the audit log: levels, daily partitions, immutability, masked secrets."""

import math
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.audit import build_audit_entry, record_audit, required_level, write_audit_entry
from memory.models import Account, AuditEntry
from memory.owner import Owner
from memory_project.ids import uuid7
from tests.concurrency import PATIENCE_SECONDS, over_own_connection
from tests.memory.audits import drop_partitions, make_partition, partition_of, partitions, run_deferred_trigger

pytestmark = pytest.mark.django_db

OPERATIONS = ("deep_replay", "store", "delete", "promote", "retrieve")
WRITES = {"deep_replay", "store", "delete", "promote"}
LEVELS = [("off", {"deep_replay"}), ("writes", WRITES), ("reads", {*OPERATIONS}), ("verbose", {*OPERATIONS})]


def enter(owner: Owner, *operations: str) -> set[str]:
    for operation in operations:
        record_audit(owner, operation=operation, memory_type="episodic")
    run_deferred_trigger()
    return set(AuditEntry.objects.values_list("operation", flat=True))


def set_level(account: Account, level: str) -> None:
    Account.objects.filter(id=account.id).update(audit_level=level)


@pytest.mark.parametrize(("level", "entered"), LEVELS)
def test_an_audit_level_records_only_its_operations(
    owner: Owner, account: Account, level: str, entered: set[str]
) -> None:
    set_level(account, level)

    assert enter(owner, *OPERATIONS) == entered


@pytest.mark.parametrize(("level", "entered"), LEVELS)
def test_an_account_without_a_level_follows_the_installation(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, level: str, entered: set[str]
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", level)

    assert enter(owner, *OPERATIONS) == entered


def test_a_deleted_account_has_the_installations_level() -> None:
    assert enter(Owner(account_id=uuid4()), "delete") == {"delete"}


@pytest.mark.parametrize(("level", "metadata"), [("writes", {}), ("reads", {}), ("verbose", {"columns": ["text"]})])
def test_payloads_are_kept_at_the_last_level_only(
    owner: Owner, account: Account, level: str, metadata: dict[str, object]
) -> None:
    set_level(account, level)

    record_audit(owner, operation="update", memory_type="episodic", metadata={"columns": ["text"]})

    assert AuditEntry.objects.get().metadata == metadata


def test_an_entry_names_actor_owner_place_and_time(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(1):
        record_audit(owner, operation="store", memory_type="episodic", affected_ids=["m1"], conversation_id="c1")

    entry = AuditEntry.objects.get()
    assert (entry.account_id, entry.agent_id, entry.source_channel) == (owner.account_id, owner.agent_id, "_global")
    assert (entry.affected_ids, entry.conversation_id, entry.success) == (["m1"], "c1", True)
    assert abs(entry.timestamp - timezone.now()) < timedelta(minutes=1)


def test_an_entry_has_the_active_thresholds_unless_others_are_given(owner: Owner) -> None:
    record_audit(owner, operation="store", memory_type="episodic")
    record_audit(owner, operation="promote", memory_type="semantic", config_snapshot={"promote_confidence": 0.5})

    usual, own = AuditEntry.objects.order_by("id").values_list("config_snapshot", flat=True)
    assert usual["promote_confidence"] == conf.PROMOTE_CONFIDENCE
    assert (usual["promote_access_count"], usual["audit_level"]) == (conf.PROMOTE_ACCESS_COUNT, "writes")
    assert own == usual | {"promote_confidence": 0.5}
    assert {name: usual[name] for name in ("promote_short_term_reads", "daily_decay", "retention_days")} == {
        "promote_short_term_reads": 3,
        "daily_decay": 0.95,
        "retention_days": 90,
    }
    assert (usual["audit_retention_days"], usual["summary_threshold"]) == (365, 50)


def test_secrets_are_masked_in_all_texts_and_names(owner: Owner, account: Account) -> None:
    set_level(account, "verbose")
    secret = "sk-proj-0123456789abcdefABCDEF"

    record_audit(
        owner,
        operation="update",
        memory_type="tool",
        query_text=f"why does {secret} fail",
        error_message=f"401 for {secret}",
        metadata={"password": "tulip", secret: [{"said": f"use {secret}"}], "tokens": 12},
        config_snapshot={"note": secret},
    )

    entry = AuditEntry.objects.get()
    assert secret not in str(AuditEntry.objects.values())
    assert entry.query_text == "why does [redacted] fail"
    assert entry.metadata == {"password": "[redacted]", "[redacted]": [{"said": "use [redacted]"}], "tokens": 12}


NESTED: list[object] = []
NESTED.append(NESTED)
HOSTILE = [
    ({"query_text": "a\x00b \ud800"}, {"query_text": "ab ?"}),
    ({"error_message": "\udfff" * 3}, {"error_message": "???"}),
    ({"conversation_id": "x" * 300, "session_id": None}, {"conversation_id": "x" * 100, "session_id": ""}),
    ({"target_channels": ["a\x00", "x" * 200]}, {"target_channels": ["a", "x" * 100]}),
    ({"affected_ids": ["x" * 300, "\ud800"]}, {"affected_ids": ["x" * 200, "?"]}),
    ({"latency_ms": math.nan, "result_count": 2**40}, {"latency_ms": None, "result_count": 2**31 - 1}),
    ({"promotion_confidence": -math.inf}, {"promotion_confidence": -sys.float_info.max}),
    ({"metadata": {"a\x00": [math.nan, {"b": "\ud800\x00"}]}}, {"metadata": {"a": ["nan", {"b": "?"}]}}),
    ({"metadata": {"a": 2**200, "b": True}}, {"metadata": {"a": hex(2**200), "b": True}}),
    ({"metadata": {"a": (1, math.inf)}}, {"metadata": {"a": [1, "inf"]}}),
]


@pytest.mark.parametrize(("columns", "stored"), HOSTILE)
def test_the_table_accepts_any_values(
    owner: Owner, account: Account, columns: dict[str, Any], stored: dict[str, Any]
) -> None:
    set_level(account, "verbose")

    record_audit(owner, operation="store", memory_type="episodic", **columns)

    assert AuditEntry.objects.values(*stored).get() == stored


def test_endless_nesting_is_cut(owner: Owner, account: Account) -> None:
    set_level(account, "verbose")

    record_audit(owner, operation="store", memory_type="episodic", metadata={"a": NESTED})

    assert "..." in str(AuditEntry.objects.get().metadata)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE memory_audit_log SET operation = 'store'",
        "UPDATE memory_audit_log SET query_text = '', error_message = '', metadata = '{}'",
        "SELECT set_config('memory.audit_erasure', 'on', true); UPDATE memory_audit_log SET affected_ids = '{}'",
        "DELETE FROM memory_audit_log",
        "TRUNCATE memory_audit_log",
        "UPDATE {partition} SET operation = 'store'",
        "DELETE FROM {partition}",
        "TRUNCATE {partition}",
    ],
)
def test_entries_cannot_be_changed_or_deleted(owner: Owner, change: str) -> None:
    record_audit(owner, operation="delete", memory_type="episodic", query_text="tulips")
    kept = AuditEntry.objects.values().get()
    text = change.replace("{partition}", partition_of(kept["id"]))

    with pytest.raises(DatabaseError, match="neither changed nor deleted"), transaction.atomic():
        connection.cursor().execute(text)

    assert AuditEntry.objects.values().get() == kept


def test_writing_an_entry_again_stores_it_once(owner: Owner) -> None:
    columns = {"id": uuid7(), "timestamp": timezone.now()}
    entry = build_audit_entry(owner, operation="retrieve", memory_type="all", affected_ids=[], **columns)

    for _ in range(2):
        write_audit_entry(entry, needed="off")

    assert AuditEntry.objects.count() == 1


def test_the_first_entry_of_a_day_creates_its_partition(owner: Owner) -> None:
    drop_partitions()

    assert enter(owner, "store", "delete") == {"store", "delete"}

    assert partitions() == [f"memory_audit_log_{timezone.now():%Y%m%d}"]


@pytest.mark.parametrize(
    ("at", "partition"),
    [
        (datetime(2031, 1, 2, 0, 0, tzinfo=UTC), "memory_audit_log_20310102"),
        (datetime(2031, 1, 2, 23, 59, 59, 999_999, tzinfo=UTC), "memory_audit_log_20310102"),
        (datetime(2031, 1, 3, 0, 0, tzinfo=UTC), "memory_audit_log_20310103"),
    ],
)
def test_an_entry_is_stored_in_the_partition_of_its_day(owner: Owner, at: datetime, partition: str) -> None:
    entry = build_audit_entry(owner, operation="store", memory_type="all", affected_ids=[], id=uuid7(), timestamp=at)

    write_audit_entry(entry, needed=required_level("store"))
    run_deferred_trigger()

    stored = AuditEntry.objects.get()
    assert (stored.timestamp, partition_of(stored.id)) == (at, partition)


def test_a_detached_day_is_attached_again_with_its_entries(owner: Owner) -> None:
    record_audit(owner, operation="store", memory_type="episodic")
    name = partition_of(AuditEntry.objects.get().id)
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE memory_audit_log DETACH PARTITION {name}")

    assert enter(owner, "delete") == {"store", "delete"}


@pytest.fixture
def no_partitions() -> Iterator[None]:
    drop_partitions()
    yield
    for ahead in range(conf.AUDIT_PARTITIONS_AHEAD + 1):
        make_partition(timezone.now() + timedelta(days=ahead))


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_partitions")
def test_concurrent_writers_without_a_partition_lose_nothing(owner: Owner) -> None:
    with ThreadPoolExecutor(6) as many:
        written = [
            many.submit(over_own_connection, lambda: record_audit(owner, operation="store", memory_type="t"))
            for _ in range(24)
        ]

    assert [each.result() for each in written] == [None] * 24
    assert AuditEntry.objects.count() == 24


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("no_partitions")
def test_writers_without_a_partition_do_not_wait_for_each_other_before_they_commit(
    owner: Owner, account: Account, start_concurrently: Callable[[Callable[[], object]], Any]
) -> None:
    def change() -> None:
        with transaction.atomic():
            record_audit(owner, operation="update", memory_type="t")
            Account.objects.filter(id=account.id).update(name="theirs")

    with transaction.atomic():
        Account.objects.filter(id=account.id).update(name="ours")
        changing = start_concurrently(change)
        record_audit(owner, operation="store", memory_type="t")

    changing.result(PATIENCE_SECONDS)
    assert set(AuditEntry.objects.values_list("operation", flat=True)) == {"store", "update"}


WRITER = """
CREATE ROLE audit_writer;
GRANT USAGE ON SCHEMA public TO audit_writer;
GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA public TO audit_writer;
SET LOCAL ROLE audit_writer;
"""


def test_a_role_without_create_rights_can_create_the_partition(owner: Owner) -> None:
    drop_partitions()

    with connection.cursor() as cursor:
        cursor.execute(WRITER)
        record_audit(owner, operation="store", memory_type="episodic")
        # not taken for the log
        cursor.execute("CREATE TEMP TABLE memory_audit_log (id uuid)")
        run_deferred_trigger()
        cursor.execute("RESET ROLE; DROP TABLE pg_temp.memory_audit_log")

    assert partitions() == [f"memory_audit_log_{timezone.now():%Y%m%d}"]
    assert AuditEntry.objects.get().operation == "store"


@pytest.mark.django_db(transaction=True)
def test_a_partition_is_made_while_another_transaction_writes(owner: Owner) -> None:
    with transaction.atomic(), ThreadPoolExecutor(1) as other:
        record_audit(owner, operation="store", memory_type="t")
        made = other.submit(over_own_connection, lambda: make_partition(datetime(2031, 5, 6, tzinfo=UTC)))

        assert made.result(PATIENCE_SECONDS) is None

    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE memory_audit_log_20310506")
