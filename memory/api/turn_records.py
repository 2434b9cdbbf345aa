"""`/turn-records`: structured turns, stored as a whole or slot by slot, for agents that take part in the conversation.

No answer here has a raw trace. The answer of a write has no texts at all, because it is recorded in plain text for a
repeated request, whatever the account's policy has become by then.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import EmbeddingState, IdList, TimeRangeFields
from memory.api.filters import filter_rows
from memory.api.record_drafts import MoreSlots, NewRecord, NewRecordHere, record_draft_from_body
from memory.api.views import OwnerViewSet
from memory.models import CompressionLevel, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import Provenance, ReasoningTier
from memory.services.embedding.embed import embed_texts
from memory.services.records.read import (
    RecordView,
    build_record_view,
    get_record,
    prefetch_slots,
    records_of_conversation,
    view_prefetched_record,
)
from memory.services.records.reasoning import REASON_BUDGET, REASON_POLICY, read_policy
from memory.services.records.record import (
    PreparedRecord,
    RecordedTurn,
    add_slots,
    delete_record,
    prepare_record,
    record_turn,
)
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, ExternalId

TIERS = [tier.value for tier in ReasoningTier]
PROVENANCES = [each.value for each in Provenance]
STATUSES = TurnRecord.Status.choices
LEVELS = [str(level.value) for level in CompressionLevel]
EXPANDED_LEVELS = ["0", "1"]
LOOKUPS = {
    "conversation_id": "conversation_id",
    "goal_id": "goal_id",
    "status": "status",
    "level": "level",
    "since": "event_time__gte",
    "until": "event_time__lt",
}


class RecordFilters(ActingFields, TimeRangeFields):
    """Base of queries that list records."""

    goal_id = serializers.UUIDField(required=False, help_text="Limit to this goal.")
    status = serializers.ChoiceField(STATUSES, required=False, help_text="Status of the outcome.")
    level = serializers.ChoiceField(LEVELS, required=False, help_text="0 raw, 1 slots shortened, 2 and 3 merged.")


class RecordsQuery(RecordFilters):
    conversation_id = ExternalId(required=False, help_text="Limit to this conversation.")


class RecordQuery(ActingFields):
    level = serializers.ChoiceField(
        EXPANDED_LEVELS,
        required=False,
        help_text="Level to expand a compressed turn to: 0 as stored, 1 slot by slot. Default: its present level.",
    )


class PlacedSlot(AnswerSerializer):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Key of this memory in the injection ledger.")
    slot = serializers.ChoiceField(TurnSlot.Slot.choices)
    level = serializers.IntegerField(help_text="0 as it was stored, 1 shortened.")
    tier = serializers.ChoiceField(TIERS, allow_null=True, help_text="Deepest tier shown. Null unless it is reasoning.")
    provenance = serializers.ChoiceField(PROVENANCES, allow_null=True, help_text="Null unless it is reasoning.")
    tokens = serializers.IntegerField(source="token_count", help_text="Estimated number of tokens of its text.")
    embedding = EmbeddingState()
    timestamp = serializers.DateTimeField(source="event_time")

    @staticmethod
    def compute_provenance(slot: TurnSlot) -> str | None:
        return slot.provenance or None


class SlotAnswer(PlacedSlot):
    text = serializers.CharField()
    data = serializers.DictField(  # type: ignore[assignment]  # DRF takes it out of the class
        help_text="Data as sent. An action also has `calls`, reasoning also has `summary` and `rationale`."
    )


class KeptAnswer(AnswerSerializer):
    posted = serializers.ChoiceField(TIERS, help_text="Deepest tier that was sent.")
    tier = serializers.ChoiceField(TIERS, help_text="Deepest tier that was kept.")
    reason = serializers.CharField(
        help_text=f"Why less was kept: `{REASON_POLICY}` (the account keeps no reasoning so deep) or `{REASON_BUDGET}` "
        "(the trace is too long). Empty: everything was kept."
    )


class RecordFacts(AnswerSerializer):
    """A structured turn without its slots."""

    columns = columns_of(
        TurnRecord, "id user_id channel conversation_id first_index last_index status metadata created_at updated_at"
    )
    agent_id = serializers.CharField(help_text="Agent that recorded it. Empty: the account.")
    number = serializers.IntegerField(help_text="Number in its conversation, from 0. Never reused.")
    client_id = serializers.CharField(help_text="Your id of it. May be empty.")
    goal_id = serializers.UUIDField(allow_null=True, help_text="Goal that was worked on.")
    episode_id = serializers.UUIDField(allow_null=True, help_text="Work episode that it is merged into.")
    level = serializers.IntegerField(help_text="0 raw, 1 slots shortened, 2 merged, 3 archived.")
    reasoning_tier = serializers.ChoiceField(TIERS, help_text="Deepest tier of reasoning that exists and may be shown.")
    tokens = serializers.IntegerField(help_text="Estimated number of tokens of its present slots.")
    raw_tokens = serializers.IntegerField(help_text="Estimated number of tokens of its slots as they were stored.")
    timestamp = serializers.DateTimeField(source="event_time")


class PlacedRecord(RecordFacts):
    slots = PlacedSlot(many=True)
    reasoning = KeptAnswer(allow_null=True, help_text="Part of the reasoning that was kept. Null: none was sent.")


class RecordAnswer(RecordFacts):
    slots = SlotAnswer(many=True, help_text="Slots as the policy allows them now. A merged turn has none.")


class ArtifactName(AnswerSerializer):
    id = serializers.UUIDField()
    uri = serializers.CharField()
    title = serializers.CharField(help_text="May be empty.")


class RecordReferences(AnswerSerializer):
    """The rows that a structured turn refers to."""

    produced = ArtifactName(many=True)
    used = ArtifactName(many=True)
    evidence = IdList(help_text="Memories that it used.")
    tool_invocations = IdList(source="invocations")
    truncated = serializers.BooleanField(help_text="True if it refers to more rows.")


class RecordInFull(RecordAnswer, RecordReferences):
    """A structured turn with its slots and the rows that it refers to."""


def serialize_record(view: RecordView) -> dict[str, Any]:
    slots = [
        SlotAnswer.serialize(slot.row, {"tier": slot.tier or None, "text": slot.text, "data": slot.data})
        for slot in view.slots
    ]
    return RecordAnswer.serialize(view.record, {"reasoning_tier": view.tier.value, "slots": slots})


def serialize_recorded(recorded: RecordedTurn, prepared: PreparedRecord) -> dict[str, Any]:
    view, kept = build_record_view(recorded.record, recorded.slots, prepared.policy.tier), recorded.kept
    given = {
        "reasoning_tier": view.tier.value,
        "slots": [PlacedSlot.serialize(slot.row, {"tier": slot.tier or None}) for slot in view.slots],
        "reasoning": None if kept is None else KeptAnswer.serialize(kept),
    }
    return PlacedRecord.serialize(view.record, given)


class RecordViewSet(OwnerViewSet):
    """Base of views that list and write records."""

    def respond_records(self, rows: QuerySet[TurnRecord], owner: Owner) -> Response:
        """Answer a page of records with their slots."""
        allowed = read_policy(owner.account_id).tier
        return self.respond_page(
            prefetch_slots(owner.account_id, rows),
            lambda record: serialize_record(view_prefetched_record(record, allowed)),
        )

    def record(self, body: dict[str, Any], write: Callable[..., RecordedTurn], place: str | UUID) -> Response:
        """Have a service write the body's slots, in a conversation or a record of this id."""
        owner, now = self.owner(body), timezone.now()
        prepared = prepare_record(owner, record_draft_from_body(body), now=now)
        embedded = embed_texts(prepared.texts)

        def answer() -> Response:
            recorded = write(owner, place, prepared, embedded=embedded, now=now)
            return Response(serialize_recorded(recorded, prepared), status=201 if recorded.is_new else 200)

        return self.write_once(answer)


