"""Structured turns of the in-process API (`agent_memory`): recorded, added to, read, erased; each one service call.

They raise what the services do, which `errors.py` draws.
"""

from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from memory.agent_tiers import AgentPart
from memory.extraction.turn_slots import Slots
from memory.models import TurnRecord
from memory.services.embedding.embed import embed_texts
from memory.services.records.read import RecordView, ResolvedReferences, get_record, records_of_conversation
from memory.services.records.record import (
    RecordDraft,
    RecordedTurn,
    add_slots,
    delete_record,
    prepare_record,
    record_turn,
)


class AgentRecords(AgentPart):
    """Structured turns: what was observed, why something was decided, what was done, and how it ended.

    >>> from memory.extraction.turn_slots import Action, Outcome, Slots
    >>> began = memory.records.record_turn("chat-1", RecordDraft(slots=Slots(action=Action(text="Watered the roses."))))
    >>> print(began.record.status)
    open
    >>> ended = memory.records.add_slots(began.record.id, Slots(outcome=Outcome(status="succeeded")))
    >>> [slot.text for slot in ended.slots]
    ['Watered the roses.', 'The turn succeeded.']
    """

    def record_turn(self, conversation_id: str, draft: RecordDraft, *, now: datetime | None = None) -> RecordedTurn:
        """Record a structured turn, whole or in part; one with the same `client_id` is the same record.

        Raises NotFound for a conversation in which the agent takes no part, Conflict, TooLarge, Unprocessable.
        """
        moment = self._clock(now)
        prepared = prepare_record(self._owner, draft, now=moment)
        embedded = embed_texts(prepared.texts)
        return record_turn(self._owner, conversation_id, prepared, embedded=embedded, now=moment)

    def add_slots(self, record_id: UUID, slots: Slots, *, now: datetime | None = None) -> RecordedTurn:
        """Tell slots that it lacks, or what came of it. Raises NotFound, Conflict, TooLarge, Unprocessable."""
        return self.add_to(record_id, RecordDraft(slots=slots), now=now)

    def add_to(self, record_id: UUID, draft: RecordDraft, *, now: datetime | None = None) -> RecordedTurn:
        """`add_slots`, with what they name: a goal, messages, artifacts, evidence, uses of tools."""
        moment = self._clock(now)
        prepared = prepare_record(self._owner, draft, now=moment)
        embedded = embed_texts(prepared.texts)
        return add_slots(self._owner, record_id, prepared, embedded=embedded, now=moment)

    def get_record(
        self, record_id: UUID, *, level: int | None = None, now: datetime | None = None
    ) -> tuple[RecordView, ResolvedReferences]:
        """Return a record within the policy, and what it names; at a lower `level`, expanded. Raises NotFound."""
        return get_record(self._owner, record_id, level=level, now=self._clock(now))

    def list_records(self, conversation_id: str) -> QuerySet[TurnRecord]:
        """Return the records of a conversation in order. Raises NotFound."""
        return records_of_conversation(self._owner, conversation_id).order_by("number")

    def delete_record(self, record_id: UUID) -> None:
        """Delete a record for good.

        Raises NotFound, Forbidden for another agent's, and Conflict for one that is part of a work episode.
        """
        delete_record(self._owner, record_id)
