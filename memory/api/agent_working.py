"""`/agents/{agent_id}/working-memory`: what an agent has in hand, by name, and what agents share of it.

`task_id` and `workflow_run_id` (in the body of a PUT or POST, else in the query) name another working memory of the
agent: the one for that task, that workflow run, or both.
"""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.views import OwnerViewSet
from memory.errors import NotFound
from memory.owner import Owner
from memory.services.accounts.register import note_agent
from memory.services.working_memory.persist import load_from_database, persist_to_database, share_value
from memory.tiers.agent_working import MOST_TTL_SECONDS, SavedValues, WorkingMemoryService
from memory.tiers.named_values import StoredValue
from memory_project.http.serializers import ExternalId, StrictSerializer, WholeNumber


class Narrowing(StrictSerializer):
    """Which working memory of the agent: its own, unless it says."""

    task_id = ExternalId(required=False, help_text="That for a task.")
    workflow_run_id = ExternalId(required=False, help_text="That for a workflow run.")


class NewWorkingValue(Narrowing):
    value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    ttl_seconds = WholeNumber(
        required=False,
        min_value=1,
        max_value=MOST_TTL_SECONDS,
        help_text=f"Until it expires; {conf.AGENT_MEMORY_TTL_SECONDS} by default.",
    )


class AppendedValue(Narrowing):
    value = serializers.JSONField(allow_null=True, help_text="An element, any JSON value; or text, to a text.")


class NewShare(Narrowing):
    target_agent_id = ExternalId(help_text="The agent that may read it.")
    ttl_seconds = WholeNumber(
        required=False,
        min_value=1,
        max_value=MOST_TTL_SECONDS,
        help_text="Until what is shared expires; as long as the value has left by default.",
    )


class TakenBack(Narrowing):
    target_agent_id = ExternalId(help_text="The agent that could read it.")


class WorkingKeyAnswer(serializers.Serializer[Any]):
    key = serializers.CharField()
    ttl_seconds = serializers.IntegerField(help_text="Until it expires.")


class WorkingKeysAnswer(serializers.Serializer[Any]):
    keys = WorkingKeyAnswer(many=True, help_text="By name.")


class WorkingValueAnswer(WorkingKeyAnswer):
    value = serializers.JSONField(allow_null=True)


class SharedValueAnswer(WorkingKeyAnswer):
    target_agent_id = serializers.CharField()


class SavedValuesAnswer(serializers.Serializer[Any]):
    values = serializers.IntegerField(help_text="How many.")
    saved_at = serializers.DateTimeField()


def narrowed(data: dict[str, Any]) -> dict[str, str]:
    """The arguments that narrow a working memory, of a checked body or query."""
    return {name: data[name] for name in ("task_id", "workflow_run_id") if name in data}


def represent_value(key: str, stored: StoredValue) -> dict[str, Any]:
    return {"key": key, "value": stored.value, "ttl_seconds": stored.ttl_seconds}


def represent_saved(saved: SavedValues) -> dict[str, Any]:
    return {"values": saved.count, "saved_at": saved.saved_at}


def found(stored: StoredValue | None) -> StoredValue:
    if stored is None:
        raise NotFound("no such value")
    return stored


class AgentMemoryViewSet(OwnerViewSet):
    """The agent in the path is the one that acts."""

    def acting(self, agent_id: str) -> Owner:
        """Raises a 403 problem when the key is bound to another agent."""
        return self.owner({"agent_id": agent_id})

    def memory(self, agent_id: str, data: dict[str, Any]) -> WorkingMemoryService:
        return WorkingMemoryService(self.acting(agent_id), **narrowed(data))


class AgentWorkingMemories(AgentMemoryViewSet):
    """All values of one working memory."""

    queries = {"everything": Narrowing, "clear": Narrowing}
    answers = {"everything": WorkingKeysAnswer}
    statuses = {"clear": 204}

    @extend_schema(operation_id="agents_working_memory_list")
    def everything(self, request: Request, agent_id: str) -> Response:
        """The names of the values that have not expired; none, where the agent is unknown."""
        expiries = self.memory(agent_id, self.query()).expiries()
        return Response({"keys": [{"key": key, "ttl_seconds": seconds} for key, seconds in expiries.items()]})

    @extend_schema(operation_id="agents_working_memory_clear")
    def clear(self, request: Request, agent_id: str) -> Response:
        """What was shared stays shared, what was saved stays saved."""
        self.memory(agent_id, self.query()).clear()
        return Response(status=204)


