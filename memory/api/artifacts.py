"""`/artifacts`: documents, files and other things that work produces or uses, by revision, with their origins."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    BoundedIds,
    EmbeddingState,
    EventTime,
    MemoryFields,
    Metadata,
    OwnerFields,
    changed_fields,
    draft_fields,
)
from memory.api.filters import RowFilter, TextFilter
from memory.api.vectors import VectorFields, read_vector
from memory.api.views import OwnerViewSet
from memory.models import Artifact, TurnRecord
from memory.services.artifacts.change import change_artifact, changed_artifact_text, delete_artifact
from memory.services.artifacts.read import (
    ArtifactLineage,
    ArtifactLink,
    ArtifactView,
    artifact_description,
    artifacts_in_channels,
    find_artifact,
    read_artifact_lineage,
    view_artifact,
)
from memory.services.artifacts.store import (
    MAX_DIGEST_CHARACTERS,
    MAX_LABEL_CHARACTERS,
    MAX_REFERENCES,
    MAX_TITLE_CHARACTERS,
    MAX_TYPE_CHARACTERS,
    MAX_URI_CHARACTERS,
    ArtifactDraft,
    complete_draft,
    find_uri_error,
    store_artifact,
)
from memory.services.embedding.embed import embed_texts
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ExternalId, Text

MAX_DESCRIPTION_CHARACTERS = 10_000


class UriField(ExternalId):
    """A path or URI that is safe to show: no browser runs it as a script."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_URI_CHARACTERS, **options)

    def to_internal_value(self, data: Any) -> str:
        uri = super().to_internal_value(data)
        if reason := find_uri_error(uri):
            raise serializers.ValidationError(f"{reason[0].upper()}{reason[1:]}.")
        return uri


