"""The ledger's durable journal: it turns changes in Redis into rows, and restores ledgers that Redis lost.

    mark, evict, end_ledger ──one script──▶ hash + stream ──flush_journal──▶ Injection rows ──restore──▶ hash

A change enters the hash and the stream in one script, so both agree on what happened and in which order. The stream is
emptied into rows in the background. One script uses keys of a conversation and of all, so they must be on one server: a
Redis Cluster has all of them in one slot (`memory_project.redis_cluster`).

The key `ledger_epoch` means "this Redis has every ledger". It is lost together with the data. While it is missing, a
ledger is restored before its first answer (the set `ledger_restored` lists those already restored), and
`restore_all_ledgers` restores the others, then sets the key. A new installation starts the same way, with nothing to
restore.

A Redis that came back from an old copy has that key but lacks the changes since. `ledger_flushed`, the newest id that
became a row, reveals it: it changes together with the stream, so it is as old as the copy. A row above it that is not
in the stream either is one that this Redis never saw (`has_lost_tail`). This is checked by `restore_all_ledgers` and
before every flush, because a flush moves `ledger_flushed`.

A PostgreSQL that came back from an old copy lacks rows up to `ledger_flushed`. The ledgers in Redis stay valid, because
what was injected stays injected, and what the rows lack of them is journalled again (`journal_differences`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any
from uuid import UUID, uuid4

from django.apps import apps
from django.db import transaction
from django.db.models import Max, Q

from ledger.journal_scripts import (
    BEGIN,
    DELETE_ENTRIES,
    DROP_EPOCH_IF_TAIL_LOST,
    FINISH,
    FOLLOW_ROWS,
    JOURNAL_DIFFERENCES,
    LOOK_FOR_LOST_ROWS,
    LOOK_FOR_TAIL,
    REBUILD,
)
from ledger.models import Injection
from memory_project.postgresql.replicas import PRIMARY, reading_from
from memory_project.redis import (
    KEY_PATTERNS,
    SCAN_PAGE,
    SHARED_KEYS,
    ConversationRef,
    client,
    conversation_key,
    parse_conversation_key,
    read_stream,
    script,
)

JOURNAL = SHARED_KEYS["ledger_journal"]
EPOCH = SHARED_KEYS["ledger_epoch"]
RESTORED = SHARED_KEYS["ledger_restored"]
FLUSHED = SHARED_KEYS["ledger_flushed"]
LEDGER_KEYS = KEY_PATTERNS["ledger"].format(account_id="*", conversation_id="*")
FLUSH_BATCH_SIZE = 1_000

StreamEntry = tuple[str, dict[str, str]]
"""An entry of the stream: its id, and account, conversation, agent, event, item, value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerChange:
    """A change that one row made to its ledger."""

    event: str
    item_key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalStep:
    """The number of changes looked at and stored by a flush, or of ledgers looked at and restored.

    `cursor` is the last entry that a flush looked at; empty when the stream had no more.
    """

    examined: int
    changed: int
    cursor: str = ""


def replay_changes(changes: Iterable[LedgerChange]) -> dict[str, str]:
    """Return the ledger after these changes, applied in order. The first mark of an item stays until it is evicted."""
    ledger: dict[str, str] = {}
    for change in changes:
        if change.event == Injection.Event.MARKED:
            ledger.setdefault(change.item_key, change.value)
        elif change.event == Injection.Event.EVICTED:
            ledger.pop(change.item_key, None)
        else:
            ledger.clear()
    return ledger


def ledger_keys(conversation: ConversationRef) -> list[str]:
    """Return the KEYS of every script that reads or changes a ledger: ledger, epoch, restored, journal."""
    return [conversation_key("ledger", conversation), EPOCH, RESTORED, JOURNAL]


def preview_flush(size: int, *, after: str = "", account_id: UUID | None = None) -> JournalStep:
    """Return what `flush_journal` would do with the same arguments (`changed` is an upper bound). Changes nothing."""
    entries, cursor = read_stream(JOURNAL, size, after=after, account_id=account_id)
    return JournalStep(examined=len(entries), changed=len(entries), cursor=cursor)


