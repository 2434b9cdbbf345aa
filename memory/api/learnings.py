"""`/learnings`: insights that agents publish to their teams, and how they served those who used them."""

from typing import Any
from uuid import UUID

from django.utils import timezone
from django_filters import CharFilter, FilterSet, UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.episodic import MAX_TOP_K, own_vector
from memory.api.fields import Metadata, OwnerFields, Prose
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.models import Learning
from memory.retrieval.learnings import LearningHit
from memory.services.embedding.embed import embed_texts
from memory.services.learnings.publish import (
    LearningDraft,
    find_learning,
    find_learnings,
    publish_learning,
    remove_learning,
    visible_learnings,
    vote_on_learning,
)
from memory.services.recall.search import LONGEST_QUERY
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import ActingFields, ExternalId, Flag, WholeNumber

LONGEST_INSIGHT = 100_000
ORDERS = {"newest": ("-id",), "score": ("-score", "-id")}


class NewLearning(OwnerFields):
    team = serializers.UUIDField(help_text="The acting agent is in it.")
    insight = Prose(max_length=LONGEST_INSIGHT)
    metadata = Metadata(required=False)
    embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")


class LearningsQuery(ActingFields):
    ordering = serializers.ChoiceField(list(ORDERS), default="newest", help_text="`score`: the most helpful first.")


class Vote(ActingFields):
    helpful = Flag(help_text="Whether it helped the acting agent.")


class LearningSearch(OwnerFields):
    query = Prose(max_length=LONGEST_QUERY)
    top_k = WholeNumber(default=10, min_value=1, max_value=MAX_TOP_K)
    team = serializers.UUIDField(required=False, help_text="Of this team only.")
    query_embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")


class LearningAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField(help_text="Who published it; empty for the account.")
    user_id = serializers.CharField()
    channel = serializers.CharField()
    team = serializers.UUIDField(allow_null=True, help_text="Null once it is dissolved.")
    insight = serializers.CharField()
    helpful_count = serializers.IntegerField(help_text="Agents that it helped.")
    unhelpful_count = serializers.IntegerField(help_text="Agents that it did not help.")
    score = serializers.FloatField(help_text="How often it helps at least: Wilson's lower bound at 95 %.")
    metadata = serializers.DictField()
    event_time = serializers.DateTimeField()
    created_at = serializers.DateTimeField()


class StoredLearning(LearningAnswer):
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")


class FoundLearning(LearningAnswer):
    similarity = serializers.FloatField(allow_null=True, help_text="1 - cosine distance; null if found by words.")


class LearningsAnswer(serializers.Serializer[Any]):
    results = FoundLearning(many=True)
    degraded = serializers.ListField(
        child=serializers.ChoiceField(["embedder_unavailable", "embedding_pending"]),
        help_text="What kept the search from being by meaning alone.",
    )


SHARED = (
    *("item_key", "agent_id", "user_id", "channel", "helpful_count", "unhelpful_count", "score", "metadata"),
    *("event_time", "created_at"),
)


def represent_learning(learning: Learning) -> dict[str, Any]:
    context = learning.context
    return {name: getattr(learning, name) for name in SHARED} | {
        "id": str(learning.id),
        "team": context.team_id if context else None,
        "insight": learning.text,
        "embedding": "stored" if learning.embed_after is None else "pending",
    }


def represent_hit(hit: LearningHit) -> dict[str, Any]:
    named = {name: getattr(hit, name) for name in (*SHARED, "insight", "similarity")}
    return named | {"id": str(hit.id), "team": hit.team_id}


class LearningFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    team = UUIDFilter(field_name="context__team_id")
    published_by = CharFilter(field_name="agent_id", max_length=LONGEST_ID, strip=False)


class Learnings(OwnerViewSet):
    """Seen by the agents of their team; without an agent, a key sees all of the account's."""

    bodies = {"create": NewLearning}
    queries = {"list": LearningsQuery, "retrieve": ActingFields, "destroy": ActingFields}
    answers = {"list": StoredLearning, "create": StoredLearning, "retrieve": StoredLearning}
    statuses = {"create": 201, "destroy": 204}
    filterset_class = LearningFilter
    # for the description of the filters alone: rows come from `list`
    queryset = Learning.objects.none()

    def list(self, request: Request) -> Response:
        query = self.query()
        self.ordering = ORDERS[query["ordering"]]  # type: ignore[misc]  # of this request's view alone
        return self.page(visible_learnings(self.owner(query), now=timezone.now()), represent_learning)

    def create(self, request: Request) -> Response:
        """Publish an insight to a team that the acting agent is in (422 for another); the account, to any."""
        body = self.body()
        owner = self.owner(body)
        own = own_vector(owner, body, "embedding")
        embedded = embed_texts([] if own else [body["insight"]])
        draft = LearningDraft(team_id=body["team"], insight=body["insight"], metadata=body.get("metadata", {}), own=own)

        def write() -> Response:
            learning = publish_learning(owner, draft, embedded=embedded, now=timezone.now())
            return Response(represent_learning(learning), status=201)

        return self.once(write)

    def retrieve(self, request: Request, learning_id: UUID) -> Response:
        learning = find_learning(self.owner(self.query()), learning_id, now=timezone.now())
        return Response(represent_learning(learning))

    def destroy(self, request: Request, learning_id: UUID) -> Response:
        """For the agent that published it, and the account. Its votes stay."""
        remove_learning(self.owner(self.query()), learning_id, now=timezone.now())
        return Response(status=204)


class LearningVotes(OwnerViewSet):
    """One an agent."""

    bodies = {"vote": Vote}
    answers = {"vote": StoredLearning}

    def vote(self, request: Request, learning_id: UUID) -> Response:
        """Voting again changes the vote. 422 for an insight of the agent's own."""
        body = self.body()
        owner, helpful = self.agent_owner(body), body["helpful"]

        def write() -> Response:
            voted = vote_on_learning(owner, learning_id, helpful=helpful, now=timezone.now())
            return Response(represent_learning(voted))

        return self.once(write)


class LearningSearches(OwnerViewSet):
    """By meaning; by words what has no vector yet."""

    bodies = {"search": LearningSearch}
    answers = {"search": LearningsAnswer}
    scopes = {"search": "read"}
    rate_class = "retrieval"

    def search(self, request: Request) -> Response:
        """What the agent's teams learnt that is most similar to the query."""
        body = self.body()
        owner = self.owner(body)
        own = own_vector(owner, body, "query_embedding")
        found = find_learnings(
            owner, text=body["query"], top_k=body["top_k"], own=own, team_id=body.get("team"), now=timezone.now()
        )
        return Response({"results": [represent_hit(hit) for hit in found.hits], "degraded": list(found.degraded)})
