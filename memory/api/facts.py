"""`/facts`: what is held to be true, when it was true, and when that was believed."""

import re
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils import timezone
from django_filters import CharFilter, ChoiceFilter, FilterSet, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.entry_drafts import OWN_MODEL, OWN_VECTOR, Share
from memory.api.episodic import own_vector
from memory.api.fields import Metadata, Moment, OwnerFields, Prose
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.models import Certainty, Fact, FactVersion, Temporal
from memory.owner import Owner
from memory.services.embedding.embed import embed_texts
from memory.services.facts.learn import LONGEST_CLAIM, FactDraft, find_fact, learn_fact
from memory.services.facts.list import about_entity, list_facts, read_history, said_in
from memory.services.facts.supersede import (
    CORRECTABLE,
    correct_fact,
    promote_fact,
    reject_fact,
    retract_fact,
    supersede_fact,
)
from memory_project.http.conditional import etag_of
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import BoundedList, ExternalId, Text

MOST_ENTITIES = 100
LONGEST_REASON = 1_000
EMBEDDING_STATES = ["stored", "pending"]
SHARE = re.compile(r"0(\.[0-9]{1,17})?|1(\.0{1,17})?|\.[0-9]{1,17}")


class SharedNumber(serializers.FloatField):
    """From 0 to 1, as a query has it: digits and a point."""

    default_error_messages = {"invalid": "A number from 0 to 1 is required."}

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=0, max_value=1, **options)

    def to_internal_value(self, data: Any) -> float:
        if not (isinstance(data, str) and SHARE.fullmatch(data)):
            self.fail("invalid")
        return float(data)


