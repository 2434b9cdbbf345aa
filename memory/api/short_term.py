"""`/short-term-memories`: what an agent keeps for some hours, under keys of its sessions."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import CharFilter, ChoiceFilter, FilterSet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.views import OwnerViewSet
from memory.models import AgentShortTermMemory
from memory.services.short_term.keep import (
    MOST_TTL_SECONDS,
    ShortTermDraft,
    delete_entry_by_id,
    find_entry,
    read_entry_by_id,
    refresh_entry,
    store_entry,
)
from memory.tiers.base import NAME_LENGTH
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import ActingFields, ExternalId, WholeNumber

TYPES = AgentShortTermMemory.MemoryType


class TimeToLive(WholeNumber):
    """Seconds."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 1, "max_value": MOST_TTL_SECONDS, "required": False, **options})


class NewShortTermMemory(ActingFields):
    memory_key = ExternalId(max_length=NAME_LENGTH)
    memory_value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    session_id = ExternalId(required=False, allow_blank=True, help_text="Empty: of no session in particular.")
    memory_type = serializers.ChoiceField(TYPES.choices, default=TYPES.TASK_CONTEXT.value)
    ttl_seconds = TimeToLive(help_text=f"{conf.SHORT_TERM_TTL_SECONDS} by default.")


class Refreshing(ActingFields):
    ttl_seconds = TimeToLive(help_text="The entry's own by default.")


class ShortTermAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    agent_id = serializers.CharField()
    session_id = serializers.CharField(help_text="May be empty.")
    memory_key = serializers.CharField()
    memory_value = serializers.JSONField(allow_null=True)
    memory_type = serializers.ChoiceField(TYPES.choices)
    ttl_seconds = serializers.IntegerField()
    expires_at = serializers.DateTimeField()
    access_count = serializers.IntegerField(help_text="Reads, of it alone: lists do not count.")
    last_accessed_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


def represent_entry(entry: AgentShortTermMemory) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in ShortTermAnswer._declared_fields}


class ShortTermFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    session_id = CharFilter(max_length=LONGEST_ID, strip=False)
    memory_type = ChoiceFilter(choices=TYPES.choices)
    memory_key = CharFilter(max_length=NAME_LENGTH, strip=False)


class ShortTermMemories(OwnerViewSet):
    """Private to their agent. Once expired, there is nothing to be read, listed, refreshed."""

    bodies = {"create": NewShortTermMemory, "refresh": Refreshing}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answers = {
        "list": ShortTermAnswer,
        "create": ShortTermAnswer,
        "retrieve": ShortTermAnswer,
        "refresh": ShortTermAnswer,
    }
    statuses = {"create": 201, "destroy": 204}
    filterset_class = ShortTermFilter
    # for the description of the filters alone: rows come from `list`
    queryset = AgentShortTermMemory.objects.none()

    def list(self, request: Request) -> Response:
        """Newest first. Counts as no access."""
        rows = AgentShortTermMemory.objects.visible_to(self.owner(self.query())).live(timezone.now())
        return self.page(rows, represent_entry)

    def create(self, request: Request) -> Response:
        """Write the entry of that session and key, over what is there. 413 for a value that is too large."""
        body = self.body()
        owner = self.agent_owner(body)
        draft = ShortTermDraft(**{name: value for name, value in body.items() if name != "agent_id"})
        return self.once(lambda: Response(represent_entry(store_entry(owner, draft, now=timezone.now())), status=201))

    def retrieve(self, request: Request, memory_id: UUID) -> Response:
        """Counts as an access: entries read three times are worth keeping for good. A HEAD does not."""
        look_up = find_entry if request.method == "HEAD" else read_entry_by_id
        return Response(represent_entry(look_up(self.owner(self.query()), memory_id, now=timezone.now())))

    def destroy(self, request: Request, memory_id: UUID) -> Response:
        delete_entry_by_id(self.owner(self.query()), memory_id, now=timezone.now())
        return Response(status=204)

    def refresh(self, request: Request, memory_id: UUID) -> Response:
        """Let it live for its time to live, or another, from now on; never for shorter than it would have."""
        body = self.body()
        owner, seconds = self.owner(body), body.get("ttl_seconds")
        return self.once(
            lambda: Response(represent_entry(refresh_entry(owner, memory_id, ttl_seconds=seconds, now=timezone.now())))
        )
