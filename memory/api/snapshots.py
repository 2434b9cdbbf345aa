"""`/contexts/{context_id}/snapshots`: the entries of a context at one time, and restoring them."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
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
from memory.services.embedding.embed import embed_texts
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, ExternalId, Text

MAX_NAME_CHARACTERS = 200
MAX_EDITOR_CHARACTERS = 150
MAX_STEPS = 200
"""The entries of each sort that a preview lists. It counts all."""


class NewSnapshot(ActingFields):
    name = Text(required=False, max_length=MAX_NAME_CHARACTERS, allow_blank=True, help_text="Need not be unique.")


class RestoreBody(ActingFields):
    editor = ExternalId(required=False, max_length=MAX_EDITOR_CHARACTERS, help_text="Default: the acting agent.")


class SnapshotAnswer(AnswerSerializer):
    id = serializers.UUIDField()
    context_id = serializers.UUIDField()
    name = serializers.CharField(help_text="May be empty.")
    agent_id = serializers.CharField(help_text="Agent that made it. Empty: the account.")
    entry_count = serializers.IntegerField(help_text="Number of entries in it.")
    created_at = serializers.DateTimeField()


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
    problems = {"destroy": (409,)}

    def list(self, request: Request, context_id: UUID) -> Response:
        """List snapshots, latest first."""
        return self.respond_page(list_snapshots(self.owner(self.query()), context_id))

    def create(self, request: Request, context_id: UUID) -> Response:
        """Record what the context holds. 409 if it is archived."""
        body = self.body()
        owner, name = self.owner(body), body.get("name", "")
        return self.write_once(lambda: self.respond(create_snapshot(owner, context_id, name=name, now=timezone.now())))

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