class Spanned(OwnerFields):
    """Base of bodies with a span of time."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        valid_from, valid_to = attrs.get("valid_from"), attrs.get("valid_to")
        if valid_from is not None and valid_to is not None and valid_to <= valid_from:
            raise serializers.ValidationError({"valid_to": ["Must be after valid_from."]})
        return attrs


class NewFact(Spanned):
    claim = Prose(max_length=LONGEST_CLAIM, help_text="A sentence that stands alone.")
    confidence = Share(
        required=False, help_text="From 0 to 1; of `certainty` by default (0.95, 0.85, 0.70, 0.50), or 1."
    )
    certainty = serializers.ChoiceField(Certainty.choices, required=False)
    temporal = serializers.ChoiceField(Temporal.choices, default=Temporal.CURRENT)
    valid_from = Moment(required=False, allow_null=True, help_text="When it began to be true; always was, without.")
    valid_to = Moment(required=False, allow_null=True, help_text="From when on it is no longer; still is, without.")
    entities = BoundedList(
        child=serializers.UUIDField(), max_length=MOST_ENTITIES, required=False, help_text="What it is about."
    )
    source_turn_id = serializers.UUIDField(required=False, help_text="The turn that says so.")
    metadata = Metadata(required=False)
    embedding = EmbeddingField(required=False, help_text=OWN_VECTOR)
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)


class FactCorrection(Spanned):
    claim = Prose(required=False, max_length=LONGEST_CLAIM)
    confidence = Share(required=False)
    temporal = serializers.ChoiceField(Temporal.choices, required=False)
    valid_from = Moment(required=False, allow_null=True, help_text="Null: always was.")
    valid_to = Moment(required=False, allow_null=True, help_text="Null: still is.")
    embedding = EmbeddingField(required=False, help_text="Of the new claim, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text=OWN_MODEL)


class Promotion(OwnerFields):
    reason = Text(max_length=LONGEST_REASON, help_text="Kept with the link to the original.")


class FactsQuery(OwnerFields):
    as_of = Moment(required=False, help_text="What was true at this time; now, by default.")
    known_at = Moment(required=False, help_text="As it was believed at this time; as it is believed now, by default.")
    min_confidence = SharedNumber(required=False)
    status = serializers.ChoiceField(
        Fact.Status.choices,
        required=False,
        help_text="Of today. Any but `active`, without as_of and known_at: whatever is true now.",
    )


class VersionOfFact(serializers.Serializer[Any]):
    number = serializers.IntegerField(help_text="From 1 on.")
    claim = serializers.CharField()
    confidence = serializers.FloatField()
    temporal = serializers.ChoiceField(Temporal.choices)
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    recorded_at = serializers.DateTimeField(help_text="From when on it was believed.")
    retracted_at = serializers.DateTimeField(allow_null=True, help_text="From when on it was not. Null: it still is.")
    reason = serializers.ChoiceField(FactVersion.Reason.choices, help_text="Why it was believed from then on.")


class FactAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField(help_text="Who learnt it; empty for the account.")
    user_id = serializers.CharField(help_text="Whose knowledge it is; empty for the agent's own.")
    channel = serializers.CharField()
    conversation_id = serializers.CharField()
    claim = serializers.CharField()
    confidence = serializers.FloatField()
    certainty = serializers.CharField(help_text="As it was labelled when it was learnt; empty for none.")
    temporal = serializers.ChoiceField(Temporal.choices)
    status = serializers.ChoiceField(Fact.Status.choices, help_text="Of today, whatever time was asked for.")
    valid_from = serializers.DateTimeField(allow_null=True)
    valid_to = serializers.DateTimeField(allow_null=True)
    recorded_at = serializers.DateTimeField(allow_null=True, help_text="Since when this version is believed.")
    retracted_at = serializers.DateTimeField(allow_null=True, help_text="Since when it is not. Null: it still is.")
    belief_number = serializers.IntegerField(help_text="Of the version that this is.")
    source = serializers.CharField()  # type: ignore[assignment]  # DRF takes it out of the class
    source_turn_id = serializers.UUIDField(allow_null=True)
    metadata = serializers.DictField()
    event_time = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    embedding = serializers.ChoiceField(EMBEDDING_STATES, help_text="Pending: found by its words meanwhile.")


class FactDetail(FactAnswer):
    versions = VersionOfFact(many=True, help_text="Every belief that there was, first one first.")
    turns = serializers.ListField(child=serializers.UUIDField(), help_text="The evidence.")
    entities = serializers.ListField(child=serializers.UUIDField(), help_text="What it is about.")
    supersedes = serializers.ListField(child=serializers.UUIDField())
    superseded_by = serializers.ListField(child=serializers.UUIDField())
    promoted_from = serializers.ListField(child=serializers.UUIDField())
    promoted_to = serializers.ListField(child=serializers.UUIDField())


COLUMNS = (
    *("item_key", "agent_id", "user_id", "channel", "conversation_id", "confidence", "certainty", "temporal", "status"),
    *("valid_from", "valid_to", "recorded_at", "retracted_at", "belief_number", "source", "metadata"),
    *("event_time", "created_at", "updated_at"),
)
OF_VERSION = (
    *("number", "claim", "confidence", "temporal", "valid_from", "valid_to", "recorded_at", "retracted_at", "reason"),
)
LINKED = ("turns", "entities", "supersedes", "superseded_by", "promoted_from", "promoted_to")


def represent_fact(fact: Fact) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in COLUMNS} | {
        "id": str(fact.id),
        "claim": fact.text,
        "source_turn_id": fact.source_turn_id and str(fact.source_turn_id),
        "embedding": "stored" if fact.embed_after is None else "pending",
    }


def represent_detail(fact: Fact) -> dict[str, Any]:
    history = read_history(fact)
    versions = [{name: getattr(version, name) for name in OF_VERSION} for version in history.versions]
    linked = {name: [str(end) for end in getattr(history, name)] for name in LINKED}
    return represent_fact(fact) | {"versions": versions} | linked


def draft_of(owner: Owner, body: dict[str, Any]) -> FactDraft:
    named = {name: body[name] for name in ("confidence", "certainty", "valid_from", "valid_to") if name in body}
    return FactDraft(
        claim=body["claim"],
        temporal=body["temporal"],
        entity_ids=list(dict.fromkeys(body.get("entities", []))),
        turn_ids=[body["source_turn_id"]] if "source_turn_id" in body else [],
        metadata=body.get("metadata", {}),
        own=own_vector(owner, body, "embedding"),
        **named,
    )


class FactFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    entity = UUIDFilter(method="about")
    temporal = ChoiceFilter(choices=Temporal.choices, method="of_temporal")
    certainty = ChoiceFilter(choices=Certainty.choices)
    conversation_id = CharFilter(max_length=LONGEST_ID, strip=False, method="in_conversation")
    source_turn_id = UUIDFilter(field_name="source_turn_id")

    def about(self, rows: QuerySet[Fact], _name: str, entity_id: UUID) -> QuerySet[Fact]:
        return about_entity(rows, entity_id)

    def of_temporal(self, rows: QuerySet[Fact], _name: str, temporal: str) -> QuerySet[Fact]:
        """As it was believed, where that is asked for."""
        known = "known_temporal" in rows.query.annotations
        return rows.filter(**{"known_temporal" if known else "temporal": temporal})

    def in_conversation(self, rows: QuerySet[Fact], _name: str, conversation_id: str) -> QuerySet[Fact]:
        return said_in(rows, conversation_id)


class FactViewSet(OwnerViewSet):
    """Actions that answer one fact, with its ETag."""

    def shown(self, fact: Fact, *, status: int = 200) -> Response:
        return self.versioned(represent_fact(fact), version=fact.version, status=status)


class Facts(FactViewSet):
    """A user's, and those of nobody in particular; without a user, those that the agent learnt."""

    bodies = {"create": NewFact, "partial_update": FactCorrection}
    queries = {"list": FactsQuery, "retrieve": OwnerFields, "destroy": OwnerFields}
    answers = {"list": FactAnswer, "create": FactAnswer, "retrieve": FactDetail, "partial_update": FactAnswer}
    statuses = {"create": (201, 200), "destroy": 204}
    problems = {"destroy": (409,)}
    conditional = frozenset({"partial_update", "destroy"})
    filterset_class = FactFilter
    # for the description of the filters alone: rows come from `list`
    queryset = Fact.objects.none()

    def list(self, request: Request) -> Response:
        """What is true, of the channel and of `_global`, newest first.

        With `known_at`, claim, confidence, temporal and times are as they were believed then.
        """
        query = self.query()
        asked = {name: query.get(name) for name in ("as_of", "known_at", "min_confidence")}
        rows = list_facts(self.owner(query), **asked, status=query.get("status", ""), now=timezone.now())
        return self.page(rows, represent_fact)

    def create(self, request: Request) -> Response:
        """201 for a new one. 200 for one that is believed already: its evidence grows, its confidence rises to the
        greater one. 409 for a claim that was rejected, or is in quarantine. 422 for entities and turns that are not
        the owner's.
        """
        body = self.body()
        owner = self.owner(body)
        draft = draft_of(owner, body)
        embedded = embed_texts([] if draft.own else [draft.claim])

        def write() -> Response:
            learnt = learn_fact(owner, draft, embedded=embedded, now=timezone.now())
            return self.shown(learnt.fact, status=201 if learnt.is_new else 200)

        return self.once(write)

    def retrieve(self, request: Request, fact_id: UUID) -> Response:
        """Whatever its status and channel, with every version of it and what it is linked to."""
        fact = find_fact(self.owner(self.query()), fact_id)
        # never 304: its vector may come, and it may be promoted, under the same ETag
        return Response(represent_detail(fact), headers={"ETag": etag_of(fact.version)})

    def partial_update(self, request: Request, fact_id: UUID) -> Response:
        """It was wrong: what it says now was true all along, and what it said before is kept as a version.

        409 for one that is not believed any more, and for what another fact claims.
        """
        body = self.body()
        owner, expected = self.owner(body), self.expected()
        own = own_vector(owner, body, "embedding") if "claim" in body else None
        changes = {name: body[name] for name in CORRECTABLE & body.keys()}
        embedded = embed_texts([changes["claim"]] if "claim" in changes and own is None else [])
        fact = correct_fact(
            owner, fact_id, changes=changes, embedded=embedded, expected=expected, own=own, now=timezone.now()
        )
        return self.shown(fact)

    def destroy(self, request: Request, fact_id: UUID) -> Response:
        """Retract it: it is believed no longer, and may be learnt again. Its history stays."""
        retract_fact(self.owner(self.query()), fact_id, expected=self.expected(), now=timezone.now())
        return Response(status=204)


