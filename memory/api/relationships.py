"""`/relationships`: what entities have to do with each other."""

from typing import Any
from uuid import UUID

from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_filters import CharFilter, FilterSet, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import Metadata, OwnerFields
from memory.api.views import OwnerViewSet
from memory.models import Link
from memory.models.links import STRUCTURAL_TYPES
from memory.services.entities.relate import (
    TYPE_SHAPE,
    RelationshipDraft,
    create_relationship,
    delete_relationship,
    find_relationship,
    visible_relationships,
)
from memory_project.http.serializers import FiniteFloat, Text

LONGEST_TYPE = 50


class RelationshipType(Text):
    """Capitals, digits and underscores; not one of the types of links that the service makes itself."""

    default_error_messages = {
        "shape": "Must be capitals, digits and underscores, a capital first.",
        "structural": "Is the service's own: no relationship has this type.",
    }

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_length": LONGEST_TYPE, **options})
        self.validators.append(RegexValidator(TYPE_SHAPE, message=self.error_messages["shape"]))

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if text in STRUCTURAL_TYPES:
            self.fail("structural")
        return text


class NewRelationship(OwnerFields):
    # the contract's name, and a serializer's attribute too
    source = serializers.UUIDField(help_text="An entity.")  # type: ignore[assignment]
    target = serializers.UUIDField(help_text="Another one.")
    type = RelationshipType(help_text="RELATED_TO, PART_OF, LOCATED_IN, WORKS_FOR, KNOWS, CREATED_BY, REFERENCES, …")
    weight = FiniteFloat(
        required=False, min_value=0, max_value=1, help_text="1 by default; the weightiest are walked first."
    )
    properties = Metadata(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["source"] == attrs["target"]:
            raise serializers.ValidationError({"target": ["Must be another entity than the source."]})
        return attrs


class RelationshipAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    source = serializers.UUIDField()  # type: ignore[assignment]  # as above
    target = serializers.UUIDField()
    type = serializers.CharField()
    weight = serializers.FloatField()
    properties = serializers.DictField()
    created_at = serializers.DateTimeField()


def represent_relationship(link: Link) -> dict[str, Any]:
    columns = {name: getattr(link, name) for name in ("type", "weight", "properties", "created_at")}
    return columns | {"id": str(link.id), "source": str(link.source_id), "target": str(link.target_id)}


class RelationshipFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    source = UUIDFilter(field_name="source_id")
    target = UUIDFilter(field_name="target_id")
    entity = UUIDFilter(method="filter_entity", label="Its source or its target.")
    type = CharFilter(max_length=LONGEST_TYPE, strip=False)

    def filter_entity(self, rows: "QuerySet[Link]", _name: str, value: UUID) -> "QuerySet[Link]":
        return rows.filter(Q(source_id=value) | Q(target_id=value))


class Relationships(OwnerViewSet):
    """Between two entities that the owner sees. What is made again is the same relationship."""

    bodies = {"create": NewRelationship}
    queries = {"list": OwnerFields, "retrieve": OwnerFields, "destroy": OwnerFields}
    answers = {"list": RelationshipAnswer, "create": RelationshipAnswer, "retrieve": RelationshipAnswer}
    statuses = {"create": (201, 200), "destroy": 204}
    filterset_class = RelationshipFilter
    # for the description of the filters alone: rows come from `list`
    queryset = Link.objects.none()

    def list(self, request: Request) -> Response:
        """Newest first."""
        rows = visible_relationships(self.owner(self.query()), now=timezone.now())
        return self.page(rows, represent_relationship)

    def create(self, request: Request) -> Response:
        """200 where it is there already: it gets these properties beside its own, and the weight if one is given.

        422 for entities that there are not, or that are not of one holder.
        """
        body = self.body()
        owner, draft = self.owner(body), draft_of(body)

        def write() -> Response:
            related = create_relationship(owner, draft, now=timezone.now())
            return Response(represent_relationship(related.link), status=201 if related.is_new else 200)

        return self.once(write)

    def retrieve(self, request: Request, relationship_id: UUID) -> Response:
        link = find_relationship(self.owner(self.query()), relationship_id, now=timezone.now())
        return Response(represent_relationship(link))

    def destroy(self, request: Request, relationship_id: UUID) -> Response:
        """For whoever holds the entities, and the account; 403 where they are only seen."""
        delete_relationship(self.owner(self.query()), relationship_id, now=timezone.now())
        return Response(status=204)


def draft_of(body: dict[str, Any]) -> RelationshipDraft:
    return RelationshipDraft(
        source_id=body["source"],
        target_id=body["target"],
        type=body["type"],
        weight=body.get("weight"),
        properties=body.get("properties", {}),
    )
