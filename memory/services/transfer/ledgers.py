"""Injections of an archive: their journal is stored as rows, and the ledgers in Redis follow the rows.

The ledgers in an archive's `redis.jsonl` only add what was marked after the rows were read: no row names that.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from ledger import store
from ledger.journal import LedgerChange, flush_everything, replay_changes
from ledger.models import Injection
from memory.models import UnstoredRow
from memory_project.redis import KEY_PATTERNS, ConversationRef, parse_conversation_key

TABLE = "injections"
LEDGERS = "ledgers"
"""Name of the step of an import in which ledgers follow the rows."""
PREFIX = KEY_PATTERNS["ledger"].partition("{{")[0].partition("{account_id}:")[2] + "{"
MILLISECOND_DIGITS = 20
SHIFT = 2**40
"""Added to the second number of a row's `stream_id`: more than there are changes in a millisecond."""
STREAM_ID = re.compile(r"[0-9]{20}-[0-9]{20}")
MAX_NUMBER = 2**63
MAX_AHEAD = timedelta(days=1)
"""How far the clock of another installation may be ahead."""
MAX_KEPT_LEAD = timedelta(seconds=1)
"""How far a journal may be ahead of an import without getting earlier times: clocks of two servers differ."""
MILLISECOND = timedelta(milliseconds=1)

Row = dict[str, Any]


def is_ledger(key: str) -> bool:
    """Return True for the key of a ledger, given without the account before it."""
    return key.startswith(PREFIX) and key.endswith("}")


def check_stream_id(stream_id: str, *, now: datetime) -> str:
    """Return what is wrong with the place of a change in the journal, empty for nothing."""
    if not STREAM_ID.fullmatch(stream_id):
        return "must be two numbers of 20 digits"
    milliseconds, number = map(int, stream_id.split("-"))
    if number >= MAX_NUMBER or milliseconds > (now + MAX_AHEAD).timestamp() * 1_000:
        return "is later than now"
    return ""


def find_lead(latest: int, *, requested_at: datetime) -> timedelta:
    """Return by how much a journal whose latest change is of this millisecond is ahead of the import; zero if hardly.

    Later changes of all accounts follow the latest id, so no import may store ids of the future.
    """
    lead = (latest - int(requested_at.timestamp() * 1_000)) * MILLISECOND
    return lead if lead > MAX_KEPT_LEAD else timedelta()


def moved_back(rows: Sequence[Row], lead: timedelta) -> list[Row]:
    """Return the rows with earlier times, all by the same, so that they stay in their order."""
    return [
        row | {"at": earlier_time(row["at"], lead), "stream_id": earlier_id(row["stream_id"], lead)} for row in rows
    ]


def earlier_time(at: str, lead: timedelta) -> str:
    """Return the time that lies the lead before this one, and not before the first one that there is."""
    time = datetime.fromisoformat(at)
    return (time - min(lead, time - datetime.min.replace(tzinfo=time.tzinfo))).isoformat()


def earlier_id(stream_id: str, lead: timedelta) -> str:
    milliseconds = max(int(millisecond_of(stream_id)) - lead // MILLISECOND, 0)
    return f"{milliseconds:020}{stream_id[MILLISECOND_DIGITS:]}"


def with_free_stream_ids(account_id: UUID, rows: Sequence[Row]) -> list[Row]:
    """Return the rows with later ids of their millisecond where the account has another change under the same."""
    changed = list(rows)
    while taken := taken_milliseconds(account_id, changed):
        changed = [
            row | {"stream_id": shifted(row["stream_id"])} if millisecond_of(row["stream_id"]) in taken else row
            for row in changed
        ]
    return changed


def taken_milliseconds(account_id: UUID, rows: Sequence[Row]) -> set[str]:
    """Return the milliseconds of rows under whose ids the account has other changes."""
    same = Injection.objects.in_account(account_id).filter(stream_id__in=[row["stream_id"] for row in rows])
    others = same.exclude(id__in=[row["id"] for row in rows])
    return {millisecond_of(stream_id) for stream_id in others.values_list("stream_id", flat=True)}


def millisecond_of(stream_id: str) -> str:
    return stream_id[:MILLISECOND_DIGITS]


def shifted(stream_id: str) -> str:
    number = int(stream_id[MILLISECOND_DIGITS + 1 :]) + SHIFT
    return f"{millisecond_of(stream_id)}-{number:020}"


def update_ledgers(account_id: UUID, transfer_id: UUID, rows: Sequence[Row]) -> None:
    """Add to the ledgers what was marked by those of the rows that this import stored and that still holds.

    Marks that the account has stay, with the values they have, whatever the rows say. Raises RedisError.
    """
    unstored = UnstoredRow.objects.filter(account_id=account_id, transfer_id=transfer_id)
    known = set(unstored.filter(row_id__in=[row["id"] for row in rows]).values_list("row_id", flat=True))
    added: dict[str, set[str]] = {}
    for row in rows:
        if UUID(row["id"]) not in known:
            added.setdefault(row["conversation_id"], set()).add(row["item_key"])
    if not added:
        return
    flush_everything()
    history = Injection.objects.in_account(account_id).filter(conversation_id__in=added).in_order()
    columns = history.values_list("conversation_id", "event", "item_key", "value")
    for conversation_id, of_one in groupby(columns.iterator(), key=lambda change: change[0]):
        changes = (LedgerChange(event=event, item_key=key, value=value) for _, event, key, value in of_one)
        place = ConversationRef(account_id=account_id, conversation_id=conversation_id)
        store.follow_journal(place, replay_changes(changes), added=added[conversation_id])


def mark_unnamed(account_id: UUID, lines: Sequence[Row]) -> None:
    """Mark what ledgers in lines of Redis have and no row names: it was marked after the archive's rows were read."""
    marks = {parse_conversation_key(line["key"]): dict(line["value"]) for line in lines}
    rows = Injection.objects.in_account(account_id).filter(conversation_id__in=marks)
    named = set(rows.values_list("conversation_id", "item_key").distinct())
    for conversation_id, values in marks.items():
        place = ConversationRef(account_id=account_id, conversation_id=conversation_id)
        unnamed = {key: value for key, value in values.items() if (conversation_id, key) not in named}
        if unnamed:
            store.mark_many(place, unnamed)
