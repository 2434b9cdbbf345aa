"""`/artifacts`: what work produces or goes by, revision by revision, and what came from what."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import CharFilter, FilterSet, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.episodic import own_vector
from memory.api.fields import Metadata, OwnerFields
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.models import Artifact, Link
from memory.owner import Owner
from memory.services.artifacts.change import change_artifact, changed_text, delete_artifact
from memory.services.artifacts.rows import LONGEST_URI, description_of, find_artifact, refusal_of
from memory.services.artifacts.store import (
    LONGEST_DIGEST,
    LONGEST_LABEL,
    LONGEST_TITLE,
    LONGEST_TYPE,
    MOST_NAMED,
    ArtifactDraft,
    Kept,
    complete_draft,
    keep_artifact,
    listed_artifacts,
)
from memory.services.artifacts.view import ArtifactLineage, ArtifactView, Linked, artifact_lineage, view_artifact
from memory.services.embedding.embed import embed_texts
from memory_project.http.conditional import etag_of
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import BoundedList, ExternalId, Text

LONGEST_DESCRIPTION = 10_000

OWN_VECTOR = "A vector of your own, instead of the service's."
OWN_MODEL = "Of which model it is; the configured one by default."


class Uri(ExternalId):
    """A path or URI that nobody's browser runs."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=LONGEST_URI, **options)

    def to_internal_value(self, data: Any) -> str:
        uri = super().to_internal_value(data)
        if reason := refusal_of(uri):
            raise serializers.ValidationError(f"{reason[0].upper()}{reason[1:]}.")
        return uri


class Title(ExternalId):
    """One line."""

    def __init__(self, *, max_length: int, **options: Any) -> None:
        super().__init__(max_length=max_length, required=False, allow_blank=True, **options)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if len(text.splitlines()) > 1:
            self.fail("control")
        return text


class NewArtifact(OwnerFields):
    uri = Uri(help_text="A path or a URI, as you name it: the same again is the same artifact.")
    type = Title(max_length=LONGEST_TYPE, help_text="What kind of thing it is, such as `document`.")
    title = Title(max_length=LONGEST_TITLE)
    description = Text(required=False, allow_blank=True, max_length=LONGEST_DESCRIPTION)
    digest = Title(max_length=LONGEST_DIGEST, help_text="The hash of its content: another one is another revision.")
    label = Title(  # type: ignore[assignment]  # the contract's name, and a field's attribute too
        max_length=LONGEST_LABEL, help_text="Your own name of the revision; another is another revision."
    )
    record_id = serializers.UUIDField(required=False, help_text="The structured turn that produced it.")
    goal_id = serializers.UUIDField(required=False, help_text="What it is for; the record's goal by default.")
    about = BoundedList(
        child=serializers.UUIDField(), max_length=MOST_NAMED, required=False, help_text="Memories that it is about."
    )
    derived_from = BoundedList(
        child=serializers.UUIDField(), max_length=MOST_NAMED, required=False, help_text="Artifacts that it came from."
    )
    metadata = Metadata(required=False)
    embedding = EmbeddingField(required=False, help_text=OWN_VECTOR)
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)


