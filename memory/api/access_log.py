"""`/contexts/{context_id}/access-log`: which agent read or wrote which entry, when."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Moment
from memory.api.views import OwnerViewSet
from memory.models import ContextAccessLog
from memory.services.contexts.access_log import access_logs
from memory_project.http.serializers import ActingFields, ExternalId

CONDITIONS = {
    "entry_id": "entry_id",
    "accessed_by": "agent_id",
    "action": "action",
    "since": "accessed_at__gte",
    "until": "accessed_at__lt",
}


class AccessLogQuery(ActingFields):
    entry_id = serializers.UUIDField(required=False)
    accessed_by = ExternalId(required=False, help_text="An agent.")
    action = serializers.ChoiceField(ContextAccessLog.Action.choices, required=False)
    since = Moment(required=False, help_text="Accessed then or later.")
    until = Moment(required=False, help_text="Accessed before then.")


class AccessLogAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    entry_id = serializers.UUIDField(allow_null=True, help_text="Null for lines of action lost.")
    agent_id = serializers.CharField(help_text="Empty for the account.")
    actor = serializers.CharField(help_text="Who is answerable for it: `key:<prefix>`, `staff:<name>`.")
    action = serializers.ChoiceField(ContextAccessLog.Action.choices)
    count = serializers.IntegerField(help_text="How many lines there are not, for action lost; 1 for any other.")
    accessed_at = serializers.DateTimeField()


def represent_line(line: ContextAccessLog) -> dict[str, Any]:
    return {name: getattr(line, name) for name in AccessLogAnswer._declared_fields}


class AccessLogs(OwnerViewSet):
    """For whoever manages the context: its owner, or the account."""

    queries = {"list": AccessLogQuery}
    answers = {"list": AccessLogAnswer}
    ordering = ("-accessed_at", "-id")

    def list(self, request: Request, context_id: UUID) -> Response:
        """Newest first. Writes are there at once, reads after the next run of `write_access_log`: within seconds.

        Reads that could not be logged are counted, in lines of action `lost` without an entry.
        """
        query = self.query()
        rows = access_logs(self.owner(query), context_id)
        return self.page(narrowed(rows, query), represent_line)


def narrowed(rows: QuerySet[ContextAccessLog], query: dict[str, Any]) -> QuerySet[ContextAccessLog]:
    return rows.filter(**{column: query[name] for name, column in CONDITIONS.items() if name in query})
