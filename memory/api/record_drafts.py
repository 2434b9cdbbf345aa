"""Structured turns as clients send them: the slots by name, each an object, or a text where that says it all."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from memory.api.fields import Metadata, Moment, OwnerFields, Prose
from memory.extraction.turn_slots import Action, Call, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import TurnRecord, TurnSlot
from memory.reasoning import Provenance, ReasoningTier
from memory.services.records.record import CLOCK_SKEW, RecordDraft
from memory.services.records.references import MOST_NAMED
from memory.services.records.slots import LONGEST_TEXT
from memory.services.tools import LARGEST_NUMBER, LARGEST_VALUE_BYTES
from memory_project.http.serializers import (
    Abridged,
    BoundedList,
    ExternalId,
    StrictSerializer,
    Text,
    WholeNumber,
)

MOST_POINTS = 100
LONGEST_POINT = 2_000
LONGEST_SUMMARY = 2_000
MOST_CALLS = 200
SLOTS = TurnSlot.Slot.values
DATA_TOLD = f"What the slot holds beyond words. With its calls, it has at most {LARGEST_VALUE_BYTES} bytes (413 above)."
OF_TIER = {
    ReasoningTier.RAW_TRACE: ("text", "rationale", "summary"),
    ReasoningTier.STRUCTURED_RATIONALE: ("rationale", "summary"),
    ReasoningTier.DECISION_SUMMARY: ("text", "summary"),
    ReasoningTier.NONE: (),
}
"""What a reasoning of each tier may hold; it has the first, but for a summary, which `text` or `summary` may be."""


@extend_schema_field({"type": "object", "additionalProperties": True})
class SlotData(serializers.JSONField):
    """Any JSON object; how large it may be depends on what stands beside it."""

    default_error_messages = {"not_an_object": "Must be an object."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"required": False, "help_text": DATA_TOLD, **options})

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_an_object")
        return data


class SlotShape(StrictSerializer):
    """Base of slots that may hold something beyond words."""

    data = SlotData()  # type: ignore[assignment]  # DRF takes it out of the class


class ObservationShape(Abridged, SlotShape):
    """What the agent perceived when the turn began."""

    text = Prose(max_length=LONGEST_TEXT)


class PointShape(Abridged):
    """A decision, a rejected option, or a blocker."""

    abridged_to = "what"

    what = Prose(max_length=LONGEST_POINT)
    why = Text(required=False, allow_blank=True, max_length=LONGEST_POINT)


class Points(BoundedList):
    """Each a text, or with why."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=PointShape(), max_length=MOST_POINTS, required=False, **options)


