"""A conversation's live side, below `/conversations/{conversation_id}`: messages, context, thoughts, goal, values.

Shared by the agents that take part. Writes make the conversation, or have the agent join it; they do not reopen one
that ended, which only turns do. Reads of an unknown one are 404.
"""

from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import Count, Degraded, OwnerFields, Prose
from memory.api.views import OwnerViewSet
from memory.errors import NotFound
from memory.extraction.messages import message_of
from memory.models import Turn
from memory.retrieval.episodes import EpisodeHit
from memory.services.recall.search import LONGEST_QUERY
from memory.services.sessions.hybrid import MemoryManager, join_session, open_session
from memory.tiers.session import SessionMemory, most_seconds
from memory.tiers.session_stores import SessionTurn
from memory_project.http.serializers import ActingFields, ExternalId, WholeNumber

MOST_SHOWN = 200
MOST_EPISODES = 20
THOUGHTS_SHOWN = 20
LONGEST_DESCRIPTION = 10_000


class MessagesQuery(ActingFields):
    limit = Count(default=conf.MAX_CONTEXT_MESSAGES, min_value=1, max_value=MOST_SHOWN)


class SessionContextQuery(ActingFields):
    query = Prose(required=False, max_length=LONGEST_QUERY, help_text="The user's latest message by default.")
    limit = Count(default=conf.EPISODES_IN_CONTEXT, min_value=0, max_value=MOST_EPISODES, help_text="Of episodes.")


class ThoughtsQuery(ActingFields):
    limit = Count(default=THOUGHTS_SHOWN, min_value=1, max_value=MOST_SHOWN)


class NewThought(OwnerFields):
    thought = serializers.JSONField(help_text="A text, or any JSON value but null.")


class GoalBody(OwnerFields):
    goal_id = ExternalId()
    description = Prose(max_length=LONGEST_DESCRIPTION)


class ValueBody(OwnerFields):
    value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    ttl_seconds = WholeNumber(required=False, min_value=1, max_value=most_seconds())


class MessageAnswer(serializers.Serializer[Any]):
    """A chat message as it was sent, and where it stands. Tool calls and the like are there where they were sent."""

    id = serializers.UUIDField()
    index = serializers.IntegerField()
    role = serializers.ChoiceField(Turn.Role.choices)
    name = serializers.CharField(help_text="The speaker; may be empty.")
    agent_id = serializers.CharField(help_text="The agent that stored it.")
    content = serializers.JSONField(allow_null=True, help_text="A text, parts, or null beside tool calls.")
    timestamp = serializers.DateTimeField()
    tool_calls = serializers.JSONField(required=False)
    tool_call_id = serializers.CharField(required=False)
    function_call = serializers.JSONField(required=False)
    refusal = serializers.CharField(required=False)
    annotations = serializers.JSONField(required=False)
    audio = serializers.JSONField(required=False)


class MessagesAnswer(serializers.Serializer[Any]):
    messages = MessageAnswer(many=True)


