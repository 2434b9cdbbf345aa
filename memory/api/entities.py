"""`/entities`: the people, organizations, places and things that conversations mention, under all of their names.

`/relationships`: typed, weighted links between entities.
"""

from typing import Any
from uuid import UUID

from django.core.validators import RegexValidator
from django.db.models import Q, QuerySet
from django.utils import timezone
from django_filters import UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    BoundedIds,
    EmbeddingState,
    EventTime,
    Fraction,
    MemoryFields,
    Metadata,
    NonBlankText,
    OwnerFields,
    TextList,
    draft_fields,
)
from memory.api.filters import RowFilter, TextFilter
from memory.api.vectors import VectorFields, read_vector
from memory.api.views import OwnerViewSet, VersionedViewSet
from memory.models import Entity, Link
from memory.models.entities import MAX_ENTITY_NAME_CHARACTERS, MAX_ENTITY_TYPE_CHARACTERS
from memory.models.links import STRUCTURAL_TYPES
from memory.services.embedding.embed import embed_texts
from memory.services.entities.change import EntityChanges, change_entity, find_own_entity, remove_entity
from memory.services.entities.learn import MAX_ALIASES, EntityDraft, entity_texts_to_embed, upsert_entity
from memory.services.entities.merge import merge_entities, split_entity
from memory.services.entities.relate import (
    RELATIONSHIP_TYPE_PATTERN,
    RelationshipDraft,
    create_relationship,
    delete_relationship,
    find_relationship,
    visible_relationships,
)
from memory.services.entities.store import find_live_or_merged_entity, follow_merges, list_entities
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.paths import MAX_ID_CHARACTERS
from memory_project.http.serializers import BoundedList, Text

MAX_DESCRIPTION_CHARACTERS = 10_000
MAX_LINKS = 1_000
ORDERS = {"newest": ("-id",), "salience": ("-salience", "-id")}


class EntityChange(OwnerFields):
    name = NonBlankText(
        required=False, max_length=MAX_ENTITY_NAME_CHARACTERS, help_text="Name that the entity is best known by."
    )
    type = NonBlankText(
        required=False,
        max_length=MAX_ENTITY_TYPE_CHARACTERS,
        help_text="Any word in any case, such as person or place.",
    )
    aliases = BoundedList(
        child=NonBlankText(max_length=MAX_ENTITY_NAME_CHARACTERS),
        max_length=MAX_ALIASES,
        required=False,
        help_text="Other names of the entity. A change replaces all; without it, a former name becomes an alias.",
    )
    description = Text(
        required=False, allow_blank=True, max_length=MAX_DESCRIPTION_CHARACTERS, help_text="Description of it."
    )
    properties = Metadata(required=False, help_text="Facts of your own about it. A change replaces all of them.")
    salience = Fraction(required=False, help_text="Importance from 0 to 1. Default for a new entity: 0.5.")


class NewEntity(EntityChange, VectorFields):
    name = NonBlankText(max_length=MAX_ENTITY_NAME_CHARACTERS, help_text="Name that the entity is best known by.")
    type = NonBlankText(
        max_length=MAX_ENTITY_TYPE_CHARACTERS, help_text="Any word in any case, such as person or place."
    )
    event_time = EventTime(
        "Time when it was met, at most 5 minutes in the future. Default: now. `first_seen` is the earliest one."
    )


class EntitiesQuery(OwnerFields):
    type = Text(required=False, max_length=MAX_ENTITY_TYPE_CHARACTERS, help_text="Limit to this type.")
    name = Text(
        required=False, max_length=MAX_ENTITY_NAME_CHARACTERS, help_text="Limit to this name or alias, in any case."
    )
    conversation_id = Text(required=False, max_length=MAX_ID_CHARACTERS, help_text="Limit to those it mentions.")
    ordering = serializers.ChoiceField(list(ORDERS), default="newest", help_text="Newest, or greatest salience first.")


# `from` is a keyword of Python
EntityMergeBody: type[OwnerFields] = type(
    "EntityMergeBody",
    (OwnerFields,),
    {"from": serializers.UUIDField(help_text="Entity that becomes a part of the one in the path.")},
)


class EntitySplitBody(OwnerFields):
    names = BoundedList(
        child=NonBlankText(max_length=MAX_ENTITY_NAME_CHARACTERS),
        min_length=1,
        max_length=MAX_ALIASES,
        help_text="Names of this entity that belong to the other one: some of them, not all.",
    )
    links = BoundedIds(
        max_length=MAX_LINKS, help_text="Links of the other entity, in addition to those that came with a merge."
    )


class EntityAnswer(MemoryFields):
    columns = columns_of(Entity, "name type description properties last_accessed access_count")
    aliases = TextList()
    salience = serializers.FloatField(help_text="Importance from 0 to 1.")
    first_seen = serializers.DateTimeField(source="event_time")
    version = serializers.IntegerField(help_text="Increases by one with each change.")
    embedding = EmbeddingState()
    merged_into = serializers.UUIDField(
        source="merged_into_id", allow_null=True, help_text="The entity it is now part of."
    )