class RationaleShape(StrictSerializer):
    """A reasoning in the documented shape: at least one of the three says something."""

    decisions = Points()
    rejected = Points(help_text="Options that were not taken.")
    blockers = Points(help_text="What is in the way.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not any(attrs.values()):
            raise serializers.ValidationError("Says nothing: give decisions, rejected or blockers.")
        return attrs


class Unquoted(serializers.ChoiceField):
    """A choice whose refusal does not repeat what came in its place: that may be a trace."""

    default_error_messages = {"invalid_choice": "Is none of those that there are."}


class ReasoningShape(StrictSerializer):
    """Why the turn went as it did. No more is kept of it than the account allows; the answer says what."""

    tier = Unquoted([tier.value for tier in ReasoningTier], help_text="The deepest that is told here.")
    text = Prose(
        required=False,
        max_length=LONGEST_TEXT,
        help_text="The trace of a raw_trace; of a decision_summary, the summary.",
    )
    rationale = RationaleShape(required=False)
    summary = Prose(required=False, max_length=LONGEST_SUMMARY, help_text="Why, in a sentence.")
    provenance = Unquoted(
        [each.value for each in Provenance],
        required=False,
        help_text="Where it comes from: `provider_trace` by default of a raw_trace, else `runtime_projection`.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        tier = ReasoningTier(attrs["tier"])
        told = [name for name in ("text", "rationale", "summary") if name in attrs]
        beyond = [name for name in told if name not in OF_TIER[tier]]
        if beyond:
            raise serializers.ValidationError({name: [f"A reasoning of the tier {tier} has none."] for name in beyond})
        if tier == ReasoningTier.DECISION_SUMMARY and len(told) != 1:
            raise serializers.ValidationError({"summary": ["One is needed, as `summary` or as `text`."]})
        if tier == ReasoningTier.DECISION_SUMMARY and len(attrs.get("text", "")) > LONGEST_SUMMARY:
            raise serializers.ValidationError({"text": [f"A summary has at most {LONGEST_SUMMARY} characters."]})
        if tier in (ReasoningTier.RAW_TRACE, ReasoningTier.STRUCTURED_RATIONALE) and OF_TIER[tier][0] not in told:
            raise serializers.ValidationError({OF_TIER[tier][0]: [f"A reasoning of the tier {tier} needs one."]})
        return attrs


class CallShape(StrictSerializer):
    """A tool that was called, as the turn is to be told: what is secret belongs into `/tool-invocations`."""

    tool = ExternalId()
    arguments = serializers.JSONField(required=False, allow_null=True)
    result = serializers.JSONField(required=False, allow_null=True)
    error = Text(required=False, allow_blank=True, max_length=LARGEST_VALUE_BYTES)


class ActionShape(Abridged, SlotShape):
    """What the agent replied, executed or changed: a text, calls of tools, or both."""

    text = Text(required=False, allow_blank=True, max_length=LONGEST_TEXT)
    calls = BoundedList(child=CallShape(), max_length=MOST_CALLS, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs.get("text", "").strip() and not attrs.get("calls"):
            raise serializers.ValidationError("Says nothing: give a text, or calls.")
        return attrs


class OutcomeShape(SlotShape):
    """What came of it. One that is open may be told again, once it is known."""

    status = serializers.ChoiceField(TurnRecord.Status.choices)
    text = Text(required=False, allow_blank=True, max_length=LONGEST_TEXT)


class Ids(BoundedList):
    """Of what the record names."""

    def __init__(self, help_text: str) -> None:
        super().__init__(child=serializers.UUIDField(), max_length=MOST_NAMED, required=False, help_text=help_text)


class Index(WholeNumber):
    """Of a message in the conversation."""

    def __init__(self, help_text: str) -> None:
        super().__init__(required=False, min_value=0, max_value=LARGEST_NUMBER, help_text=help_text)


class SlotFields(OwnerFields):
    """Base of bodies that tell slots."""

    observation = ObservationShape(required=False)
    reasoning = ReasoningShape(required=False)
    action = ActionShape(required=False)
    outcome = OutcomeShape(required=False, help_text="Follows an action (422).")
    goal_id = serializers.UUIDField(required=False, help_text="The goal that was worked on.")
    first_index = Index("The first of the messages that it is about; goes with last_index.")
    last_index = Index("The last of them.")
    tool_invocations = Ids("Uses of tools in this conversation that belong to the turn.")
    produced = Ids("Artifacts that came of it. Goes with an action.")
    used = Ids("Artifacts that it went by.")
    evidence = Ids("Memories of any kind that it went by.")
    timestamp = Moment(required=False, help_text="With a zone, at most 5 minutes ahead. Now by default.")

    def validate_timestamp(self, timestamp: datetime) -> datetime:
        if timestamp > timezone.now() + CLOCK_SKEW:
            raise serializers.ValidationError("Lies more than 5 minutes ahead.")
        return timestamp


class NewRecordHere(SlotFields):
    """Of the conversation that the path names."""

    client_id = ExternalId(required=False, help_text="Your name for it: sent again, it is the same record.")
    metadata = Metadata(required=False)


class NewRecord(NewRecordHere):
    conversation_id = ExternalId(help_text="Made if it is new.")


class MoreSlots(SlotFields):
    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not any(slot in attrs for slot in SLOTS):
            raise serializers.ValidationError(f"At least one slot is needed: {', '.join(SLOTS)}.")
        return attrs


def draft_of(body: Mapping[str, Any]) -> RecordDraft:
    named = {"invocations": "tool_invocations", "event_time": "timestamp"}
    same = ("goal_id", "first_index", "last_index", "produced", "used", "evidence", "client_id", "metadata")
    named |= {name: name for name in same}
    given = {name: body[field] for name, field in named.items() if field in body}
    return RecordDraft(slots=slots_of(body), **given)


def slots_of(body: Mapping[str, Any]) -> Slots:
    readers = {"reasoning": read_reasoning, "action": read_action}
    plain = {"observation": Observation, "outcome": Outcome}
    told: dict[str, Any] = {slot: readers[slot](body[slot]) for slot in readers if slot in body}
    return Slots(**told | {slot: shape(**body[slot]) for slot, shape in plain.items() if slot in body})


def read_action(told: Mapping[str, Any]) -> Action:
    calls = [Call(**call) for call in told.get("calls", ())]
    return Action(text=told.get("text", ""), calls=calls, data=told.get("data", {}))


def read_reasoning(told: Mapping[str, Any]) -> Reasoning:
    tier = ReasoningTier(told["tier"])
    is_trace = tier == ReasoningTier.RAW_TRACE
    usual = Provenance.PROVIDER_TRACE if is_trace else Provenance.RUNTIME_PROJECTION
    text = told.get("text", "")
    return Reasoning(
        tier=tier,
        trace=text if is_trace else "",
        rationale=read_rationale(told.get("rationale", {})),
        summary=told.get("summary", "" if is_trace else text),
        provenance=Provenance(told.get("provenance", usual)),
    )


def read_rationale(told: Mapping[str, Sequence[Mapping[str, str]]]) -> Rationale:
    return Rationale(**{name: [Point(**point) for point in points] for name, points in told.items()})
