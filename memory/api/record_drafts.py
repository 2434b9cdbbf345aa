"""Bodies that store structured turns: slots by name, each an object, or a text where that is all."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rest_framework import serializers

from memory.api.fields import (
    BoundedIds,
    JsonObject,
    Metadata,
    NonBlankText,
    OwnerFields,
    PastDateTimeField,
    draft_fields,
)
from memory.extraction.turn_slots import Action, Call, Observation, Outcome, Rationale, Reasoning, Slots
from memory.models import TurnRecord, TurnSlot
from memory.reasoning import Provenance, ReasoningTier
from memory.services.records.record import RecordDraft
from memory.services.records.slots import MAX_REFERENCES, MAX_SLOT_CHARACTERS
from memory.services.tools import MAX_INTEGER, MAX_VALUE_BYTES
from memory_project.http.serializers import BoundedList, ExternalId, ObjectOrText, StrictSerializer, Text, WholeNumber

MAX_POINTS = 100
MAX_POINT_CHARACTERS = 2_000
MAX_SUMMARY_CHARACTERS = 2_000
MAX_CALLS = 200
SLOTS = TurnSlot.Slot.values
ALLOWED_BY_TIER = {
    ReasoningTier.RAW_TRACE: ("text", "rationale", "summary"),
    ReasoningTier.STRUCTURED_RATIONALE: ("rationale", "summary"),
    ReasoningTier.DECISION_SUMMARY: ("text", "summary"),
    ReasoningTier.NONE: (),
}
"""The fields that a reasoning of each tier may have. The first is required; a summary may be `text` or `summary`."""


class SlotShape(StrictSerializer):
    """Base of slots that may hold data in addition to text."""

    data = JsonObject(  # type: ignore[assignment]  # DRF takes it out of the class
        required=False,
        help_text=f"Data in addition to the text. With the calls, at most {MAX_VALUE_BYTES} bytes (413 above).",
    )


class ObservationShape(ObjectOrText, SlotShape):
    """The agent's perception when the turn began. An object, or only its text."""

    text = NonBlankText(max_length=MAX_SLOT_CHARACTERS)


class PointShape(ObjectOrText):
    """A decision, a rejected option, or a blocker. An object, or only the text of `what`."""

    text_field = "what"

    what = NonBlankText(max_length=MAX_POINT_CHARACTERS)
    why = Text(required=False, allow_blank=True, max_length=MAX_POINT_CHARACTERS, help_text="Reason.")


class Points(BoundedList):
    """A list of points."""

    def __init__(self, help_text: str) -> None:
        super().__init__(child=PointShape(), max_length=MAX_POINTS, required=False, help_text=help_text)


