"""Bodies and answers of access control, which pools and contexts share."""

from typing import Any

from rest_framework import serializers

from memory.api.fields import TextList
from memory.models import AccessControl, Level
from memory.models.access import MAX_GRANTS
from memory_project.http.serializers import BoundedList, ExternalId, Flag, StrictSerializer


class GrantedAgents(BoundedList):
    """The agents that are granted one level. Default: none."""

    def __init__(self, help_text: str) -> None:
        super().__init__(child=ExternalId(), max_length=MAX_GRANTS, default=list, help_text=help_text)


class AccessControlFields(StrictSerializer):
    """The agents that are granted access by name. Fields left out are empty, or false."""

    read = GrantedAgents("Agents that may read.")
    write = GrantedAgents("Agents that may write, and so read.")
    public_read = Flag(default=False, help_text="True if every agent of the account may read.")


class AccessControlAnswer(serializers.Serializer[Any]):
    read = TextList(help_text="Agents that may read.")
    write = TextList(help_text="Agents that may write, and so read.")
    public_read = serializers.BooleanField(help_text="True if every agent of the account may read.")


class GrantBody(StrictSerializer):
    """A grant to an agent. The key determines who grants."""

    agent_id = ExternalId(help_text="Agent that gets access.")
    level = serializers.ChoiceField(Level.choices, help_text="`write` includes `read`.")


class RevokeBody(StrictSerializer):
    """Grants to take from an agent. The key determines who revokes."""

    agent_id = ExternalId(help_text="Agent that loses what it was granted.")
    level = serializers.ChoiceField(
        Level.choices, required=False, help_text="Default: both. Without `read` no `write`."
    )


def access_control_from_body(body: dict[str, Any]) -> AccessControl:
    """Return the `access_control` of a checked body; without one, an access control that grants nothing."""
    return AccessControl.parse(dict(body.get("access_control", {})))
