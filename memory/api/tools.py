"""`/tools`: how the tools did that agents called."""

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Moment
from memory.api.views import OwnerViewSet
from memory.services.tools import make_stats, tool_usage
from memory_project.http.serializers import ActingFields, ExternalId

GROUPINGS: dict[str, tuple[str, ...]] = {
    "tool": (),
    "task_type": ("task_type",),
    "channel": ("channel",),
    "task_type_and_channel": ("task_type", "channel"),
}


class ToolsQuery(ActingFields):
    task_type = ExternalId(required=False, help_text="Calls for this type of task only.")
    channel = ExternalId(required=False, help_text="Calls in this channel only; in every one by default.")
    since = Moment(required=False, help_text="Calls of then or later; of all time by default.")
    by = serializers.ChoiceField(list(GROUPINGS), default="tool", help_text="What else tells rows of a tool apart.")


class ToolAnswer(serializers.Serializer[Any]):
    tool_name = serializers.CharField()
    task_type = serializers.CharField(allow_null=True, help_text="Null where those of all are counted together.")
    channel = serializers.CharField(allow_null=True, help_text="Null where those of all are counted together.")
    usage_count = serializers.IntegerField()
    success_count = serializers.IntegerField()
    failure_count = serializers.IntegerField()
    success_rate = serializers.FloatField(allow_null=True, help_text="Of those of which it is known; null for none.")
    latency_p50_ms = serializers.FloatField(allow_null=True, help_text="Half of them took no longer.")
    latency_p95_ms = serializers.FloatField(allow_null=True, help_text="95 % of them took no longer.")
    last_used = serializers.DateTimeField()


def represent_stats(row: dict[str, Any]) -> dict[str, Any]:
    stats = make_stats(row)
    return {name: getattr(stats, name) for name in ToolAnswer._declared_fields}


class Tools(OwnerViewSet):
    """Of the calls in conversations in which the agent takes part; without an agent, of all of the account's."""

    queries = {"list": ToolsQuery}
    answers = {"list": ToolAnswer}

    def list(self, request: Request) -> Response:
        """How often each was called, how often it worked, how long it took; in the order of their names."""
        query = self.query()
        groups = GROUPINGS[query["by"]]
        self.ordering = ("tool_name", *groups)  # type: ignore[misc]  # of this request's view alone
        narrowing = {name: query[name] for name in ("task_type", "channel", "since") if name in query}
        rows: Any = tool_usage(self.owner(query), by=groups, now=timezone.now(), **narrowing)
        return self.page(rows, represent_stats)
