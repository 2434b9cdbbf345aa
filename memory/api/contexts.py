"""`/contexts`: persistent contexts, long-lived containers of entries, with their access logs and snapshots.

A snapshot holds the entries of a context at one time, to be restored. Entries are below `/contexts/{id}/entries`.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import ChoiceFilter, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.access import AccessControlAnswer, AccessControlFields, GrantBody, RevokeBody, access_control_from_body
from memory.api.fields import Metadata, NonBlankText, TimeRangeFields, changed_fields, draft_fields
from memory.api.filters import RowFilter, TextFilter, boolean_filter, filter_rows
from memory.api.views import OwnerViewSet, VersionedViewSet
from memory.models import ContextAccessLog, ContextSnapshot, PersistentContext
from memory.services.contexts.access_log import access_logs
from memory.services.contexts.manage import (
    ContextDraft,
    archive_context,
    change_context,
    create_context,
    find_context,
    grant_context,
    revoke_context,
    unarchive_context,
)
from memory.services.contexts.snapshots import (
    RestorePreview,
    RestoreStep,
    create_snapshot,
    delete_snapshot,
    find_snapshot,
    list_snapshots,
    plan_restore,
    restore_snapshot,
    summarize_steps,
    texts_to_restore,
)
from memory.services.custody.single import erase_context
from memory.services.embedding.embed import embed_texts
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, ExternalId, Text

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
    columns = columns_of(PersistentContext, "id name description context_type scope metadata created_at updated_at")
    agent_id = serializers.CharField(help_text="Agent that owns it. Empty: the account.")
    team = serializers.UUIDField(source="team_id", allow_null=True)
    access_control = AccessControlAnswer()
    archived = serializers.BooleanField(help_text="Archived contexts are read-only and left out of searches.")
    version = serializers.IntegerField(help_text="Increases with each change of the context, not of its entries.")


class PersistentContextFilter(RowFilter):
    context_type = ChoiceFilter(choices=TYPES)
    scope = ChoiceFilter(choices=SCOPES)
    archived = boolean_filter()
    team = UUIDFilter()
    name = TextFilter(max_length=MAX_NAME_CHARACTERS)


class PersistentContexts(VersionedViewSet):
    """An agent sees the contexts that scope, team or a grant opens to it.

    Without an agent, a key sees all of the account's. Only the owner of a context changes, grants and archives it; 403
    for others that see it.
    """

    bodies = {"create": NewContext, "partial_update": ContextChange}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
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
        return self.write_row(create_context, owner, draft)

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

    def destroy(self, request: Request, context_id: UUID) -> Response:
        """Erase a context with its entries, their history, its snapshots and its access log. 403 for other agents."""
        erase_context(self.owner(self.query()), context_id, now=timezone.now())
        return Response(status=204)


class ContextArchiving(VersionedViewSet):
    """An archived context is read-only and left out of searches. Archiving it again changes nothing."""

    bodies = {"archive": ActingFields, "unarchive": ActingFields}
    answer = PersistentContextAnswer
    conditional = frozenset({"archive", "unarchive"})

    def archive(self, request: Request, context_id: UUID) -> Response:
        """Archive a context."""
        owner, expected = self.owner(self.body()), self.expected_versions()
        return self.write_row(archive_context, owner, context_id, expected=expected, now=timezone.now())

    def unarchive(self, request: Request, context_id: UUID) -> Response:
        """Make an archived context usable again."""
        owner, expected = self.owner(self.body()), self.expected_versions()
        return self.write_row(unarchive_context, owner, context_id, expected=expected, now=timezone.now())


class ContextGrants(VersionedViewSet):
    """Access for agents by name, in addition to what the context's scope opens. The key determines who acts."""

    operation_ids = {"grant": "grant_context_access", "revoke": "revoke_context_access"}
    bodies = {"grant": GrantBody, "revoke": RevokeBody}
    answer = PersistentContextAnswer
    conditional = frozenset({"grant", "revoke"})

    def grant(self, request: Request, context_id: UUID) -> Response:
        """Grant an agent access. Granting it twice only changes the version."""
        body, owner, expected = self.body(), self.owner(), self.expected_versions()
        return self.write_row(grant_context, owner, context_id, **body, expected=expected, now=timezone.now())

    def revoke(self, request: Request, context_id: UUID) -> Response:
        """Revoke what an agent was granted. What the context's scope opens to the agent stays open."""
        body, owner, expected = self.body(), self.owner(), self.expected_versions()
        return self.write_row(revoke_context, owner, context_id, **body, expected=expected, now=timezone.now())


LOOKUPS = {
    "entry_id": "entry_id",
    "accessed_by": "agent_id",
    "action": "action",
    "since": "accessed_at__gte",
    "until": "accessed_at__lt",
}


class AccessLogQuery(ActingFields, TimeRangeFields):
    entry_id = serializers.UUIDField(required=False, help_text="Limit to this entry.")
    accessed_by = ExternalId(required=False, help_text="Limit to this agent.")
    action = serializers.ChoiceField(ContextAccessLog.Action.choices, required=False, help_text="Limit to this action.")