class AgentWorkingValues(AgentMemoryViewSet):
    """One value, which expires by itself."""

    bodies = {"update": NewWorkingValue, "append": AppendedValue}
    queries = {"retrieve": Narrowing, "destroy": Narrowing}
    answers = {"retrieve": WorkingValueAnswer, "update": WorkingValueAnswer, "append": WorkingValueAnswer}
    statuses = {"destroy": 204}
    key = ""
    """Which one, where the path is one of the sub-paths: values may have their names."""

    def retrieve(self, request: Request, agent_id: str, key: str = "") -> Response:
        key = key or self.key
        return Response(represent_value(key, found(self.memory(agent_id, self.query()).find(key))))

    def update(self, request: Request, agent_id: str, key: str = "") -> Response:
        """Stored over what is there. 413 for one that is too large, 422 for one too many."""
        key, body = key or self.key, self.body()
        seconds = body.get("ttl_seconds", conf.AGENT_MEMORY_TTL_SECONDS)
        self.memory(agent_id, body).store(key, body["value"], seconds)
        note_agent(self.credential.account_id, agent_id)
        return Response({"key": key, "value": body["value"], "ttl_seconds": seconds})

    def destroy(self, request: Request, agent_id: str, key: str = "") -> Response:
        """Whether there was one or not. What was shared of it stays shared."""
        self.memory(agent_id, self.query()).remove(key or self.key)
        return Response(status=204)

    def append(self, request: Request, agent_id: str, key: str) -> Response:
        """Add an element to a list, or text to a text; where nothing is, begin a list. The expiry stays.

        Atomic. 422 where another value is, 413 where it would be too large: nothing changes then.
        """
        body = self.body()
        stored = self.memory(agent_id, body).append(key, body["value"])
        note_agent(self.credential.account_id, agent_id)
        return Response(represent_value(key, stored))


class PersistedWorkingMemories(AgentWorkingValues):
    """Working memory in the database; and the value that has the name of the path."""

    bodies = {"update": NewWorkingValue, "persist": Narrowing, "load": Narrowing}
    answers = {
        "retrieve": WorkingValueAnswer,
        "update": WorkingValueAnswer,
        "persist": SavedValuesAnswer,
        "load": SavedValuesAnswer,
    }

    def persist(self, request: Request, agent_id: str) -> Response:
        """Save all values with the time that each has left, instead of what was saved. How many, and when."""
        # not in `once`: Redis is asked before the transaction, and saving twice is saving once
        saved = persist_to_database(self.acting(agent_id), **narrowed(self.body()), now=timezone.now())
        return Response(represent_saved(saved))

    def load(self, request: Request, agent_id: str) -> Response:
        """Bring back what was saved for the time that it had left, over values of the same names; others stay.

        404 where nothing was saved, 422 where there would be too many values: nothing changes then.
        """
        return Response(represent_saved(load_from_database(self.acting(agent_id), **narrowed(self.body()))))


class WorkingShares(AgentMemoryViewSet):
    """What another agent may read of one value: a copy, until it is taken back or expires."""

    bodies = {"share": NewShare}
    queries = {"take_back": TakenBack}
    answers = {"share": SharedValueAnswer}
    statuses = {"take_back": 204}

    def share(self, request: Request, agent_id: str, key: str) -> Response:
        """Let another agent read the value as it is now; what was shared under this key before is replaced.

        404 where there is no value, 422 where that agent can read too many of this one's already.
        """
        body = self.body()
        target_agent_id = body["target_agent_id"]
        shared = share_value(
            self.acting(agent_id),
            key,
            target_agent_id=target_agent_id,
            ttl_seconds=body.get("ttl_seconds"),
            **narrowed(body),
        )
        return Response({"key": key, "target_agent_id": target_agent_id, "ttl_seconds": shared.ttl_seconds})

    def take_back(self, request: Request, agent_id: str, key: str) -> Response:
        """404 where that agent could read nothing under this key."""
        query = self.query()
        if not self.memory(agent_id, query).take_back(query["target_agent_id"], key):
            raise NotFound("nothing was shared")
        return Response(status=204)


class SharedWithAgents(AgentMemoryViewSet):
    """What another agent lets this one read."""

    queries = {"retrieve": Narrowing}
    answers = {"retrieve": WorkingValueAnswer}

    def retrieve(self, request: Request, agent_id: str, source_agent_id: str, key: str) -> Response:
        """The value as it was shared. 404 where nothing was, or not for this task or workflow run, or not any more."""
        stored = self.memory(agent_id, self.query()).find_shared(source_agent_id, key)
        return Response(represent_value(key, found(stored)))
