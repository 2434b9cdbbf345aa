"""`/contexts/{context_id}/access-log`: which agent read or wrote which entry, and when."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import TimeRangeQuery
from memory.api.filters import filter_rows
from memory.api.views import OwnerViewSet
from memory.models import ContextAccessLog
from memory.services.contexts.access_log import access_logs
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, ExternalId

LOOKUPS = {
    "entry_id": "entry_id",
    "accessed_by": "agent_id",
    "action": "action",
    "since": "accessed_at__gte",
    "until": "accessed_at__lt",
}


class AccessLogQuery(ActingFields, TimeRangeQuery):
    entry_id = serializers.UUIDField(required=False, help_text="Limit to this entry.")
    accessed_by = ExternalId(required=False, help_text="Limit to this agent.")
    action = serializers.ChoiceField(ContextAccessLog.Action.choices, required=False, help_text="Limit to this action.")


class AccessLogAnswer(AnswerSerializer):
    id = serializers.UUIDField()
    entry_id = serializers.UUIDField(allow_null=True, help_text="Null for the action `lost`.")
    agent_id = serializers.CharField(help_text="Agent that read or wrote. Empty: the account.")
    actor = serializers.CharField(help_text="Accountable party: `key:<prefix>` or `staff:<name>`.")
    action = serializers.ChoiceField(ContextAccessLog.Action.choices)
    count = serializers.IntegerField(help_text="Number of lost lines for the action `lost`, 1 for all others.")
    accessed_at = serializers.DateTimeField()


class AccessLogs(OwnerViewSet):
    """The access log of a context, for those who manage it: its owner, or the account."""

    queries = {"list": AccessLogQuery}
    answers = {"list": AccessLogAnswer}
    ordering = ("-accessed_at", "-id")

    def list(self, request: Request, context_id: UUID) -> Response:
        """List accesses, latest first.

        Writes appear immediately, reads after the next run of `write_access_log`, within seconds. Reads that could not
        be logged are counted in lines with the action `lost` and no entry.
        """
        query = self.query()
        return self.respond_page(filter_rows(access_logs(self.owner(query), context_id), query, LOOKUPS))
