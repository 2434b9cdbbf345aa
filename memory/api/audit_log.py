"""`/audit-log`: what was done with the account's memory, and by whom."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import AwareDateTimeField, QueryFlag, TextList, TimeRangeFields
from memory.api.filters import filter_rows
from memory.api.views import OwnerViewSet
from memory.models import AuditEntry
from memory.services.audit import audit_entries
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, ExternalId, Text

DEFAULT_PERIOD = timedelta(days=7)

LOOKUPS = {
    "operation": "operation",
    "memory_type": "memory_type",
    "user_id": "user_id",
    "conversation_id": "conversation_id",
    "source_channel": "source_channel",
    "until": "timestamp__lt",
}


class AuditQuery(ActingFields, TimeRangeFields):
    agent_id = ExternalId(
        required=False, help_text="Limit to this agent. A bound key sees its own agent's entries only."
    )
    operation = Text(max_length=50, required=False, help_text="Limit to this operation, such as store or promote.")
    memory_type = Text(max_length=50, required=False, help_text="Limit to this type, such as episodic or semantic.")
    user_id = ExternalId(required=False, help_text="Limit to this user.")
    conversation_id = ExternalId(required=False, help_text="Limit to this conversation.")
    source_channel = ExternalId(required=False, help_text="Limit to operations that came from this channel.")
    success = QueryFlag(required=False, help_text="Limit to successes, or to failures.")
    since = AwareDateTimeField(required=False, help_text=f"Earliest time. Default: {DEFAULT_PERIOD.days} days ago.")


class AuditAnswer(AnswerSerializer):
    columns = columns_of(
        AuditEntry,
        "id timestamp operation memory_type user_id session_id conversation_id source_channel result_count "
        "success error_message promoted_from_channel promotion_confidence promotion_access_count "
        "promotion_conversation_count",
    )
    actor = serializers.CharField(help_text="Accountable party: `key:<prefix>`, `staff:<name>` or `job:<name>`.")
    agent_id = serializers.CharField(help_text="Acting agent. Empty: the account.")
    affected_ids = TextList()
    target_channels = TextList(
        help_text="Channels of the results of recalls and resumes, channels searched by searches and graph walks, or "
        "the channel that a promotion went to.",
    )
    query_text = serializers.CharField(help_text="Text of the query with secrets masked. Empty once it was erased.")
    cross_channel_count = serializers.IntegerField(allow_null=True, help_text="Number of results from other channels.")
    latency_ms = serializers.IntegerField(allow_null=True, help_text="Milliseconds that a recall took.")
    config_snapshot = serializers.DictField(help_text="Thresholds in force at the time, and the account's audit level.")
    metadata = serializers.DictField(
        help_text="Id of the request; reason and changed values of changes of staff; masked request at the level "
        "`verbose`. Or `payload_erased_at`."
    )


class AuditLog(OwnerViewSet):
    """Entries are never changed or deleted one by one. Days past their retention are dropped as a whole."""

    queries = {"list": AuditQuery}
    answers = {"list": AuditAnswer}
    scopes = {"list": "operate"}
    not_audited = frozenset({"list"})
    ordering = ("-timestamp", "-id")

    def list(self, request: Request) -> Response:
        """List entries, latest first.

        Writes appear immediately, reads after the next run of `write_audit_reads`, within seconds. The account's level
        determines what is kept: off, writes (the default), reads or verbose.
        """
        query = self.query()
        return self.respond_page(filter_audit_entries(audit_entries(self.owner(query)), query))


def filter_audit_entries(rows: QuerySet[AuditEntry], query: dict[str, Any]) -> QuerySet[AuditEntry]:
    """Filter entries by a checked query, always by time, so that only the days asked for are read."""
    if "success" in query:
        rows = rows.filter(success=query["success"])
    since = query.get("since", timezone.now() - DEFAULT_PERIOD)
    return filter_rows(rows, query, LOOKUPS).filter(timestamp__gte=since)
