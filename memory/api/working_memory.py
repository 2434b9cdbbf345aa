"""`/working-memory/{conversation_id}`: what agents have in hand in one conversation, each for itself."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.views import OwnerViewSet
from memory.services.accounts.register import note_agent
from memory.tiers.base import NAME_LENGTH
from memory.tiers.working import WorkingMemory
from memory_project.http.serializers import ActingFields, BoundedList, StrictSerializer, Text

MOST_NAMED = 20
MOST_REMOVED = 1_000
ANY_FIELDS = {"type": "object", "additionalProperties": True, "description": "The fields, name to value."}


class Fields(serializers.DictField):
    """Names of 1 to 200 characters to any JSON values, which the parser has checked already."""

    child = serializers.JSONField(allow_null=True)
    default_error_messages = {"name": f"A name has 1 to {NAME_LENGTH} characters."}

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_a_dict", input_type=type(data).__name__)
        bad = [name for name in data if not 1 <= len(name) <= NAME_LENGTH]
        if bad:
            named = {name[:NAME_LENGTH]: [self.error_messages["name"]] for name in bad[:MOST_NAMED]}
            raise serializers.ValidationError(named)
        return dict(data)


class Changes(ActingFields):
    data = Fields(help_text="Merged into what is stored.")  # type: ignore[assignment]  # DRF takes it out of the class


class Removal(StrictSerializer):
    fields = BoundedList(  # type: ignore[assignment]  # DRF takes it out of the class
        child=Text(max_length=NAME_LENGTH), min_length=1, max_length=MOST_REMOVED, help_text="The names to delete."
    )


class StoredAnswer(serializers.Serializer[Any]):
    stored = serializers.BooleanField()
    size_bytes = serializers.IntegerField(
        help_text="Names and serialized values of all fields. This is what is limited."
    )
    limit_bytes = serializers.IntegerField()
    memory_bytes = serializers.IntegerField(help_text="What the Redis at hand needs for it.")
    ttl_seconds = serializers.IntegerField(help_text="Until it expires, unless it is read or written before.")


class WorkingMemories(OwnerViewSet):
    """Expires when nobody looks at it; every call renews it. Without an agent, a key acts for all agents."""

    bodies = {"update": Changes, "destroy": Removal}
    queries = {"retrieve": ActingFields, "destroy": ActingFields}
    answers = {"retrieve": ANY_FIELDS, "update": StoredAnswer}
    statuses = {"destroy": 204}

    def retrieve(self, request: Request, conversation_id: str) -> Response:
        """The fields as a plain object, empty where nothing is stored. An agent's own lie over the account's."""
        return Response(WorkingMemory(self.owner(self.query())).get(conversation_id))

    def update(self, request: Request, conversation_id: str) -> Response:
        """Merge fields. Over the limit it is stored all the same and answers 413 (`stored` true).

        A write after which it would pass four times the limit answers 413 with `stored` false: nothing changed.
        """
        body = self.body()
        owner = self.owner(body)
        stored = WorkingMemory(owner).set(conversation_id, body["data"])
        note_agent(owner.account_id, owner.agent_id)
        return Response(
            {
                "stored": True,
                "size_bytes": stored.size_bytes,
                "limit_bytes": stored.limit_bytes,
                "memory_bytes": stored.memory_bytes,
                "ttl_seconds": stored.ttl_seconds,
            }
        )

    def destroy(self, request: Request, conversation_id: str) -> Response:
        """Delete the fields that the body names, `{"fields": ["name"]}`; everything without a body.

        An agent deletes only its own; without an agent, they are gone for everybody.
        """
        memory = WorkingMemory(self.owner(self.query()))
        if request.stream is None:
            memory.clear(conversation_id)
        else:
            memory.delete(conversation_id, self.body()["fields"])
        return Response(status=204)
