"""`/tool-invocations`: what tools were called with, what came of it. Encrypted at rest, read by who takes part."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Moment, OwnerFields
from memory.api.views import OwnerViewSet
from memory.models import ToolInvocation
from memory.services.tools import (
    CLOCK_SKEW,
    LARGEST_NUMBER,
    LARGEST_VALUE_BYTES,
    SEALED,
    InvocationDraft,
    OpenedInvocation,
    find_invocation,
    record_invocation,
    record_invocations,
    visible_invocations,
)
from memory_project.http.serializers import (
    ActingFields,
    BoundedList,
    ExternalId,
    Flag,
    StrictSerializer,
    Text,
    WholeNumber,
)

MOST_INVOCATIONS = 1_000
OUTCOMES = {"true": True, "false": False, "unknown": None}
JSON_TOLD = f"Any JSON value, at most {LARGEST_VALUE_BYTES} bytes (413 above). Encrypted at rest."
OF_USE = (
    *("tool_name", "tool_input", "tool_output", "success", "latency_ms", "error_message", "task_type", "turn_index"),
    "timestamp",
)


class UseFields(StrictSerializer):
    """One use of a tool."""

    tool_name = ExternalId()
    tool_input = serializers.JSONField(required=False, allow_null=True, help_text=JSON_TOLD)
    tool_output = serializers.JSONField(required=False, allow_null=True, help_text=JSON_TOLD)
    success = Flag(required=False, allow_null=True, help_text="Null: nobody said.")
    latency_ms = WholeNumber(required=False, allow_null=True, min_value=0, max_value=LARGEST_NUMBER)
    error_message = Text(
        required=False, allow_blank=True, max_length=LARGEST_VALUE_BYTES, help_text="Encrypted at rest."
    )
    task_type = ExternalId(required=False, allow_blank=True, help_text="What it was done for, such as `look up`.")
    turn_index = WholeNumber(
        required=False, allow_null=True, min_value=0, max_value=LARGEST_NUMBER, help_text="The turn that called it."
    )
    timestamp = Moment(required=False, help_text="With a zone, at most 5 minutes ahead. Now by default.")

    def validate_timestamp(self, timestamp: datetime) -> datetime:
        if timestamp > timezone.now() + CLOCK_SKEW:
            raise serializers.ValidationError("Lies more than 5 minutes ahead.")
        return timestamp


class NewInvocation(OwnerFields, UseFields):
    conversation_id = ExternalId(help_text="Made if it is new; the agent takes part in it from then on.")


class NewInvocations(OwnerFields):
    conversation_id = ExternalId(help_text="Of all of them. Made if it is new.")
    invocations = BoundedList(
        child=UseFields(), min_length=1, max_length=MOST_INVOCATIONS, help_text=f"1 to {MOST_INVOCATIONS}."
    )


class InvocationsQuery(ActingFields):
    conversation_id = ExternalId(required=False)
    tool_name = ExternalId(required=False)
    task_type = ExternalId(required=False)
    channel = ExternalId(required=False)
    success = serializers.ChoiceField(list(OUTCOMES), required=False, help_text="`unknown`: nobody said.")
    since = Moment(required=False, help_text="Called then or later.")
    until = Moment(required=False, help_text="Called before then.")


class InvocationAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    agent_id = serializers.CharField(help_text="Who called it; empty for the account.")
    user_id = serializers.CharField()
    channel = serializers.CharField()
    conversation_id = serializers.CharField()
    turn_index = serializers.IntegerField(allow_null=True)
    tool_name = serializers.CharField()
    task_type = serializers.CharField(help_text="May be empty.")
    success = serializers.BooleanField(allow_null=True)
    latency_ms = serializers.IntegerField(allow_null=True)
    timestamp = serializers.DateTimeField()
    created_at = serializers.DateTimeField()


class InvocationInFull(InvocationAnswer):
    tool_input = serializers.JSONField(allow_null=True)
    tool_output = serializers.JSONField(allow_null=True)
    error_message = serializers.CharField(allow_null=True)
    sealed = serializers.BooleanField(
        help_text="Whether some of input, output and error cannot be read, as the key they were sealed under is gone: "
        "those are null."
    )


class RecordedInvocations(serializers.Serializer[Any]):
    ids = serializers.ListField(child=serializers.UUIDField(), help_text="In the order in which they were sent.")


COLUMNS = (
    *("agent_id", "user_id", "channel", "conversation_id", "turn_index", "tool_name", "task_type"),
    *("success", "latency_ms", "timestamp", "created_at"),
)


def represent_invocation(row: ToolInvocation) -> dict[str, Any]:
    """Nothing that is sealed: a page would be large, and what `once` keeps of an answer is in plain text."""
    return {"id": str(row.id)} | {name: getattr(row, name) for name in COLUMNS}


def represent_in_full(opened: OpenedInvocation) -> dict[str, Any]:
    values = {name: getattr(opened, name) for name in (*SEALED, "sealed")}
    return represent_invocation(opened.invocation) | values


def draft_of(use: dict[str, Any], conversation_id: str) -> InvocationDraft:
    return InvocationDraft(conversation_id=conversation_id, **{name: use[name] for name in OF_USE if name in use})


class ToolInvocations(OwnerViewSet):
    """Of the conversations in which the agent takes part; without an agent, a key sees all of the account's."""

    bodies = {"create": NewInvocation, "record_many": NewInvocations}
    queries = {"list": InvocationsQuery, "retrieve": ActingFields}
    answers = {
        "list": InvocationAnswer,
        "create": InvocationAnswer,
        "record_many": RecordedInvocations,
        "retrieve": InvocationInFull,
    }
    statuses = {"create": 201, "record_many": 201}
    ordering = ("-timestamp", "-id")

    def list(self, request: Request) -> Response:
        """Last called first. What went in and came out is told of one at a time."""
        query = self.query()
        return self.page(narrowed(visible_invocations(self.owner(query)), query), represent_invocation)

    def create(self, request: Request) -> Response:
        """Record that a tool was called in a conversation, and count it. A value may have 256 KiB (413 above).

        Input, output and error are encrypted at rest, and not answered."""
        body = self.body()
        owner, draft = self.owner(body), draft_of(body, body["conversation_id"])

        def write() -> Response:
            return Response(represent_invocation(record_invocation(owner, draft, now=timezone.now())), status=201)

        return self.once(write)

    def record_many(self, request: Request) -> Response:
        """Record many calls of one conversation, all or none."""
        body = self.body()
        owner = self.owner(body)
        drafts = [draft_of(use, body["conversation_id"]) for use in body["invocations"]]

        def write() -> Response:
            recorded = record_invocations(owner, drafts, now=timezone.now())
            return Response({"ids": [str(row.id) for row in recorded]}, status=201)

        return self.once(write)

    def retrieve(self, request: Request, invocation_id: UUID) -> Response:
        """With what went in and came out."""
        return Response(represent_in_full(find_invocation(self.owner(self.query()), invocation_id)))


def narrowed(rows: QuerySet[ToolInvocation], query: dict[str, Any]) -> QuerySet[ToolInvocation]:
    named = ("conversation_id", "tool_name", "task_type", "channel")
    conditions = {name: name for name in named} | {"since": "timestamp__gte", "until": "timestamp__lt"}
    wanted = Q(**{column: query[name] for name, column in conditions.items() if name in query})
    if "success" in query:
        wanted &= Q(success=OUTCOMES[query["success"]])
    return rows.filter(wanted)
