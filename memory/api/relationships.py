"""`/relationships`: typed, weighted links between entities."""

from typing import Any
from uuid import UUID

from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_filters import UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Fraction, Metadata, OwnerFields, draft_fields
from memory.api.filters import RowFilter, TextFilter
from memory.api.views import OwnerViewSet
from memory.models import Link
from memory.models.links import STRUCTURAL_TYPES
from memory.services.entities.relate import (
    RELATIONSHIP_TYPE_PATTERN,
    RelationshipDraft,
    create_relationship,
    delete_relationship,
    find_relationship,
    visible_relationships,
)
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import Text

MAX_TYPE_CHARACTERS = 50


class RelationshipType(Text):
    """A type in capitals, digits and underscores that is not one of the service's own link types."""

    default_error_messages = {
        "shape": "Must be capital letters, digits and underscores, with a capital letter first.",
        "structural": "This type is reserved for links that the service makes itself. Use another one.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": MAX_TYPE_CHARACTERS, **options})
        self.validators.append(RegexValidator(RELATIONSHIP_TYPE_PATTERN, message=self.error_messages["shape"]))

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text in STRUCTURAL_TYPES:
            self.fail("structural")
        return text


class NewRelationship(OwnerFields):
    # the contract's name, and a serializer's attribute too
    source = serializers.UUIDField(help_text="Entity that the relationship starts from.")  # type: ignore[assignment]
    target = serializers.UUIDField(help_text="Another entity, which it leads to.")
    type = RelationshipType(help_text="Such as RELATED_TO, PART_OF, LOCATED_IN, WORKS_FOR, KNOWS or CREATED_BY.")
    weight = Fraction(required=False, help_text="0 to 1; walks follow the greatest first. Default for a new one: 1.")
    properties = Metadata(required=False, help_text="Facts of your own about the relationship.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["source"] == attrs["target"]:
            raise serializers.ValidationError({"target": ["Must be another entity than the source."]})
        return attrs


class RelationshipAnswer(AnswerSerializer):
    id = serializers.UUIDField()
    source = serializers.UUIDField(source="source_id")  # type: ignore[assignment]  # as above
    target = serializers.UUIDField(source="target_id")
    type = serializers.CharField()
    weight = serializers.FloatField()
    properties = serializers.DictField()
    created_at = serializers.DateTimeField()


class RelationshipFilter(RowFilter):
    source = UUIDFilter(field_name="source_id")
    target = UUIDFilter(field_name="target_id")
    entity = UUIDFilter(method="filter_entity", label="Limit to relationships of this entity, as source or target.")
    type = TextFilter(max_length=MAX_TYPE_CHARACTERS)

    def filter_entity(self, rows: QuerySet[Link], _name: str, value: UUID) -> QuerySet[Link]:
        return rows.filter(Q(source_id=value) | Q(target_id=value))


class Relationships(OwnerViewSet):
    """Relationships between two entities that the owner sees. Storing one again does not duplicate it."""

    bodies = {"create": NewRelationship}
    queries = {"list": OwnerFields, "retrieve": OwnerFields, "destroy": OwnerFields}
    answer = RelationshipAnswer
    statuses = {"create": (201, 200)}
    filterset_class = RelationshipFilter
    queryset = Link.objects.none()

    def list(self, request: Request) -> Response:
        """List relationships, latest first."""
        return self.respond_page(visible_relationships(self.owner(self.query()), now=timezone.now()))

    def create(self, request: Request) -> Response:
        """Store a relationship: 201 for a new one, 200 for one that exists.

        The latter gains the properties, and gets the weight if one is sent. 422 for entities that do not exist, or that
        belong to different holders.
        """
        body = self.body()
        owner = self.owner(body)
        draft = RelationshipDraft(
            **draft_fields(RelationshipDraft, body), source_id=body["source"], target_id=body["target"]
        )

        def write() -> Response:
            related = create_relationship(owner, draft, now=timezone.now())
            return self.respond(related.link, status=201 if related.is_new else 200)

        return self.write_once(write)

    def retrieve(self, request: Request, relationship_id: UUID) -> Response:
        """Return a relationship."""
        return self.respond(find_relationship(self.owner(self.query()), relationship_id, now=timezone.now()))

    def destroy(self, request: Request, relationship_id: UUID) -> Response:
        """Delete a relationship, by the holder of its entities or for the account. 403 for others that see it."""
        delete_relationship(self.owner(self.query()), relationship_id, now=timezone.now())
        return Response(status=204)
