"""Tests of audited reads, batched through Redis, and of erasing the texts of entries."""

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast
from uuid import UUID, uuid4

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.audit import record_audit, texts_metadata
from memory.errors import NotFound, Unprocessable
from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import Account, AuditEntry, JobRun
from memory.owner import Owner
from memory.services.audit import (
    erase_payloads,
    record_read,
    set_audit_level,
    write_reads,
)
from memory.tiers.audit_reads import count_waiting_reads
from memory_project.redis import SHARED_KEYS, client
from tests.memory.audits import drop_partitions, make_partition, partitions, written_read, written_reads
from tests.memory.maintenance.workers import environment
from tests.redis_elsewhere import redis_away

STREAM = SHARED_KEYS["audit_reads"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

WRITE_AND_DIE = """
import os, signal, django
from django.db import transaction
django.setup()
from memory.services.audit import write_reads
with transaction.atomic():
    # once the rows are safe, before their lines are deleted
    transaction.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))
    write_reads(100, after="", account_id=None)
"""


@pytest.fixture
def reader(owner: Owner) -> Owner:
    return replace(owner, audit_level="reads", user_id="ana")


def read(owner: Owner, text: str = "where is the archive", **columns: Any) -> None:
    record_read(owner, memory_type="all", affected_ids=["m1"], query_text=text, **columns)


def write(size: int = 100, *, after: str = "", account_id: UUID | None = None) -> tuple[int, int]:
    done = write_reads(size, after=after, account_id=account_id)
    return done.examined, done.changed


@pytest.mark.parametrize(("level", "lines"), [("off", 0), ("writes", 0), ("reads", 1), ("verbose", 1), ("", 0)])
def test_a_read_costs_no_statement_and_a_line_where_reads_are_kept(
    owner: Owner, level: str, lines: int, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        read(replace(owner, audit_level=level))

    assert count_waiting_reads() == lines
    assert f"memory_audit_reads_waiting_lines {lines}.0" in Client().get("/metrics").content.decode()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("level", "metadata"), [("reads", {}), ("verbose", {"top_k": 3})])
def test_an_entry_has_the_time_of_the_read(reader: Owner, level: str, metadata: dict[str, int]) -> None:
    begun = timezone.now() - timedelta(milliseconds=2)
    read(replace(reader, audit_level=level), "why does sk-Qm3xV9pLw2Rk7TzB4nYd fail\x00", metadata={"top_k": 3})
    ended = timezone.now()

    entry = written_read()

    assert begun <= entry.timestamp <= ended
    assert (entry.query_text, entry.user_id, entry.metadata) == ("why does [redacted] fail", "ana", metadata)
    assert entry.config_snapshot["audit_level"] == level
    assert (count_waiting_reads(), written_reads()) == (0, [entry])


def test_texts_are_kept_at_verbose_only_masked_and_cut(owner: Owner) -> None:
    secret = "sk-Qm3xV9pLw2Rk7TzB4nYd"
    texts = ["x" * 1_990 + " " + secret, *["y"] * 30]

    kept = texts_metadata(replace(owner, audit_level="verbose"), texts)["texts"]

    assert (len(kept), len(kept[0]), kept[0][-9:]) == (20, 2_000, "[redacted")
    assert texts_metadata(replace(owner, audit_level="reads"), iter(texts)) == {}


def test_a_batch_takes_few_statements_however_many_reads_it_holds(
    reader: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(50):
        read(reader, f"question {number}")

    # a savepoint, the partition, the entries
    with django_assert_num_queries(4):
        assert write() == (50, 50)
    assert AuditEntry.objects.count() == 50


def test_the_job_reports_how_many_reads_it_wrote(reader: Owner) -> None:
    for _ in range(3):
        read(reader)

    looked = run_at_once(JOBS["write_audit_reads"], JobRun(job="write_audit_reads", dry_run=True), clock=timezone.now)
    done = run_at_once(JOBS["write_audit_reads"], JobRun(job="write_audit_reads"), clock=timezone.now)

    assert (looked.changed, looked.figures) == (3, {"reads_written": 3})
    assert (done.status, done.examined, done.figures) == ("completed", 3, {"reads_written": 3})


@pytest.mark.django_db(transaction=True)
def test_a_run_of_one_account_leaves_the_lines_of_others(reader: Owner, stranger: Account) -> None:
    read(reader)
    read(replace(reader, account_id=stranger.id))

    assert write(account_id=stranger.id) == (1, 1)
    assert count_waiting_reads() == 1


def test_without_redis_a_read_is_logged_immediately(reader: Owner, account: Account) -> None:
    Account.objects.filter(id=account.id).update(audit_level="reads")

    with redis_away():
        read(reader)

    assert AuditEntry.objects.get().query_text == "where is the archive"


def test_without_room_a_read_is_logged_immediately(
    reader: Owner, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    Account.objects.filter(id=account.id).update(audit_level="reads")
    monkeypatch.setattr(conf, "AUDIT_READ_LINES", 1)

    for text in ("kept in Redis", "kept at once"):
        read(reader, text)

    assert [entry.query_text for entry in AuditEntry.objects.all()] == ["kept at once"]
    assert {entry.query_text for entry in written_reads()} == {"kept in Redis", "kept at once"}


@pytest.mark.django_db(transaction=True)
def test_a_duplicate_line_is_one_entry(reader: Owner) -> None:
    read(reader)
    ((_place, fields),) = cast("Any", client().xrange(SHARED_KEYS["audit_reads"]))
    client().xadd(SHARED_KEYS["audit_reads"], fields)

    assert write() == (2, 1)
    assert count_waiting_reads() == 0


@pytest.mark.parametrize(
    "refused", [{"query_text": "tulips\x00"}, {"latency_ms": float("nan")}, {"actor": None}, {"actor": "\ud800"}]
)
@pytest.mark.django_db(transaction=True)
def test_a_refused_line_is_set_aside_and_delays_no_other(
    reader: Owner, refused: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    for text in ("before", "tulips", "after"):
        read(reader, text)
    (_, fields), (_, bad), (_, last) = cast("Any", client().xrange(STREAM))
    client().delete(STREAM)
    spoilt: Any = {"account": bad["account"], "entry": json.dumps(json.loads(bad["entry"]) | refused)}
    for line in (fields, spoilt, last):
        client().xadd(STREAM, line)

    done = run_at_once(JOBS["write_audit_reads"], JobRun(job="write_audit_reads"), clock=timezone.now)

    assert (done.status, done.failed, done.figures) == ("incomplete", 1, {"reads_written": 2, "reads_refused": 1})
    assert {entry.query_text for entry in written_reads()} == {"before", "after"}
    assert (count_waiting_reads(), client().xlen(SHARED_KEYS["refused_audit_reads"])) == (0, 1)
    assert "tulips" not in caplog.text


def test_reads_of_a_day_without_a_partition_create_it(reader: Owner) -> None:
    drop_partitions()
    read(reader)

    assert write() == (1, 1)
    assert partitions() == [f"memory_audit_log_{written_read().timestamp:%Y%m%d}"]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_a_job_killed_between_rows_and_lines_doubles_nothing(reader: Owner) -> None:
    make_partition(timezone.now())
    read(reader)

    killed = subprocess.run([sys.executable, "-c", WRITE_AND_DIE], env=environment(), check=False, timeout=200)

    assert (killed.returncode, AuditEntry.objects.count(), count_waiting_reads()) == (-9, 1, 1)
    assert write() == (1, 0)
    assert (AuditEntry.objects.count(), count_waiting_reads()) == (1, 0)


def enter(owner: Owner, text: str) -> AuditEntry:
    record_audit(owner, operation="update", memory_type="all", affected_ids=["m1"], query_text=text, error_message=text)
    return AuditEntry.objects.latest("id")


def test_erasing_blanks_the_texts_and_is_audited(owner: Owner) -> None:
    entry, other = enter(owner, "tulips"), enter(owner, "roses")

    assert erase_payloads(replace(owner, actor="staff:chief"), [entry.id]) == 1

    erased = AuditEntry.objects.get(id=entry.id)
    assert (erased.query_text, erased.error_message, erased.affected_ids) == ("", "", ["m1"])
    assert list(erased.metadata) == ["payload_erased_at"]
    assert AuditEntry.objects.get(id=other.id).query_text == "roses"
    erasure = AuditEntry.objects.get(operation="erase_audit")
    assert (erasure.actor, erasure.affected_ids, erasure.result_count) == ("staff:chief", [str(entry.id)], 1)


def test_erasing_is_audited_at_every_level(owner: Owner) -> None:
    entry = enter(owner, "tulips")
    set_audit_level(owner, level="off")

    erase_payloads(owner, [entry.id])

    assert AuditEntry.objects.filter(operation="erase_audit").exists()


def test_entries_of_another_account_cannot_be_erased(owner: Owner, stranger: Account) -> None:
    entry = enter(owner, "tulips")

    with pytest.raises(NotFound):
        erase_payloads(Owner(account_id=stranger.id), [entry.id])
    assert AuditEntry.objects.get(id=entry.id).query_text == "tulips"


@pytest.mark.parametrize("level", conf.AUDIT_LEVELS)
def test_a_change_of_the_level_is_audited_at_every_level(owner: Owner, account: Account, level: str) -> None:
    set_audit_level(owner, level=level)

    account.refresh_from_db()
    snapshot = AuditEntry.objects.get(operation="set_audit_level").config_snapshot
    assert (account.audit_level, snapshot["audit_level"]) == (level, level)
    assert snapshot["audit_level_before"] == "writes"


def test_an_unknown_level_is_refused(owner: Owner) -> None:
    with pytest.raises(Unprocessable):
        set_audit_level(owner, level="loud")
    with pytest.raises(Unprocessable):
        erase_payloads(owner, [uuid4() for _ in range(10_001)])
