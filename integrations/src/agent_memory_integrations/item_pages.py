"""Searches of items in as many requests as their answers need.

An answer of the service has at most 8 MiB. One that would be longer loses the search, and says so in `cut`; the search
is then made again in smaller pages.
"""

from collections.abc import Mapping
from typing import Any

from agent_memory_client import AgentMemoryError

MAX_ITEMS = 1_000
"""Items that one request of the service reads, writes or finds."""
SHRINKING = 4

Json = dict[str, Any]


class ItemPages:
    """The requests of one search. Ask `next_search` until there is none, and give each answer to `read_items`."""

    def __init__(self, search: Mapping[str, Any], *, wanted: int | None = None) -> None:
        self._search = search
        self._offset = int(search.get("offset", 0))
        self._size = min(int(search.get("limit", MAX_ITEMS)), MAX_ITEMS)
        self._left = wanted

    def next_search(self) -> Json | None:
        """Return the search of the next page, or None if all items were read."""
        limit = self._size if self._left is None else min(self._size, self._left)
        return {**self._search, "offset": self._offset, "limit": limit} if limit else None

    def read_items(self, answer: Mapping[str, Any]) -> list[Json]:
        """Return the items of an answer; none if it was cut, and the next search is smaller.

        Raises AgentMemoryError if there is no room for one item.
        """
        if is_cut(answer):
            if self._size == 1:
                raise AgentMemoryError("An item is longer than an answer of the service may be.")
            self._size = max(1, self._size // SHRINKING)
            return []
        items: list[Json] = answer["searches"][0]["items"]
        self._offset += len(items)
        ends = len(items) < self._size
        self._left = 0 if ends else None if self._left is None else self._left - len(items)
        return items


def is_cut(answer: Mapping[str, Any]) -> bool:
    """Return True for an answer that has lost a part of what was asked for."""
    return bool(answer.get("cut"))