def flush_journal(size: int, *, after: str = "", account_id: UUID | None = None) -> JournalStep:
    """Move up to `size` entries after the cursor into rows, and delete them from the stream after the commit.

    It may be killed at any point and run again: nothing is lost or doubled. With an account, other accounts' entries
    stay.
    """
    drop_epoch_if_tail_lost()
    journal_differences()
    entries, cursor = read_stream(JOURNAL, size, after=after, account_id=account_id)
    with transaction.atomic():
        changed = store_new_rows(entries)
        if entries:
            # after the outermost commit: an entry must not be deleted before its row is safe
            ids = [at for at, _ in entries]
            transaction.on_commit(lambda: script(DELETE_ENTRIES)(keys=[JOURNAL, FLUSHED], args=ids))
    return JournalStep(examined=len(entries), changed=changed, cursor=cursor)


def store_new_rows(entries: list[StreamEntry]) -> int:
    """Store the entries that have no row yet and return their number. Entries of deleted accounts are dropped."""
    rows = [injection_row(at, entry) for at, entry in entries]
    named = {row.account_id for row in rows}
    stored = Injection.objects.filter(account_id__in=named, stream_id__in=[row.stream_id for row in rows])
    known = set(stored.values_list("stream_id", flat=True))
    accounts: Any = apps.get_model("memory", "Account")._default_manager
    alive = set(accounts.filter(id__in=named).values_list("id", flat=True))
    new = [row for row in rows if row.stream_id not in known and row.account_id in alive]
    Injection.objects.bulk_create(new, ignore_conflicts=True)
    return len(new)


def injection_row(stream_id: str, entry: dict[str, str]) -> Injection:
    milliseconds = int(stream_id.split("-")[0])
    return Injection(
        account_id=UUID(entry["account"]),
        conversation_id=entry["conversation"],
        item_key=entry["item"],
        value=entry["value"],
        agent_id=entry["agent"],
        event=entry["event"],
        at=datetime.fromtimestamp(milliseconds / 1000, tz=UTC),
        stream_id=sortable_stream_id(stream_id),
    )


def sortable_stream_id(stream_id: str) -> str:
    """Return `<ms>-<n>` with both numbers padded to the width of 64 bits."""
    milliseconds, number = stream_id.split("-")
    return f"{int(milliseconds):020}-{int(number):020}"


def last_journalled_id() -> str:
    """Return the newest entry that is a row, as Redis writes its id; "" without rows."""
    last = Injection.objects.aggregate(last=Max("stream_id"))["last"]
    return "-".join(str(int(number)) for number in last.split("-")) if last else ""


def flush_everything() -> None:
    """Flush until the stream is empty."""
    cursor = flush_journal(FLUSH_BATCH_SIZE).cursor
    while cursor:
        cursor = flush_journal(FLUSH_BATCH_SIZE, after=cursor).cursor


def restore_ledger(conversation: ConversationRef) -> None:
    """Restore one ledger from its rows, unless somebody else was faster. Needs PostgreSQL.

    Rows and stream are the whole history (of the primary), and nobody can add to the ledger until it is restored.
    """
    with reading_from(PRIMARY):
        flush_everything()
        stored = Injection.objects.in_account(conversation.account_id).in_conversation(conversation.conversation_id)
        rows = stored.in_order().values_list("event", "item_key", "value")
        changes = (LedgerChange(event=event, item_key=item_key, value=value) for event, item_key, value in rows)
        rebuild_ledger(conversation, replay_changes(changes), last_journalled_id())


def rebuild_ledger(conversation: ConversationRef, ledger: dict[str, str], last_id: str) -> bool:
    """Replace the ledger in Redis and return True; return False if it needs no restoring (any more)."""
    pairs = [text for pair in ledger.items() for text in pair]
    return bool(script(REBUILD)(keys=ledger_keys(conversation), args=[last_id, *pairs]))


def restore_all_ledgers(account_id: UUID | None = None) -> JournalStep:
    """Restore every ledger if this Redis has lost them, then set the epoch.

    With an account, restore only its ledgers and leave the epoch unset.
    """
    drop_epoch_if_tail_lost()
    journal_differences()
    if has_every_ledger():
        return JournalStep(examined=0, changed=0)
    token, last_id = str(uuid4()), last_journalled_id()
    script(BEGIN)(keys=[RESTORED, JOURNAL], args=[token, last_id])
    flush_everything()
    examined = changed = 0
    for conversation, changes in read_histories(account_id):
        examined += 1
        changed += rebuild_ledger(conversation, replay_changes(changes), last_id)
    if account_id is None:
        script(FINISH)(keys=[EPOCH, RESTORED], args=[token])
    return JournalStep(examined=examined, changed=changed)


