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
from memory.services.records.record import RecordDraft, Recorded, add_slots, delete_record, prepare_record, record_turn
from memory.services.records.references import Named
from memory.services.records.view import RecordView, get_record, records_of_conversation


class AgentRecords(AgentPart):
    """What was perceived, why something was decided, what was done, and what came of it.

    >>> from memory.extraction.turn_slots import Action, Outcome, Slots
    >>> began = memory.records.record_turn("chat-1", RecordDraft(slots=Slots(action=Action(text="Watered the roses."))))
    >>> print(began.record.status)
    open
    >>> ended = memory.records.add_slots(began.record.id, Slots(outcome=Outcome(status="succeeded")))
    >>> [slot.text for slot in ended.slots]
    ['Watered the roses.', 'The turn succeeded.']
    """

    def record_turn(self, conversation_id: str, draft: RecordDraft, *, now: datetime | None = None) -> Recorded:
        """A structured turn, whole or in part; one of the same `client_id` is the same record.

        Raises NotFound for a conversation in which the agent takes no part, Conflict, TooLarge, Unprocessable.
        """
        moment = self._clock(now)
        prepared = prepare_record(self._owner, draft, now=moment)
        embedded = embed_texts(prepared.texts)
        return record_turn(self._owner, conversation_id, prepared, embedded=embedded, now=moment)

    def add_slots(self, record_id: UUID, slots: Slots, *, now: datetime | None = None) -> Recorded:
        """Tell slots that it lacks, or what came of it. Raises NotFound, Conflict, TooLarge, Unprocessable."""
        return self.add_to(record_id, RecordDraft(slots=slots), now=now)

    def add_to(self, record_id: UUID, draft: RecordDraft, *, now: datetime | None = None) -> Recorded:
        """`add_slots`, with what they name: a goal, messages, artifacts, evidence, uses of tools."""
        moment = self._clock(now)
        prepared = prepare_record(self._owner, draft, now=moment)
        embedded = embed_texts(prepared.texts)
        return add_slots(self._owner, record_id, prepared, embedded=embedded, now=moment)

    def get_record(
        self, record_id: UUID, *, level: int | None = None, now: datetime | None = None
    ) -> tuple[RecordView, Named]:
        """As it may be told, and what it names; at a `level` below, expanded to that. Raises NotFound."""
        return get_record(self._owner, record_id, level=level, now=self._clock(now))

    def list_records(self, conversation_id: str) -> QuerySet[TurnRecord]:
        """Of a conversation, the first first. Raises NotFound."""
        return records_of_conversation(self._owner, conversation_id).order_by("number")

    def delete_record(self, record_id: UUID) -> None:
        """For good. Raises NotFound, Forbidden for another agent's, Conflict for one that a work episode tells of."""
        delete_record(self._owner, record_id)
