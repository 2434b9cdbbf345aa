"""Structured turns for tests, recorded through the service without the embedder."""

from typing import Any

from memory.extraction.turn_slots import Action, Observation, Outcome, Slots
from memory.owner import Owner
from memory.services.records.record import RecordDraft, RecordedTurn, prepare_record, record_turn
from tests.memory.episodes import NOTHING, NOW


def add_record(
    owner: Owner, conversation_id: str = "chat-1", *, slots: Slots | None = None, **fields: Any
) -> RecordedTurn:
    """Record a turn. `fields` are those of the draft, and `now`.

    Without `slots`, an action is recorded that succeeds.
    """
    now = fields.pop("now", NOW)
    given = slots or Slots(
        observation=Observation(text="The roses hang their heads."),
        action=Action(text="Watered the roses."),
        outcome=Outcome(status="succeeded", text="The roses stand upright."),
    )
    prepared = prepare_record(owner, RecordDraft(slots=given, **fields), now=now)
    return record_turn(owner, conversation_id, prepared, embedded=NOTHING, now=now)
