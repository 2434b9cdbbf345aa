"""`/short-term-memories`: values that an agent keeps for some hours, under keys of its sessions."""

from uuid import UUID

from django.utils import timezone
from django_filters import ChoiceFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import TtlSeconds, draft_fields
from memory.api.filters import RowFilter, TextFilter
from memory.api.views import OwnerViewSet
from memory.models import AgentShortTermMemory
from memory.models.short_term import ShortTermKey
from memory.services.short_term import (
    MAX_TTL_SECONDS,
    ShortTermDraft,
    delete_entry,
    find_entry_by_id,
    read_entry,
    refresh_entry,
    store_entry,
)
from memory.tiers.base import MAX_NAME_CHARACTERS
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, ExternalId

TYPES = AgentShortTermMemory.MemoryType


class NewShortTermMemory(ActingFields):
    memory_key = ExternalId(max_length=MAX_NAME_CHARACTERS, help_text="Key of the entry in its session.")
    memory_value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    session_id = ExternalId(required=False, allow_blank=True, help_text="Session of the entry. Empty: none.")
    memory_type = serializers.ChoiceField(TYPES.choices, default=TYPES.TASK_CONTEXT.value)
    ttl_seconds = TtlSeconds(max_value=MAX_TTL_SECONDS, default_seconds=conf.SHORT_TERM_TTL_SECONDS)


class RefreshBody(ActingFields):
    ttl_seconds = TtlSeconds("Seconds from now until it expires. Default: its own.", max_value=MAX_TTL_SECONDS)


class ShortTermAnswer(AnswerSerializer):
    columns = columns_of(
        AgentShortTermMemory,
        "id agent_id memory_key memory_value memory_type expires_at last_accessed_at created_at updated_at",
    )
    session_id = serializers.CharField(help_text="May be empty.")
    ttl_seconds = serializers.IntegerField(help_text="Time to live that was set.")
    access_count = serializers.IntegerField(help_text="Number of reads of this entry alone. Lists do not count.")


class ShortTermFilter(RowFilter):
    session_id = TextFilter()
    memory_type = ChoiceFilter(choices=TYPES.choices)
    memory_key = TextFilter(max_length=MAX_NAME_CHARACTERS)


class ShortTermMemories(OwnerViewSet):
    """Entries are private to their agent. An expired entry cannot be read, listed or refreshed."""

    bodies = {"create": NewShortTermMemory, "refresh": RefreshBody}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answer = ShortTermAnswer
    filterset_class = ShortTermFilter
    queryset = AgentShortTermMemory.objects.none()

    def list(self, request: Request) -> Response:
        """List entries, latest first. Does not count as an access."""
        rows = AgentShortTermMemory.objects.visible_to(self.owner(self.query())).live(timezone.now())
        return self.respond_page(rows)

    def create(self, request: Request) -> Response:
        """Store an entry, replacing the one of that session and key. 413 for a value that is too large."""
        body = self.body()
        owner, draft = self.agent_owner(body), ShortTermDraft(**draft_fields(ShortTermDraft, body))
        return self.write_row(store_entry, owner, draft, now=timezone.now())

    def retrieve(self, request: Request, short_term_id: UUID) -> Response:
        """Return an entry and count the access: entries read three times are worth promoting. A HEAD does not count."""
        owner, now = self.owner(self.query()), timezone.now()
        if request.method == "HEAD":
            return self.respond(find_entry_by_id(owner, short_term_id, now=now))
        return self.respond(read_entry(owner, ShortTermKey(id=short_term_id), now=now))

    def destroy(self, request: Request, short_term_id: UUID) -> Response:
        """Delete an entry."""
        delete_entry(self.owner(self.query()), ShortTermKey(id=short_term_id), now=timezone.now())
        return Response(status=204)

    def refresh(self, request: Request, short_term_id: UUID) -> Response:
        """Restart the time to live, or set another one, from now on. Never shortens the time that is left."""
        body = self.body()
        owner, entry_key, seconds = self.owner(body), ShortTermKey(id=short_term_id), body.get("ttl_seconds")
        return self.write_row(refresh_entry, owner, entry_key, ttl_seconds=seconds, now=timezone.now())
