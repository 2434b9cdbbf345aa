"""Primary keys: UUIDv7, made by the application: rows sort by creation and can be linked before they are stored.

And the names of a row's versions, for who asks later whether it is still at that one.
"""

import os
import time
import uuid
from datetime import datetime


def uuid7() -> uuid.UUID:
    """Return a UUID of version 7 (RFC 9562, 5.7): 48 bits of Unix milliseconds, 12 of their fraction, 62 random ones.

    The fraction (6.2, method 3) keeps the ids of one process in the order in which they were made, unless the clock is
    set back.
    """
    milliseconds, beyond = divmod(time.time_ns(), 1_000_000)
    return made_of(milliseconds, (beyond << 12) // 1_000_000 << 64 | int.from_bytes(os.urandom(8), "big"))


def first_uuid7(moment: datetime) -> uuid.UUID:
    """Return the least id of this moment. Rows created since then are found by their primary key."""
    return made_of(int(moment.timestamp() * 1_000), 0)


def made_of(milliseconds: int, rest: int) -> uuid.UUID:
    """Return the UUID of a time and 76 bits `rest`, two of which the variant overwrites."""
    value = (milliseconds & (1 << 48) - 1) << 80 | rest
    value = value & ~(0xF << 76) | 0x7 << 76
    return uuid.UUID(int=value & ~(0x3 << 62) | 0x2 << 62)


def version_tag(version: int, row_id: uuid.UUID | None = None) -> str:
    """Return the version as a tag: `3`, or `3.89abcdef` for a row, as a new row of the same name begins at 1 again."""
    return str(version) if row_id is None else f"{version}.{row_id.hex[-8:]}"
