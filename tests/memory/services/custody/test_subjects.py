"""Erasing a user: what goes, what stays, the mark and the receipt."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from memory.agent_memory import AgentMemory
from memory.audit import record_audit
from memory.errors import Conflict, Unprocessable
from memory.models import Account, AuditEntry, Conversation, Erasure, Fact, Memory, Turn, UserProfile
from memory.owner import Owner
from memory.services.custody import steps
from memory.services.custody.marks import digest_subject
from memory.services.custody.steps import Selection
from memory.services.custody.subjects import (
    continue_erasure,
    find_subject,
    preview_subject,
    readmit_user,
    request_subject,
    verify_receipt,
)
from memory.services.facts.learn import FactDraft
from tests.memory.episodes import NOW
from tests.memory.facts import know
from tests.memory.turns import say, turn

LATER = NOW + timedelta(hours=1)


@pytest.fixture
def ana(owner: Owner, empty_redis: None) -> Owner:
    return replace(owner, user_id="ana")


def erase_user(owner: Owner, user_id: str) -> Erasure:
    erasure = request_subject(owner, user_id, reason="asked for it", now=NOW)
    for _ in range(500):
        erasure = continue_erasure(owner.account_id, erasure.id, now=LATER)
        if erasure.status == "completed":
            return erasure
    raise AssertionError(f"not completed: {erasure.step}, {erasure.counts}")


def test_everything_of_the_user_goes_and_everything_of_others_stays(ana: Owner, owner: Owner) -> None:
    ben = replace(owner, user_id="ben")
    for each in (ana, ben):
        say(each, turn("I like figs."), conversation_id=f"talk-{each.user_id}")
        know(each, "Likes figs.")

    erasure = erase_user(owner, "ana")

    assert set(Memory.objects.values_list("user_id", flat=True)) == {"ben"}
    assert set(Conversation.objects.values_list("conversation_id", flat=True)) == {"talk-ben"}
    assert (erasure.counts["turn"], erasure.counts["fact"], erasure.counts["conversations"]) == (1, 1, 1)


def test_a_turn_in_a_conversation_of_another_user_stays_as_an_empty_place(ana: Owner, owner: Owner) -> None:
    say(replace(owner, user_id="ben"), turn("Hello."), conversation_id="group")
    say(ana, turn("I like figs."), conversation_id="group")

    erase_user(owner, "ana")

    turns = Turn.objects.order_by("index").values_list("text", "user_id", "buried")
    assert list(turns) == [("Hello.", "ben", False), ("[erased]", "", True)]


def test_a_preview_counts_and_changes_nothing(ana: Owner, owner: Owner) -> None:
    know(ana, "Likes figs.")

    counts = preview_subject(owner, "ana")

    assert counts["memories"] == 1
    assert Fact.objects.exists()


def test_nothing_may_name_an_erased_user_until_the_mark_is_lifted(ana: Owner, owner: Owner) -> None:
    erase_user(owner, "ana")
    with pytest.raises(Conflict, match="was erased"):
        say(ana, turn("Hello."), conversation_id="late")

    readmit_user(owner, "ana", now=LATER)
    say(ana, turn("Hello."), conversation_id="new")

    assert Conversation.objects.get().conversation_id == "new"


def test_the_receipt_can_be_verified_and_does_not_name_the_user(ana: Owner, owner: Owner) -> None:
    UserProfile.objects.create(account_id=owner.account_id, user_id="ana")
    erasure = erase_user(owner, "ana")
    receipt = dict(erasure.receipt or {})

    assert verify_receipt(owner, receipt, erasure.signature)
    assert not verify_receipt(owner, receipt | {"completed_at": "2020-01-01"}, erasure.signature)
    assert '"ana"' not in str(receipt)
    assert (erasure.selection, find_subject(owner, "ana").id) == (None, erasure.id)


def test_an_erasure_is_not_completed_before_requests_have_settled(ana: Owner, owner: Owner) -> None:
    erasure = request_subject(owner, "ana", now=NOW)
    for _ in range(100):
        erasure = continue_erasure(owner.account_id, erasure.id, now=NOW)

    assert (erasure.status, erasure.passes, erasure.step) == ("running", 1, "")


@pytest.mark.slow
def test_an_erasure_is_not_completed_before_extraction_that_it_cancelled_has_ended(ana: Owner, owner: Owner) -> None:
    say(ana, turn("I like figs."), conversation_id="talk")
    Conversation.objects.update(extract_lease_until=LATER + timedelta(minutes=3))

    with pytest.raises(AssertionError, match="not completed"):
        erase_user(owner, "ana")
    erasure = find_subject(owner, "ana")
    for _ in range(100):
        erasure = continue_erasure(owner.account_id, erasure.id, now=LATER + timedelta(minutes=3))

    assert (erasure.status, erasure.selection) == ("completed", None)


def test_entries_of_the_audit_log_are_passed_once_in_batches(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "AUDIT_ENTRIES_A_BATCH", 2)
    ana = replace(owner, user_id="ana", audit_level="verbose")
    for writer in (owner, owner, ana, ana, owner, ana):
        record_audit(writer, operation="delete", memory_type="agent", affected_ids=[owner.account_id])

    cursors, counts = [""], []
    for _ in range(4):
        report = steps.erase_audit(Selection(owner=owner, user_id="ana"), cursors[-1], NOW)
        cursors.append(report.cursor)
        counts.append(report.counts["memory_audit_log"])

    assert counts == [0, 2, 1, 0]
    assert [bool(each) for each in cursors] == [False, True, True, True, False]
    assert not AuditEntry.objects.filter(account_id=owner.account_id, user_id="ana").exists()


def test_a_request_for_a_user_that_is_being_erased_returns_the_unfinished_one(owner: Owner) -> None:
    first = request_subject(owner, "ana", now=NOW)

    assert request_subject(owner, "ana", now=NOW).id == first.id


def test_the_reason_must_not_name_the_user(owner: Owner) -> None:
    with pytest.raises(Unprocessable, match="reason"):
        request_subject(owner, "ana", reason="by ana", now=NOW)


def test_who_opened_the_memory_of_a_user_before_writes_nothing_after_the_erasure(
    owner: Owner, empty_redis: None
) -> None:
    account = Account.objects.get(id=owner.account_id)
    memory = AgentMemory.open(account.name, agent_id="sales", user_id="ana")
    memory.learn_fact(FactDraft(claim="Likes figs."))
    ben = replace(owner, user_id="ben")
    say(ben, turn("I like figs."), conversation_id="group")
    erase_user(owner, "ana")

    for write in (
        lambda: memory.learn_fact(FactDraft(claim="Likes dates.")),
        lambda: say(memory.owner, turn("I like dates."), conversation_id="group"),
        lambda: Memory.objects.filter(user_id="ben").update(user_id="ana"),
    ):
        with pytest.raises(DatabaseError, match="This user was erased"), transaction.atomic():
            write()

    assert not Memory.objects.filter(user_id="ana").exists()
    assert not Conversation.objects.filter(user_id="ana").exists()


def test_the_database_refuses_no_readmitted_user_and_no_user_of_another_account(
    owner: Owner, stranger: Account, empty_redis: None
) -> None:
    erase_user(owner, "ana")

    know(replace(owner, account_id=stranger.id, user_id="ana"), "Likes figs.")
    readmit_user(owner, "ana", now=LATER)
    know(replace(owner, user_id="ana"), "Likes figs.")

    assert Memory.objects.filter(user_id="ana").count() == 2


@pytest.mark.parametrize("user_id", ["ana", "Ána-日本 'x'", "a" * 100])
def test_the_database_computes_the_same_mark(owner: Owner, user_id: str) -> None:
    with connection.cursor() as cursor:
        statement = "SELECT memory_subject_digest(current_setting('memory.mark_keys'), %s, %s)"
        cursor.execute(statement, [owner.account_id, user_id])
        (found,) = cursor.fetchone()

    assert found == digest_subject(owner.account_id, user_id)
