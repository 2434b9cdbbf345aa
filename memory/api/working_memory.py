"""`/working-memory/{conversation_id}`: the fields that each agent works with in one conversation.

`/agents/{agent_id}/working-memory`: the named values that an agent works with, and what it shares of them.

`task_id` and `workflow_run_id` (in the body of a PUT or POST, else in the query) select another working memory of the
agent: the one for that task, that workflow run, or both.
"""

from typing import Any

from django.utils import timezone
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory import conf
from memory.api.fields import TtlSeconds
from memory.api.views import OwnerViewSet
from memory.errors import NotFound
from memory.owner import Owner
from memory.services.accounts.register import register_agent
from memory.services.working_memory import load_from_database, persist_to_database, share_value
from memory.tiers.agent_working import MAX_TTL_SECONDS, WorkingMemoryService
from memory.tiers.base import MAX_NAME_CHARACTERS
from memory.tiers.named_values import StoredValue
from memory.tiers.working import WorkingMemory
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import (
    MAX_NAMED_ERRORS,
    ActingFields,
    BoundedList,
    ExternalId,
    StrictSerializer,
    Text,
)

MAX_REMOVED_FIELDS = 1_000
ANY_FIELDS = {"type": "object", "additionalProperties": True, "description": "The fields: values by name."}