class AccessLogAnswer(AnswerSerializer):
    columns = columns_of(ContextAccessLog, "id action accessed_at")
    entry_id = serializers.UUIDField(allow_null=True, help_text="Null for the action `lost`.")
    agent_id = serializers.CharField(help_text="Agent that read or wrote. Empty: the account.")
    actor = serializers.CharField(help_text="Accountable party: `key:<prefix>` or `staff:<name>`.")
    count = serializers.IntegerField(help_text="Number of lost lines for the action `lost`, 1 for all others.")


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


MAX_EDITOR_CHARACTERS = 150
MAX_STEPS = 200
"""The entries of each sort that a preview lists. It counts all."""


class NewSnapshot(ActingFields):
    name = Text(required=False, max_length=MAX_NAME_CHARACTERS, allow_blank=True, help_text="Need not be unique.")


class RestoreBody(ActingFields):
    editor = ExternalId(required=False, max_length=MAX_EDITOR_CHARACTERS, help_text="Default: the acting agent.")


class SnapshotAnswer(AnswerSerializer):
    columns = columns_of(ContextSnapshot, "id context_id created_at")
    name = serializers.CharField(help_text="May be empty.")
    agent_id = serializers.CharField(help_text="Agent that made it. Empty: the account.")
    entry_count = serializers.IntegerField(help_text="Number of entries in it.")


class StepAnswer(AnswerSerializer):
    entry_id = serializers.UUIDField()
    key = serializers.CharField(help_text="May be empty.")
    from_version = serializers.IntegerField(help_text="Present version of the entry.")
    to_version = serializers.IntegerField(allow_null=True, help_text="Version that is restored. Null: it is archived.")
    is_reworded = serializers.BooleanField(help_text="True if its content changes, as a new version.")
    is_reweighed = serializers.BooleanField(help_text="True if its importance or confidence changes.")
    is_relabelled = serializers.BooleanField(help_text="True if its types, metadata or source change.")


class RestoreCountFields(AnswerSerializer):
    changed = serializers.IntegerField(help_text="Entries with other content, weights, types, source or metadata.")
    returned = serializers.IntegerField(help_text="Number of removed entries that come back.")
    removed = serializers.IntegerField(help_text="Number of entries that the snapshot lacks. They are archived.")
    unchanged = serializers.IntegerField(help_text="Number of entries that stay as they are.")
    missing = serializers.IntegerField(help_text="Number of entries that are gone: deleted, expired or withheld.")


class PreviewAnswer(RestoreCountFields):
    steps = StepAnswer(many=True, help_text=f"At most {MAX_STEPS} of each sort: changed, returned, removed.")


class SnapshotWithPreview(SnapshotAnswer):
    restore = PreviewAnswer(help_text="Changes that restoring would make now.")


class RestoredAnswer(RestoreCountFields):
    snapshot_id = serializers.UUIDField()
    context_id = serializers.UUIDField()


def serialize_preview(preview: RestorePreview) -> dict[str, Any]:
    sorts: dict[str, Sequence[RestoreStep]] = {
        "changed": preview.changed,
        "returned": preview.returned,
        "removed": preview.removed,
    }
    steps = [StepAnswer.serialize(step) for listed in sorts.values() for step in listed[:MAX_STEPS]]
    return PreviewAnswer.serialize(preview, {name: len(listed) for name, listed in sorts.items()} | {"steps": steps})


class Snapshots(OwnerViewSet):
    """Snapshots, for readers of the context. Its writers make and restore them, its managers delete them."""

    bodies = {"create": NewSnapshot, "restore": RestoreBody}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answer = SnapshotAnswer
    answers = {"retrieve": SnapshotWithPreview, "restore": RestoredAnswer}

    def list(self, request: Request, context_id: UUID) -> Response:
        """List snapshots, latest first."""
        return self.respond_page(list_snapshots(self.owner(self.query()), context_id))

    def create(self, request: Request, context_id: UUID) -> Response:
        """Record what the context holds. 409 if it is archived."""
        body, owner = self.body_and_owner()
        return self.write_row(create_snapshot, owner, context_id, name=body.get("name", ""), now=timezone.now())

    def retrieve(self, request: Request, context_id: UUID, snapshot_id: UUID) -> Response:
        """Return a snapshot with what restoring it would do now."""
        snapshot = find_snapshot(self.owner(self.query()), context_id, snapshot_id)
        preview = summarize_steps(snapshot, plan_restore(snapshot, now=timezone.now()))
        return self.respond(snapshot, {"restore": serialize_preview(preview)})

    def destroy(self, request: Request, context_id: UUID, snapshot_id: UUID) -> Response:
        """Delete a snapshot. The entries stay as they are. 409 if the context is archived."""
        delete_snapshot(self.owner(self.query()), context_id, snapshot_id)
        return Response(status=204)

    def restore(self, request: Request, context_id: UUID, snapshot_id: UUID) -> Response:
        """Make the context hold exactly what the snapshot has. All versions stay. 409 if the context is archived.

        Other content comes back as a new version, and entries made since are archived. Searches find restored content
        by its words immediately, and by its meaning once it is embedded: up to 200 texts before the answer.
        """
        body = self.body()
        owner, editor = self.owner(body), body.get("editor", "")
        embedded = embed_texts(texts_to_restore(owner, context_id, snapshot_id, now=timezone.now()))

        def write() -> Response:
            done = restore_snapshot(
                owner, context_id, snapshot_id, editor=editor, embedded=embedded, now=timezone.now()
            )
            return self.respond(done, {"snapshot_id": snapshot_id, "context_id": context_id})

        return self.write_once(write)