class SessionItem(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Its name in the injection ledger.")
    kind = serializers.CharField()
    conversation_id = serializers.CharField()
    similarity = serializers.FloatField(allow_null=True, help_text="1 - cosine distance; null if found by words.")


class SessionContextAnswer(serializers.Serializer[Any]):
    # the contract's name, and a serializer's attribute too
    context = serializers.CharField(help_text="A system message, to stand first; may be empty.")  # type: ignore[assignment]
    summary = serializers.CharField(help_text="Of what came before; empty where nothing is summarized.")
    items = SessionItem(many=True)
    tokens = serializers.IntegerField(help_text="An estimate.")
    degraded = Degraded()


class ThoughtAnswer(serializers.Serializer[Any]):
    thought = serializers.JSONField()
    agent_id = serializers.CharField()
    at = serializers.DateTimeField()


class ThoughtsAnswer(serializers.Serializer[Any]):
    thoughts = ThoughtAnswer(many=True, help_text="Newest last.")


class GoalAnswer(serializers.Serializer[Any]):
    goal_id = serializers.CharField()
    description = serializers.CharField()


class ValueAnswer(serializers.Serializer[Any]):
    key = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    ttl_seconds = serializers.IntegerField(help_text="Until it expires.")


class ValuesAnswer(serializers.Serializer[Any]):
    values = serializers.DictField(help_text="Those that have not expired, name to value.")


def represent_message(turn: SessionTurn) -> dict[str, Any]:
    placed = {"id": str(turn.id), "index": turn.index, "name": turn.name, "agent_id": turn.agent_id}
    message = message_of(role=turn.role, name=turn.name, text=turn.text, payload=turn.payload)
    return placed | message | {"timestamp": turn.timestamp}


def represent_episode(hit: EpisodeHit) -> dict[str, Any]:
    return {
        "id": str(hit.id),
        "item_key": hit.item_key,
        "kind": hit.kind.value,
        "conversation_id": hit.conversation_id,
        "similarity": hit.similarity,
    }


def represent_thought(thought: dict[str, Any]) -> dict[str, Any]:
    return {
        "thought": thought["thought"],
        "agent_id": thought["agent_id"],
        "at": datetime.fromisoformat(thought["timestamp"]),
    }


class SessionViewSet(OwnerViewSet):
    """One part of a session."""

    def session(self, conversation_id: str) -> SessionMemory:
        """The session for an action that takes the acting agent in its query. Raises NotFound."""
        return open_session(self.owner(self.query()), conversation_id, now=timezone.now())


class Sessions(OwnerViewSet):
    """What a session gives to the model."""

    queries = {"messages": MessagesQuery, "context": SessionContextQuery}
    answers = {"messages": MessagesAnswer, "context": SessionContextAnswer}

    def messages(self, request: Request, conversation_id: str) -> Response:
        """The latest messages of the session's buffer, oldest first. The whole log is under `/turns`."""
        query = self.query()
        memory = MemoryManager(self.owner(query)).find_memory(conversation_id)
        return Response({"messages": [represent_message(turn) for turn in memory.get_messages(query["limit"])]})

    def context(self, request: Request, conversation_id: str) -> Response:
        """The summary of what came before, and the most similar episodes of other conversations, laid out."""
        query = self.query()
        memory = MemoryManager(self.owner(query)).find_memory(conversation_id)
        found = memory.get_context(query.get("query", ""), limit=query["limit"], now=timezone.now())
        return Response(
            {
                "context": found.context,
                "summary": found.summary,
                "items": [represent_episode(hit) for hit in found.items],
                "tokens": found.tokens,
                "degraded": list(found.degraded),
            }
        )


class Thoughts(SessionViewSet):
    """What agents thought on the way; the session keeps the latest."""

    bodies = {"create": NewThought}
    queries = {"recent": ThoughtsQuery}
    answers = {"create": ThoughtAnswer, "recent": ThoughtsAnswer}
    statuses = {"create": 201}

    def recent(self, request: Request, conversation_id: str) -> Response:
        thoughts = self.session(conversation_id).get_thoughts(self.query()["limit"])
        return Response({"thoughts": [represent_thought(thought) for thought in thoughts]})

    def create(self, request: Request, conversation_id: str) -> Response:
        """413 for one that is too large."""
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        join_session(owner, conversation_id, now=now).push_thought(body["thought"], owner.agent_id, now)
        return Response({"thought": body["thought"], "agent_id": owner.agent_id, "at": now}, status=201)


class ActiveGoals(SessionViewSet):
    """What the session is after at the moment."""

    bodies = {"update": GoalBody}
    queries = {"retrieve": ActingFields, "destroy": ActingFields}
    answers = {"retrieve": GoalAnswer, "update": GoalAnswer}
    statuses = {"destroy": 204}

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """404 where none is set, too."""
        goal = self.session(conversation_id).get_active_goal()
        if goal is None:
            raise NotFound("no goal is set")
        return Response({"goal_id": goal["goal_id"], "description": goal["goal_description"]})

    def update(self, request: Request, conversation_id: str) -> Response:
        body = self.body()
        session = join_session(self.owner(body), conversation_id, now=timezone.now())
        session.set_active_goal(body["goal_id"], body["description"])
        return Response({"goal_id": body["goal_id"], "description": body["description"]})

    def destroy(self, request: Request, conversation_id: str) -> Response:
        self.session(conversation_id).clear_active_goal()
        return Response(status=204)


class SessionValues(SessionViewSet):
    """Context values of the session, each of which expires by itself."""

    bodies = {"update": ValueBody}
    queries = {"everything": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answers = {"everything": ValuesAnswer, "retrieve": ValueAnswer, "update": ValueAnswer}
    statuses = {"destroy": 204}

    @extend_schema(operation_id="conversations_values_list")
    def everything(self, request: Request, conversation_id: str) -> Response:
        return Response({"values": self.session(conversation_id).get_context()})

    def retrieve(self, request: Request, conversation_id: str, key: str) -> Response:
        found = self.session(conversation_id).find(key)
        if found is None:
            raise NotFound("no such value")
        return Response({"key": key, "value": found.value, "ttl_seconds": found.ttl_seconds})

    def update(self, request: Request, conversation_id: str, key: str) -> Response:
        """413 for one that is too large, 422 for one too many."""
        body = self.body()
        ttl_seconds = body.get("ttl_seconds", conf.SESSION_VALUE_TTL_SECONDS)
        session = join_session(self.owner(body), conversation_id, now=timezone.now())
        session.set(key, body["value"], ttl_seconds)
        return Response({"key": key, "value": body["value"], "ttl_seconds": ttl_seconds})

    def destroy(self, request: Request, conversation_id: str, key: str) -> Response:
        """Whether there was one or not."""
        self.session(conversation_id).delete(key)
        return Response(status=204)
