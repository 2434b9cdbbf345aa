"""`/episodic`: what conversations came to, stored and found again by meaning."""

import json
from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.fields import OwnerFields, Prose
from memory.api.vectors import EmbeddingField
from memory.api.views import OwnerViewSet
from memory.models import EpisodicMemory
from memory.owner import Owner
from memory.retrieval.episodes import EpisodeHit
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import OwnVector, admit_vector
from memory.services.recall.search import LONGEST_QUERY, find_episodes
from memory.services.summaries.store import EpisodeDraft, episodes_of_conversation, store_episodes
from memory_project.http.serializers import BoundedList, ExternalId, WholeNumber

LONGEST_SUMMARY = 100_000
MOST_ITEMS = 1_000
LARGEST_LISTS = 262_144
"""Bytes of an episode's lists together, serialized: a page holds 200 episodes."""
MAX_TOP_K = 200
FACTS = ("key_decisions", "entities_mentioned", "tools_called")


class Items(BoundedList):
    """Any JSON values: the documents leave their shape to the agent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=serializers.JSONField(), max_length=MOST_ITEMS, **options)


class NewEpisode(OwnerFields):
    conversation_id = ExternalId()
    summary = Prose(max_length=LONGEST_SUMMARY)
    key_decisions = Items(required=False)
    entities_mentioned = Items(required=False)
    tools_called = Items(required=False)
    embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        lists = [attrs[name] for name in FACTS if name in attrs]
        if len(json.dumps(lists, ensure_ascii=False).encode()) > LARGEST_LISTS:
            raise serializers.ValidationError(f"{', '.join(FACTS)} have at most {LARGEST_LISTS} bytes together.")
        return attrs


class EpisodeSearch(OwnerFields):
    query = Prose(max_length=LONGEST_QUERY)
    top_k = WholeNumber(default=10, min_value=1, max_value=MAX_TOP_K)
    query_embedding = EmbeddingField(required=False, help_text="A vector of your own, instead of the service's.")
    embedding_model = ExternalId(required=False, help_text="Of which model it is; the configured one by default.")


class EpisodeAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    agent_id = serializers.CharField()
    user_id = serializers.CharField()
    channel = serializers.CharField()
    conversation_id = serializers.CharField()
    summary = serializers.CharField()
    key_decisions = serializers.ListField()
    entities_mentioned = serializers.ListField()
    tools_called = serializers.ListField()
    summarizer = serializers.CharField(help_text="Who wrote it: `extractive` (quotes), a model, or empty: its agent.")
    event_time = serializers.DateTimeField()
    created_at = serializers.DateTimeField()


class StoredEpisode(EpisodeAnswer):
    embedding = serializers.ChoiceField(["stored", "pending"], help_text="Pending: found by its words meanwhile.")


class FoundEpisode(EpisodeAnswer):
    similarity = serializers.FloatField(allow_null=True, help_text="1 - cosine distance; null if found by words.")


class EpisodesAnswer(serializers.Serializer[Any]):
    results = FoundEpisode(many=True)
    degraded = serializers.ListField(
        child=serializers.ChoiceField(["embedder_unavailable", "embedding_pending"]),
        help_text="What kept the search from being by meaning alone.",
    )


def represent_episode(episode: EpisodicMemory) -> dict[str, Any]:
    return {
        "id": str(episode.id),
        "item_key": episode.item_key,
        "agent_id": episode.agent_id,
        "user_id": episode.user_id,
        "channel": episode.channel,
        "conversation_id": episode.conversation_id,
        "summary": episode.text,
        "key_decisions": episode.key_decisions,
        "entities_mentioned": episode.entities_mentioned,
        "tools_called": episode.tools_called,
        "summarizer": episode.metadata.get("summarizer", ""),
        "event_time": episode.event_time,
        "created_at": episode.created_at,
        "embedding": "stored" if episode.embed_after is None else "pending",
    }


def represent_hit(hit: EpisodeHit) -> dict[str, Any]:
    named = {name: getattr(hit, name) for name in FoundEpisode._declared_fields if name != "summarizer"}
    return named | {"id": str(hit.id), "summarizer": hit.metadata.get("summarizer", "")}


class ConversationEpisodes(OwnerViewSet):
    """Private to the agent that stored them."""

    queries = {"list": OwnerFields}
    answers = {"list": StoredEpisode}
    conversation_id = ""
    """Which conversation, where the path is one of the sub-paths: conversations may have their names."""

    def list(self, request: Request, conversation_id: str = "") -> Response:
        """What was stored of a conversation; nothing, where it is unknown."""
        owner, now = self.owner(self.query()), timezone.now()
        rows = episodes_of_conversation(owner, conversation_id or self.conversation_id, now=now)
        return self.page(rows, represent_episode)


class Episodes(ConversationEpisodes):
    """Private to the agent that stored them."""

    bodies = {"store": NewEpisode}
    answers = {"store": StoredEpisode, "list": StoredEpisode}
    statuses = {"store": 201}

    def store(self, request: Request) -> Response:
        """Store a conversation's summary, searchable by meaning at once, or soon if the embedder is down."""
        body = self.body()
        owner = self.agent_owner(body)
        own = own_vector(owner, body, "embedding")
        embedded = embed_texts([] if own else [body["summary"]])
        draft = EpisodeDraft(
            conversation_id=body["conversation_id"],
            summary=body["summary"],
            own=own,
            **{name: body.get(name, []) for name in FACTS},
        )

        def write() -> Response:
            episode = store_episodes(owner, drafts=[draft], embedded=embedded, now=timezone.now())[0]
            return Response(represent_episode(episode), status=201)

        return self.once(write)


class EpisodeSearches(ConversationEpisodes):
    """By meaning; by words what has no vector yet."""

    bodies = {"search": EpisodeSearch}
    answers = {"search": EpisodesAnswer, "list": StoredEpisode}
    scopes = {"search": "read"}
    rate_class = "retrieval"

    def search(self, request: Request) -> Response:
        """The agent's episodes most similar to the query."""
        body = self.body()
        owner = self.agent_owner(body)
        own = own_vector(owner, body, "query_embedding")
        found = find_episodes(owner, text=body["query"], top_k=body["top_k"], own=own, now=timezone.now())
        return Response({"results": [represent_hit(hit) for hit in found.hits], "degraded": list(found.degraded)})


def own_vector(owner: Owner, body: dict[str, Any], field: str) -> OwnVector | None:
    """The vector that the client brought in `field`, or None. Raises as `admit_vector` does."""
    if field not in body:
        return None
    return admit_vector(owner, model=body.get("embedding_model", ""), vector=body[field])
