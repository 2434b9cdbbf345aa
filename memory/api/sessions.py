"""The live session of a conversation: messages, context, thoughts, active goal and values.

Paths are below `/conversations/{conversation_id}`.

Agents that take part share it. Writes create the conversation, or make the agent join it. They do not reopen one
that ended; only turns do. Reads of an unknown conversation are 404.
"""

from datetime import datetime
from functools import partial

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import (
    Degraded,
    NonBlankText,
    OwnerFields,
    QueryWholeNumber,
    QuestionText,
    Similarity,
    TtlSeconds,
)
from memory.api.turns import MessageFields, message_from_turn
from memory.api.views import OwnerViewSet
from memory.errors import NotFound
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.services.sessions import MemoryManager, join_session, open_session
from memory.tiers.session import SessionMemory, max_ttl_seconds
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import ActingFields, ExternalId

MAX_LIMIT = 200
MAX_EPISODES = 20
DEFAULT_THOUGHTS = 20
MAX_DESCRIPTION_CHARACTERS = 10_000


Limit = partial(QueryWholeNumber, min_value=1, max_value=MAX_LIMIT, help_text="Maximum number.")
"""The maximum number of elements of an answer."""


class MessagesQuery(ActingFields):
    limit = QueryWholeNumber(
        required=False,
        min_value=1,
        max_value=MAX_LIMIT,
        help_text="Maximum number. Default: MEMORY_MAX_CONTEXT_MESSAGES.",
    )


class SessionContextQuery(ActingFields):
    query = QuestionText(
        required=False, max_length=MAX_QUERY_CHARACTERS, help_text="Default: the user's latest message."
    )
    limit = Limit(default=conf.EPISODES_IN_CONTEXT, min_value=0, max_value=MAX_EPISODES)


class ThoughtsQuery(ActingFields):
    limit = Limit(default=DEFAULT_THOUGHTS)


class NewThought(OwnerFields):
    thought = serializers.JSONField(help_text="A text, or any JSON value but null.")


class GoalBody(OwnerFields):
    goal_id = ExternalId(help_text="Your id of the goal.")
    description = NonBlankText(max_length=MAX_DESCRIPTION_CHARACTERS, help_text="Description of the work.")


class ValueBody(OwnerFields):
    value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    ttl_seconds = TtlSeconds(max_value=max_ttl_seconds(), default_seconds=conf.SESSION_VALUE_TTL_SECONDS)


class MessageAnswer(MessageFields):
    """A chat message as it was sent, with its place. Tool calls and the like are present if the message had them."""

    id = serializers.UUIDField()
    index = serializers.IntegerField()
    agent_id = serializers.CharField(help_text="Agent that stored it.")
    timestamp = serializers.DateTimeField()


class MessagesAnswer(AnswerSerializer):
    messages = MessageAnswer(many=True)


class SessionItem(AnswerSerializer):
    id = serializers.UUIDField()
    item_key = serializers.CharField(help_text="Key of this memory in the injection ledger.")
    kind = serializers.CharField()
    conversation_id = serializers.CharField()
    similarity = Similarity()


class SessionContextAnswer(AnswerSerializer):
    # the contract's name, and a serializer's attribute too
    context = serializers.CharField(help_text="Text for a first system message. May be empty.")  # type: ignore[assignment]
    summary = serializers.CharField(help_text="Summary of earlier turns. Empty if nothing is summarized.")
    items = SessionItem(many=True, help_text="The episodes in the context.")
    tokens = serializers.IntegerField(help_text="Estimated number of tokens of the context.")
    abstained = serializers.BooleanField(
        help_text="True if there are episodes, but none that is likely enough to help: `items` is empty."
    )
    degraded = Degraded()


class ThoughtAnswer(AnswerSerializer):
    thought = serializers.JSONField()
    agent_id = serializers.CharField()
    at = serializers.DateTimeField()


class ThoughtsAnswer(AnswerSerializer):
    thoughts = ThoughtAnswer(many=True, help_text="Latest last.")


class GoalAnswer(AnswerSerializer):
    goal_id = serializers.CharField()
    description = serializers.CharField()


class ValueAnswer(AnswerSerializer):
    key = serializers.CharField()
    value = serializers.JSONField(allow_null=True)
    ttl_seconds = serializers.IntegerField(help_text="Seconds until the value expires.")


class ValuesAnswer(AnswerSerializer):
    values = serializers.DictField(help_text="The values that have not expired, by key.")


class SessionViewSet(OwnerViewSet):
    """Base of views of one part of a session."""

    for_users = True

    def session(self, conversation_id: str) -> SessionMemory:
        """Return the session, for an action with the acting agent in its query. Raises NotFound."""
        return open_session(self.owner(self.query()), conversation_id, now=timezone.now())


