"""`/strategies`: ways of doing something that agents learnt, found for a task by likeness and success."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.utils import timezone
from django_filters import CharFilter, FilterSet, NumberFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.episodic import MAX_TOP_K, own_vector
from memory.api.fields import Metadata, OwnerFields, Prose
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.models import Strategy
from memory.retrieval.strategies import StrategyHit
from memory.scoring import success_rate
from memory.services.embedding.embed import embed_texts
from memory.services.recall.search import LONGEST_QUERY
from memory.services.strategies.learn import (
    MOST_TOOLS,
    StrategyDraft,
    find_strategies,
    find_strategy,
    learn_strategy,
    reinforce_strategy,
    remove_strategy,
    visible_strategies,
)
from memory_project.http.paths import LONGEST_ID
from memory_project.http.serializers import BoundedList, ExternalId, Flag, Text, WholeNumber

LONGEST_DESCRIPTION = 10_000
GIVEN = ("description", "context_pattern", "tool_sequence", "task_type", "conversation_id", "success", "metadata")


class NewStrategy(OwnerFields):
    description = Prose(max_length=LONGEST_DESCRIPTION, help_text="What is done.")
    context_pattern = Text(
        required=False,
        allow_blank=True,
        max_length=LONGEST_DESCRIPTION,
        help_text="When it fits, in words; it is found by both.",
    )
    tool_sequence = BoundedList(
        child=ExternalId(), required=False, max_length=MOST_TOOLS, help_text="Names of tools in the order of calls."
    )
    task_type = ExternalId(required=False, allow_blank=True)
    conversation_id = ExternalId(required=False, help_text="Where it was learnt; the agent takes part in it.")
    success = Flag(required=False, allow_null=True, help_text="Whether it worked there; counted if it is told.")
    metadata = Metadata(required=False)
    embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")


class StrategySearch(OwnerFields):
    task_description = Prose(max_length=LONGEST_QUERY)
    top_k = WholeNumber(default=10, min_value=1, max_value=MAX_TOP_K)
    task_type = ExternalId(required=False, help_text="Of this type of task only.")
    query_embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")


class Reinforcement(OwnerFields):
    success = Flag(help_text="Whether the strategy worked.")
    conversation_id = ExternalId(required=False, help_text="Where; the agent takes part in it.")


class StrategyAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField(help_text="Who learnt it first; empty for the account.")
    user_id = serializers.CharField()
    channel = serializers.CharField()
    conversation_id = serializers.CharField(help_text="Where it was learnt first; may be empty.")
    description = serializers.CharField()
    context_pattern = serializers.CharField(help_text="May be empty.")
    task_type = serializers.CharField(help_text="May be empty.")
    tool_sequence = serializers.ListField(child=serializers.CharField())
    success_count = serializers.IntegerField()
    failure_count = serializers.IntegerField()
    success_rate = serializers.FloatField(help_text="To be expected: (successes + 1) / (uses + 2), 0.5 if untried.")
    last_used = serializers.DateTimeField(allow_null=True)
    metadata = serializers.DictField()
    event_time = serializers.DateTimeField()
    created_at = serializers.DateTimeField()


class StoredStrategy(StrategyAnswer):
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")


class FoundStrategy(StrategyAnswer):
    similarity = serializers.FloatField(allow_null=True, help_text="1 - cosine distance; null if found by words.")
    score = serializers.FloatField(
        help_text="What it is ranked by: similarity x success_rate; success_rate / place for what was found by words."
    )


class StrategiesAnswer(serializers.Serializer[Any]):
    results = FoundStrategy(many=True)
    degraded = serializers.ListField(
        child=serializers.ChoiceField(["embedder_unavailable", "embedding_pending"]),
        help_text="What kept the search from being by meaning alone.",
    )


SHARED = (
    *("item_key", "agent_id", "user_id", "channel", "conversation_id", "description", "context_pattern"),
    *(
        "task_type",
        "tool_sequence",
        "success_count",
        "failure_count",
        "last_used",
        "metadata",
        "event_time",
        "created_at",
    ),
)


def represent_strategy(strategy: Strategy) -> dict[str, Any]:
    return {name: getattr(strategy, name) for name in SHARED} | {
        "id": str(strategy.id),
        "success_rate": success_rate(strategy.success_count, strategy.failure_count),
        "embedding": "stored" if strategy.embed_after is None else "pending",
    }


def represent_hit(hit: StrategyHit) -> dict[str, Any]:
    named = (*SHARED, "success_rate", "similarity", "score")
    return {name: getattr(hit, name) for name in named} | {"id": str(hit.id)}


class StrategyFilter(FilterSet):  # type: ignore[misc]  # django-filter has no types
    task_type = CharFilter(max_length=LONGEST_ID, strip=False)
    tool = CharFilter(field_name="tools__tool__name", max_length=LONGEST_ID, strip=False)
    min_success_rate = NumberFilter(method="at_least", min_value=0, max_value=1)

    def at_least(self, rows: QuerySet[Any], _name: str, share: Decimal) -> QuerySet[Any]:
        """(s + 1) / (s + f + 2) >= share, without dividing."""
        uses = F("success_count") + F("failure_count") + 2
        often: QuerySet[Any] = rows.alias(wanted=uses * float(share)).filter(success_count__gte=F("wanted") - 1)
        return often


class Strategies(OwnerViewSet):
    """A user's are of all agents that work for it, and those without a user go along; without one, the agent's own."""

    bodies = {"create": NewStrategy, "reinforce": Reinforcement}
    queries = {"list": OwnerFields, "retrieve": OwnerFields, "destroy": OwnerFields}
    answers = {
        "list": StoredStrategy,
        "create": StoredStrategy,
        "retrieve": StoredStrategy,
        "reinforce": StoredStrategy,
    }
    statuses = {"create": 201, "destroy": 204}
    filterset_class = StrategyFilter
    # for the description of the filters alone: rows come from `list`
    queryset = Strategy.objects.none()

    def list(self, request: Request) -> Response:
        """Of the channel and of `_global`, newest first."""
        return self.page(visible_strategies(self.owner(self.query()), now=timezone.now()), represent_strategy)

    def create(self, request: Request) -> Response:
        """Learn a strategy. Learnt before (same holder, channel, type of task and words), it is counted, and answered
        with the id it has; 409 for one that is quarantined."""
        body = self.body()
        owner = self.owner(body)
        own = own_vector(owner, body, "embedding")
        draft = StrategyDraft(own=own, **{name: body[name] for name in GIVEN if name in body})
        embedded = embed_texts([] if own else [draft.text])

        def write() -> Response:
            learnt = learn_strategy(owner, draft, embedded=embedded, now=timezone.now())
            return Response(represent_strategy(learnt), status=201)

        return self.once(write)

    def retrieve(self, request: Request, strategy_id: UUID) -> Response:
        """In whatever channel it is."""
        strategy = find_strategy(self.owner(self.query()), strategy_id, now=timezone.now())
        return Response(represent_strategy(strategy))

    def destroy(self, request: Request, strategy_id: UUID) -> Response:
        """For whose it is, and the account (403 for others). Learnt again, it begins anew."""
        remove_strategy(self.owner(self.query()), strategy_id, now=timezone.now())
        return Response(status=204)

    def reinforce(self, request: Request, strategy_id: UUID) -> Response:
        """Count that it worked, or did not."""
        body = self.body()
        owner, success, place = self.owner(body), body["success"], body.get("conversation_id", "")

        def write() -> Response:
            counted = reinforce_strategy(owner, strategy_id, success=success, conversation_id=place, now=timezone.now())
            return Response(represent_strategy(counted))

        return self.once(write)


class StrategySearches(OwnerViewSet):
    """By meaning; by words what has no vector yet."""

    bodies = {"find": StrategySearch}
    answers = {"find": StrategiesAnswer}
    scopes = {"find": "read"}
    rate_class = "retrieval"

    def find(self, request: Request) -> Response:
        """What fits the task best: the nearest 200 strategies (ten times `top_k`, if that is more), ranked by
        similarity x success_rate."""
        body = self.body()
        owner = self.owner(body)
        own = own_vector(owner, body, "query_embedding")
        found = find_strategies(
            owner,
            task_description=body["task_description"],
            top_k=body["top_k"],
            own=own,
            task_type=body.get("task_type", ""),
            now=timezone.now(),
        )
        return Response({"results": [represent_hit(hit) for hit in found.hits], "degraded": list(found.degraded)})
