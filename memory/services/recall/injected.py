"""Which memories a conversation's ledger holds, among the keys of whatever else was injected."""

import re
from collections.abc import Iterable
from uuid import UUID

from memory.models import Kind

ITEM_KEY = re.compile(rf"(?:{'|'.join(Kind.values)}):([0-9a-f]{{8}}(?:-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})")


def injected_ids(item_keys: Iterable[str]) -> list[UUID]:
    """The ids in keys of the form `<kind>:<id>`, as `Memory.item_key` writes them."""
    return [UUID(match[1]) for key in item_keys if (match := ITEM_KEY.fullmatch(key))]
