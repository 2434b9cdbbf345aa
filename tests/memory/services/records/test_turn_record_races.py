"""Structured turns that are sent concurrently: one record per client id, distinct numbers, one outcome."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, transaction

from memory.errors import Conflict, NotFound
from memory.extraction.turn_slots import Action, Outcome, Slots
from memory.models import Conversation, Link, Memory, TurnRecord
from memory.owner import Owner
from memory.services.conversations.staff_edits import delete_conversation
from memory.services.records.record import (
    RecordDraft,
    RecordedTurn,
    add_slots,
    delete_record,
    prepare_record,
    record_turn,
)
from tests.concurrency import PATIENCE_SECONDS, Start
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim
from tests.memory.records import add_record

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis")]

OPEN = Slots(action=Action(text="Watered."), outcome=Outcome(status="open"))


def end(owner: Owner, record: TurnRecord, status: str) -> RecordedTurn:
    draft = RecordDraft(slots=Slots(outcome=Outcome(status=status)))
    return add_slots(owner, record.id, prepare_record(owner, draft, now=NOW), embedded=NOTHING, now=NOW)


@pytest.mark.parametrize("client_id", ["", "t1"], ids=["eight turns", "one turn"])
def test_concurrent_records_are_numbered_without_gaps(owner: Owner, client_id: str) -> None:
    together = Barrier(8)
    goal = aim(owner)

    def record(_client: int) -> None:
        together.wait(PATIENCE_SECONDS)
        try:
            add_record(owner, client_id=client_id, goal_id=goal.id)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as clients:
        list(clients.map(record, range(8)))

    records = 1 if client_id else 8
    assert list(TurnRecord.objects.order_by("number").values_list("number", flat=True)) == list(range(records))
    assert Conversation.objects.get().record_count == records
    assert (Memory.objects.filter(kind="turn_slot").count(), Link.objects.count()) == (3 * records, 3 * records)


def test_one_of_two_concurrent_outcomes_wins(owner: Owner, start_concurrently: Start) -> None:
    record = add_record(owner, slots=OPEN).record

    with transaction.atomic():
        end(owner, record, "succeeded")
        other = start_concurrently(lambda: end(owner, record, "failed"))

    with pytest.raises(Conflict, match="final already"):
        other.result(PATIENCE_SECONDS)
    record.refresh_from_db()
    assert record.status == "succeeded"


@pytest.mark.parametrize("what", ["record", "conversation"])
def test_a_record_that_is_erased_meanwhile_is_not_found(owner: Owner, start_concurrently: Start, what: str) -> None:
    record = add_record(owner, slots=OPEN).record

    with transaction.atomic():
        if what == "record":
            delete_record(owner, record.id)
        else:
            delete_conversation(owner, record.conversation_id)
        other = start_concurrently(lambda: end(owner, record, "failed"))

    with pytest.raises(NotFound):
        other.result(PATIENCE_SECONDS)
    assert not Memory.objects.filter(kind="turn_slot").exists()


def test_the_agent_that_creates_the_conversation_first_takes_part_alone(
    owner: Owner, start_concurrently: Start
) -> None:
    rival = Owner(account_id=owner.account_id, agent_id="rival")

    with transaction.atomic():
        add_record(owner)
        other = start_concurrently(lambda: add_record(rival))

    with pytest.raises(NotFound):
        other.result(PATIENCE_SECONDS)
    assert TurnRecord.objects.get().agent_id == owner.agent_id


def test_a_request_that_is_killed_before_its_end_leaves_nothing(owner: Owner) -> None:
    def record_and_die() -> None:
        transaction.set_autocommit(False)
        add_record(owner, client_id="t1", goal_id=goal.id)
        # the server sees what it sees of a killed process: a connection that is gone
        connection.connection.pgconn.finish()
        # else the pool keeps its place for ever
        connection.close()

    goal = aim(owner)
    with ThreadPoolExecutor(1) as doomed:
        doomed.submit(record_and_die).result(PATIENCE_SECONDS)

    assert not Conversation.objects.exists()
    assert add_record(owner, client_id="t1").is_new


def test_a_draft_is_recorded_once(owner: Owner) -> None:
    draft = RecordDraft(slots=OPEN)
    prepared = [prepare_record(owner, draft, now=NOW) for _ in range(2)]
    record_turn(owner, "chat-1", prepared[0], embedded=NOTHING, now=NOW)

    with pytest.raises(Conflict):
        record_turn(owner, "chat-1", prepared[1], embedded=NOTHING, now=NOW)
    assert TurnRecord.objects.count() == 1
