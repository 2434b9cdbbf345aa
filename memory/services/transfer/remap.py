"""New ids for an archive whose ids another account of the installation uses already."""

import hashlib
import re
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid5

from django.db import models

from memory.services.transfer.rules import ExportedTable

UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_NAME_CHARACTERS = 500
"""Length up to which a text without spaces may be a name that contains ids."""
RANDOM_BITS = (1 << 62) - 1


def new_id(account_id: UUID, row_id: UUID) -> UUID:
    """Return the id of a row in another account: always the same, with the time of the former one, so in its order."""
    if row_id.version != 7:
        return uuid5(account_id, str(row_id))
    digest = hashlib.sha256(account_id.bytes + row_id.bytes).digest()
    return UUID(int=row_id.int & ~RANDOM_BITS | int.from_bytes(digest[:8], "big") & RANDOM_BITS)


class Remap:
    """Replaces the ids of an archive's rows in columns, in names such as `fact:<id>`, and in JSON.

    Texts that people read stay as they are: what is in sentences is not looked at.
    """

    def __init__(self, account_id: UUID, has_id: Callable[[UUID], bool]) -> None:
        self._account_id, self._has_id = account_id, has_id

    def row(self, table: ExportedTable, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row with new ids."""
        changed = dict(row)
        for field in table.fields:
            value = row[str(field.column)]
            if isinstance(field, models.TextField) or value is None:
                continue
            changed[str(field.column)] = self.value(value)
        return changed

    def value(self, value: Any) -> Any:
        """Return a JSON value with new ids in its texts and in the names of its members."""
        if isinstance(value, str):
            return self.name(value)
        if isinstance(value, list):
            return [self.value(each) for each in value]
        if isinstance(value, dict):
            return {self.name(name): self.value(each) for name, each in value.items()}
        return value

    def name(self, text: str) -> str:
        if len(text) > MAX_NAME_CHARACTERS or " " in text:
            return text
        return self.text(text)

    def text(self, text: str) -> str:
        """Return a text of the service's own with new ids wherever they stand."""
        return UUIDS.sub(self._replace, text) if UUIDS.search(text) else text

    def _replace(self, found: re.Match[str]) -> str:
        row_id = UUID(found[0])
        return str(new_id(self._account_id, row_id)) if self._has_id(row_id) else found[0]
