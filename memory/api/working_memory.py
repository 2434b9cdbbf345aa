"""`/working-memory/{conversation_id}`: the fields that each agent works with in one conversation."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.services.accounts.register import register_agent
from memory.tiers.base import MAX_NAME_CHARACTERS
from memory.tiers.working import WorkingMemory
from memory_project.http.answers import AnswerSerializer
from memory_project.http.serializers import MAX_NAMED_ERRORS, ActingFields, BoundedList, StrictSerializer, Text

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
        body = self.body()
        owner = self.owner(body)
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
