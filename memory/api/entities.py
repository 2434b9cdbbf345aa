"""`/entities`: who and what is spoken of, by whatever name."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.episodic import own_vector
from memory.api.fields import Metadata, OwnerFields, Prose
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.models import Entity
from memory.models.entities import LONGEST_NAME, LONGEST_TYPE
from memory.services.embedding.embed import embed_texts
from memory.services.entities.change import EntityChanges, change_entity, find_own, remove_entity
from memory.services.entities.learn import MOST_ALIASES, EntityDraft, texts_to_embed, upsert_entity
from memory.services.entities.list import list_entities, read_entity
from memory.services.entities.merge import merge_entities, split_entity
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import BoundedList, ExternalId, FiniteFloat, Text

LONGEST_DESCRIPTION = 10_000
MOST_LINKS = 1_000
ORDERS = {"newest": ("-id",), "salience": ("-salience", "-id")}


class Aliases(BoundedList):
    """Other names."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=Prose(max_length=LONGEST_NAME), **{"max_length": MOST_ALIASES, **options})


class NewEntity(OwnerFields):
    name = Prose(max_length=LONGEST_NAME)
    type = Prose(max_length=LONGEST_TYPE, help_text="person, organization, place, …: any word. Case does not count.")
    aliases = Aliases(required=False, help_text="What else it goes by.")
    description = Text(required=False, allow_blank=True, max_length=LONGEST_DESCRIPTION)
    properties = Metadata(required=False)
    salience = FiniteFloat(required=False, min_value=0, max_value=1, help_text="0.5 by default.")
    embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")


class EntityChange(OwnerFields):
    name = Prose(required=False, max_length=LONGEST_NAME)
    aliases = Aliases(required=False, help_text="All of them. Without, a former name becomes one.")
    description = Text(required=False, allow_blank=True, max_length=LONGEST_DESCRIPTION)
    properties = Metadata(required=False, help_text="All of them.")
    salience = FiniteFloat(required=False, min_value=0, max_value=1)


class EntitiesQuery(OwnerFields):
    type = Text(required=False, max_length=LONGEST_TYPE)
    name = Text(required=False, max_length=LONGEST_NAME, help_text="Its name, or an alias, however it is written.")
    conversation_id = Text(required=False, max_length=LONGEST_ID, help_text="Mentioned in this conversation.")
    ordering = serializers.ChoiceField(list(ORDERS), default="newest", help_text="`salience`: the greatest first.")


# `from` is no name in Python
Merging: type[OwnerFields] = type(
    "Merging", (OwnerFields,), {"from": serializers.UUIDField(help_text="The entity that becomes part of this one.")}
)


class Splitting(OwnerFields):
    names = BoundedList(
        child=Prose(max_length=LONGEST_NAME),
        min_length=1,
        max_length=MOST_ALIASES,
        help_text="Names of this entity that are another's: some of them, not all.",
    )
    links = BoundedList(
        child=serializers.UUIDField(),
        max_length=MOST_LINKS,
        required=False,
        help_text="Links of this entity that are the other's, besides those that came with it.",
    )


class EntityAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField(help_text="Who met it first; empty for the account.")
    user_id = serializers.CharField(help_text="Whose knowledge it is; empty for the agent's own.")
    channel = serializers.CharField()
    name = serializers.CharField()
    type = serializers.CharField()
    aliases = serializers.ListField(child=serializers.CharField())
    description = serializers.CharField()
    properties = serializers.DictField()
    salience = serializers.FloatField()
    first_seen = serializers.DateTimeField()
    last_accessed = serializers.DateTimeField(allow_null=True)
    access_count = serializers.IntegerField()
    version = serializers.IntegerField()
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")
    merged_into = serializers.UUIDField(allow_null=True, help_text="The entity that it became a part of.")


COLUMNS = (
    *("item_key", "agent_id", "user_id", "channel", "name", "type", "aliases", "description", "properties"),
    *("salience", "last_accessed", "access_count", "version"),
)


def represent_entity(entity: Entity) -> dict[str, Any]:
    return {name: getattr(entity, name) for name in COLUMNS} | {
        "id": str(entity.id),
        "first_seen": entity.event_time,
        "embedding": "stored" if entity.embed_after is None else "pending",
        "merged_into": entity.merged_into_id and str(entity.merged_into_id),
    }