class LineField(ExternalId):
    """A text of one line. Optional."""

    def __init__(self, *, max_length: int, **options: Any) -> None:
        super().__init__(max_length=max_length, required=False, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if len(text.splitlines()) > 1:
            self.fail("control")
        return text


class EditableArtifactFields(OwnerFields, VectorFields):
    """The fields of an artifact that clients set when they store it and may change later."""

    title = LineField(max_length=MAX_TITLE_CHARACTERS, help_text="Title, in one line.")
    description = Text(
        required=False, allow_blank=True, max_length=MAX_DESCRIPTION_CHARACTERS, help_text="Description of it."
    )
    type = LineField(max_length=MAX_TYPE_CHARACTERS, help_text="Kind of artifact, such as `document`.")
    metadata = Metadata(required=False, help_text="Facts of your own about it. A change replaces all of them.")


class NewArtifact(EditableArtifactFields):
    uri = UriField(help_text="Path or URI, chosen by you. The same URI again is the same artifact.")
    digest = LineField(
        max_length=MAX_DIGEST_CHARACTERS, help_text="Hash of the content. Another one makes a new revision."
    )
    label = LineField(  # type: ignore[assignment]  # the contract's name, and a field's attribute too
        max_length=MAX_LABEL_CHARACTERS, help_text="Your name of the revision. Another one makes a new revision."
    )
    record_id = serializers.UUIDField(required=False, help_text="Structured turn that produced it.")
    goal_id = serializers.UUIDField(required=False, help_text="Goal that it is for. Default: the record's goal.")
    about = BoundedIds(max_length=MAX_REFERENCES, help_text="Memories that it is about.")
    derived_from = BoundedIds(max_length=MAX_REFERENCES, help_text="Artifacts that it was derived from.")
    event_time = EventTime("Time when the revision was made, at most 5 minutes in the future. Default: now.")


class ArtifactChange(EditableArtifactFields):
    goal_id = serializers.UUIDField(required=False, allow_null=True, help_text="Goal that it is for. Null: none.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "embedding" in attrs and not {"title", "description"} & set(attrs):
            raise serializers.ValidationError({"embedding": ["Send the vector together with a title or description."]})
        return attrs


class ArtifactsQuery(OwnerFields):
    revisions = serializers.ChoiceField(["latest", "all"], default="latest", help_text="Revisions of each artifact.")


class RevisionAnswer(AnswerSerializer):
    columns = columns_of(Artifact, "id label digest is_latest created_at")
    revision = serializers.IntegerField(help_text="Number of the revision, from 1.")


class StoredArtifact(MemoryFields, RevisionAnswer):
    columns = columns_of(Artifact, "uri title metadata event_time updated_at")
    conversation_id = serializers.CharField(help_text="Conversation in which it was produced. May be empty.")
    type = serializers.CharField(source="artifact_type")
    description = serializers.CharField()
    record_id = serializers.UUIDField(
        source="source_record_id", allow_null=True, help_text="Structured turn that produced it."
    )
    goal_id = serializers.UUIDField(source="for_goal_id", allow_null=True, help_text="Goal that it is for.")
    version = serializers.IntegerField(help_text="Increases by one with each change of this revision.")
    embedding = EmbeddingState()

    @staticmethod
    def compute_description(artifact: Artifact) -> str:
        return artifact_description(artifact)


class ProducingRecord(AnswerSerializer):
    columns = columns_of(TurnRecord, "id conversation_id number event_time")
    status = serializers.CharField()


class ServedGoal(AnswerSerializer):
    id = serializers.UUIDField()
    description = serializers.CharField(source="text")
    status = serializers.CharField()


class LinkedMemory(AnswerSerializer):
    type = serializers.CharField(help_text="Type of the link.")
    direction = serializers.ChoiceField(["out", "in"], help_text="`out`: from the artifact to the memory.")
    id = serializers.UUIDField(source="memory.id")
    item_key = serializers.CharField(source="memory.item_key")
    kind = serializers.CharField(source="memory.kind")
    label = serializers.CharField(help_text="Beginning of its text. Empty for structured turns.")  # type: ignore[assignment]

    @staticmethod
    def compute_direction(linked: ArtifactLink) -> str:
        return "out" if linked.is_out else "in"


class ArtifactContext(AnswerSerializer):
    """The rows around an artifact, read from an ArtifactView."""

    record = ProducingRecord(allow_null=True, help_text="Null also if the agent takes no part in its conversation.")
    goal = ServedGoal(allow_null=True)
    links = LinkedMemory(many=True, help_text="Latest first.")
    revisions = RevisionAnswer(many=True, help_text="All revisions including this one, latest first.")
    truncated = serializers.BooleanField(help_text="True if there are more links or revisions.")


class ArtifactAround(StoredArtifact, ArtifactContext):
    """An artifact with the rows around it."""


class LineageArtifact(RevisionAnswer):
    step = serializers.IntegerField(
        help_text="Distance from the artifact asked for. Negative: it is an ancestor of that one."
    )
    uri = serializers.CharField()
    type = serializers.CharField(source="artifact_type")
    title = serializers.CharField()


class LineageLink(AnswerSerializer):
    # as above
    source = serializers.UUIDField(source="source_id", help_text="The later artifact.")  # type: ignore[assignment]
    target = serializers.UUIDField(source="target_id")
    type = serializers.ChoiceField(["SUPERSEDES", "DERIVED_FROM"])


class LineageAnswer(AnswerSerializer):
    artifacts = LineageArtifact(many=True, help_text="Earliest first, with the artifact itself at step 0.")
    links = LineageLink(many=True)
    truncated = serializers.BooleanField(help_text="True if a limit was reached: there may be more.")

    @staticmethod
    def compute_artifacts(lineage: ArtifactLineage) -> list[dict[str, Any]]:
        return [LineageArtifact.serialize(artifact, {"step": step}) for step, artifact in lineage.artifacts]


class ArtifactFilter(RowFilter):
    uri = TextFilter(max_length=MAX_URI_CHARACTERS)
    uri_prefix = TextFilter(field_name="uri", lookup_expr="startswith", max_length=MAX_URI_CHARACTERS)
    type = TextFilter(field_name="artifact_type", max_length=MAX_TYPE_CHARACTERS)
    conversation_id = TextFilter()
    record_id = UUIDFilter(
        field_name="source_record_id", label="Limit to artifacts that this structured turn produced."
    )
    goal_id = UUIDFilter(field_name="for_goal_id", label="Limit to artifacts for this goal.")


class Artifacts(OwnerViewSet):
    """Artifacts of the user, those of no user that the agent stored, and the account's.

    Without a user, all that the agent stored. 403 for changes of the account's artifacts by an agent.
    """

    operation_ids = {"lineage": "get_artifact_lineage"}
    for_users = True
    bodies = {"create": NewArtifact, "partial_update": ArtifactChange}
    queries = {
        "list": ArtifactsQuery,
        "retrieve": OwnerFields,
        "destroy": OwnerFields,
        "lineage": OwnerFields,
    }
    answer = StoredArtifact
    answers = {"retrieve": ArtifactAround, "lineage": LineageAnswer}
    statuses = {"create": (201, 200)}
    # `retrieve` is missing: the rows around it change, and its vector may be made, under the same ETag
    conditional = frozenset({"partial_update", "destroy"})
    filterset_class = ArtifactFilter
    queryset = Artifact.objects.none()

    def list(self, request: Request) -> Response:
        """List artifacts of the channel and of `_global`, latest first."""
        query = self.query()
        rows = artifacts_in_channels(self.owner(query), now=timezone.now())
        if query["revisions"] == "latest":
            rows = rows.filter(is_latest=True)
        return self.respond_page(rows)

    def create(self, request: Request) -> Response:
        """Store an artifact, or its next revision if digest or label differ from the latest one (201).

        Otherwise the latest revision is returned (200), and gains what it lacked. A new revision inherits what is not
        sent. 422 for a record, goal, memory or artifact that does not exist, 409 for a quarantined artifact.
        """
        body, owner = self.body_and_owner()
        given = ArtifactDraft(own=read_vector(owner, body), **draft_fields(ArtifactDraft, body))
        draft = complete_draft(owner, given)
        embedded = embed_texts([] if draft.own else [draft.text])

        def write() -> Response:
            kept = store_artifact(owner, draft, embedded=embedded, now=timezone.now())
            return self.respond_with_etag(kept.artifact, status=201 if kept.is_new else 200)

        return self.write_once(write)

    def retrieve(self, request: Request, artifact_id: UUID) -> Response:
        """Return an artifact with its record, its goal, its links and its revisions."""
        view: ArtifactView = view_artifact(self.owner(self.query()), artifact_id, now=timezone.now())
        return self.respond_with_etag(view.artifact, ArtifactContext.serialize(view))

    def partial_update(self, request: Request, artifact_id: UUID) -> Response:
        """Change the given fields of this revision. Equal values change nothing.

        For another digest or label, POST a new revision.
        """
        body, expected, now = self.body(), self.expected_versions(), timezone.now()
        owner, changes = self.owner(body), changed_fields(body)
        own = read_vector(owner, body)
        if "goal_id" in changes:
            changes["goal"] = changes.pop("goal_id")
        text = changed_artifact_text(find_artifact(owner, artifact_id, now=now), changes)
        embedded = embed_texts([] if own or not {"title", "description"} & set(changes) else [text])
        return self.respond_with_etag(
            change_artifact(owner, artifact_id, changes=changes, embedded=embedded, own=own, expected=expected, now=now)
        )

    def destroy(self, request: Request, artifact_id: UUID) -> Response:
        """Delete this revision for good. If it was the latest, the one before becomes the latest."""
        delete_artifact(self.owner(self.query()), artifact_id, expected=self.expected_versions(), now=timezone.now())
        return Response(status=204)

    def lineage(self, request: Request, artifact_id: UUID) -> Response:
        """Return the revisions and artifacts that it came from and those that came from it, up to 200 each way."""
        return self.respond(read_artifact_lineage(self.owner(self.query()), artifact_id, now=timezone.now()))
