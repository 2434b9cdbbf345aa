"""`/episodic`: summaries of conversations (episodes), stored and found again by meaning."""

import json
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import (
    EmbeddingState,
    EventTime,
    Likelihood,
    MemoryFields,
    MinScore,
    NonBlankText,
    OwnerFields,
    QuestionText,
    SearchDegraded,
    Similarity,
    TopK,
    draft_fields,
)
from memory.api.vectors import QUERY_HELP, QuestionFields, VectorFields, read_vector
from memory.api.views import OwnerViewSet
from memory.models import EpisodicMemory
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.retrieval.search import EpisodeHit
from memory.services.custody.single import erase_episodes
from memory.services.embedding.embed import embed_texts
from memory.services.recall.recall import search_episodes_by_text
from memory.services.summaries.store import EpisodeDraft, episodes_of_conversation, store_episodes
from memory_project.http.answers import AnswerSerializer, columns_of
from memory_project.http.serializers import BoundedList, ExternalId

MAX_SUMMARY_CHARACTERS = 100_000
MAX_ITEMS = 1_000
MAX_LISTS_BYTES = 262_144
"""Size of an episode's lists together, as JSON: a page holds 200 episodes."""
LISTS = ("key_decisions", "entities_mentioned", "tools_called")


class Items(BoundedList):
    """A list of any JSON values. The documents leave their shape to the agent."""

    def __init__(self, help_text: str) -> None:
        super().__init__(child=serializers.JSONField(), max_length=MAX_ITEMS, required=False, help_text=help_text)


class NewEpisode(OwnerFields, VectorFields):
    conversation_id = ExternalId(help_text="Conversation that is summarized.")
    summary = NonBlankText(max_length=MAX_SUMMARY_CHARACTERS, help_text="Text of the summary.")
    key_decisions = Items("Decisions made in the conversation, as any JSON values.")
    entities_mentioned = Items("Entities mentioned in the conversation, as any JSON values.")
    tools_called = Items("Tools called in the conversation, as any JSON values.")
    event_time = EventTime()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        lists = [attrs[name] for name in LISTS if name in attrs]
        if len(json.dumps(lists, ensure_ascii=False).encode()) > MAX_LISTS_BYTES:
            raise serializers.ValidationError(
                f"{', '.join(LISTS)} are too large: together they may have at most {MAX_LISTS_BYTES} bytes as JSON."
            )
        return attrs


class EpisodeSearch(OwnerFields, QuestionFields):
    query = QuestionText(required=False, max_length=MAX_QUERY_CHARACTERS, help_text=QUERY_HELP)
    top_k = TopK()
    min_score = MinScore()


class EpisodeAnswer(MemoryFields):
    summary = serializers.CharField()
    summarizer = serializers.CharField(
        help_text="Author: `extractive` (quotes), a model's name, or empty for the agent."
    )
    columns = columns_of(
        EpisodicMemory, "conversation_id key_decisions entities_mentioned tools_called event_time created_at"
    )

    @staticmethod
    def compute_summarizer(episode: EpisodicMemory | EpisodeHit) -> Any:
        return episode.metadata.get("summarizer", "")


class StoredEpisode(EpisodeAnswer):
    summary = serializers.CharField(source="text")
    embedding = EmbeddingState()


class FoundEpisode(EpisodeAnswer):
    similarity = Similarity()
    confidence = Likelihood()


class EpisodesAnswer(AnswerSerializer):
    results = FoundEpisode(many=True, source="hits", help_text="Best first.")
    degraded = SearchDegraded()


class ConversationEpisodes(OwnerViewSet):
    """Episodes are private to the agent that stored them."""

    operation_ids = {"list": "list_episodes"}
    for_users = True
    queries = {"list": OwnerFields}
    answers = {"list": StoredEpisode}
    conversation_id = ""
    """The conversation where the path is a sub-path: conversations may have the names of sub-paths."""

    def list(self, request: Request, conversation_id: str = "") -> Response:
        """List the episodes of a conversation. Empty for an unknown one."""
        owner, now = self.owner(self.query()), timezone.now()
        return self.respond_page(episodes_of_conversation(owner, conversation_id or self.conversation_id, now=now))


class Episodes(ConversationEpisodes):
    """Episodes are private to the agent that stored them."""

    operation_ids = {"store": "store_episode"}
    for_users = True
    bodies = {"store": NewEpisode}
    undocumented = frozenset({"list"})
    answer = StoredEpisode
    statuses = {"store": 201}

    def store(self, request: Request) -> Response:
        """Store the summary of a conversation.

        Searches find it by meaning immediately, or soon if the embedder is down.
        """
        body = self.body()
        owner = self.agent_owner(body)
        draft = EpisodeDraft(**draft_fields(EpisodeDraft, body), own=read_vector(owner, body))
        embedded = embed_texts([] if draft.own else [draft.summary])
        return self.write_once(
            lambda: self.respond(store_episodes(owner, drafts=[draft], embedded=embedded, now=timezone.now())[0])
        )


class EpisodesToErase(OwnerFields):
    episode_id = serializers.UUIDField(required=False, help_text="Limit to this episode. Default: all of them.")


class EpisodeErasures(ConversationEpisodes):
    """Episodes are private to the agent that stored them."""

    for_users = True
    queries = {"list": OwnerFields, "destroy": EpisodesToErase}

    def destroy(self, request: Request, conversation_id: str) -> Response:
        """Erase the episodes of a conversation that the owner sees, or one of them: 404 if that is not there."""
        query = self.query()
        erase_episodes(self.owner(query), conversation_id, query.get("episode_id"), now=timezone.now())
        return Response(status=204)


class EpisodeSearches(ConversationEpisodes):
    """Search by meaning. Episodes without a vector are found by their words."""

    operation_ids = {"search": "search_episodes"}
    for_users = True
    bodies = {"search": EpisodeSearch}
    undocumented = frozenset({"list"})
    answers = {"search": EpisodesAnswer, "list": StoredEpisode}
    scopes = {"search": "read"}
    replica_reads = frozenset({"search"})
    rate_class = "retrieval"

    def search(self, request: Request) -> Response:
        """Find the agent's episodes that are most similar to the query."""
        body = self.body()
        owner = self.agent_owner(body)
        own = read_vector(owner, body, "query_embedding")
        return self.respond(
            search_episodes_by_text(
                owner,
                text=body.get("query", ""),
                top_k=body["top_k"],
                own=own,
                min_score=body["min_score"],
                now=timezone.now(),
            )
        )