def count_lost_ledgers(account_id: UUID | None = None) -> int:
    """Return the number of conversations that `restore_all_ledgers` would look at."""
    if has_every_ledger() and not has_lost_tail():
        return 0
    rows = Injection.objects.all() if account_id is None else Injection.objects.in_account(account_id)
    return rows.values("account_id", "conversation_id").distinct().count()


def has_every_ledger() -> bool:
    """Return False for a Redis that is new or has lost its data, until `restore_all_ledgers` has run."""
    return bool(client().exists(EPOCH))


def has_lost_tail() -> bool:
    """Return True for a Redis that came back from an old copy: it has its epoch, but lacks changes that are rows."""
    # read rows first: a change that becomes a row later is in the stream or below `ledger_flushed` by then
    last_id = last_journalled_id()
    return bool(last_id) and bool(script(LOOK_FOR_TAIL)(keys=[JOURNAL, FLUSHED], args=[last_id]))


def drop_epoch_if_tail_lost() -> None:
    """Delete the epoch if the tail is lost, so that every ledger is restored before it answers again."""
    if last_id := last_journalled_id():
        script(DROP_EPOCH_IF_TAIL_LOST)(keys=[JOURNAL, FLUSHED, EPOCH, RESTORED], args=[last_id])


def journal_differences() -> int:
    """Journal again what rows lack of the ledgers, where PostgreSQL is older than this Redis; return their number."""
    # rows are missing, too, where retention or an erasure deleted the newest: then nothing differs
    flushed, last_id = str(client().get(FLUSHED) or ""), last_journalled_id() or "0-0"
    if not (flushed and has_every_ledger() and script(LOOK_FOR_LOST_ROWS)(keys=[FLUSHED], args=[last_id])):
        return 0
    changed, seen = 0, set()
    for conversation, changes in read_histories(None):
        changed += journal_difference(conversation, replay_changes(changes))
        seen.add(conversation_key("ledger", conversation))
    for key in client().scan_iter(match=LEDGER_KEYS, count=SCAN_PAGE):
        if str(key) not in seen:
            account_id, conversation_id = UUID(str(key).split(":")[1]), parse_conversation_key(str(key))
            changed += journal_difference(ConversationRef(account_id=account_id, conversation_id=conversation_id), {})
    script(FOLLOW_ROWS)(keys=[FLUSHED], args=[flushed, last_id])
    return changed


def journal_difference(conversation: ConversationRef, rows: dict[str, str]) -> int:
    pairs = [text for pair in rows.items() for text in pair]
    shared = [str(conversation.account_id), conversation.conversation_id]
    return int(
        script(JOURNAL_DIFFERENCES)(keys=[conversation_key("ledger", conversation), JOURNAL], args=[*shared, *pairs])
    )


def read_last_changes(
    *, after: tuple[UUID, str] | None, limit: int, account_id: UUID | None
) -> list[tuple[ConversationRef, str, datetime]]:
    """Return the event and time of each ledger's last change, by account and conversation, after the given one."""
    rows = Injection.objects.all() if account_id is None else Injection.objects.in_account(account_id)
    if after is not None:
        account, conversation_id = after
        rows = rows.filter(Q(account_id__gt=account) | Q(account_id=account, conversation_id__gt=conversation_id))
    last = rows.order_by("account_id", "conversation_id", "-stream_id").distinct("account_id", "conversation_id")
    return [
        (ConversationRef(account_id=account, conversation_id=conversation_id), event, at)
        for account, conversation_id, event, at in last.values_list("account_id", "conversation_id", "event", "at")[
            :limit
        ]
    ]


def read_histories(account_id: UUID | None) -> Iterator[tuple[ConversationRef, Iterator[LedgerChange]]]:
    """Yield each conversation with its changes, streamed because the journal may be long."""
    rows = Injection.objects.all() if account_id is None else Injection.objects.in_account(account_id)
    columns = rows.in_order().values_list("account_id", "conversation_id", "event", "item_key", "value")
    for (account, conversation_id), of_one in groupby(columns.iterator(), key=lambda row: row[:2]):
        conversation = ConversationRef(account_id=account, conversation_id=conversation_id)
        yield conversation, (LedgerChange(event=row[2], item_key=row[3], value=row[4]) for row in of_one)
