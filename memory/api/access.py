"""Bodies and answers of access control, which pools and contexts share."""

from typing import Any

from rest_framework import serializers

from memory.models import AccessControl, Level
from memory.models.access import MOST_GRANTS
from memory_project.http.serializers import BoundedList, ExternalId, Flag, StrictSerializer


class AccessControlFields(StrictSerializer):
    """Who is let in by name: what is left out is empty, or false. `access_control_of(body)` reads it."""

    read = BoundedList(child=ExternalId(), max_length=MOST_GRANTS, default=list, help_text="Agents that may read.")
    write = BoundedList(
        child=ExternalId(), max_length=MOST_GRANTS, default=list, help_text="Agents that may write, and so read."
    )
    public_read = Flag(default=False, help_text="Whether every agent of the account may read.")


class AccessControlAnswer(serializers.Serializer[Any]):
    read = serializers.ListField(child=serializers.CharField())
    write = serializers.ListField(child=serializers.CharField())
    public_read = serializers.BooleanField()


class GrantBody(StrictSerializer):
    """The agent that is let in, not the one that acts: that is the key's."""

    agent_id = ExternalId(help_text="The agent that is let in.")
    level = serializers.ChoiceField(Level.choices, help_text="Who may write may read.")


class RevokeBody(StrictSerializer):
    """The agent that is shut out again, as far as grants let it in."""

    agent_id = ExternalId(help_text="The agent that is shut out.")
    level = serializers.ChoiceField(
        Level.choices, required=False, help_text="Without one, both. Who may not read may not write."
    )


def access_control_of(data: dict[str, Any]) -> AccessControl:
    """The checked `access_control` of a body; that of nobody let in, where there is none."""
    return AccessControl.parse(dict(data.get("access_control", {})))