class FactChanges(FactViewSet):
    """For an active fact (409), by who holds it, the agent that learnt it, or the account (403)."""

    bodies = {"supersede": NewFact, "promote": Promotion, "reject": OwnerFields}
    answers = {"supersede": FactAnswer, "promote": FactAnswer, "reject": FactAnswer}
    statuses = {"supersede": 201}

    def supersede(self, request: Request, fact_id: UUID) -> Response:
        """The world changed: this one ends where the new one begins, now unless it says, and is kept.

        The new one is of the same user and channel, and about the same entities where it names none.
        """
        body = self.body()
        owner = self.owner(body)
        draft = draft_of(owner, body)
        embedded = embed_texts([] if draft.own else [draft.claim])

        def write() -> Response:
            fact = supersede_fact(owner, fact_id, draft, embedded=embedded, now=timezone.now())
            return self.shown(fact, status=201)

        return self.once(write)

    def promote(self, request: Request, fact_id: UUID) -> Response:
        """A copy in `_global`, of the same user and agent; what is known there already is linked. 409 for one in
        `_global`."""
        body = self.body()
        owner, reason = self.owner(body), body["reason"]
        embedded = embed_texts([find_fact(owner, fact_id).text])

        def write() -> Response:
            return self.shown(promote_fact(owner, fact_id, reason=reason, embedded=embedded, now=timezone.now()))

        return self.once(write)

    def reject(self, request: Request, fact_id: UUID) -> Response:
        """It is believed no longer, nor is the same in other channels, and it is not learnt again, whoever says it.

        An old fact that is believed still is rejected as well.
        """
        owner = self.owner(self.body())

        def write() -> Response:
            return self.shown(reject_fact(owner, fact_id, now=timezone.now()))

        return self.once(write)
