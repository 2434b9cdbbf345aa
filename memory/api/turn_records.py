"""`/turn-records`: structured turns, told whole or slot by slot, read by who takes part in their conversation.

A raw trace is in no answer here. What a write answers holds no texts at all: an answer is kept for who sends the same
request again, in plain text, and whatever the account's policy has become.
"""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Moment
from memory.api.record_drafts import MoreSlots, NewRecord, NewRecordHere, draft_of
from memory.api.views import OwnerViewSet
from memory.models import CompressionLevel, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.reasoning import Provenance, ReasoningTier
from memory.services.embedding.embed import embed_texts
from memory.services.records.reasoning import BUDGET, POLICY, KeptReasoning, ToldSlot, read_policy
from memory.services.records.record import (
    Prepared,
    Recorded,
    add_slots,
    delete_record,
    listed_records,
    prepare_record,
    record_turn,
)
from memory.services.records.references import Named, NamedArtifact
from memory.services.records.view import (
    RecordView,
    get_record,
    listed_view,
    records_of_conversation,
    view_of,
    with_slots,
)
from memory_project.http.serializers import ActingFields, ExternalId

TIERS = [tier.value for tier in ReasoningTier]
PROVENANCES = [each.value for each in Provenance]
STATUSES = TurnRecord.Status.choices
LEVELS = {str(level.value): level.value for level in CompressionLevel}
EXPANDED = ["0", "1"]
COLUMNS = (
    *("agent_id", "user_id", "channel", "conversation_id", "number", "client_id", "first_index", "last_index"),
    *("status", "level", "tokens", "raw_tokens", "metadata", "created_at", "updated_at"),
)


class RecordFilters(ActingFields):
    """Base of queries that list records."""

    goal_id = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(STATUSES, required=False, help_text="Of the outcome; open without one.")
    level = serializers.ChoiceField(list(LEVELS), required=False, help_text="0 raw, 1 slots shortened, 2 and 3 merged.")
    since = Moment(required=False, help_text="Of then or later.")
    until = Moment(required=False, help_text="Of before then.")


class RecordsQuery(RecordFilters):
    conversation_id = ExternalId(required=False)


class RecordQuery(ActingFields):
    level = serializers.ChoiceField(
        EXPANDED,
        required=False,
        help_text="Expands what is compressed: 0 as it came, 1 slot by slot. As it is told now.",
    )