class TurnRecords(RecordViewSet):
    """Structured turns of conversations in which the agent takes part; without an agent, all of the account's."""

    operation_ids = {"add_slots": "add_turn_record_slots"}
    for_users = True
    bodies = {"create": NewRecord, "add_slots": MoreSlots}
    queries = {"list": RecordsQuery, "retrieve": RecordQuery, "destroy": ActingFields}
    answer = PlacedRecord
    answers = {"list": RecordAnswer, "retrieve": RecordInFull}
    statuses = {"create": (200, 201)}
    problems = {"create": (404,)}
    ordering = ("-event_time", "-id")

    def list(self, request: Request) -> Response:
        """List structured turns with their slots as the policy allows them now, latest first."""
        query = self.query()
        owner = self.owner(query)
        return self.respond_records(filter_rows(TurnRecord.objects.visible_to(owner), query, LOOKUPS), owner)

    def create(self, request: Request) -> Response:
        """Store a structured turn, or at least one of its slots: 201 for a new turn, 200 for a known client_id.

        The latter gains the slots that it lacks. 404 for a conversation in which the agent takes no part, 409 for a
        slot that exists with other content, 422 for an outcome without an action, for messages that do not exist, and
        for references that the agent cannot see.
        """
        body = self.body()
        return self.record(body, record_turn, body["conversation_id"])

    def retrieve(self, request: Request, record_id: UUID) -> Response:
        """Return a structured turn with its slots and references.

        `level` expands a compressed turn, as long as retention keeps what it was made of.
        """
        query = self.query()
        level = int(query["level"]) if "level" in query else None
        view, named = get_record(self.owner(query), record_id, level=level, now=timezone.now())
        return Response(serialize_record(view) | RecordReferences.serialize(named))

    def add_slots(self, request: Request, record_id: UUID) -> Response:
        """Add slots that the turn lacks, or replace an open outcome. Equal slots change nothing.

        409 for a slot that exists with other content, and for a turn that is merged.
        """
        return self.record(self.body(), add_slots, record_id)

    def destroy(self, request: Request, record_id: UUID) -> Response:
        """Delete a structured turn for good, with its slots of every level and its raw trace.

        403 for one that another agent recorded, 409 for one that is merged into a work episode.
        """
        delete_record(self.owner(self.query()), record_id)
        return Response(status=204)


class ConversationRecords(RecordViewSet):
    """The structured turns of one conversation."""

    for_users = True
    bodies = {"create": NewRecordHere}
    queries = {"list": RecordFilters}
    answers = {"list": RecordAnswer, "create": PlacedRecord}
    statuses = {"create": (200, 201)}
    ordering = ("number",)

    def list(self, request: Request, conversation_id: str) -> Response:
        """List structured turns, first one first."""
        query = self.query()
        owner = self.owner(query)
        return self.respond_records(filter_rows(records_of_conversation(owner, conversation_id), query, LOOKUPS), owner)

    def create(self, request: Request, conversation_id: str) -> Response:
        """Store a structured turn of this conversation, as POST `/turn-records` does."""
        return self.record(self.body(), record_turn, conversation_id)
