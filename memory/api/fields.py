"""Fields that many bodies and queries share."""

from typing import Any

from memory_project.http.serializers import ActingFields, ExternalId, Text


class OwnerFields(ActingFields):
    """For whom: base of every body or query that takes the owner; `self.owner(data)` reads it."""

    user_id = ExternalId(required=False, help_text="Whom it is about.")
    channel = ExternalId(required=False, help_text="A project's name; `_global` by default.")


class Prose(Text):
    """A text with something in it: blanks alone have no meaning to find again."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not text.strip():
            self.fail("blank")
        return text
