"""Deleting an account: nothing of it is left but the audit log, which keeps the receipt."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType

from ledger.models import Injection
from memory.audit import record_audit
from memory.errors import Conflict, Unprocessable
from memory.models import Account, ApiKey, AuditEntry, Erasure, JobRun, Memory, TermCount
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE, issue_key
from memory.services.custody import account_steps, steps
from memory.services.custody.account_steps import KEPT, find_references, kept_references, list_tables
from memory.services.custody.accounts import preview_account, request_account_deletion
from memory.services.custody.marks import is_signed
from memory.services.custody.steps import Selection
from memory.services.custody.stores import Model, tables
from memory.services.custody.subjects import continue_erasure
from memory_project.redis import client
from tests.memory.admin.rows import MAKERS
from tests.memory.custody import later
from tests.memory.episodes import NOW
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


def fill(account: Account) -> None:
    """Make rows on every list, by each maker once."""
    # the maker of votes makes learnings too, and the ids of made injections are none of Redis
    makers = dict.fromkeys(make for name, make in MAKERS.items() if name not in ("learning", "injection"))
    for number, make in enumerate(makers):
        make(account, range(3 * number, 3 * number + 3))
    Injection.objects.create(
        account=account, conversation_id="c", item_key="k", event="marked", at=NOW, stream_id=f"{1:020d}-{0:020d}"
    )


def delete(owner: Owner) -> None:
    erasure = request_account_deletion(owner, reason="the contract ended", now=datetime.now(UTC))
    for _ in range(500):
        if continue_erasure(owner.account_id, erasure.id, now=later()).status == Erasure.Status.COMPLETED:
            return
    raise AssertionError(f"not completed: {Erasure.objects.get().step} {Erasure.objects.get().counts}")


def tables_of_accounts() -> Iterator[tuple[str, Model]]:
    for name, model in tables().items():
        if any(field.name in ("account", "account_id") for field in model._meta.concrete_fields):
            yield name, model


def rows_of(account: Account) -> dict[str, int]:
    rows = {name: model._default_manager.filter(account_id=account.pk) for name, model in tables_of_accounts()}
    return {name: count for name, found in rows.items() if (count := found.count())}


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_nothing_of_the_account_is_left_and_other_accounts_keep_everything(
    owner: Owner, account: Account, stranger: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_steps, "ROWS_A_BATCH", 2)
    fill(account)
    know(Owner(account_id=stranger.pk, agent_id="assistant"), "Likes tea.")
    before = rows_of(stranger)

    delete(owner)

    assert set(rows_of(account)) <= KEPT
    assert not Account.objects.filter(pk=account.pk).exists()
    assert rows_of(stranger) == before


def test_the_audit_log_keeps_the_receipt_under_its_signature(owner: Owner, account: Account) -> None:
    know(owner, "Likes tea.")

    delete(owner)

    entry = AuditEntry.objects.get(operation="delete_account")
    kept = entry.config_snapshot
    assert (kept["account"], entry.metadata["reason"]) == ("workshop", "the contract ended")
    assert kept["receipt"]["counts"]["memories"] == 1
    assert is_signed(kept["receipt"], kept["signature"])


def test_texts_and_names_go_from_the_audit_log_and_from_the_history_of_the_admin(
    owner: Owner, account: Account, stranger: Account
) -> None:
    ana = replace(owner, user_id="ana", audit_level="verbose")
    rows = [account, issue_key(account, scopes=READ_WRITE).key, know(ana, "Likes tea.")]
    record_audit(ana, operation="recall", memory_type="semantic", conversation_id="c1", query_text="Who likes tea?")
    record_audit(ana, operation="delete", memory_type="agent", affected_ids=["brewer"], metadata={"reason": "tea"})
    other = Owner(account_id=stranger.pk, user_id="bo", audit_level="verbose")
    record_audit(other, operation="recall", memory_type="semantic", query_text="Who likes coffee?")
    staff = get_user_model().objects.create(username="root")
    for row in rows:
        log = {"object_id": row.pk, "object_repr": "tea", "action_flag": 2, "change_message": "Reason: tea"}
        LogEntry.objects.create(user_id=staff.pk, content_type=ContentType.objects.get_for_model(row), **log)

    delete(owner)

    kept = AuditEntry.objects.filter(account_id=owner.account_id).exclude(operation="delete_account")
    assert {"recall", "store", "erase"} <= set(kept.values_list("operation", flat=True))
    left = [str(each) for row in kept.values() for each in row.values()]
    assert [each for each in left if re.search(r"\b(tea|ana|c1|brewer)\b", each)] == []
    assert AuditEntry.objects.get(account_id=stranger.pk).query_text == "Who likes coffee?"
    assert set(LogEntry.objects.values_list("object_repr", "change_message")) == {("[erased]", "")}


def test_entries_of_the_audit_log_are_passed_once_in_batches(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "AUDIT_ENTRIES_A_BATCH", 2)
    ana = replace(owner, user_id="ana", audit_level="verbose")
    for writer in (ana, owner, owner, ana, ana):
        record_audit(writer, operation="delete", memory_type="agent", affected_ids=[owner.account_id])

    cursors, counts = [""], []
    for _ in range(3):
        report = account_steps.erase_audit(Selection(owner=owner), cursors[-1], NOW)
        cursors.append(report.cursor)
        counts.append(report.counts["memory_audit_log"])

    assert counts == [1, 1, 1]
    assert [bool(each) for each in cursors] == [False, True, True, False]
    assert not AuditEntry.objects.filter(account_id=owner.account_id).exclude(user_id="").exists()


def test_the_history_of_staff_stays_where_its_ids_are_those_of_the_accounts_rows(
    owner: Owner, account: Account
) -> None:
    staff = get_user_model().objects.create(username="root")
    of_staff = ContentType.objects.get_for_model(staff)
    words = [TermCount.objects.create(account=account, term=term, docs=1).pk for term in ("tea", "cup")]
    for word in words:
        log = {"object_id": word, "object_repr": "mara", "action_flag": 2, "change_message": "Changed email."}
        LogEntry.objects.create(user_id=staff.pk, content_type=of_staff, **log)

    delete(owner)

    assert not TermCount.objects.exists()
    assert set(LogEntry.objects.values_list("object_repr", "change_message")) == {("mara", "Changed email.")}


def test_keys_of_redis_go_and_those_of_other_accounts_stay(owner: Owner, account: Account, stranger: Account) -> None:
    own, other = (f"account:{each.pk}:value:tea" for each in (account, stranger))
    client().set(own, "black")
    client().set(other, "green")

    delete(owner)

    assert (client().get(own), client().get(other)) == (None, "green")


def test_keys_are_revoked_before_anything_is_deleted(owner: Owner, account: Account) -> None:
    issue_key(account, scopes=READ_WRITE)
    know(owner, "Likes tea.")

    request_account_deletion(owner, reason="the contract ended", now=datetime.now(UTC))

    assert ApiKey.objects.get().revoked_at is not None
    assert Memory.objects.count() == 1


def test_a_legal_hold_or_a_missing_reason_refuses_the_deletion(owner: Owner, account: Account) -> None:
    with pytest.raises(Unprocessable):
        request_account_deletion(owner, reason=" ", now=datetime.now(UTC))
    Account.objects.update(legal_hold=True)
    with pytest.raises(Conflict, match="legal hold"):
        request_account_deletion(owner, reason="the contract ended", now=datetime.now(UTC))

    assert not Erasure.objects.exists()


def test_a_second_request_returns_the_deletion_that_waits(owner: Owner) -> None:
    first, second = (
        request_account_deletion(owner, reason="the contract ended", now=datetime.now(UTC)) for _ in range(2)
    )

    assert first.pk == second.pk


def test_the_account_waits_for_a_job_that_a_worker_runs_for_it(owner: Owner, account: Account) -> None:
    lease = {"leased_by": "a worker", "lease_until": later()}
    run = JobRun.objects.create(account=account, job="embed", status="running", **lease)
    erasure = request_account_deletion(owner, reason="the contract ended", now=datetime.now(UTC))

    for _ in range(100):
        continue_erasure(owner.account_id, erasure.id, now=later())
    assert Account.objects.filter(pk=account.pk).exists()
    JobRun.objects.filter(pk=run.pk).update(status="completed", lease_until=None, finished_at=later())
    for _ in range(100):
        if continue_erasure(owner.account_id, erasure.id, now=later()).status == Erasure.Status.COMPLETED:
            break

    assert not Account.objects.filter(pk=account.pk).exists()


def test_a_preview_counts_each_table_and_deletes_nothing(owner: Owner) -> None:
    know(owner, "Likes tea.")

    counts = preview_account(owner)

    assert counts["memories"] == 1
    assert Memory.objects.count() == 1


def test_every_table_of_accounts_is_emptied_goes_with_the_account_or_is_kept() -> None:
    named = {name for name, _ in tables_of_accounts()}

    assert named <= {*list_tables(), *account_steps.GO_WITH_ACCOUNT, *KEPT}


def test_references_that_do_not_cascade_are_all_known() -> None:
    kept = {(model._meta.db_table, field.attname) for model in tables().values() for field in kept_references(model)}

    found = [each for model in tables().values() for each in find_references(model)]

    assert {(referring._meta.db_table, column) for referring, column in found} == kept
