"""Rows of any kind for tests, stored without services: with the columns that the table requires of the kind."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from memory.models import Conversation, Kind, MemoryRow, TurnRecord
from memory.models.memory import model_of
from memory_project.ids import uuid7
from tests.memory.episodes import NOW


def row_of(kind: Kind, text: str = "something", *, account_id: UUID, **fields: Any) -> MemoryRow:
    """Return a row of a kind that is not stored yet. `fields` are columns of it.

    A turn, a slot and a work episode get a conversation of their own, whatever their `conversation_id`.
    """
    required = REQUIRED[kind](account_id, text) if kind in REQUIRED else {}
    columns = {"id": uuid7(), "event_time": NOW, **required, **fields}
    columns.setdefault("identity", str(columns["id"]))
    return model_of(kind)(kind=kind, text=text, account_id=account_id, **columns)


def make_log(account_id: UUID) -> Conversation:
    return Conversation.objects.create(account_id=account_id, conversation_id=f"log {uuid7()}", started_at=NOW)


def make_record(account_id: UUID) -> TurnRecord:
    log = make_log(account_id)
    return TurnRecord.objects.create(
        account_id=account_id, conversation_id=log.conversation_id, log=log, number=0, event_time=NOW
    )


REQUIRED: Mapping[str, Callable[[UUID, str], dict[str, Any]]] = {
    Kind.TURN: lambda account_id, _text: {"log": make_log(account_id), "index": 0, "role": "user"},
    Kind.FACT: lambda _account_id, _text: {"recorded_at": NOW},
    Kind.ENTITY: lambda _account_id, text: {"name": text, "type": "thing"},
    Kind.STRATEGY: lambda _account_id, text: {"description": text},
    Kind.TURN_SLOT: lambda account_id, _text: {"record": make_record(account_id), "slot": "observation"},
    Kind.WORK_EPISODE: lambda account_id, _text: {"log": make_log(account_id), "first_number": 0, "last_number": 0},
    Kind.ARTIFACT: lambda _account_id, text: {"uri": text},
}
"""The columns without a default that rows of a kind have, by account and text."""