class ArtifactChange(OwnerFields):
    title = Title(max_length=LONGEST_TITLE)
    description = Text(required=False, allow_blank=True, max_length=LONGEST_DESCRIPTION)
    type = Title(max_length=LONGEST_TYPE)
    goal_id = serializers.UUIDField(required=False, allow_null=True, help_text="Null for none.")
    metadata = Metadata(required=False, help_text="In place of what there is.")
    embedding = EmbeddingField(required=False, help_text="Of the changed text, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "embedding" in attrs and not {"title", "description"} & set(attrs):
            raise serializers.ValidationError({"embedding": ["Goes with a title or a description only."]})
        return attrs


class ArtifactsQuery(OwnerFields):
    revisions = serializers.ChoiceField(["latest", "all"], default="latest", help_text="Of each, the latest, or all.")


class StoredArtifact(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField(help_text="Who stored it; empty for the account.")
    user_id = serializers.CharField(help_text="Whose it is; empty for nobody's in particular.")
    channel = serializers.CharField()
    conversation_id = serializers.CharField(help_text="In which it was produced; may be empty.")
    uri = serializers.CharField()
    type = serializers.CharField()
    title = serializers.CharField()
    description = serializers.CharField()
    digest = serializers.CharField()
    revision = serializers.IntegerField(help_text="From 1.")
    label = serializers.CharField()  # type: ignore[assignment]  # as above
    is_latest = serializers.BooleanField()
    record_id = serializers.UUIDField(allow_null=True, help_text="The structured turn that produced it.")
    goal_id = serializers.UUIDField(allow_null=True)
    metadata = serializers.DictField()
    version = serializers.IntegerField(help_text="One more with each change of this revision.")
    event_time = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")


class ProducingRecord(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    conversation_id = serializers.CharField()
    number = serializers.IntegerField()
    status = serializers.CharField()
    event_time = serializers.DateTimeField()


class ServedGoal(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    description = serializers.CharField()
    status = serializers.CharField()


class LinkedMemory(serializers.Serializer[Any]):
    type = serializers.CharField(help_text="Of the link.")
    direction = serializers.ChoiceField(["out", "in"], help_text="`out`: from the artifact to the memory.")
    id = serializers.UUIDField()
    item_key = serializers.CharField()
    kind = serializers.CharField()
    label = serializers.CharField(help_text="How it begins; empty of structured turns.")  # type: ignore[assignment]


class Revision(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    revision = serializers.IntegerField()
    label = serializers.CharField()  # type: ignore[assignment]  # as above
    digest = serializers.CharField()
    is_latest = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class ArtifactAround(StoredArtifact):
    record = ProducingRecord(allow_null=True, help_text="Null, too, where the agent takes no part in it.")
    goal = ServedGoal(allow_null=True)
    links = LinkedMemory(many=True, help_text="The newest first.")
    revisions = Revision(many=True, help_text="Itself among them, the newest first.")
    truncated = serializers.BooleanField(help_text="There are more links, or more revisions.")


class LineageArtifact(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    step = serializers.IntegerField(help_text="How far from the one asked for: below zero, it came from that.")
    uri = serializers.CharField()
    type = serializers.CharField()
    title = serializers.CharField()
    revision = serializers.IntegerField()
    label = serializers.CharField()  # type: ignore[assignment]  # as above
    digest = serializers.CharField()
    is_latest = serializers.BooleanField()
    created_at = serializers.DateTimeField()


class LineageLink(serializers.Serializer[Any]):
    source = serializers.UUIDField(help_text="What came later.")  # type: ignore[assignment]  # as above
    target = serializers.UUIDField()
    type = serializers.ChoiceField(["SUPERSEDES", "DERIVED_FROM"])


class LineageAnswer(serializers.Serializer[Any]):
    artifacts = LineageArtifact(many=True, help_text="The earliest first, itself at step 0.")
    links = LineageLink(many=True)
    truncated = serializers.BooleanField(help_text="A bound was met: there may be more.")


COLUMNS = (
    *("item_key", "agent_id", "user_id", "channel", "conversation_id", "uri", "title", "digest", "revision", "label"),
    *("is_latest", "record_id", "metadata", "version", "event_time", "created_at", "updated_at"),
)
REVISION = ("revision", "label", "digest", "is_latest", "created_at")


def represent_artifact(artifact: Artifact) -> dict[str, Any]:
    return {name: getattr(artifact, name) for name in COLUMNS} | {
        "id": str(artifact.id),
        "type": artifact.artifact_type,
        "description": description_of(artifact),
        "goal_id": artifact.for_goal_id,
        "embedding": "stored" if artifact.embed_after is None else "pending",
    }


def represent_revision(artifact: Artifact) -> dict[str, Any]:
    return {name: getattr(artifact, name) for name in REVISION} | {"id": str(artifact.id)}


def represent_linked(linked: Linked) -> dict[str, Any]:
    memory = linked.memory
    told = {"id": str(memory.id), "item_key": memory.item_key, "kind": memory.kind, "label": linked.label}
    return {"type": linked.type, "direction": "out" if linked.is_out else "in"} | told


def represent_view(view: ArtifactView) -> dict[str, Any]:
    record, goal = view.record, view.goal
    told = ("conversation_id", "number", "status", "event_time")
    return represent_artifact(view.artifact) | {
        "record": record and {"id": str(record.id)} | {name: getattr(record, name) for name in told},
        "goal": goal and {"id": str(goal.id), "description": goal.text, "status": goal.status},
        "links": [represent_linked(linked) for linked in view.links],
        "revisions": [represent_revision(each) for each in view.revisions],
        "truncated": view.truncated,
    }


def represent_lineage(lineage: ArtifactLineage) -> dict[str, Any]:
    return {
        "artifacts": [
            represent_revision(each) | {"step": step, "uri": each.uri, "type": each.artifact_type, "title": each.title}
            for step, each in lineage.artifacts
        ],
        "links": [represent_link(link) for link in lineage.links],
        "truncated": lineage.truncated,
    }


def represent_link(link: Link) -> dict[str, Any]:
    return {"source": str(link.source_id), "target": str(link.target_id), "type": link.type}


class ArtifactFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    uri = CharFilter(max_length=LONGEST_URI, strip=False)
    uri_prefix = CharFilter(field_name="uri", lookup_expr="startswith", max_length=LONGEST_URI, strip=False)
    type = CharFilter(field_name="artifact_type", max_length=LONGEST_TYPE, strip=False)
    conversation_id = CharFilter(max_length=LONGEST_ID, strip=False)
    record_id = UUIDFilter(label="Produced by this structured turn.")
    goal_id = UUIDFilter(field_name="for_goal_id", label="For this goal.")


GIVEN = (
    *("uri", "type", "title", "description", "digest", "label"),
    *("record_id", "goal_id", "about", "derived_from", "metadata"),
)


CHANGEABLE = ("title", "description", "type", "metadata")


def draft_of(owner: Owner, body: dict[str, Any]) -> ArtifactDraft:
    own = own_vector(owner, body, "embedding")
    return complete_draft(owner, ArtifactDraft(own=own, **{name: body[name] for name in GIVEN if name in body}))


class Artifacts(OwnerViewSet):
    """With a user, those of the user and of nobody in particular; without one, those that the agent stored.

    403 for changes of another agent's artifact that is no user's.
    """

    bodies = {"create": NewArtifact, "partial_update": ArtifactChange}
    queries = {
        "list": ArtifactsQuery,
        "retrieve": OwnerFields,
        "destroy": OwnerFields,
        "lineage": OwnerFields,
    }
    answers = {
        "list": StoredArtifact,
        "create": StoredArtifact,
        "retrieve": ArtifactAround,
        "partial_update": StoredArtifact,
        "lineage": LineageAnswer,
    }
    statuses = {"create": (201, 200), "destroy": 204}
    conditional = frozenset({"partial_update", "destroy"})
    filterset_class = ArtifactFilter
    # for the description of the filters alone: rows come from `list`
    queryset = Artifact.objects.none()

    def list(self, request: Request) -> Response:
        """Those of the channel and of `_global`, newest first."""
        query = self.query()
        rows = listed_artifacts(self.owner(query), now=timezone.now())
        if query["revisions"] == "latest":
            rows = rows.filter(is_latest=True)
        return self.page(rows, represent_artifact)

    def create(self, request: Request) -> Response:
        """201 for an artifact, or its next revision: another digest or label than the latest. Else it is the latest
        one again (200), which takes over what it lacked. What the next revision does not say it has from the former.

        422 for a record, a goal, a memory or an artifact that is not there; 409 for an artifact that is quarantined.
        """
        body = self.body()
        owner = self.owner(body)
        draft = draft_of(owner, body)
        embedded = embed_texts([] if draft.own else [draft.text])

        def write() -> Response:
            kept: Kept = keep_artifact(owner, draft, embedded=embedded, now=timezone.now())
            artifact, status = kept.artifact, 201 if kept.is_new else 200
            return self.versioned(represent_artifact(artifact), version=artifact.version, status=status)

        return self.once(write)

    def retrieve(self, request: Request, artifact_id: UUID) -> Response:
        """With what produced it, what it is for, its links and its revisions."""
        view = view_artifact(self.owner(self.query()), artifact_id, now=timezone.now())
        # never 304: those around it change, and its vector may come, under the same ETag
        return Response(represent_view(view), headers={"ETag": etag_of(view.artifact.version)})

    def partial_update(self, request: Request, artifact_id: UUID) -> Response:
        """Of this revision alone. What says the same changes nothing. Another digest or label is another revision:
        POST it."""
        body = self.body()
        owner, expected, now = self.owner(body), self.expected(), timezone.now()
        own = own_vector(owner, body, "embedding")
        changes: dict[str, Any] = {name: body[name] for name in CHANGEABLE if name in body}
        if "goal_id" in body:
            changes["goal"] = body["goal_id"]
        text = changed_text(find_artifact(owner, artifact_id, now=now), changes)
        changed = change_artifact(
            owner,
            artifact_id,
            changes=changes,
            embedded=embed_texts([] if own or not {"title", "description"} & set(changes) else [text]),
            own=own,
            expected=expected,
            now=now,
        )
        return self.versioned(represent_artifact(changed), version=changed.version)

    def destroy(self, request: Request, artifact_id: UUID) -> Response:
        """This revision, for good. The one before it is the latest then, if this was."""
        delete_artifact(self.owner(self.query()), artifact_id, expected=self.expected(), now=timezone.now())
        return Response(status=204)

    def lineage(self, request: Request, artifact_id: UUID) -> Response:
        """The revisions and artifacts that it came from, and those that came of it: 200 each way."""
        found = artifact_lineage(self.owner(self.query()), artifact_id, now=timezone.now())
        return Response(represent_lineage(found))
