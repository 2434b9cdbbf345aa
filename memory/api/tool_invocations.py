"""`/tool-invocations`: tool calls with their input and output, encrypted at rest, for agents that take part.

`/tools`: statistics of the tools that agents called.
"""

from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import AwareDateTimeField, IdList, OwnerFields, PastDateTimeField, TimeRangeFields, draft_fields
from memory.api.filters import filter_rows
from memory.api.views import OwnerViewSet
from memory.models import ToolInvocation
from memory.services.tools import (
    MAX_INTEGER,
    MAX_VALUE_BYTES,
    InvocationDraft,
    find_invocation,
    make_stats,
    record_invocation,
    record_invocations,
    tool_usage,
    visible_invocations,
)
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import (
    ActingFields,
    BoundedList,
    ExternalId,
    Flag,
    StrictSerializer,
    Text,
    WholeNumber,
)

MAX_INVOCATIONS = 1_000
OUTCOMES = {"true": True, "false": False, "unknown": None}
JSON_HELP = f"Any JSON value of at most {MAX_VALUE_BYTES} bytes (413 above). Encrypted at rest."
LOOKUPS = {
    "conversation_id": "conversation_id",
    "tool_name": "tool_name",
    "task_type": "task_type",
    "channel": "channel",
    "since": "timestamp__gte",
    "until": "timestamp__lt",
}


class OptionalNumber(WholeNumber):
    """A whole number from 0, or null."""

    def __init__(self, help_text: str) -> None:
        super().__init__(required=False, allow_null=True, min_value=0, max_value=MAX_INTEGER, help_text=help_text)


class UseFields(StrictSerializer):
    """One use of a tool."""

    tool_name = ExternalId(help_text="Name of the tool.")
    tool_input = serializers.JSONField(required=False, allow_null=True, help_text=JSON_HELP)
    tool_output = serializers.JSONField(required=False, allow_null=True, help_text=JSON_HELP)
    success = Flag(required=False, allow_null=True, help_text="True if the call succeeded. Null: unknown.")
    latency_ms = OptionalNumber("Duration in milliseconds.")
    error_message = Text(required=False, allow_blank=True, max_length=MAX_VALUE_BYTES, help_text="Encrypted at rest.")
    task_type = ExternalId(required=False, allow_blank=True, help_text="Type of the task, such as `look up`.")
    turn_index = OptionalNumber("Index of the turn that called it.")
    timestamp = PastDateTimeField(required=False, help_text="Time, at most 5 minutes ahead. Default: now.")


class NewInvocation(OwnerFields, UseFields):
    conversation_id = ExternalId(help_text="A new id creates a conversation, in which the agent takes part.")


class NewInvocations(OwnerFields):
    conversation_id = ExternalId(help_text="Conversation of all calls. A new id creates one.")
    invocations = BoundedList(
        child=UseFields(), min_length=1, max_length=MAX_INVOCATIONS, help_text="1 to 1,000 calls."
    )


class InvocationsQuery(ActingFields, TimeRangeFields):
    conversation_id = ExternalId(required=False, help_text="Limit to this conversation.")
    tool_name = ExternalId(required=False, help_text="Limit to this tool.")
    task_type = ExternalId(required=False, help_text="Limit to this type of task.")
    channel = ExternalId(required=False, help_text="Limit to this channel.")
    success = serializers.ChoiceField(list(OUTCOMES), required=False, help_text="`unknown`: it was not recorded.")


class InvocationAnswer(AnswerSerializer):
    """A call without its input, output and error.

    Those are encrypted at rest; a page of them would be large, and an answer that is recorded is in plain text.
    """

    columns = columns_of(ToolInvocation, "id user_id channel conversation_id turn_index tool_name timestamp created_at")
    agent_id = serializers.CharField(help_text="Agent that called it. Empty: the account.")
    task_type = serializers.CharField(help_text="May be empty.")
    success = serializers.BooleanField(allow_null=True, help_text="Null: unknown.")
    latency_ms = serializers.IntegerField(allow_null=True, help_text="Duration in milliseconds.")


class OpenedAnswer(AnswerSerializer):
    """The decrypted part of a call."""

    tool_input = serializers.JSONField(allow_null=True)
    tool_output = serializers.JSONField(allow_null=True)
    error_message = serializers.CharField(allow_null=True)
    sealed = serializers.BooleanField(help_text="True if some of these are null because their encryption key is gone.")


class InvocationInFull(InvocationAnswer, OpenedAnswer):
    """A call with its input, output and error."""