class Entities(VersionedViewSet):
    """Entities of the user, those of no user that the agent met, and the account's. Without a user, all that it met."""

    for_users = True
    bodies = {"create": NewEntity, "partial_update": EntityChange}
    queries = {"list": EntitiesQuery, "retrieve": OwnerFields, "destroy": OwnerFields}
    answer = EntityAnswer
    statuses = {"create": (201, 200)}
    # `retrieve` is missing: the vector may be made under the same ETag
    conditional = frozenset({"partial_update", "destroy"})

    def list(self, request: Request) -> Response:
        """List entities of the channel and of `_global`."""
        query = self.query()
        self.ordering = ORDERS[query["ordering"]]  # type: ignore[misc]  # of this request's view alone
        rows = list_entities(
            self.owner(query),
            of_type=query.get("type", ""),
            name=query.get("name", ""),
            conversation_id=query.get("conversation_id", ""),
            now=timezone.now(),
        )
        return self.respond_page(rows)

    def create(self, request: Request) -> Response:
        """Store an entity: 201 for a new one, 200 for one whose name or alias is known, which gets what it lacked.

        Known are names of the same type, of the same user (or agent), in the channel or `_global`, and misspellings
        where name and meaning agree. 409 for an alias of another entity, and for the name of a quarantined one.
        """
        body, owner = self.body_and_owner()
        draft = EntityDraft(**draft_fields(EntityDraft, body), own=read_vector(owner, body))
        embedded = embed_texts([] if draft.own else entity_texts_to_embed(owner, [draft]))

        def write() -> Response:
            resolved = upsert_entity(owner, draft, embedded=embedded, now=timezone.now())
            return self.respond_with_etag(resolved.entity, status=201 if resolved.is_new else 200)

        return self.write_once(write)

    def retrieve(self, request: Request, entity_id: UUID) -> Response:
        """Return an entity, even one that was merged into another: `merged_into` names that one."""
        entity = find_live_or_merged_entity(self.owner(self.query()), entity_id, now=timezone.now())
        return self.respond_with_etag(entity)

    def partial_update(self, request: Request, entity_id: UUID) -> Response:
        """Change the given fields.

        403 for another user's or agent's entity, 409 for a name of another entity of its type, and for an entity that
        was merged.
        """
        body, expected, now = self.body(), self.expected_versions(), timezone.now()
        owner, changes = self.owner(body), EntityChanges(**draft_fields(EntityChanges, body))
        embedded = embed_texts([changes.text_after(find_own_entity(owner, entity_id, now=now))])
        changed = change_entity(owner, entity_id, changes=changes, expected=expected, embedded=embedded, now=now)
        return self.respond_with_etag(changed)

    def destroy(self, request: Request, entity_id: UUID) -> Response:
        """Delete an entity for good, with its names, its links and what was merged into it. Facts stay.

        403 for another user's or agent's entity, 409 for one that was merged.
        """
        expected = self.expected_versions()
        remove_entity(self.owner(self.query()), entity_id, expected=expected, now=timezone.now())
        return Response(status=204)


class EntityMerges(VersionedViewSet):
    """Merging two entities that are the same, and splitting one that is two. 403 for another user's or agent's."""

    for_users = True
    bodies = {"merge": EntityMergeBody, "split": EntitySplitBody}
    answer = EntityAnswer
    statuses = {"split": 201}

    def merge(self, request: Request, entity_id: UUID) -> Response:
        """Move names and links of the entity in `from` to this one, and archive that one. Returns this one.

        422 for entities of different types or holders, or of a channel in which the names would not be found.
        """
        body, owner = self.body_and_owner()
        return self.write_row(merge_entities, owner, entity_id, body["from"], now=timezone.now())

    def split(self, request: Request, entity_id: UUID) -> Response:
        """Separate another entity from this one and return it.

        It is the entity that was merged into this one under one of the names, with the links that came with it, else a
        new one. 422 for names or links that are not this one's, and for all of its names.
        """
        body, now = self.body(), timezone.now()
        owner, names, links = self.owner(body), body["names"], body.get("links", [])
        return self.write_row(split_entity, owner, entity_id, names=names, link_ids=links, now=now)


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
    source = serializers.UUIDField(  # type: ignore[assignment]
        help_text="Entity that the relationship starts from. One that was merged stands for the one it was merged into."
    )
    target = serializers.UUIDField(help_text="Another entity, which it leads to.")
    type = RelationshipType(help_text="Such as RELATED_TO, PART_OF, LOCATED_IN, WORKS_FOR, KNOWS or CREATED_BY.")
    weight = Fraction(required=False, help_text="0 to 1; walks follow the greatest first. Default for a new one: 1.")
    properties = Metadata(required=False, help_text="Facts of your own about the relationship.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["source"] == attrs["target"]:
            raise serializers.ValidationError({"target": ["Must be another entity than the source."]})
        return attrs


class RelationshipAnswer(AnswerSerializer):
    columns = columns_of(Link, "id type weight properties created_at")
    source = serializers.UUIDField(source="source_id")  # type: ignore[assignment]  # as above
    target = serializers.UUIDField(source="target_id")


class RelationshipFilter(RowFilter):
    source = UUIDFilter(method="filter_end")
    target = UUIDFilter(method="filter_end")
    entity = UUIDFilter(
        method="filter_entity",
        label="Limit to relationships of this entity, or the one that it was merged into, as source or target.",
    )
    type = TextFilter(max_length=MAX_TYPE_CHARACTERS)

    def filter_end(self, rows: QuerySet[Link], name: str, value: UUID) -> QuerySet[Link]:
        [entity_id] = follow_merges(self.request.auth.account_id, [value])
        return rows.filter(**{f"{name}_id": entity_id})

    def filter_entity(self, rows: QuerySet[Link], _name: str, value: UUID) -> QuerySet[Link]:
        [entity_id] = follow_merges(self.request.auth.account_id, [value])
        return rows.filter(Q(source_id=entity_id) | Q(target_id=entity_id))


class Relationships(OwnerViewSet):
    """Relationships between two entities that the owner sees. Storing one again does not duplicate it."""

    for_users = True
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
        body, owner = self.body_and_owner()
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
