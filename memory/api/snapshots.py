"""`/contexts/{context_id}/snapshots`: what a context held at a moment, and the way back to it."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.models import ContextSnapshot
from memory.services.contexts.snapshots import (
    Preview,
    Step,
    create_snapshot,
    delete_snapshot,
    find_snapshot,
    plan_restore,
    preview_of,
    restore_snapshot,
    snapshots,
    texts_to_restore,
)
from memory.services.embedding.embed import embed_texts
from memory_project.http.serializers import ActingFields, ExternalId, Text

LONGEST_NAME = 200
LONGEST_EDITOR = 150
MOST_STEPS = 200
"""Entries that a preview lists of each sort; it counts all."""


class NewSnapshot(ActingFields):
    name = Text(required=False, max_length=LONGEST_NAME, allow_blank=True, help_text="Need not be the only one.")


class RestoreBody(ActingFields):
    editor = ExternalId(
        required=False, max_length=LONGEST_EDITOR, help_text="Of the new versions; the acting agent by default."
    )


class SnapshotAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    context_id = serializers.UUIDField()
    name = serializers.CharField(help_text="May be empty.")
    agent_id = serializers.CharField(help_text="Who made it; empty for the account.")
    entry_count = serializers.IntegerField(help_text="How many entries there were.")
    created_at = serializers.DateTimeField()


class StepAnswer(serializers.Serializer[Any]):
    entry_id = serializers.UUIDField()
    key = serializers.CharField(help_text="May be empty.")
    from_version = serializers.IntegerField(help_text="The version that it is at.")
    to_version = serializers.IntegerField(
        allow_null=True, help_text="The version whose content it is to have; null where it is to be archived."
    )
    is_reworded = serializers.BooleanField(help_text="Whether it gets other content, as a new version.")
    is_reweighed = serializers.BooleanField(help_text="Whether it gets another importance or confidence.")
    is_relabelled = serializers.BooleanField(help_text="Whether it gets other types, metadata or another source.")


class Counts(serializers.Serializer[Any]):
    changed = serializers.IntegerField(help_text="Entries with other content, weights, types, source or metadata.")
    returned = serializers.IntegerField(help_text="Removed entries that come back.")
    removed = serializers.IntegerField(help_text="Entries that the snapshot does not have: they are archived.")
    unchanged = serializers.IntegerField()
    missing = serializers.IntegerField(help_text="Entries of the snapshot that are gone: deleted, expired or withheld.")


class PreviewAnswer(Counts):
    steps = StepAnswer(many=True, help_text=f"At most {MOST_STEPS} of each sort: changed, returned, removed.")


class SnapshotWithPreview(SnapshotAnswer):
    restore = PreviewAnswer(help_text="What a restore would do now.")


class RestoredAnswer(Counts):
    snapshot_id = serializers.UUIDField()
    context_id = serializers.UUIDField()


def represent_snapshot(snapshot: ContextSnapshot) -> dict[str, Any]:
    return {name: getattr(snapshot, name) for name in SnapshotAnswer._declared_fields}


def represent_steps(steps: Sequence[Step]) -> list[dict[str, Any]]:
    return [{name: getattr(step, name) for name in StepAnswer._declared_fields} for step in steps[:MOST_STEPS]]


def represent_preview(preview: Preview) -> dict[str, Any]:
    return {
        "changed": len(preview.changed),
        "returned": len(preview.returned),
        "removed": len(preview.removed),
        "unchanged": preview.unchanged,
        "missing": preview.missing,
        "steps": [
            step for sort in (preview.changed, preview.returned, preview.removed) for step in represent_steps(sort)
        ],
    }


class Snapshots(OwnerViewSet):
    """For whoever may read the context; made and restored by who may write to it, deleted by who manages it."""

    bodies = {"create": NewSnapshot, "restore": RestoreBody}
    queries = {"list": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answers = {
        "list": SnapshotAnswer,
        "create": SnapshotAnswer,
        "retrieve": SnapshotWithPreview,
        "restore": RestoredAnswer,
    }
    statuses = {"create": 201, "destroy": 204}
    problems = {"destroy": (409,)}

    def list(self, request: Request, context_id: UUID) -> Response:
        """Newest first."""
        return self.page(snapshots(self.owner(self.query()), context_id), represent_snapshot)

    def create(self, request: Request, context_id: UUID) -> Response:
        """Note what the context holds. 409 where it is archived."""
        body = self.body()
        owner, name = self.owner(body), body.get("name", "")

        def write() -> Response:
            made = create_snapshot(owner, context_id, name=name, now=timezone.now())
            return Response(represent_snapshot(made), status=201)

        return self.once(write)

    def retrieve(self, request: Request, context_id: UUID, snapshot_id: UUID) -> Response:
        """With what a restore would do, as things are."""
        snapshot = find_snapshot(self.owner(self.query()), context_id, snapshot_id)
        preview = preview_of(snapshot, plan_restore(snapshot, now=timezone.now()))
        return Response(represent_snapshot(snapshot) | {"restore": represent_preview(preview)})

    def destroy(self, request: Request, context_id: UUID, snapshot_id: UUID) -> Response:
        """Its entries stay as they are. 409 where the context is archived."""
        delete_snapshot(self.owner(self.query()), context_id, snapshot_id)
        return Response(status=204)

    def restore(self, request: Request, context_id: UUID, snapshot_id: UUID) -> Response:
        """Make the context hold exactly what the snapshot has; all versions stay. 409 where it is archived.

        Other content comes back as a new version, entries made since are archived. Entries that get other content are
        found by their words at once, and by their meaning once they are embedded: up to 200 texts, before this answers.
        """
        body = self.body()
        owner, editor = self.owner(body), body.get("editor", "")
        embedded = embed_texts(texts_to_restore(owner, context_id, snapshot_id, now=timezone.now()))

        def write() -> Response:
            done = restore_snapshot(
                owner, context_id, snapshot_id, editor=editor, embedded=embedded, now=timezone.now()
            )
            counts = {name: getattr(done, name) for name in Counts._declared_fields}
            return Response({"snapshot_id": snapshot_id, "context_id": context_id} | counts)

        return self.once(write)
