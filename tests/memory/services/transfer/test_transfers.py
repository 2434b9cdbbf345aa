"""Exports and imports as jobs: parts, failures, archives that expire or hold an erased user."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from django.db import connection

from memory import conf
from memory.errors import Conflict
from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import Account, Fact, JobRun, Transfer, TransferPart
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.custody.subjects import continue_erasure, request_subject
from memory.services.transfer import transfers
from memory.services.transfer.selection import TransferScope
from tests.memory.facts import know
from tests.memory.transfers import export_bytes
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db(transaction=True)


def run_job(account_id: UUID, *, after: timedelta = timedelta(0)) -> JobRun:
    run = JobRun(account_id=account_id, job="transfer")
    return run_at_once(JOBS["transfer"], run, clock=lambda: datetime.now(UTC) + after)


def request(owner: Owner) -> Transfer:
    scope = TransferScope(account_id=owner.account_id)
    return transfers.request_export(owner, scope, now=datetime.now(UTC))


def test_the_job_makes_the_archive_in_parts_and_imports_one(
    owner: Owner, stranger: Account, empty_redis: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "PART_BYTES", 1_000)
    know(owner, "The pump leaks.")
    export = request(owner)

    run = run_job(owner.account_id)
    export.refresh_from_db()

    archive = b"".join(transfers.read_parts(export))
    assert (run.status, export.status, export.size_bytes) == ("completed", "completed", len(archive))
    assert (archive, TransferPart.objects.count() > 1) == (export_bytes(owner.account_id, include_traces=False), True)
    theirs = Owner(account_id=stranger.id)
    imported = transfers.request_import(theirs, [archive[:700], archive[700:]], now=datetime.now(UTC))
    run_job(stranger.id)
    imported.refresh_from_db()
    assert (imported.status, imported.error) == ("completed", "")
    assert Fact.objects.get(account_id=stranger.id).text == "The pump leaks."
    assert not TransferPart.objects.filter(transfer_id=imported.id).exists()


def test_an_import_that_failed_after_it_had_stored_rows_goes_on_when_it_is_sent_again(
    owner: Owner, stranger: Account, empty_redis: None
) -> None:
    say(owner, turn("The pump leaks."), conversation_id="talk")
    know(owner, "The pump leaks.")
    archive, theirs = export_bytes(owner.account_id), Owner(account_id=stranger.id)
    failed = transfers.request_import(theirs, [archive], now=datetime.now(UTC))
    with connection.cursor() as cursor:
        cursor.execute("CREATE TRIGGER stop BEFORE INSERT ON fact_versions EXECUTE FUNCTION memory_refuse_change()")
        try:
            run_job(stranger.id)
        finally:
            cursor.execute("DROP TRIGGER stop ON fact_versions")
    failed.refresh_from_db()

    again = transfers.request_import(theirs, [archive], now=datetime.now(UTC))
    run_job(stranger.id)
    again.refresh_from_db()

    assert (failed.status, failed.counts["memories"] > 0) == ("failed", True)
    assert (again.status, sum(again.existing.values()), again.left_out) == ("completed", 0, {})
    assert again.counts["memories"] == failed.counts["memories"]
    assert Fact.objects.get(account_id=stranger.id).versions.count() == 1


def test_an_account_has_at_most_ten_unfinished_transfers(owner: Owner, stranger: Account, empty_redis: None) -> None:
    for _ in range(transfers.MAX_UNFINISHED):
        request(owner)

    with pytest.raises(Conflict, match="10 exports and imports of the account are not completed"):
        request(owner)
    with pytest.raises(Conflict):
        transfers.request_import(owner, [b"PK"], now=datetime.now(UTC))
    request(Owner(account_id=stranger.id))
    assert (Transfer.objects.count(), TransferPart.objects.count()) == (transfers.MAX_UNFINISHED + 1, 0)


def test_a_transfer_that_another_worker_does_is_left_to_it(owner: Owner, empty_redis: None) -> None:
    asked = request(owner)
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [transfers.lock_id(asked.id)])
        run_job(owner.account_id)
        asked.refresh_from_db()
        left = asked.status
        cursor.execute("SELECT pg_advisory_unlock_all()")
    other.close()
    run_job(owner.account_id)
    asked.refresh_from_db()

    assert (left, asked.status) == ("queued", "completed")


def test_parts_are_encrypted_at_rest(owner: Owner, empty_redis: None) -> None:
    know(owner, "The pump leaks.")
    request(owner)
    run_job(owner.account_id)

    ((stored,),) = fetch_rows("SELECT encode(data, 'escape') FROM transfer_parts")
    assert stored.startswith("gAAA")


def test_an_archive_that_is_refused_fails_the_import_with_a_sentence(owner: Owner, empty_redis: None) -> None:
    # cut in the middle, so that a file in it is damaged
    whole = export_bytes(owner.account_id)
    asked = transfers.request_import(owner, [whole[:100], whole[200:]], now=datetime.now(UTC))
    run_job(owner.account_id)
    asked.refresh_from_db()

    assert (asked.status, "zip" in asked.error) == ("failed", True)


def test_archives_expire(owner: Owner, empty_redis: None) -> None:
    request(owner)
    run_job(owner.account_id)
    run_job(owner.account_id, after=timedelta(hours=conf.ARCHIVE_HOURS + 1))

    assert not Transfer.objects.exists()
    assert not TransferPart.objects.exists()


def test_erasing_a_user_deletes_the_archives_of_the_account(owner: Owner, empty_redis: None) -> None:
    know(replace(owner, user_id="ana"), "Likes figs.")
    request(owner)
    run_job(owner.account_id)
    erasure = request_subject(owner, "ana", now=datetime.now(UTC))

    while erasure.status != "completed":
        erasure = continue_erasure(owner.account_id, erasure.id, now=datetime.now(UTC) + timedelta(hours=1))

    assert not TransferPart.objects.exists()