class PlacedSlot(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    slot = serializers.ChoiceField(TurnSlot.Slot.choices)
    level = serializers.IntegerField(help_text="0 as it came, 1 shortened.")
    tier = serializers.ChoiceField(TIERS, allow_null=True, help_text="Of reasoning, the deepest that is told.")
    provenance = serializers.ChoiceField(PROVENANCES, allow_null=True)
    tokens = serializers.IntegerField(help_text="An estimate.")
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")
    timestamp = serializers.DateTimeField()


class SlotAnswer(PlacedSlot):
    text = serializers.CharField()
    data = serializers.DictField(help_text="As it was sent; of an action `calls`, of reasoning `summary`, `rationale`.")  # type: ignore[assignment]  # DRF takes it out of the class


class KeptAnswer(serializers.Serializer[Any]):
    posted = serializers.ChoiceField(TIERS)
    tier = serializers.ChoiceField(TIERS, help_text="The deepest that was kept.")
    reason = serializers.CharField(
        help_text=f"Why less was kept: `{POLICY}` (the account keeps none so deep), `{BUDGET}` (it is longer than "
        "it keeps); empty for all of it."
    )


class RecordFacts(serializers.Serializer[Any]):
    """What is known of a record beside its slots."""

    id = serializers.UUIDField()
    agent_id = serializers.CharField(help_text="Who recorded it; empty for the account.")
    user_id = serializers.CharField()
    channel = serializers.CharField()
    conversation_id = serializers.CharField()
    number = serializers.IntegerField(
        help_text="In its conversation, from 0 on; that of an erased one is not used again."
    )
    client_id = serializers.CharField(help_text="May be empty.")
    goal_id = serializers.UUIDField(allow_null=True)
    episode_id = serializers.UUIDField(allow_null=True, help_text="The work episode that it is merged into.")
    first_index = serializers.IntegerField(allow_null=True)
    last_index = serializers.IntegerField(allow_null=True)
    status = serializers.ChoiceField(STATUSES)
    level = serializers.IntegerField(help_text="0 raw, 1 slots shortened, 2 merged, 3 archived.")
    reasoning_tier = serializers.ChoiceField(TIERS, help_text="The deepest that there is and may be told.")
    tokens = serializers.IntegerField(help_text="Of its slots now, an estimate.")
    raw_tokens = serializers.IntegerField(help_text="Of its slots as they came.")
    timestamp = serializers.DateTimeField()
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class PlacedRecord(RecordFacts):
    slots = PlacedSlot(many=True)
    reasoning = KeptAnswer(allow_null=True, help_text="What was kept of the reasoning that was sent; null without one.")


class RecordAnswer(RecordFacts):
    slots = SlotAnswer(many=True, help_text="As they are told now: none of a record that is merged.")


class ArtifactName(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    uri = serializers.CharField()
    title = serializers.CharField(help_text="May be empty.")


class RecordInFull(RecordAnswer):
    produced = ArtifactName(many=True)
    used = ArtifactName(many=True)
    evidence = serializers.ListField(child=serializers.UUIDField(), help_text="Memories that it went by.")
    tool_invocations = serializers.ListField(child=serializers.UUIDField())
    truncated = serializers.BooleanField(help_text="Whether it names more than is told here.")


def represent_place(told: ToldSlot) -> dict[str, Any]:
    row = told.row
    return {
        "id": str(row.id),
        "item_key": row.item_key,
        "slot": row.slot,
        "level": row.level,
        "tier": told.tier or None,
        "provenance": row.provenance or None,
        "tokens": row.token_count,
        "embedding": "stored" if row.embed_after is None else "pending",
        "timestamp": row.event_time,
    }


def represent_slot(told: ToldSlot) -> dict[str, Any]:
    return represent_place(told) | {"text": told.text, "data": told.data}


def represent_facts(view: RecordView) -> dict[str, Any]:
    record = view.record
    named = {"goal_id": record.goal_id, "episode_id": record.episode_id}
    facts: dict[str, Any] = {name: str(row_id) if row_id else None for name, row_id in named.items()}
    facts |= {"id": str(record.id), "reasoning_tier": view.tier.value, "timestamp": record.event_time}
    return facts | {name: getattr(record, name) for name in COLUMNS}


def represent_record(view: RecordView) -> dict[str, Any]:
    return represent_facts(view) | {"slots": [represent_slot(told) for told in view.slots]}


def represent_in_full(view: RecordView, named: Named) -> dict[str, Any]:
    return represent_record(view) | {
        "produced": [represent_artifact(artifact) for artifact in named.produced],
        "used": [represent_artifact(artifact) for artifact in named.used],
        "evidence": [str(each) for each in named.evidence],
        "tool_invocations": [str(each) for each in named.invocations],
        "truncated": named.truncated,
    }


def represent_artifact(artifact: NamedArtifact) -> dict[str, Any]:
    return {"id": str(artifact.id), "uri": artifact.uri, "title": artifact.title}


def represent_kept(kept: KeptReasoning | None) -> dict[str, Any] | None:
    if kept is None:
        return None
    return {"posted": kept.posted.value, "tier": kept.tier.value, "reason": kept.reason}


def represent_recorded(recorded: Recorded, prepared: Prepared) -> dict[str, Any]:
    view = view_of(recorded.record, recorded.slots, prepared.policy.tier)
    slots = [represent_place(told) for told in view.slots]
    return represent_facts(view) | {"slots": slots, "reasoning": represent_kept(recorded.kept)}


class RecordViewSet(OwnerViewSet):
    """Base of the views of records."""

    def listed(self, rows: QuerySet[TurnRecord], owner: Owner) -> Response:
        """A page of records with their slots."""
        allowed = read_policy(owner.account_id).tier
        return self.page(with_slots(rows), lambda record: represent_record(listed_view(record, allowed)))

    def record(self, body: dict[str, Any], conversation_id: str) -> Response:
        owner, now = self.owner(body), timezone.now()
        prepared = prepare_record(owner, draft_of(body), now=now)
        embedded = embed_texts(prepared.texts)

        def write() -> Response:
            recorded = record_turn(owner, conversation_id, prepared, embedded=embedded, now=now)
            return Response(represent_recorded(recorded, prepared), status=201 if recorded.is_new else 200)

        return self.once(write)


class TurnRecords(RecordViewSet):
    """Of the conversations in which the agent takes part; without an agent, a key sees all of the account's."""

    bodies = {"create": NewRecord, "add_slots": MoreSlots}
    queries = {"list": RecordsQuery, "retrieve": RecordQuery, "destroy": ActingFields}
    answers = {"list": RecordAnswer, "create": PlacedRecord, "retrieve": RecordInFull, "add_slots": PlacedRecord}
    statuses = {"create": (200, 201), "destroy": 204}
    problems = {"destroy": (409,)}
    ordering = ("-event_time", "-id")

    def list(self, request: Request) -> Response:
        """The latest first, each with its slots as they are told now."""
        query = self.query()
        owner = self.owner(query)
        return self.listed(narrowed(listed_records(owner), query), owner)

    def create(self, request: Request) -> Response:
        """Record a turn, whole or in part: 201 for a new one, 200 for one of the same client_id, which gets the slots
        that it lacks. 404 for a conversation in which the agent takes no part, 409 for a slot that says something else
        already, 422 for an outcome without an action, for messages that there are not, and for what cannot be seen.
        """
        body = self.body()
        return self.record(body, body["conversation_id"])

    def retrieve(self, request: Request, record_id: UUID) -> Response:
        """With what it names. `level` expands what is compressed, as long as retention keeps it."""
        query = self.query()
        level = int(query["level"]) if "level" in query else None
        view, named = get_record(self.owner(query), record_id, level=level, now=timezone.now())
        return Response(represent_in_full(view, named))

    def add_slots(self, request: Request, record_id: UUID) -> Response:
        """Tell slots that it lacks, or what came of it, once that is known: an open outcome may be told again. What it
        has already changes nothing; 409 for a slot that says something else, and for a record that is merged.
        """
        body = self.body()
        owner, now = self.owner(body), timezone.now()
        prepared = prepare_record(owner, draft_of(body), now=now)
        embedded = embed_texts(prepared.texts)

        def write() -> Response:
            recorded = add_slots(owner, record_id, prepared, embedded=embedded, now=now)
            return Response(represent_recorded(recorded, prepared))

        return self.once(write)

    def destroy(self, request: Request, record_id: UUID) -> Response:
        """For good, with its slots of every level and its raw trace. 403 for one that another agent recorded, 409 once
        it is merged into a work episode.
        """
        delete_record(self.owner(self.query()), record_id)
        return Response(status=204)


class ConversationRecords(RecordViewSet):
    """The structured turns of one conversation."""

    bodies = {"create": NewRecordHere}
    queries = {"list": RecordFilters}
    answers = {"list": RecordAnswer, "create": PlacedRecord}
    statuses = {"create": (200, 201)}
    ordering = ("number",)

    def list(self, request: Request, conversation_id: str) -> Response:
        """The first first."""
        query = self.query()
        owner = self.owner(query)
        return self.listed(narrowed(records_of_conversation(owner, conversation_id), query), owner)

    def create(self, request: Request, conversation_id: str) -> Response:
        """As POST `/turn-records` does."""
        return self.record(self.body(), conversation_id)


def narrowed(rows: QuerySet[TurnRecord], query: dict[str, Any]) -> QuerySet[TurnRecord]:
    named = ("conversation_id", "goal_id", "status", "level")
    conditions = {name: name for name in named} | {"since": "event_time__gte", "until": "event_time__lt"}
    return rows.filter(**{column: query[name] for name, column in conditions.items() if name in query})