class RationaleShape(StrictSerializer):
    """A rationale in the documented shape. At least one list has a point."""

    decisions = Points("Decisions that were made.")
    rejected = Points("Options that were not taken.")
    blockers = Points("Obstacles to the work.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not any(attrs.values()):
            raise serializers.ValidationError("The rationale is empty. Give decisions, rejected or blockers.")
        return attrs


class UnquotedChoice(serializers.ChoiceField):
    """A choice whose error does not repeat the refused value, which may be a trace."""

    def __init__(self, choices: Sequence[str], **options: Any) -> None:
        errors: Any = {"invalid_choice": f"Must be one of: {', '.join(choices)}."}
        super().__init__(choices, error_messages=errors, **options)


class ReasoningShape(StrictSerializer):
    """Why the turn went as it did. The account's policy limits what is kept; the answer says what was."""

    tier = UnquotedChoice([tier.value for tier in ReasoningTier], help_text="Deepest tier of this reasoning.")
    text = NonBlankText(
        required=False, max_length=MAX_SLOT_CHARACTERS, help_text="The trace, or a decision_summary's text."
    )
    rationale = RationaleShape(required=False)
    summary = NonBlankText(required=False, max_length=MAX_SUMMARY_CHARACTERS, help_text="The reason in one sentence.")
    provenance = UnquotedChoice(
        [each.value for each in Provenance],
        required=False,
        help_text="Origin of the reasoning. Default: `provider_trace` for a raw_trace, else `runtime_projection`.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        tier = ReasoningTier(attrs["tier"])
        given = [name for name in ("text", "rationale", "summary") if name in attrs]
        surplus = [name for name in given if name not in ALLOWED_BY_TIER[tier]]
        if surplus:
            raise serializers.ValidationError({name: [f"Not allowed for the tier {tier}."] for name in surplus})
        if tier == ReasoningTier.DECISION_SUMMARY and len(given) != 1:
            raise serializers.ValidationError({"summary": ["Send the summary once, as `summary` or as `text`."]})
        if tier == ReasoningTier.DECISION_SUMMARY and len(attrs.get("text", "")) > MAX_SUMMARY_CHARACTERS:
            detail = f"A summary has at most {MAX_SUMMARY_CHARACTERS} characters."
            raise serializers.ValidationError({"text": [detail]})
        if tier in (ReasoningTier.RAW_TRACE, ReasoningTier.STRUCTURED_RATIONALE):
            required = ALLOWED_BY_TIER[tier][0]
            if required not in given:
                raise serializers.ValidationError({required: [f"Required for the tier {tier}."]})
        return attrs


class CallShape(StrictSerializer):
    """A tool call, as the turn is to show it. Secrets belong in `/tool-invocations`."""

    tool = ExternalId(help_text="Name of the tool.")
    arguments = serializers.JSONField(required=False, allow_null=True)
    result = serializers.JSONField(required=False, allow_null=True)
    error = Text(required=False, allow_blank=True, max_length=MAX_VALUE_BYTES)


class ActionShape(ObjectOrText, SlotShape):
    """The agent's reply, execution or change: a text, tool calls, or both. An object, or only its text."""

    text = Text(required=False, allow_blank=True, max_length=MAX_SLOT_CHARACTERS)
    calls = BoundedList(child=CallShape(), max_length=MAX_CALLS, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs.get("text", "").strip() and not attrs.get("calls"):
            raise serializers.ValidationError("The action is empty. Give a text, or calls.")
        return attrs


class OutcomeShape(SlotShape):
    """The result of the action. An open outcome may be replaced once the result is known."""

    status = serializers.ChoiceField(TurnRecord.Status.choices)
    text = Text(required=False, allow_blank=True, max_length=MAX_SLOT_CHARACTERS)


class MessageIndex(WholeNumber):
    """The index of a message in the conversation."""

    def __init__(self, help_text: str) -> None:
        super().__init__(required=False, min_value=0, max_value=MAX_INTEGER, help_text=help_text)


class SlotFields(OwnerFields):
    """Base of bodies with slots, of which at least one is there."""

    observation = ObservationShape(required=False, help_text="Required without `reasoning`, `action` and `outcome`.")
    reasoning = ReasoningShape(required=False)
    action = ActionShape(required=False)
    outcome = OutcomeShape(required=False, help_text="Requires an action (422 without one).")
    goal_id = serializers.UUIDField(required=False, help_text="Goal that was worked on.")
    first_index = MessageIndex("Index of the first message that the turn is about. Send it with last_index.")
    last_index = MessageIndex("Index of the last message that the turn is about.")
    tool_invocations = BoundedIds(
        max_length=MAX_REFERENCES,
        source="invocations",
        help_text="Tool invocations in this conversation that belong to it.",
    )
    produced = BoundedIds(max_length=MAX_REFERENCES, help_text="Artifacts that it produced. Requires an action.")
    used = BoundedIds(max_length=MAX_REFERENCES, help_text="Artifacts that it used.")
    evidence = BoundedIds(max_length=MAX_REFERENCES, help_text="Memories of any kind that it used.")
    timestamp = PastDateTimeField(
        required=False,
        source="event_time",
        help_text="Time of the turn, with a zone, at most 5 minutes in the future. Default: now.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not any(slot in attrs for slot in SLOTS):
            raise serializers.ValidationError(f"Send at least one slot: {', '.join(SLOTS)}.")
        return attrs


class NewRecordHere(SlotFields):
    """A record of the conversation in the path."""

    client_id = ExternalId(required=False, help_text="Your id of the record. Sent again, it is the same record.")
    metadata = Metadata(required=False, help_text="Facts of your own about the turn.")


class NewRecord(NewRecordHere):
    conversation_id = ExternalId(help_text="Conversation of the turn. A new id creates one.")


class MoreSlots(SlotFields):
    """Slots for a record that exists."""


def record_draft_from_body(body: Mapping[str, Any]) -> RecordDraft:
    return RecordDraft(slots=slots_from_body(body), **draft_fields(RecordDraft, body))


def slots_from_body(body: Mapping[str, Any]) -> Slots:
    readers: dict[str, Callable[[dict[str, Any]], Any]] = {
        "observation": lambda given: Observation(**given),
        "reasoning": reasoning_from_body,
        "action": lambda given: Action(**given | {"calls": [Call(**call) for call in given.get("calls", ())]}),
        "outcome": lambda given: Outcome(**given),
    }
    return Slots(**{slot: read(body[slot]) for slot, read in readers.items() if slot in body})


def reasoning_from_body(given: Mapping[str, Any]) -> Reasoning:
    tier, text = ReasoningTier(given["tier"]), given.get("text", "")
    is_trace = tier == ReasoningTier.RAW_TRACE
    default_provenance = Provenance.PROVIDER_TRACE if is_trace else Provenance.RUNTIME_PROJECTION
    return Reasoning(
        tier=tier,
        trace=text if is_trace else "",
        rationale=Rationale.of_json(given.get("rationale", {})),
        summary=given.get("summary", "" if is_trace else text),
        provenance=Provenance(given.get("provenance", default_provenance)),
    )
