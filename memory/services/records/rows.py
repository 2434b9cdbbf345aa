"""The rows of structured turns: found by the name that a runtime gave one, made from a draft, inserted once."""

from datetime import datetime
from typing import TYPE_CHECKING

from django.db import IntegrityError

from memory.errors import Conflict
from memory.models import Conversation, TurnRecord
from memory.owner import Owner

if TYPE_CHECKING:
    from memory.services.records.record import RecordDraft


def find_by_client_id(conversation: Conversation, client_id: str) -> TurnRecord | None:
    return TurnRecord.objects.filter(log=conversation, client_id=client_id).first() if client_id else None


def new_record(owner: Owner, conversation: Conversation, draft: "RecordDraft", *, now: datetime) -> TurnRecord:
    return TurnRecord(
        id=draft.id,
        account_id=owner.account_id,
        agent_id=owner.agent_id,
        user_id=owner.user_id or conversation.user_id,
        channel=conversation.channel,
        conversation_id=conversation.conversation_id,
        log=conversation,
        number=conversation.record_count,
        client_id=draft.client_id,
        event_time=draft.event_time or now,
        metadata=draft.metadata,
    )


def insert_record(record: TurnRecord) -> None:
    """In the caller's transaction, which is lost where the database refuses it. Raises Conflict."""
    try:
        record.save(force_insert=True)
    except IntegrityError as err:
        if getattr(getattr(err.__cause__, "diag", None), "constraint_name", None) == "turn_records_pkey":
            raise Conflict("this draft is recorded already: one that may come again needs a client_id") from err
        raise
