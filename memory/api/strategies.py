"""`/strategies`: ways of doing tasks that agents learned, found for a task by similarity and success."""

from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import F, QuerySet
from django.utils import timezone
from django_filters import NumberFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    EmbeddingState,
    EventTime,
    Likelihood,
    MemoryFields,
    Metadata,
    MinScore,
    NonBlankText,
    OwnerFields,
    SearchDegraded,
    Similarity,
    TextList,
    TopK,
    draft_fields,
)
from memory.api.filters import RowFilter, TextFilter
from memory.api.vectors import QuestionFields, VectorFields, read_vector
from memory.api.views import OwnerViewSet
from memory.models import Strategy
from memory.retrieval.kind_searches import StrategyHit
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.scoring import success_rate
from memory.services.embedding.embed import embed_texts
from memory.services.strategies.learn import (
    MAX_TOOLS,
    StrategyDraft,
    find_strategies,
    find_strategy,
    learn_strategy,
    reinforce_strategy,
    remove_strategy,
    visible_strategies,
)
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import BoundedList, ExternalId, Flag, Text

MAX_DESCRIPTION_CHARACTERS = 10_000


class NewStrategy(OwnerFields, VectorFields):
    description = NonBlankText(max_length=MAX_DESCRIPTION_CHARACTERS, help_text="Description of the strategy.")
    context_pattern = Text(
        required=False,
        allow_blank=True,
        max_length=MAX_DESCRIPTION_CHARACTERS,
        help_text="Situations that it suits, in words. Searches use it together with the description.",
    )
    tool_sequence = BoundedList(
        child=ExternalId(), required=False, max_length=MAX_TOOLS, help_text="Tools in the order of calls."
    )
    task_type = ExternalId(required=False, allow_blank=True, help_text="Type of the task.")
    conversation_id = ExternalId(required=False, help_text="Source of the strategy; the agent takes part.")
    success = Flag(required=False, allow_null=True, help_text="True if it worked there. Null: not counted.")
    metadata = Metadata(required=False, help_text="Facts of your own about the strategy.")
    event_time = EventTime("Time when it was learned or used, at most 5 minutes in the future. Default: now.")


class StrategySearch(OwnerFields, QuestionFields):
    text_field = "task_description"

    task_description = NonBlankText(
        required=False,
        max_length=MAX_QUERY_CHARACTERS,
        help_text="The task to find strategies for. Required without `query_embedding`.",
    )
    top_k = TopK()
    min_score = MinScore()
    task_type = ExternalId(required=False, help_text="Limit to this type of task.")


class Reinforcement(OwnerFields):
    success = Flag(help_text="True if the strategy worked.")
    conversation_id = ExternalId(required=False, help_text="Place of its use; the agent takes part.")


class StrategyAnswer(MemoryFields):
    columns = columns_of(Strategy, "description success_count failure_count last_used metadata event_time created_at")
    conversation_id = serializers.CharField(help_text="Conversation in which it was learned first. May be empty.")
    context_pattern = serializers.CharField(help_text="Situations that it suits. May be empty.")
    task_type = serializers.CharField(help_text="May be empty.")
    tool_sequence = TextList()
    success_rate = serializers.FloatField(help_text="Expected share of successes: (successes + 1) / (uses + 2).")

    @staticmethod
    def compute_success_rate(strategy: Strategy | StrategyHit) -> float:
        return success_rate(strategy.success_count, strategy.failure_count)


class StoredStrategy(StrategyAnswer):
    embedding = EmbeddingState()


class FoundStrategy(StrategyAnswer):
    similarity = Similarity()
    confidence = Likelihood()
    score = serializers.FloatField(help_text="similarity x success_rate, or success_rate / rank if found by words.")


class StrategiesAnswer(AnswerSerializer):
    results = FoundStrategy(many=True, source="hits", help_text="Best first.")
    degraded = SearchDegraded()


class StrategyFilter(RowFilter):
    task_type = TextFilter()
    tool = TextFilter(field_name="tools__tool__name", label="Limit to strategies that use this tool.")
    min_success_rate = NumberFilter(
        method="filter_success_rate",
        min_value=0,
        max_value=1,
        error_messages=dict.fromkeys(
            ("invalid", "min_value", "max_value"), "Must be a number from 0 to 1, such as 0.75."
        ),
    )

    def filter_success_rate(self, rows: QuerySet[Any], _name: str, share: Decimal) -> QuerySet[Any]:
        """Return rows with (s + 1) / (s + f + 2) >= share, computed without a division."""
        uses = F("success_count") + F("failure_count") + 2
        often: QuerySet[Any] = rows.alias(wanted=uses * float(share)).filter(success_count__gte=F("wanted") - 1)
        return often


class Strategies(OwnerViewSet):
    """Strategies of the user, shared by all agents that work for it, the agent's own of no user, and the account's.

    Without a user, all that the agent stored.
    """

    for_users = True
    bodies = {"create": NewStrategy, "reinforce": Reinforcement}
    queries = {"list": OwnerFields, "retrieve": OwnerFields, "destroy": OwnerFields}
    answer = StoredStrategy
    filterset_class = StrategyFilter
    queryset = Strategy.objects.none()

    def list(self, request: Request) -> Response:
        """List strategies of the channel and of `_global`, latest first."""
        return self.respond_page(visible_strategies(self.owner(self.query()), now=timezone.now()))

    def create(self, request: Request) -> Response:
        """Store a strategy. One that is known (same holder, channel, task type and words) is counted and returned.

        409 for one that is quarantined.
        """
        body, owner = self.body_and_owner()
        draft = StrategyDraft(**draft_fields(StrategyDraft, body), own=read_vector(owner, body))
        embedded = embed_texts([] if draft.own else [draft.text])
        return self.write_row(learn_strategy, owner, draft, embedded=embedded, now=timezone.now())

    def retrieve(self, request: Request, strategy_id: UUID) -> Response:
        """Return a strategy of any channel."""
        return self.respond(find_strategy(self.owner(self.query()), strategy_id, now=timezone.now()))

    def destroy(self, request: Request, strategy_id: UUID) -> Response:
        """Delete a strategy, by its holder or for the account (403 for others). Learnt again, its counts start at 0."""
        remove_strategy(self.owner(self.query()), strategy_id, now=timezone.now())
        return Response(status=204)

    def reinforce(self, request: Request, strategy_id: UUID) -> Response:
        """Count a success or a failure of the strategy."""
        body = self.body()
        return self.write_row(
            reinforce_strategy,
            self.owner(body),
            strategy_id,
            success=body["success"],
            conversation_id=body.get("conversation_id", ""),
            now=timezone.now(),
        )


class StrategySearches(OwnerViewSet):
    """Search by meaning. Strategies without a vector are found by their words."""

    operation_ids = {"find": "find_strategies"}
    for_users = True
    bodies = {"find": StrategySearch}
    answers = {"find": StrategiesAnswer}
    scopes = {"find": "read"}
    replica_reads = frozenset({"find"})
    rate_class = "retrieval"

    def find(self, request: Request) -> Response:
        """Find the strategies that suit the task best.

        The nearest 200 strategies (or ten times `top_k`, if that is more) are ranked by similarity x success_rate.
        """
        body, owner = self.body_and_owner()
        own = read_vector(owner, body, "query_embedding")
        found = find_strategies(
            owner,
            task_description=body.get("task_description", ""),
            top_k=body["top_k"],
            own=own,
            task_type=body.get("task_type", ""),
            min_score=body["min_score"],
            now=timezone.now(),
        )
        return self.respond(found)
