"""`/learnings`: insights that agents publish to their teams, with votes on how useful they were."""

from uuid import UUID

from django.utils import timezone
from django_filters import UUIDFilter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    EmbeddingState,
    MemoryFields,
    Metadata,
    NonBlankText,
    OwnerFields,
    QuestionText,
    SearchDegraded,
    Similarity,
    TopK,
    draft_fields,
)
from memory.api.filters import RowFilter, TextFilter
from memory.api.vectors import QUERY_HELP, QuestionFields, VectorFields, read_vector
from memory.api.views import OwnerViewSet
from memory.models import Learning
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.services.embedding.embed import embed_texts
from memory.services.learnings import (
    LearningDraft,
    find_learning,
    find_learnings,
    publish_learning,
    remove_learning,
    visible_learnings,
    vote_on_learning,
)
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import ActingFields, Flag

MAX_INSIGHT_CHARACTERS = 100_000
ORDERS = {"newest": ("-id",), "score": ("-score", "-id")}


class NewLearning(OwnerFields, VectorFields):
    team = serializers.UUIDField(help_text="Team that the insight is for. The acting agent must be a member.")
    insight = NonBlankText(max_length=MAX_INSIGHT_CHARACTERS, help_text="Text of the insight.")
    metadata = Metadata(required=False, help_text="Facts of your own about the insight.")


class LearningsQuery(ActingFields):
    ordering = serializers.ChoiceField(list(ORDERS), default="newest", help_text="Newest, or most helpful first.")


class Vote(ActingFields):
    helpful = Flag(help_text="True if the insight helped the acting agent.")


class LearningSearch(OwnerFields, QuestionFields):
    query = QuestionText(required=False, max_length=MAX_QUERY_CHARACTERS, help_text=QUERY_HELP)
    top_k = TopK()
    team = serializers.UUIDField(required=False, help_text="Limit to this team.")


class LearningAnswer(MemoryFields):
    team = serializers.UUIDField(source="team_id", allow_null=True, help_text="Null if the team was deleted.")
    insight = serializers.CharField()
    helpful_count = serializers.IntegerField(help_text="Number of agents that it helped.")
    unhelpful_count = serializers.IntegerField(help_text="Number of agents that it did not help.")
    score = serializers.FloatField(help_text="Share of agents that it helps, at least: Wilson's lower bound at 95 %.")
    columns = columns_of(Learning, "metadata event_time created_at")


class StoredLearning(LearningAnswer):
    team = serializers.UUIDField(allow_null=True, help_text="Null if the team was deleted.")
    insight = serializers.CharField(source="text")
    embedding = EmbeddingState()

    @staticmethod
    def compute_team(learning: Learning) -> str | None:
        context = learning.context
        return str(context.team_id) if context and context.team_id else None


class FoundLearning(LearningAnswer):
    similarity = Similarity()


class LearningsAnswer(AnswerSerializer):
    results = FoundLearning(many=True, source="hits", help_text="Best first.")
    degraded = SearchDegraded()


class LearningFilter(RowFilter):
    team = UUIDFilter(field_name="context__team_id", label="Limit to this team.")
    published_by = TextFilter(field_name="agent_id", label="Limit to this agent.")


class Learnings(OwnerViewSet):
    """The agents of a team see its insights. Without an agent, a key sees all of the account's."""

    bodies = {"create": NewLearning}
    queries = {"list": LearningsQuery, "retrieve": ActingFields, "destroy": ActingFields}
    answer = StoredLearning
    filterset_class = LearningFilter
    queryset = Learning.objects.none()

    def list(self, request: Request) -> Response:
        """List insights of the agent's teams."""
        query = self.query()
        self.ordering = ORDERS[query["ordering"]]  # type: ignore[misc]  # of this request's view alone
        return self.respond_page(visible_learnings(self.owner(query), now=timezone.now()))

    def create(self, request: Request) -> Response:
        """Publish an insight to a team of the acting agent. 422 for another team; the account may use any team."""
        body, owner = self.body_and_owner()
        draft = LearningDraft(**draft_fields(LearningDraft, body), team_id=body["team"], own=read_vector(owner, body))
        embedded = embed_texts([] if draft.own else [draft.insight])
        return self.write_row(publish_learning, owner, draft, embedded=embedded, now=timezone.now())

    def retrieve(self, request: Request, learning_id: UUID) -> Response:
        """Return an insight."""
        return self.respond(find_learning(self.owner(self.query()), learning_id, now=timezone.now()))

    def destroy(self, request: Request, learning_id: UUID) -> Response:
        """Delete an insight, by the agent that published it or for the account. Its votes stay."""
        remove_learning(self.owner(self.query()), learning_id, now=timezone.now())
        return Response(status=204)


class LearningVotes(OwnerViewSet):
    """Votes on insights, one per agent."""

    operation_ids = {"vote": "vote_on_learning"}
    bodies = {"vote": Vote}
    answers = {"vote": StoredLearning}

    def vote(self, request: Request, learning_id: UUID) -> Response:
        """Vote on an insight, or change the vote. 422 for an insight of the agent's own."""
        body = self.body()
        owner, helpful = self.agent_owner(body), body["helpful"]
        return self.write_row(vote_on_learning, owner, learning_id, helpful=helpful, now=timezone.now())


class LearningSearches(OwnerViewSet):
    """Search by meaning. Insights without a vector are found by their words."""

    operation_ids = {"search": "search_learnings"}
    bodies = {"search": LearningSearch}
    answers = {"search": LearningsAnswer}
    scopes = {"search": "read"}
    replica_reads = frozenset({"search"})
    rate_class = "retrieval"

    def search(self, request: Request) -> Response:
        """Find the insights of the agent's teams that are most similar to the query."""
        body, owner = self.body_and_owner()
        own = read_vector(owner, body, "query_embedding")
        found = find_learnings(
            owner,
            text=body.get("query", ""),
            top_k=body["top_k"],
            own=own,
            team_id=body.get("team"),
            now=timezone.now(),
        )
        return self.respond(found)
