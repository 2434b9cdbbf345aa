"""Erasing a user from Redis: the keys of its sessions, and what names it in the keys of others."""

from typing import Any, cast
from uuid import UUID

from ledger import store as ledger
from memory.services.custody.naming import Naming
from memory_project.redis import (
    SHARED_KEYS,
    ConversationRef,
    SessionRef,
    client,
    conversation_key,
    parse_conversation_key,
    session_key,
)

SCAN_KEYS = 500
"""Keys that one batch looks at."""
REFUSED_READS = SHARED_KEYS["refused_audit_reads"]


def erase_from_keys(account_id: UUID, naming: Naming, *, cursor: int) -> tuple[int, int]:
    """Erase a user from the next keys of the account. Returns how much was erased, and the next cursor, 0 at the end.

    A batch that is done twice erases nothing more. Keys that are written meanwhile may be missed: scan again.
    """
    next_cursor, keys = cast(
        "tuple[int, list[str]]", client().scan(cursor=cursor, match=f"account:{account_id}:*", count=SCAN_KEYS)
    )
    return sum(erase_from_key(account_id, naming, key) for key in keys), int(next_cursor)


def erase_from_key(account_id: UUID, naming: Naming, key: str) -> int:
    if is_of_user(account_id, naming, key) or naming.is_in(key.partition(f"account:{account_id}:")[2]):
        return int(client().unlink(key))
    kind = str(client().type(key))
    erase = {"hash": erase_fields, "string": erase_value, "list": erase_entries, "zset": erase_names}.get(kind)
    return erase(account_id, naming, key) if erase else 0


def is_of_user(account_id: UUID, naming: Naming, key: str) -> bool:
    """Return True for a key of a session of the user."""
    place = SessionRef(account_id=account_id, user_id=naming.user_id, channel="", conversation_id="")
    return key.startswith(session_key(place, "").partition(":{")[0].removesuffix(":") + ":")


def erase_fields(account_id: UUID, naming: Naming, key: str) -> int:
    """Erase fields of a hash: of a conversation's working memory, or of its ledger, which journals its changes."""
    stored = cast("dict[str, str]", client().hgetall(key))
    fields = [field for field, value in stored.items() if naming.is_in(field) or naming.is_in_json(value)]
    place = ConversationRef(account_id=account_id, conversation_id=parse_conversation_key(key) if "{" in key else "")
    if key == conversation_key("ledger", place):
        for field in fields:
            ledger.evict(place, field)
    elif fields:
        client().hdel(key, *fields)
    return len(fields)


def erase_value(account_id: UUID, naming: Naming, key: str) -> int:
    # readers drop the name of a value that is gone
    value = client().get(key)
    return int(client().unlink(key)) if value is not None and naming.is_in_json(str(value)) else 0


def erase_entries(account_id: UUID, naming: Naming, key: str) -> int:
    """Erase entries of a list. A session's buffer of turns goes as a whole: it is read from the log again."""
    entries = cast("list[str]", client().lrange(key, 0, -1))
    # an entry of a buffer has numbers and an id before its JSON
    named = [each for each in entries if naming.is_in_json(each) or naming.is_in_json(each.split(" ", 3)[-1])]
    if named and key.endswith(":turns"):
        return int(client().unlink(key))
    return sum(int(cast(Any, client().lrem(key, 0, each))) for each in named)


def erase_names(account_id: UUID, naming: Naming, key: str) -> int:
    """Erase names of values; the keys of their values are named by them, and so erased as well."""
    names = [name for name in cast("list[str]", client().zrange(key, 0, -1)) if naming.is_in(name)]
    for name in names:
        client().unlink(f"{key}:{name}")
    return int(cast(Any, client().zrem(key, *names))) if names else 0


def erase_refused_reads(account_id: UUID, naming: Naming) -> int:
    """Delete the account's audited reads that the table refused and that name the user."""
    lines = cast("list[tuple[str, dict[str, str]]]", client().xrange(REFUSED_READS))
    ids = [
        line_id
        for line_id, fields in lines
        if fields["account"] == str(account_id) and naming.is_in_json(fields["entry"])
    ]
    return int(cast(Any, client().xdel(REFUSED_READS, *ids))) if ids else 0