class FieldsByName(serializers.DictField):
    """Any JSON values by names of 1 to NAME_LENGTH characters. The parser has checked the values already."""

    child = serializers.JSONField(allow_null=True)
    default_error_messages = {"name": f"A name must have 1 to {MAX_NAME_CHARACTERS} characters."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_a_dict", input_type=type(data).__name__)
        bad = [name for name in data if not 1 <= len(name) <= MAX_NAME_CHARACTERS]
        if bad:
            named = {name[:MAX_NAME_CHARACTERS]: [self.error_messages["name"]] for name in bad[:MAX_NAMED_ERRORS]}
            raise serializers.ValidationError(named)
        return dict(data)


class WorkingMemoryChange(ActingFields):
    data = FieldsByName(  # type: ignore[assignment]  # DRF takes it out of the class
        help_text="Values by name, added to the stored ones. A value replaces the stored one of its name."
    )


class WorkingMemoryRemoval(StrictSerializer):
    fields = BoundedList(  # type: ignore[assignment]  # DRF takes it out of the class
        child=Text(max_length=MAX_NAME_CHARACTERS),
        min_length=1,
        max_length=MAX_REMOVED_FIELDS,
        help_text="Names to delete.",
    )


class StoredAnswer(AnswerSerializer):
    stored = serializers.BooleanField()
    size_bytes = serializers.IntegerField(help_text="Size of all names and serialized values. This is limited.")
    limit_bytes = serializers.IntegerField(help_text="Limit of size_bytes.")
    memory_bytes = serializers.IntegerField(help_text="Memory that Redis uses for it.")
    ttl_seconds = serializers.IntegerField(help_text="Seconds until it expires, unless it is read or written before.")


class WorkingMemories(OwnerViewSet):
    """Expires when it is not used; every call renews it. Without an agent, a key acts for all agents."""

    operation_ids = {"update": "update_working_memory"}
    for_users = True
    opens_conversations = False
    bodies = {"update": WorkingMemoryChange, "destroy": WorkingMemoryRemoval}
    queries = {"retrieve": ActingFields, "destroy": ActingFields}
    answers = {"retrieve": ANY_FIELDS, "update": StoredAnswer}

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """Return the fields as a plain object, empty if nothing is stored. An agent's own replace the account's."""
        return Response(WorkingMemory(self.owner(self.query())).get(conversation_id))

    def update(self, request: Request, conversation_id: str) -> Response:
        """Add or replace fields. Over the limit they are stored nevertheless, and the answer is 413 (`stored` true).

        A write that would exceed four times the limit answers 413 with `stored` false and changes nothing.
        """
        body, owner = self.body_and_owner()
        stored = WorkingMemory(owner).set(conversation_id, body["data"])
        register_agent(owner.account_id, owner.agent_id)
        return self.respond(stored, {"stored": True})

    def destroy(self, request: Request, conversation_id: str) -> Response:
        """Delete the fields named in the body, `{"fields": ["name"]}`; without a body, all fields.

        An agent deletes only its own. Without an agent, they are deleted for all agents.
        """
        memory = WorkingMemory(self.owner(self.query()))
        if request.stream is None:
            memory.clear(conversation_id)
        else:
            memory.delete(conversation_id, self.body()["fields"])
        return Response(status=204)


class WorkingMemoryFields(StrictSerializer):
    """Selects one working memory of the agent. Default: the one for no task and no workflow run."""

    task_id = ExternalId(required=False, help_text="Task whose working memory is meant.")
    workflow_run_id = ExternalId(required=False, help_text="Workflow run whose working memory is meant.")


class NewWorkingValue(WorkingMemoryFields):
    value = serializers.JSONField(allow_null=True, help_text="Any JSON value.")
    ttl_seconds = TtlSeconds(max_value=MAX_TTL_SECONDS, default_seconds=conf.AGENT_MEMORY_TTL_SECONDS)


class AppendedValue(WorkingMemoryFields):
    value = serializers.JSONField(allow_null=True, help_text="Element for a list, any JSON value; or text for a text.")


class NewShare(WorkingMemoryFields):
    target_agent_id = ExternalId(help_text="Agent that may read the value.")
    ttl_seconds = TtlSeconds("Seconds until it expires. Default: when the value does.", max_value=MAX_TTL_SECONDS)


class RevokedShare(WorkingMemoryFields):
    target_agent_id = ExternalId(help_text="Agent that may no longer read the value.")


class WorkingKeyAnswer(AnswerSerializer):
    key = serializers.CharField()
    ttl_seconds = serializers.IntegerField(help_text="Seconds until the value expires.")


class WorkingKeysAnswer(AnswerSerializer):
    keys = WorkingKeyAnswer(many=True, help_text="Sorted by name.")


class WorkingValueAnswer(WorkingKeyAnswer):
    value = serializers.JSONField(allow_null=True)


class SharedValueAnswer(WorkingKeyAnswer):
    target_agent_id = serializers.CharField()


class SavedValuesAnswer(AnswerSerializer):
    values = serializers.IntegerField(source="count", help_text="Number of values.")
    saved_at = serializers.DateTimeField()


def selected_memory(data: dict[str, Any]) -> dict[str, str]:
    """Return the arguments of a checked body or query that select a working memory."""
    return {name: data[name] for name in WorkingMemoryFields._declared_fields if name in data}


def require_value(stored: StoredValue | None) -> StoredValue:
    if stored is None:
        raise NotFound("there is no such value")
    return stored


class AgentMemoryViewSet(OwnerViewSet):
    """Base of the views below `/agents/{agent_id}`: the agent in the path is the acting agent."""

    def acting(self, agent_id: str) -> Owner:
        """Return the owner for the agent. Raises a 403 problem when the key is bound to another agent."""
        return self.owner({"agent_id": agent_id})

    def memory(self, agent_id: str, data: dict[str, Any]) -> WorkingMemoryService:
        return WorkingMemoryService(self.acting(agent_id), **selected_memory(data))


class AgentWorkingMemories(AgentMemoryViewSet):
    """All values of one working memory."""

    operation_ids = {"everything": "list_agent_values", "clear": "clear_agent_values"}
    queries = {"everything": WorkingMemoryFields, "clear": WorkingMemoryFields}
    answers = {"everything": WorkingKeysAnswer}
    statuses = {"clear": 204}

    def everything(self, request: Request, agent_id: str) -> Response:
        """List the keys of the values that have not expired. Empty for an unknown agent."""
        expiries = self.memory(agent_id, self.query()).expiries()
        return Response({"keys": [{"key": key, "ttl_seconds": seconds} for key, seconds in expiries.items()]})

    def clear(self, request: Request, agent_id: str) -> Response:
        """Delete all values. Shared copies and saved values stay."""
        self.memory(agent_id, self.query()).clear()
        return Response(status=204)


class AgentWorkingValues(AgentMemoryViewSet):
    """One value, which expires by itself."""

    operation_ids = {
        "retrieve": "get_agent_value",
        "update": "set_agent_value",
        "destroy": "delete_agent_value",
        "append": "append_to_agent_value",
    }
    bodies = {"update": NewWorkingValue, "append": AppendedValue}
    queries = {"retrieve": WorkingMemoryFields, "destroy": WorkingMemoryFields}
    answer = WorkingValueAnswer
    key = ""
    """The key where the path is a sub-path: values may have the names of sub-paths."""

    def retrieve(self, request: Request, agent_id: str, key: str = "") -> Response:
        """Return a value."""
        key = key or self.key
        return self.respond(require_value(self.memory(agent_id, self.query()).find(key)), {"key": key})

    def update(self, request: Request, agent_id: str, key: str = "") -> Response:
        """Store a value, replacing the present one. 413 for a value that is too large, 422 for one too many."""
        key, body = key or self.key, self.body()
        seconds = body.get("ttl_seconds", conf.AGENT_MEMORY_TTL_SECONDS)
        self.memory(agent_id, body).store(key, body["value"], seconds)
        register_agent(self.credential.account_id, agent_id)
        return Response({"key": key, "value": body["value"], "ttl_seconds": seconds})

    def destroy(self, request: Request, agent_id: str, key: str = "") -> Response:
        """Delete a value, if it exists. Shared copies stay."""
        self.memory(agent_id, self.query()).remove(key or self.key)
        return Response(status=204)

    def append(self, request: Request, agent_id: str, key: str) -> Response:
        """Append an element to a list, or text to a text; without a value, start a list. The expiry stays.

        `scratch_pad` is always a text, and starts as one. Atomic. 422 for a value of another type, 413 if it would
        become too large; nothing changes then.
        """
        body = self.body()
        stored = self.memory(agent_id, body).append(key, body["value"])
        register_agent(self.credential.account_id, agent_id)
        return self.respond(stored, {"key": key})


class PersistedWorkingMemories(AgentWorkingValues):
    """Saving working memory to the database and loading it; also the value with the name of the sub-path."""

    operation_ids = {"persist": "persist_agent_values", "load": "load_agent_values"}
    bodies = {"update": NewWorkingValue, "persist": WorkingMemoryFields, "load": WorkingMemoryFields}
    answer = WorkingValueAnswer
    answers = {"persist": SavedValuesAnswer, "load": SavedValuesAnswer}
    undocumented = frozenset({"retrieve", "update", "destroy"})

    def persist(self, request: Request, agent_id: str) -> Response:
        """Save all values with the time that each has left, replacing what was saved before."""
        # not in `write_once`: Redis is read before the transaction, and saving twice has the effect of saving once
        return self.respond(
            persist_to_database(self.acting(agent_id), **selected_memory(self.body()), now=timezone.now())
        )

    def load(self, request: Request, agent_id: str) -> Response:
        """Restore the saved values, each for the time that it had left. Replaces values of the same key; others stay.

        404 if nothing was saved, 422 if there would be too many values; nothing changes then.
        """
        return self.respond(load_from_database(self.acting(agent_id), **selected_memory(self.body())))


class WorkingShares(AgentMemoryViewSet):
    """A copy of one value that another agent may read, until it is revoked or expires."""

    operation_ids = {"share": "share_agent_value", "take_back": "unshare_agent_value"}
    bodies = {"share": NewShare}
    queries = {"take_back": RevokedShare}
    answers = {"share": SharedValueAnswer}
    statuses = {"take_back": 204}

    def share(self, request: Request, agent_id: str, key: str) -> Response:
        """Let another agent read the present value. Replaces what was shared under this key before.

        404 if there is no value, 422 if this agent shares too many values with that one already.
        """
        body = self.body()
        target_agent_id = body["target_agent_id"]
        shared = share_value(
            self.acting(agent_id),
            key,
            target_agent_id=target_agent_id,
            ttl_seconds=body.get("ttl_seconds"),
            **selected_memory(body),
        )
        return self.respond(shared, {"key": key, "target_agent_id": target_agent_id})

    def take_back(self, request: Request, agent_id: str, key: str) -> Response:
        """Stop sharing a value. 404 if nothing is shared with that agent under this key."""
        query = self.query()
        if not self.memory(agent_id, query).take_back(query["target_agent_id"], key):
            raise NotFound("nothing was shared")
        return Response(status=204)


class SharedWithAgents(AgentMemoryViewSet):
    """A value that another agent shares with this one."""

    operation_ids = {"retrieve": "get_shared_value"}
    queries = {"retrieve": WorkingMemoryFields}
    answers = {"retrieve": WorkingValueAnswer}

    def retrieve(self, request: Request, agent_id: str, source_agent_id: str, key: str) -> Response:
        """Return the shared copy. 404 if none is shared for this task and workflow run, or not any more."""
        stored = self.memory(agent_id, self.query()).find_shared(source_agent_id, key)
        return self.respond(require_value(stored), {"key": key})
