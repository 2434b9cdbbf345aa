"""Archives as chat services send them, small and made up."""

import io
import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZipFile

from memory.extraction.archives import ArchiveEntry, read_archive
from memory.extraction.imported import BadLine, ImportedConversation, Item
from memory.owner import Owner

OWNER = Owner(account_id=uuid4(), agent_id="helper", user_id="ana")


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def stream_of(content: bytes) -> io.BufferedReader:
    return io.BufferedReader(io.BytesIO(content))


def read_all(read_chat: Callable[[ArchiveEntry, Owner], Any], *chats: Any) -> list[Item]:
    """Return the items that a reader makes of these chats."""
    return list(read_archive(stream_of(json.dumps(chats).encode()), lambda entry: read_chat(entry, OWNER)))


def only(items: list[Item]) -> ImportedConversation:
    (item,) = items
    assert isinstance(item, ImportedConversation), item
    return item


def reason(items: list[Item]) -> str:
    (item,) = items
    assert isinstance(item, BadLine), item
    return item.reason
