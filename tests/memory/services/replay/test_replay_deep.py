"""Tests for deep replay: raw traces, for clients with the scope, in the postures that justify it, always audited."""

import logging
from io import BytesIO, StringIO
from uuid import UUID

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from pytest_django import DjangoAssertNumQueries, Settings

from memory import conf
from memory.agent_memory import AgentMemory
from memory.errors import Forbidden, Unprocessable
from memory.models import AuditEntry, ReasoningTrace, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval.queries import Posture
from memory.services.conversations.export import ExportSelection, export_conversations
from memory.services.replay.candidates import ReplayRequest
from memory.services.replay.replay import ReplaySlice, replay
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.procedures import everything_stored
from tests.memory.reasonings import RATIONALE, allow, merge, thought
from tests.memory.turns import say, turn

pytestmark = pytest.mark.django_db

TRACE = "Zinnia thought aloud of her hidden garden."
RAW = ReasoningTier.RAW_TRACE


@pytest.fixture
def record(owner: Owner) -> TurnRecord:
    """Record a turn whose reasoning is kept at every tier."""
    allow(owner, "raw_trace")
    return thought(owner, trace=TRACE, rationale=RATIONALE, summary="Why not.")


def ask_deep(owner: Owner, record_id: UUID, **asked: object) -> ReplaySlice:
    fields: dict[str, object] = {"tier": RAW, "posture": Posture.AUDIT, "has_scope": True} | asked
    return replay(owner, ReplayRequest(record_id=record_id, **fields), now=NOW)  # type: ignore[arg-type]


def test_a_raw_trace_follows_its_reasoning_for_a_client_with_the_scope(owner: Owner, record: TurnRecord) -> None:
    found = ask_deep(owner, record.id)

    (trace,) = (item for item in found.items if item.kind == "reasoning_trace")
    assert (trace.text, trace.tier, trace.provenance) == (TRACE, "raw_trace", "runtime_projection")
    assert (trace.memory_id, trace.record_id) == (None, record.id)
    assert [item.tier for item in found.items if item.slot == "reasoning"] == ["structured_rationale", "raw_trace"]
    assert (found.tier, found.allowed, found.degraded) == (RAW, RAW, [])


@pytest.mark.parametrize("posture", [Posture.ACTIVE_TURN, Posture.RESUME], ids=str)
def test_other_postures_are_refused(owner: Owner, record: TurnRecord, posture: Posture) -> None:
    with pytest.raises(Unprocessable, match="recovery and audit"):
        ask_deep(owner, record.id, posture=posture)


def test_without_the_scope_it_is_forbidden_and_nothing_is_audited(owner: Owner, record: TurnRecord) -> None:
    with pytest.raises(Forbidden, match="deep_replay"):
        ask_deep(owner, record.id, has_scope=False)

    assert not AuditEntry.objects.filter(operation="deep_replay").exists()


def test_a_lowered_policy_limits_the_tier_and_degrades(owner: Owner, record: TurnRecord) -> None:
    allow(owner, "decision_summary")

    found = ask_deep(owner, record.id)

    assert (found.tier, found.allowed, found.degraded) == (
        "decision_summary",
        "decision_summary",
        ["raw_trace_not_allowed"],
    )
    assert TRACE not in str([item.text for item in found.items])


def test_a_trace_that_was_not_requested_is_not_returned(owner: Owner, record: TurnRecord) -> None:
    found = ask_deep(owner, record.id, tier=ReasoningTier.STRUCTURED_RATIONALE)

    assert (found.tier, found.allowed) == ("structured_rationale", RAW)


