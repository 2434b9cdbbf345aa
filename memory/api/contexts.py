"""`/contexts`: what agents keep for long, alone or together. What a context holds is below `/contexts/{id}/entries`."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import CharFilter, ChoiceFilter, FilterSet, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.access import AccessControlAnswer, AccessControlFields, GrantBody, RevokeBody, access_control_of
from memory.api.conversations import yes_or_no
from memory.api.fields import Metadata, Prose
from memory.api.views import OwnerViewSet
from memory.models import Level, PersistentContext
from memory.services.contexts.manage import (
    ContextDraft,
    Grant,
    archive_context,
    change_context,
    create_context,
    find_context,
    grant_context,
    revoke_context,
    unarchive_context,
)
from memory_project.http.serializers import ActingFields, Text

LONGEST_NAME = 200
LONGEST_DESCRIPTION = 10_000
TYPES, SCOPES = PersistentContext.ContextType.choices, PersistentContext.Scope.choices


class NewContext(ActingFields):
    name = Prose(max_length=LONGEST_NAME, help_text="Once for each agent and team.")
    context_type = serializers.ChoiceField(TYPES, required=False, help_text="agent_memory by default.")
    scope = serializers.ChoiceField(SCOPES, required=False, help_text="agent by default.")
    access_control = AccessControlFields(required=False)
    description = Text(required=False, max_length=LONGEST_DESCRIPTION, allow_blank=True)
    team = serializers.UUIDField(required=False, allow_null=True, help_text="Scope team needs it, no other takes it.")
    metadata = Metadata(required=False)


class ContextChange(ActingFields):
    name = Prose(required=False, max_length=LONGEST_NAME)
    description = Text(required=False, max_length=LONGEST_DESCRIPTION, allow_blank=True)
    access_control = AccessControlFields(required=False, help_text="In place of what there is.")
    metadata = Metadata(required=False, help_text="In place of what there is.")


class PersistentContextAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField()
    context_type = serializers.ChoiceField(TYPES)
    scope = serializers.ChoiceField(SCOPES)
    agent_id = serializers.CharField(help_text="Who owns it; empty for the account.")
    team = serializers.UUIDField(allow_null=True)
    access_control = AccessControlAnswer()
    archived = serializers.BooleanField(help_text="Read-only, and left out of searches.")
    version = serializers.IntegerField(help_text="One more with each change of the context itself, not of its entries.")
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


COLUMNS = (
    *("name", "description", "context_type", "scope", "agent_id", "access_control", "archived", "version"),
    *("metadata", "created_at", "updated_at"),
)


def represent_context(context: PersistentContext) -> dict[str, Any]:
    columns = {name: getattr(context, name) for name in COLUMNS}
    return columns | {"id": str(context.id), "team": context.team_id}


class ContextFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    context_type = ChoiceFilter(choices=TYPES)
    scope = ChoiceFilter(choices=SCOPES)
    archived = yes_or_no()
    team = UUIDFilter()
    name = CharFilter(max_length=LONGEST_NAME, strip=False)


class ContextViewSet(OwnerViewSet):
    """Actions that answer one context, with its ETag."""

    def shown(self, context: PersistentContext, *, status: int = 200) -> Response:
        return self.versioned(represent_context(context), version=context.version, status=status)


class PersistentContexts(ContextViewSet):
    """An agent sees those that scope, team or a grant open to it; without one, a key sees all of the account's.

    Who owns a context changes, grants and archives it; 403 for others that see it.
    """

    bodies = {"create": NewContext, "partial_update": ContextChange}
    queries = {"list": ActingFields, "retrieve": ActingFields}
    answers = {
        "list": PersistentContextAnswer,
        "create": PersistentContextAnswer,
        "retrieve": PersistentContextAnswer,
        "partial_update": PersistentContextAnswer,
    }
    statuses = {"create": 201}
    conditional = frozenset({"retrieve", "partial_update"})
    filterset_class = ContextFilter
    # for the description of the filters alone: rows come from `list`
    queryset = PersistentContext.objects.none()

    def list(self, request: Request) -> Response:
        """Newest first, archived ones too."""
        return self.page(PersistentContext.objects.visible_to(self.owner(self.query())), represent_context)

    def create(self, request: Request) -> Response:
        """409 when the agent has one of this name, 422 for a team that the agent is not in."""
        body = self.body()
        owner, draft = self.owner(body), draft_of(body)
        return self.once(lambda: self.shown(create_context(owner, draft), status=201))

    def retrieve(self, request: Request, context_id: UUID) -> Response:
        return self.shown(find_context(self.owner(self.query()), context_id))

    def partial_update(self, request: Request, context_id: UUID) -> Response:
        """Its type, its scope and its team stay what they are. Archived, all but `access_control` does: 409."""
        body = self.body()
        changes = {name: value for name, value in body.items() if name != "agent_id"}
        if "access_control" in changes:
            changes["access_control"] = access_control_of(body).model_dump()
        expected, now = self.expected(), timezone.now()
        return self.shown(change_context(self.owner(body), context_id, changes=changes, expected=expected, now=now))


def draft_of(body: dict[str, Any]) -> ContextDraft:
    names = ("name", "context_type", "scope", "description", "metadata")
    given = {name: body[name] for name in names if name in body}
    return ContextDraft(**given, access_control=access_control_of(body), team_id=body.get("team"))


class ContextArchiving(ContextViewSet):
    """Archived, a context is read-only and in no search. What is archived already stays as it is."""

    bodies = {"archive": ActingFields, "unarchive": ActingFields}
    answers = {"archive": PersistentContextAnswer, "unarchive": PersistentContextAnswer}
    conditional = frozenset({"archive", "unarchive"})

    def archive(self, request: Request, context_id: UUID) -> Response:
        owner, expected = self.owner(self.body()), self.expected()
        return self.once(lambda: self.shown(archive_context(owner, context_id, expected=expected, now=timezone.now())))

    def unarchive(self, request: Request, context_id: UUID) -> Response:
        owner, expected = self.owner(self.body()), self.expected()
        return self.once(
            lambda: self.shown(unarchive_context(owner, context_id, expected=expected, now=timezone.now()))
        )


class ContextGrants(ContextViewSet):
    """Letting agents into a context by name, beyond what its scope opens. The key says who acts."""

    bodies = {"grant": GrantBody, "revoke": RevokeBody}
    answers = {"grant": PersistentContextAnswer, "revoke": PersistentContextAnswer}
    conditional = frozenset({"grant", "revoke"})

    def grant(self, request: Request, context_id: UUID) -> Response:
        """Granting twice is granting once, but for the version."""
        grant, owner, expected = grant_of(self.body()), self.owner(), self.expected()
        return self.once(
            lambda: self.shown(grant_context(owner, context_id, grant, expected=expected, now=timezone.now()))
        )

    def revoke(self, request: Request, context_id: UUID) -> Response:
        """What the context's scope opens to an agent, no revoking takes away."""
        grant, owner, expected = grant_of(self.body()), self.owner(), self.expected()
        return self.once(
            lambda: self.shown(revoke_context(owner, context_id, grant, expected=expected, now=timezone.now()))
        )


def grant_of(body: dict[str, Any]) -> Grant:
    level = body.get("level")
    return Grant(agent_id=body["agent_id"], level=None if level is None else Level(level))
