"""Shortened slots: rows of their own, derived from the raw ones, with all of their facts."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from memory import conf
from memory.extraction.survivors import facts_in
from memory.models import AuditEntry, Conversation, Memory, ModelUsage, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.services.account_walk import Batch
from memory.services.compression.compress import (
    CompressionTask,
    SlotsInput,
    compress_slots,
    read_slot_inputs,
    store_shortened_slots,
)
from memory.services.conversations.staff_edits import delete_conversation
from memory.services.memories.links import DERIVED_FROM, WORKS_ON
from memory.services.records.read import read_slots_at_level
from tests.embedding_server import EmbeddingServer
from tests.language_model_server import MODEL, Asked, LanguageModelServer
from tests.memory.compressed import CHATTER, LATER, compress, levels, slots_of, targets, work
from tests.memory.episodes import NOW
from tests.memory.goals import aim, finish
from tests.memory.reasonings import RATIONALE, allow, thought
from tests.memory.records import add_record
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


@pytest.fixture(autouse=True)
def _none_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)
    monkeypatch.setattr(conf, "MERGE_AFTER_HOURS", 876_000)


def read(owner: Owner, **fields: Any) -> SlotsInput:
    [recorded] = work(owner, 1, **fields)
    [piece] = read_slot_inputs(CompressionTask(account_id=owner.account_id, record_ids=[recorded.record.id]))
    return piece


def store(piece: SlotsInput) -> bool:
    """Store the shortened slots and return whether they were stored."""
    return store_shortened_slots(piece, ["It is done." for _ in piece.texts], now=LATER) is not None


def test_each_slot_becomes_a_shorter_row_of_its_own_and_the_raw_one_is_archived(owner: Owner) -> None:
    [recorded] = work(owner, 1)

    compress()

    raw, short = slots_of(recorded.record.id, level=0), slots_of(recorded.record.id, level=1, archived=False)
    assert {slot.slot for slot in raw if slot.archived} == {"observation", "action", "outcome"}
    assert {slot.slot for slot in short} == {"observation", "reasoning", "action", "outcome"}
    assert all(CHATTER not in slot.text for slot in short)
    assert all(targets(slot.id, DERIVED_FROM) == [by_slot(raw, slot).id] for slot in short if slot.slot != "reasoning")


def by_slot(rows: list[TurnSlot], slot: TurnSlot) -> TurnSlot:
    return next(row for row in rows if row.slot == slot.slot)


def test_no_fact_is_lost_and_data_stays_as_it_was(owner: Owner) -> None:
    [recorded] = work(owner, 1)

    compress()

    short = {slot.slot: slot for slot in slots_of(recorded.record.id, archived=False)}
    for slot in recorded.slots:
        assert set(facts_in(slot.text)) <= set(facts_in(short[slot.slot].text))
        assert (short[slot.slot].data, short[slot.slot].tier) == (slot.data, slot.tier)
    assert short["action"].text.endswith('import_table({"table": "t_0"}) -> ok, 81,204 rows')


def test_the_record_and_the_report_have_tokens_before_and_after(owner: Owner) -> None:
    [recorded] = work(owner, 1)

    run = compress()

    record = TurnRecord.objects.get()
    assert (record.level, record.raw_tokens) == (1, recorded.record.raw_tokens)
    assert record.tokens < record.raw_tokens / 2
    assert run.figures == {"tokens_before": record.raw_tokens, "tokens_after": record.tokens, "slots": 3}


def test_a_shorter_slot_is_for_the_same_goal_and_of_the_same_agent(owner: Owner) -> None:
    goal = aim(owner)
    [recorded] = work(owner, 1, goal_id=goal.id)

    compress()

    for slot in slots_of(recorded.record.id, level=1):
        assert targets(slot.id, WORKS_ON) == [goal.id]
        assert (slot.agent_id, slot.channel, slot.conversation_id) == ("assistant", "_global", "chat-1")


def test_a_record_that_gets_no_shorter_reaches_the_next_level_unchanged(owner: Owner) -> None:
    recorded = add_record(owner)

    compress()

    assert [(slot.level, slot.archived) for slot in slots_of(recorded.record.id)] == [(1, False)] * 3
    assert levels() == [1]


def test_a_compressed_record_expands_to_its_original_slots(owner: Owner) -> None:
    [long], short = work(owner, 1), add_record(owner)

    compress()

    for recorded in (long, short):
        slots = read_slots_at_level(owner.account_id, [recorded.record.id], 0)[recorded.record.id]
        assert [slot.text for slot in slots] == [slot.text for slot in recorded.slots]


@pytest.mark.parametrize("age", [0, 167], ids=["now", "an hour before"])
def test_younger_records_than_the_setting_stay_raw(owner: Owner, age: int) -> None:
    work(owner, 1)

    compress(NOW + timedelta(hours=age))

    assert levels() == [0]


def test_records_of_a_closed_goal_are_compressed_immediately(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    goal = aim(owner)
    work(owner, 2, goal_id=goal.id)
    work(owner, 1, start=2)
    finish(owner, goal)

    compress_slots(Batch(size=10), now=NOW)

    assert levels() == [1, 1, 0]


def test_a_second_run_changes_nothing(owner: Owner) -> None:
    work(owner, 3)
    compress()
    before = list(Memory.objects.order_by("id").values_list("id", "version", "text"))

    run = compress()

    assert (run.examined, run.changed) == (0, 0)
    assert list(Memory.objects.order_by("id").values_list("id", "version", "text")) == before


def test_a_dry_run_counts_and_changes_nothing(owner: Owner) -> None:
    work(owner, 2)

    run = compress(dry_run=True)

    assert (run.examined, run.changed, levels()) == (2, 2, [0, 0])


def test_quarantined_slots_are_left_alone(owner: Owner) -> None:
    [recorded] = work(owner, 1)
    suspect = recorded.slots[0]
    Memory.objects.filter(id=suspect.id).update(quarantined=True)

    compress()

    [left] = [slot for slot in slots_of(recorded.record.id) if slot.slot == suspect.slot]
    assert (left.level, left.archived, left.quarantined, left.text) == (0, False, True, suspect.text)
    assert levels() == [1]


def test_a_pinned_slot_stays_as_it_is(owner: Owner) -> None:
    [recorded] = work(owner, 1)
    Memory.objects.filter(id=recorded.slots[0].id).update(pinned=True)

    compress()

    pinned = TurnSlot.objects.get(pk=recorded.slots[0].id)
    assert (pinned.level, pinned.archived, pinned.text) == (1, False, recorded.slots[0].text)


@pytest.mark.parametrize("changed", ["quarantined", "reworded", "recorded", "deleted"])
def test_a_record_changed_since_it_was_read_is_left_for_the_next_run(owner: Owner, changed: str) -> None:
    piece = read(owner)
    slot = Memory.objects.filter(id=piece.texts[0].slot.id)
    if changed == "quarantined":
        slot.update(quarantined=True)
    elif changed == "reworded":
        slot.update(text="Otherwise.", version=2)
    elif changed == "recorded":
        TurnRecord.objects.update(version=2)
    else:
        slot.delete()

    assert not store(piece)
    assert (levels(), Memory.objects.filter(archived=True).count()) == ([0], 0)


def test_a_conversation_deleted_meanwhile_breaks_nothing(owner: Owner) -> None:
    piece = read(owner)
    delete_conversation(owner, "chat-1")

    assert not store(piece)
    assert not Conversation.objects.exists()


def test_a_run_of_one_account_leaves_the_others(owner: Owner) -> None:
    work(owner, 1)

    compress_slots(Batch(size=10, account_id=aim(owner).id), now=LATER)

    assert levels() == [0]


@given(counts=st.lists(st.integers(0, 4), min_size=1, max_size=3), kept=st.integers(0, 3), removed=st.integers(0, 3))
@examples(8)
def test_the_newest_records_of_a_conversation_are_never_touched(
    owner: Owner, monkeypatch: pytest.MonkeyPatch, counts: list[int], kept: int, removed: int
) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", kept)
    monkeypatch.setattr(conf, "MERGE_AFTER_HOURS", 0)
    Conversation.objects.all().delete()
    for chat, count in enumerate(counts):
        for _ in range(count):
            add_record(owner, f"chat-{chat}")
    # a number that is gone is none of the freshest
    TurnRecord.objects.filter(number=removed).delete()

    compress()

    for chat in range(len(counts)):
        touched = [level > 0 for level in levels(f"chat-{chat}")]
        assert touched == [True] * (len(touched) - kept) + [False] * min(kept, len(touched))


def test_a_model_that_fails_leaves_the_record_waiting_and_nothing_is_quoted(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    work(owner, 1)
    language_model_server.fail(401)

    run = compress()

    record = TurnRecord.objects.get()
    assert (run.changed, run.failed, record.level, record.compress_attempts) == (0, 1, 0, 1)
    assert record.compress_error == "provider_refused"
    assert record.compress_after == LATER + timedelta(seconds=conf.COMPRESSION_BACKOFF_SECONDS)
    assert compress(LATER + timedelta(seconds=10)).examined == 0


def test_a_model_that_recovers_is_asked_again_after_the_wait(
    owner: Owner, language_model_server: LanguageModelServer
) -> None:
    work(owner, 1)
    language_model_server.fail(401)
    compress()
    language_model_server.recover()
    language_model_server.write = shorten_all

    compress(LATER + timedelta(hours=2))

    record = TurnRecord.objects.get()
    assert (record.level, record.compress_attempts, record.compress_error, record.compress_after) == (1, 0, "", None)
    usage = ModelUsage.objects.get(use="compression")
    assert (usage.model, usage.calls, usage.failed_calls) == (MODEL, 2, 1)


def shorten_all(asked: Asked) -> Any:
    return {"passages": [{"number": number, "text": "It went on as before."} for number in range(4)]}


@pytest.mark.parametrize("policy", ["decision_summary", "none"])
def test_reasoning_that_is_no_longer_allowed_is_sent_nowhere_and_stays(
    owner: Owner, language_model_server: LanguageModelServer, embedding_server: EmbeddingServer, policy: str
) -> None:
    thought(owner, did=CHATTER * 2, summary=f"Zinnia first. {CHATTER} {CHATTER}", rationale=RATIONALE)
    language_model_server.write = shorten_all
    allow(owner, policy)

    compress()

    [left] = [slot for slot in slots_of(TurnRecord.objects.get().id) if slot.slot == "reasoning"]
    asked = str(language_model_server.requests) + str(embedding_server.texts)
    assert (left.level, left.archived, "Great question" in asked, levels()) == (1, False, True, [1])
    assert not any(word in asked for word in ("Zinnia", "roses", "freeze"))


def test_compression_is_audited_without_texts(owner: Owner) -> None:
    work(owner, 1)

    compress()

    entries = AuditEntry.objects.filter(actor="job:compress").order_by("timestamp", "id")
    assert {(entry.operation, len(entry.affected_ids)) for entry in entries} == {("store", 3), ("archive", 3)}


def test_statements_do_not_depend_on_the_slots(owner: Owner, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    goal = aim(owner)
    piece = read(owner, goal_id=goal.id)

    with django_assert_num_queries(15):
        assert store(piece)