class Entities(OwnerViewSet):
    """A user's, and those of nobody in particular; without a user, those that the agent met."""

    bodies = {"create": NewEntity, "partial_update": EntityChange}
    queries = {"list": EntitiesQuery, "retrieve": OwnerFields, "destroy": OwnerFields}
    answers = {
        "list": EntityAnswer,
        "create": EntityAnswer,
        "retrieve": EntityAnswer,
        "partial_update": EntityAnswer,
    }
    statuses = {"create": (201, 200), "destroy": 204}

    def list(self, request: Request) -> Response:
        """Those of the channel and of `_global`."""
        query = self.query()
        self.ordering = ORDERS[query["ordering"]]  # type: ignore[misc]  # of this request's view alone
        rows = list_entities(
            self.owner(query),
            of_type=query.get("type", ""),
            name=query.get("name", ""),
            conversation_id=query.get("conversation_id", ""),
            now=timezone.now(),
        )
        return self.page(rows, represent_entity)

    def create(self, request: Request) -> Response:
        """201 for a new one. 200 for one whose name, or alias, is known: it gets what it had not.

        Known are names of the same type, of the same user (or agent), in the channel or `_global`; and misspellings,
        where name and meaning agree. 409 for an alias that is another's, and for the name of a quarantined one.
        """
        body = self.body()
        owner = self.owner(body)
        draft = EntityDraft(
            name=body["name"],
            type=body["type"],
            aliases=body.get("aliases", []),
            description=body.get("description", ""),
            properties=body.get("properties", {}),
            salience=body.get("salience"),
            own=own_vector(owner, body, "embedding"),
        )
        embedded = embed_texts([] if draft.own else texts_to_embed(owner, [draft]))

        def write() -> Response:
            resolved = upsert_entity(owner, draft, embedded=embedded, now=timezone.now())
            return Response(represent_entity(resolved.entity), status=201 if resolved.is_new else 200)

        return self.once(write)

    def retrieve(self, request: Request, entity_id: UUID) -> Response:
        """One that was merged into another as well: `merged_into` says into which."""
        return Response(represent_entity(read_entity(self.owner(self.query()), entity_id, now=timezone.now())))

    def partial_update(self, request: Request, entity_id: UUID) -> Response:
        """What is not sent stays. 403 for another's knowledge, 409 for a name that is another entity's."""
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        given = ("name", "aliases", "description", "properties", "salience")
        changes = EntityChanges(**{name: body[name] for name in given if name in body})
        embedded = embed_texts([changes.text_of(find_own(owner, entity_id, now=now))])
        return Response(represent_entity(change_entity(owner, entity_id, changes=changes, embedded=embedded, now=now)))

    def destroy(self, request: Request, entity_id: UUID) -> Response:
        """For good, with its names and links and what was merged into it; facts stay. 403 for another's knowledge."""
        remove_entity(self.owner(self.query()), entity_id, now=timezone.now())
        return Response(status=204)


class EntityMerges(OwnerViewSet):
    """Two that are one, and one that is two. 403 for another's knowledge."""

    bodies = {"merge": Merging, "split": Splitting}
    answers = {"merge": EntityAnswer, "split": EntityAnswer}
    statuses = {"split": 201}

    def merge(self, request: Request, entity_id: UUID) -> Response:
        """Names and links of the one named come to this one, which is answered; that one is archived.

        422 for two of different types or holders, or of a channel that the names would not be found in.
        """
        body = self.body()
        owner, other_id = self.owner(body), body["from"]
        return self.answered_once(lambda: merge_entities(owner, entity_id, other_id, now=timezone.now()), status=200)

    def split(self, request: Request, entity_id: UUID) -> Response:
        """Answers the other one: the one that was merged, if it went by one of these names, with the links that came
        with it; otherwise one that is new. 422 for names or links that are not this one's, and for all of its names.
        """
        body = self.body()
        owner, names, links = self.owner(body), body["names"], body.get("links", [])
        now = timezone.now()
        return self.answered_once(
            lambda: split_entity(owner, entity_id, names=names, link_ids=links, now=now), status=201
        )

    def answered_once(self, act: Callable[[], Entity], *, status: int) -> Response:
        return self.once(lambda: Response(represent_entity(act()), status=status))
