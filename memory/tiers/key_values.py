"""Texts by key with an optional expiry: the plain operations of the documented Redis manager, within an account."""

from memory.owner import Owner
from memory.tiers.base import check_name
from memory_project.redis import client, value_key


class KeyValues:
    """The account's texts. They are stored raw, because only texts are accepted."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def get(self, key: str) -> str | None:
        """Return the text, or None if there is none or it has expired."""
        value = client().get(self._key(key))
        return None if value is None else str(value)

    def set(self, key: str, value: str, ex: int | None = None) -> None:
        """Store the text for `ex` seconds, or until it is deleted."""
        client().set(self._key(key), value, ex=ex)

    def delete(self, key: str) -> None:
        client().delete(self._key(key))

    def _key(self, key: str) -> str:
        return value_key(self._owner.account_id, check_name(key))
