"""`/contexts`: persistent contexts, long-lived containers of entries. Entries are below `/contexts/{id}/entries`."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import ChoiceFilter, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.access import AccessControlAnswer, AccessControlFields, GrantBody, RevokeBody, access_control_from_body
from memory.api.fields import Metadata, NonBlankText, changed_fields, draft_fields
from memory.api.filters import RowFilter, TextFilter, boolean_filter
from memory.api.views import OwnerViewSet
from memory.models import Level, PersistentContext
from memory.services.contexts.manage import (
    ContextDraft,
    ContextGrant,
    archive_context,
    change_context,
    create_context,
    find_context,
    grant_context,
    revoke_context,
    unarchive_context,
)
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, Text

MAX_NAME_CHARACTERS = 200
MAX_DESCRIPTION_CHARACTERS = 10_000
TYPES, SCOPES = PersistentContext.ContextType.choices, PersistentContext.Scope.choices


class ContextChange(ActingFields):
    name = NonBlankText(required=False, max_length=MAX_NAME_CHARACTERS, help_text="Unique per owning agent and team.")
    description = Text(
        required=False, max_length=MAX_DESCRIPTION_CHARACTERS, allow_blank=True, help_text="Description of it."
    )
    access_control = AccessControlFields(required=False, help_text="Grants to agents. A change replaces all of them.")
    metadata = Metadata(required=False, help_text="Facts of your own about the context. A change replaces all of them.")


class NewContext(ContextChange):
    name = NonBlankText(max_length=MAX_NAME_CHARACTERS, help_text="Unique per owning agent and team.")
    context_type = serializers.ChoiceField(TYPES, required=False, help_text="Default: agent_memory.")
    scope = serializers.ChoiceField(
        SCOPES, required=False, help_text="Range of agents that may use it. Default: agent."
    )
    team = serializers.UUIDField(
        required=False, allow_null=True, help_text="Required for the scope team, else refused."
    )


class PersistentContextAnswer(AnswerSerializer):
    id = serializers.UUIDField()
    name = serializers.CharField()
    description = serializers.CharField()
    context_type = serializers.ChoiceField(TYPES)
    scope = serializers.ChoiceField(SCOPES)
    agent_id = serializers.CharField(help_text="Agent that owns it. Empty: the account.")
    team = serializers.UUIDField(source="team_id", allow_null=True)
    access_control = AccessControlAnswer()
    archived = serializers.BooleanField(help_text="Archived contexts are read-only and left out of searches.")
    version = serializers.IntegerField(help_text="Increases with each change of the context, not of its entries.")
    metadata = serializers.DictField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class PersistentContextFilter(RowFilter):
    context_type = ChoiceFilter(choices=TYPES)
    scope = ChoiceFilter(choices=SCOPES)
    archived = boolean_filter()
    team = UUIDFilter()
    name = TextFilter(max_length=MAX_NAME_CHARACTERS)


class PersistentContexts(OwnerViewSet):
    """An agent sees the contexts that scope, team or a grant opens to it.

    Without an agent, a key sees all of the account's. Only the owner of a context changes, grants and archives it; 403
    for others that see it.
    """

    bodies = {"create": NewContext, "partial_update": ContextChange}
    queries = {"list": ActingFields, "retrieve": ActingFields}
    answer = PersistentContextAnswer
    conditional = frozenset({"retrieve", "partial_update"})
    filterset_class = PersistentContextFilter
    queryset = PersistentContext.objects.none()

    def list(self, request: Request) -> Response:
        """List contexts, latest first, including archived ones."""
        return self.respond_page(PersistentContext.objects.visible_to(self.owner(self.query())))

    def create(self, request: Request) -> Response:
        """Create a context. 409 if the agent has one of this name, 422 for a team that the agent is not in."""
        body = self.body()
        given = draft_fields(ContextDraft, body) | {"access_control": access_control_from_body(body)}
        owner, draft = self.owner(body), ContextDraft(**given, team_id=body.get("team"))
        return self.write_once(lambda: self.respond_with_etag(create_context(owner, draft)))

    def retrieve(self, request: Request, context_id: UUID) -> Response:
        """Return a context without its entries."""
        return self.respond_with_etag(find_context(self.owner(self.query()), context_id))

    def partial_update(self, request: Request, context_id: UUID) -> Response:
        """Change the given fields. Type, scope and team are fixed.

        409 for a change of an archived context, except of its `access_control`.
        """
        body, expected, now = self.body(), self.expected_versions(), timezone.now()
        owner, changes = self.owner(body), changed_fields(body)
        return self.respond_with_etag(change_context(owner, context_id, changes=changes, expected=expected, now=now))


class ContextArchiving(OwnerViewSet):
    """An archived context is read-only and left out of searches. Archiving it again changes nothing."""

    bodies = {"archive": ActingFields, "unarchive": ActingFields}
    answer = PersistentContextAnswer
    conditional = frozenset({"archive", "unarchive"})

    def archive(self, request: Request, context_id: UUID) -> Response:
        """Archive a context."""
        owner, expected = self.owner(self.body()), self.expected_versions()
        return self.write_once(
            lambda: self.respond_with_etag(archive_context(owner, context_id, expected=expected, now=timezone.now()))
        )

    def unarchive(self, request: Request, context_id: UUID) -> Response:
        """Make an archived context usable again."""
        owner, expected = self.owner(self.body()), self.expected_versions()
        return self.write_once(
            lambda: self.respond_with_etag(unarchive_context(owner, context_id, expected=expected, now=timezone.now()))
        )


class ContextGrants(OwnerViewSet):
    """Access for agents by name, in addition to what the context's scope opens. The key determines who acts."""

    bodies = {"grant": GrantBody, "revoke": RevokeBody}
    answer = PersistentContextAnswer
    conditional = frozenset({"grant", "revoke"})

    def grant(self, request: Request, context_id: UUID) -> Response:
        """Grant an agent access. Granting it twice only changes the version."""
        grant, owner, expected = grant_from_body(self.body()), self.owner(), self.expected_versions()
        return self.write_once(
            lambda: self.respond_with_etag(
                grant_context(owner, context_id, grant, expected=expected, now=timezone.now())
            )
        )

    def revoke(self, request: Request, context_id: UUID) -> Response:
        """Revoke what an agent was granted. What the context's scope opens to the agent stays open."""
        grant, owner, expected = grant_from_body(self.body()), self.owner(), self.expected_versions()
        return self.write_once(
            lambda: self.respond_with_etag(
                revoke_context(owner, context_id, grant, expected=expected, now=timezone.now())
            )
        )


def grant_from_body(body: dict[str, Any]) -> ContextGrant:
    level = body.get("level")
    return ContextGrant(agent_id=body["agent_id"], level=None if level is None else Level(level))
