"""`/audit-log`: what happened to the account's memory, and by whom."""

from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Moment
from memory.api.views import OwnerViewSet
from memory.models import AuditEntry
from memory.services.audit.log import entries_of
from memory_project.http.serializers import ActingFields, ExternalId, Text

LATELY = timedelta(days=7)

CONDITIONS = {
    "operation": "operation",
    "memory_type": "memory_type",
    "user_id": "user_id",
    "conversation_id": "conversation_id",
    "source_channel": "source_channel",
    "until": "timestamp__lt",
}


class AuditQuery(ActingFields):
    agent_id = ExternalId(required=False, help_text="Entries of this agent; a bound key sees its own agent's alone.")
    operation = Text(max_length=50, required=False, help_text="Such as store, retrieve, update, delete, promote.")
    memory_type = Text(max_length=50, required=False, help_text="Such as episodic, semantic, procedural, working.")
    user_id = ExternalId(required=False)
    conversation_id = ExternalId(required=False)
    source_channel = ExternalId(required=False, help_text="Where the operation came from.")
    success = serializers.ChoiceField(["true", "false"], required=False)
    since = Moment(required=False, help_text="Then or later; the last seven days unless it says.")
    until = Moment(required=False, help_text="Before then.")


class AuditAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    timestamp = serializers.DateTimeField()
    actor = serializers.CharField(help_text="Who is answerable for it: `key:<prefix>`, `staff:<name>`, `job:<name>`.")
    agent_id = serializers.CharField(help_text="Empty for the account.")
    operation = serializers.CharField()
    memory_type = serializers.CharField()
    affected_ids = serializers.ListField(child=serializers.CharField())
    user_id = serializers.CharField()
    session_id = serializers.CharField()
    conversation_id = serializers.CharField()
    source_channel = serializers.CharField()
    target_channels = serializers.ListField(
        child=serializers.CharField(),
        help_text="Of recalls and resumes the channels that results came from, of searches and of the graph those "
        "looked in, of promotions the one promoted to.",
    )
    query_text = serializers.CharField(help_text="What was asked for, secrets masked; empty once it was erased.")
    result_count = serializers.IntegerField(allow_null=True)
    cross_channel_count = serializers.IntegerField(
        allow_null=True, help_text="Results of other channels than the active one."
    )
    latency_ms = serializers.IntegerField(allow_null=True, help_text="Of recalls: from the question to the answer.")
    success = serializers.BooleanField()
    error_message = serializers.CharField()
    promoted_from_channel = serializers.CharField()
    promotion_confidence = serializers.FloatField(allow_null=True)
    promotion_access_count = serializers.IntegerField(allow_null=True)
    promotion_conversation_count = serializers.IntegerField(allow_null=True)
    config_snapshot = serializers.DictField(help_text="Thresholds that were in force, and the account's level.")
    metadata = serializers.DictField(
        help_text="What was sent or asked, masked, at the level verbose; `payload_erased_at` where it was erased."
    )


def represent_entry(entry: AuditEntry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in AuditAnswer._declared_fields}


class AuditLog(OwnerViewSet):
    """Entries are neither changed nor deleted; days past their retention go as a whole."""

    queries = {"list": AuditQuery}
    answers = {"list": AuditAnswer}
    scopes = {"list": "operate"}
    unrecorded = frozenset({"list"})
    ordering = ("-timestamp", "-id")

    def list(self, request: Request) -> Response:
        """Newest first. Writes are there at once, reads after the next run of `write_audit_reads`: within seconds.

        Which of them are kept, the account's level says: off, writes (the default), reads or verbose.
        """
        query = self.query()
        return self.page(narrowed(entries_of(self.owner(query)), query), represent_entry)


def narrowed(rows: QuerySet[AuditEntry], query: dict[str, Any]) -> QuerySet[AuditEntry]:
    """Always by time, so that no more days are read than asked for."""
    conditions = {column: query[name] for name, column in CONDITIONS.items() if name in query}
    if "success" in query:
        conditions["success"] = query["success"] == "true"
    return rows.filter(timestamp__gte=query.get("since", timezone.now() - LATELY), **conditions)