class RecordedInvocations(AnswerSerializer):
    ids = IdList(help_text="Ids in the order in which the calls were sent.")


class ToolInvocations(OwnerViewSet):
    """Calls in conversations in which the agent takes part; without an agent, all of the account's."""

    operation_ids = {"create": "record_tool_invocation", "record_many": "record_tool_invocations"}
    for_users = True
    bodies = {"create": NewInvocation, "record_many": NewInvocations}
    queries = {"list": InvocationsQuery, "retrieve": ActingFields}
    answer = InvocationAnswer
    answers = {"record_many": RecordedInvocations, "retrieve": InvocationInFull}
    statuses = {"record_many": 201}
    ordering = ("-timestamp", "-id")

    def list(self, request: Request) -> Response:
        """List calls without their input and output, latest first."""
        query = self.query()
        rows = filter_rows(visible_invocations(self.owner(query)), query, LOOKUPS)
        if "success" in query:
            rows = rows.filter(success=OUTCOMES[query["success"]])
        return self.respond_page(rows)

    def create(self, request: Request) -> Response:
        """Record a tool call of a conversation, and count it in the tool's statistics. 413 for values over 256 KiB.

        Input, output and error are encrypted at rest, and not in the answer.
        """
        body = self.body()
        owner, draft = self.owner(body), InvocationDraft(**draft_fields(InvocationDraft, body))
        return self.write_row(record_invocation, owner, draft, now=timezone.now())

    def record_many(self, request: Request) -> Response:
        """Record many calls of one conversation: all or none."""
        body = self.body()
        owner, conversation_id = self.owner(body), body["conversation_id"]
        drafts = [
            InvocationDraft(conversation_id=conversation_id, **draft_fields(InvocationDraft, use))
            for use in body["invocations"]
        ]

        def write() -> Response:
            recorded = record_invocations(owner, drafts, now=timezone.now())
            return Response({"ids": [str(row.id) for row in recorded]}, status=201)

        return self.write_once(write)

    def retrieve(self, request: Request, invocation_id: UUID) -> Response:
        """Return a call with its input, output and error."""
        opened = find_invocation(self.owner(self.query()), invocation_id)
        return self.respond(opened.invocation, OpenedAnswer.serialize(opened))


GROUPINGS: dict[str, tuple[str, ...]] = {
    "tool": (),
    "task_type": ("task_type",),
    "channel": ("channel",),
    "task_type_and_channel": ("task_type", "channel"),
}


class ToolsQuery(ActingFields):
    task_type = ExternalId(required=False, help_text="Limit to this type of task.")
    channel = ExternalId(required=False, help_text="Limit to this channel. Default: all channels.")
    since = AwareDateTimeField(required=False, help_text="Limit to this time and later. Default: all.")
    by = serializers.ChoiceField(list(GROUPINGS), default="tool", help_text="Grouping of each tool's rows.")


class ToolAnswer(AnswerSerializer):
    tool_name = serializers.CharField()
    task_type = serializers.CharField(allow_null=True, help_text="Null if all task types are counted together.")
    channel = serializers.CharField(allow_null=True, help_text="Null if all channels are counted together.")
    usage_count = serializers.IntegerField()
    success_count = serializers.IntegerField()
    failure_count = serializers.IntegerField()
    success_rate = serializers.FloatField(allow_null=True, help_text="Share of successes, if any are known.")
    avg_latency_ms = serializers.FloatField(allow_null=True, help_text="Mean duration in milliseconds.")
    latency_p50_ms = serializers.FloatField(allow_null=True, help_text="Median duration in milliseconds.")
    latency_p95_ms = serializers.FloatField(allow_null=True, help_text="95 % of the calls took no longer.")
    last_used = serializers.DateTimeField()


class Tools(OwnerViewSet):
    """Tools called in conversations in which the agent takes part; without an agent, in all of the account's."""

    for_users = True
    queries = {"list": ToolsQuery}
    answers = {"list": ToolAnswer}

    def list(self, request: Request) -> Response:
        """List tools by name: how often each was called and succeeded, and how long the calls took."""
        query = self.query()
        groups = GROUPINGS[query["by"]]
        self.ordering = ("tool_name", *groups)  # type: ignore[misc]  # of this request's view alone
        filters = {name: query[name] for name in ("task_type", "channel", "since") if name in query}
        rows: Any = tool_usage(self.owner(query), by=groups, now=timezone.now(), **filters)
        return self.respond_page(rows, lambda row: ToolAnswer.serialize(make_stats(row)))
