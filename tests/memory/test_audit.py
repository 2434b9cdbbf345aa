"""The audit log's levels: what is entered at which, and with how much."""

import pytest

from memory.audit import record
from memory.models import AuditEntry
from memory.owner import Owner

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("level", "entered"),
    [
        ("off", {"deep_replay"}),
        ("writes", {"deep_replay", "store", "delete", "promote"}),
        ("reads", {"deep_replay", "store", "delete", "promote", "retrieve"}),
        ("verbose", {"deep_replay", "store", "delete", "promote", "retrieve"}),
    ],
)
def test_a_level_enters_its_operations_and_no_others(owner: Owner, level: str, entered: set[str]) -> None:
    for operation in ("deep_replay", "store", "delete", "promote", "retrieve"):
        record(owner, operation=operation, memory_type="episodic", level=level)

    assert set(AuditEntry.objects.values_list("operation", flat=True)) == entered


@pytest.mark.parametrize(("level", "metadata"), [("writes", {}), ("reads", {}), ("verbose", {"columns": ["text"]})])
def test_payloads_are_entered_at_the_last_level_only(owner: Owner, level: str, metadata: dict[str, object]) -> None:
    record(owner, operation="update", memory_type="episodic", level=level, metadata={"columns": ["text"]})

    assert AuditEntry.objects.get().metadata == metadata


def test_an_entry_says_who_for_whom_and_where(owner: Owner) -> None:
    record(owner, operation="store", memory_type="episodic", affected_ids=["m1"], conversation_id="c1")

    entry = AuditEntry.objects.get()
    assert (entry.account_id, entry.agent_id, entry.source_channel) == (owner.account_id, owner.agent_id, "_global")
    assert (entry.affected_ids, entry.conversation_id, entry.success) == (["m1"], "c1", True)