@pytest.mark.parametrize("level", conf.AUDIT_LEVELS)
def test_each_deep_replay_is_audited_without_texts(
    owner: Owner, record: TurnRecord, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", level)

    for _ in range(2):
        ask_deep(owner, record.id)

    entries = AuditEntry.objects.filter(operation="deep_replay")
    assert [entry.affected_ids for entry in entries] == [[str(record.id)]] * 2
    assert {entry.config_snapshot["target"] for entry in entries} == {f"record:{record.id}"}
    assert "Zinnia" not in str(AuditEntry.objects.values())


def test_a_trace_that_no_key_opens_degrades(owner: Owner, record: TurnRecord, settings: Settings) -> None:
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    found = ask_deep(owner, record.id)

    assert (found.tier, found.degraded) == ("structured_rationale", ["raw_trace_unreadable"])
    assert AuditEntry.objects.filter(operation="deep_replay").count() == 1


def test_a_trace_without_room_is_not_unsealed(owner: Owner, settings: Settings) -> None:
    allow(owner, "raw_trace", trace_tokens=1_000)
    record = thought(owner, trace="long " * 100)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    found = ask_deep(owner, record.id, max_tokens=50)

    assert (found.tier, found.left_out, found.degraded) == ("none", 1, [])


def test_traces_of_merged_turns_are_returned_too(owner: Owner) -> None:
    allow(owner, "raw_trace")
    goal = aim(owner)
    record = thought(owner, trace=TRACE, fields={"goal_id": goal.id})
    merge(owner, goal, [record.id])

    assert TRACE in [item.text for item in ask_deep(owner, record.id).items]


@pytest.mark.parametrize("archived", [False, True], ids=["as it came", "that was shortened since"])
def test_the_trace_of_a_quarantined_reasoning_is_not_returned(owner: Owner, record: TurnRecord, archived: bool) -> None:
    TurnSlot.objects.filter(record=record, slot="reasoning").update(quarantined=True, archived=archived)

    found = ask_deep(owner, record.id)

    assert (found.tier, found.left_out, found.degraded) == (ReasoningTier.NONE, 0, [])
    assert TRACE not in str([item.text for item in found.items])


def test_the_trace_of_a_turn_with_another_quarantined_slot_is_returned(owner: Owner, record: TurnRecord) -> None:
    TurnSlot.objects.filter(record=record, slot="observation").update(quarantined=True)

    assert ask_deep(owner, record.id).tier == RAW


def test_a_deep_replay_takes_three_more_statements(
    owner: Owner, record: TurnRecord, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    # those of its transaction besides
    with django_assert_num_queries(3 + 3 + 2):
        ask_deep(owner, record.id)


def test_in_process_the_deep_argument_replaces_the_scope(owner: Owner, record: TurnRecord) -> None:
    memory = AgentMemory(owner, clock=lambda: NOW)
    request = ReplayRequest(record_id=record.id, tier=RAW, posture=Posture.RECOVERY, has_scope=True)

    assert memory.replay(request, deep=True).tier == RAW
    with pytest.raises(Forbidden):
        memory.replay(request)


def test_a_trace_is_in_the_answer_only(
    owner: Owner, record: TurnRecord, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(conf, "AUDIT_LEVEL", "verbose")
    caplog.set_level(logging.DEBUG)
    say(owner, turn("Hello."), conversation_id="chat-1")

    found, exported = ask_deep(owner, record.id), BytesIO()
    list(export_conversations(owner.account_id, ExportSelection(), write=exported.write))
    trace = ReasoningTrace.objects.get()

    assert "Zinnia" not in everything_stored() + caplog.text + exported.getvalue().decode()
    assert "Zinnia" not in f"{found!r} {found} {trace!r} {trace}"


def test_key_rotation_covers_traces(owner: Owner, settings: Settings) -> None:
    old, new = (Fernet.generate_key().decode() for _ in range(2))
    settings.ENCRYPTION_KEYS = [old]
    allow(owner, "raw_trace")
    record = thought(owner, trace=TRACE)
    settings.ENCRYPTION_KEYS = [new, old]

    call_command("rotate_encryption_keys", "--json", stdout=StringIO(), stderr=StringIO())
    settings.ENCRYPTION_KEYS = [new]

    assert ask_deep(owner, record.id).tier == RAW