class Sessions(OwnerViewSet):
    """The parts of a session that go to the model."""

    operation_ids = {"messages": "list_messages", "context": "get_conversation_context"}
    for_users = True
    queries = {"messages": MessagesQuery, "context": SessionContextQuery}
    answers = {"messages": MessagesAnswer, "context": SessionContextAnswer}

    def messages(self, request: Request, conversation_id: str) -> Response:
        """Return the latest messages of the session's buffer, oldest first. The whole log is under `/turns`."""
        query = self.query()
        memory = MemoryManager(self.owner(query)).find_memory(conversation_id)
        turns = memory.get_messages(query.get("limit"))
        return Response({"messages": [MessageAnswer.serialize(turn, message_from_turn(turn)) for turn in turns]})

    def context(self, request: Request, conversation_id: str) -> Response:
        """Lay out the summary of earlier turns and the most similar episodes of other conversations for the model."""
        query = self.query()
        memory = MemoryManager(self.owner(query)).find_memory(conversation_id)
        return self.respond(memory.get_context(query.get("query", ""), limit=query["limit"], now=timezone.now()))


class Thoughts(SessionViewSet):
    """The thoughts of agents in between. The session keeps the latest."""

    operation_ids = {"recent": "list_thoughts", "create": "add_thought"}
    bodies = {"create": NewThought}
    queries = {"recent": ThoughtsQuery}
    answers = {"create": ThoughtAnswer, "recent": ThoughtsAnswer}

    def recent(self, request: Request, conversation_id: str) -> Response:
        """Return the latest thoughts, latest last."""
        thoughts = self.session(conversation_id).get_thoughts(self.query()["limit"])
        shown = [
            {"thought": each["thought"], "agent_id": each["agent_id"], "at": datetime.fromisoformat(each["timestamp"])}
            for each in thoughts
        ]
        return Response({"thoughts": shown})

    def create(self, request: Request, conversation_id: str) -> Response:
        """Add a thought. 413 for one that is too large."""
        body, now = self.body(), timezone.now()
        owner = self.owner(body)
        at = join_session(owner, conversation_id, now=now).push_thought(body["thought"], owner.agent_id, now)
        return Response({"thought": body["thought"], "agent_id": owner.agent_id, "at": at}, status=201)


class ActiveGoals(SessionViewSet):
    """The goal that the session pursues at present."""

    operation_ids = {"retrieve": "get_active_goal", "update": "set_active_goal", "destroy": "clear_active_goal"}
    bodies = {"update": GoalBody}
    queries = {"retrieve": ActingFields, "destroy": ActingFields}
    answer = GoalAnswer

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """Return the active goal. 404 if none is set."""
        goal = self.session(conversation_id).get_active_goal()
        if goal is None:
            raise NotFound("no goal is set")
        return Response({"goal_id": goal["goal_id"], "description": goal["goal_description"]})

    def update(self, request: Request, conversation_id: str) -> Response:
        """Set the active goal."""
        body = self.body()
        session = join_session(self.owner(body), conversation_id, now=timezone.now())
        session.set_active_goal(body["goal_id"], body["description"])
        return Response({"goal_id": body["goal_id"], "description": body["description"]})

    def destroy(self, request: Request, conversation_id: str) -> Response:
        """Clear the active goal."""
        self.session(conversation_id).clear_active_goal()
        return Response(status=204)


class SessionValues(SessionViewSet):
    """Context values of the session, each of which expires by itself."""

    operation_ids = {"everything": "list_conversation_values"}
    bodies = {"update": ValueBody}
    queries = {"everything": ActingFields, "retrieve": ActingFields, "destroy": ActingFields}
    answer = ValueAnswer
    answers = {"everything": ValuesAnswer}

    def everything(self, request: Request, conversation_id: str) -> Response:
        """Return all values that have not expired."""
        return Response({"values": self.session(conversation_id).get_context()})

    def retrieve(self, request: Request, conversation_id: str, key: str) -> Response:
        """Return a value."""
        found = self.session(conversation_id).find(key)
        if found is None:
            raise NotFound("there is no such value")
        return self.respond(found, {"key": key})

    def update(self, request: Request, conversation_id: str, key: str) -> Response:
        """Store a value. 413 for one that is too large, 422 for one too many."""
        body = self.body()
        ttl_seconds = body.get("ttl_seconds", conf.SESSION_VALUE_TTL_SECONDS)
        session = join_session(self.owner(body), conversation_id, now=timezone.now())
        session.set(key, body["value"], ttl_seconds)
        return Response({"key": key, "value": body["value"], "ttl_seconds": ttl_seconds})

    def destroy(self, request: Request, conversation_id: str, key: str) -> Response:
        """Delete a value, if it exists."""
        self.session(conversation_id).delete(key)
        return Response(status=204)
