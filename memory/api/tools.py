"""`/tools`: statistics of the tools that agents called."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import AwareDateTimeField
from memory.api.views import OwnerViewSet
from memory.services.tools import make_stats, tool_usage
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, ExternalId

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
    latency_p50_ms = serializers.FloatField(allow_null=True, help_text="Median duration in milliseconds.")
    latency_p95_ms = serializers.FloatField(allow_null=True, help_text="95 % of the calls took no longer.")
    last_used = serializers.DateTimeField()


def serialize_usage(row: dict[str, Any]) -> dict[str, Any]:
    return ToolAnswer.serialize(make_stats(row))


class Tools(OwnerViewSet):
    """Tools called in conversations in which the agent takes part; without an agent, in all of the account's."""

    queries = {"list": ToolsQuery}
    answers = {"list": ToolAnswer}

    def list(self, request: Request) -> Response:
        """List tools by name: how often each was called and succeeded, and how long the calls took."""
        query = self.query()
        groups = GROUPINGS[query["by"]]
        self.ordering = ("tool_name", *groups)  # type: ignore[misc]  # of this request's view alone
        filters = {name: query[name] for name in ("task_type", "channel", "since") if name in query}
        rows: Any = tool_usage(self.owner(query), by=groups, now=timezone.now(), **filters)
        return self.respond_page(rows, serialize_usage)
