"""Fields that many bodies and queries share."""

from memory_project.http.serializers import ActingFields, ExternalId


class OwnerFields(ActingFields):
    """For whom: base of every body or query that takes the owner; `self.owner(data)` reads it."""

    user_id = ExternalId(required=False, help_text="Whom it is about.")
    channel = ExternalId(required=False, help_text="A project's name; `_global` by default.")
