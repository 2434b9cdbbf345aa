"""The ledger's durable journal: from Redis into rows, and from rows back into a Redis that lost its ledgers.

    mark, evict, end ──one script──▶ hash + stream ──flush──▶ Injection rows ──restore──▶ hash

A change enters the hash and the stream in one script, so that both agree on what happened and in which order; the
stream is emptied into rows behind the requests. Three keys in one script want one Redis, with replicas if you like: a
Redis Cluster would refuse it, and could not serve here anyway, since neither Celery nor our client speaks to one.

The key `ledger_epoch` stands for "this Redis has every ledger". It goes with the data. While it is missing, a ledger is
restored before it first answers (the set `ledger_restored` knows which were), and `restore_all` restores the rest, then
sets the key. A new installation starts the same way, with nothing to restore.

A Redis that came back from an old copy has that key and lacks what happened since. `ledger_flushed` tells: it is the
newest id that became a row, and changes together with the stream, so it is as old as the copy. A row above it that is
not in the stream either is one that this Redis never heard of (`has_lost_its_tail`). That is looked into before every
flush, since a flush moves it, and by `restore_all`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, cast
from uuid import UUID, uuid4

from django.apps import apps
from django.db import transaction
from django.db.models import Max

from ledger.models import Injection
from memory_project.redis import SHARED_KEYS, Place, client, conversation_key, script

JOURNAL = SHARED_KEYS["ledger_journal"]
EPOCH = SHARED_KEYS["ledger_epoch"]
RESTORED = SHARED_KEYS["ledger_restored"]
FLUSHED = SHARED_KEYS["ledger_flushed"]
DRAIN_SIZE = 1_000

Entry = tuple[str, dict[str, str]]
"""An entry of the stream: its id, and account, conversation, agent, event, item, value."""

# ids go on after those in PostgreSQL, whatever the clock says now; an error says that they do already
CONTINUE_IDS = """
local function continue_ids(journal, last)
    if last ~= '' and type(redis.pcall('XADD', journal, last, 'event', 'none')) == 'string' then
        redis.call('XDEL', journal, last)
    end
end
"""

# ledger, epoch, restored, journal; last stream id, then item keys and values
REBUILD = (
    CONTINUE_IDS
    + """
if redis.call('EXISTS', KEYS[2]) == 1 or redis.call('SISMEMBER', KEYS[3], KEYS[1]) == 1 then
    return 0
end
continue_ids(KEYS[4], ARGV[1])
redis.call('DEL', KEYS[1])
for i = 2, #ARGV, 2 do
    redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1])
end
redis.call('SADD', KEYS[3], KEYS[1])
return 1
"""
)

# restored, journal; token, last stream id
BEGIN = (
    CONTINUE_IDS
    + """
continue_ids(KEYS[2], ARGV[2])
return redis.call('SADD', KEYS[1], ARGV[1])
"""
)

# epoch, restored; token. The token is gone when Redis lost its data once more meanwhile
FINISH = """
if redis.call('SISMEMBER', KEYS[2], ARGV[1]) == 0 then
    return 0
end
redis.call('SET', KEYS[1], ARGV[1])
redis.call('UNLINK', KEYS[2])
return 1
"""

# ids as texts of one width, since numbers of 64 bits lose their last digits in Lua; `last` is the newest row's id
TAIL = """
local function padded(id)
    local ms, number = string.match(id, '(%d+)-(%d+)')
    return string.rep('0', 20 - #ms) .. ms .. '-' .. string.rep('0', 20 - #number) .. number
end
local function tail_is_lost(journal, flushed, last)
    local known = redis.call('GET', flushed) or '0-0'
    return padded(last) > padded(known) and #redis.call('XRANGE', journal, last, last) == 0
end
"""

# journal, flushed; the newest row's id
LOOK_FOR_TAIL = f"{TAIL} return tail_is_lost(KEYS[1], KEYS[2], ARGV[1])"

# journal, flushed, epoch, restored; the newest row's id
ADMIT_LOST_TAIL = (
    TAIL
    + """
if tail_is_lost(KEYS[1], KEYS[2], ARGV[1]) then
    redis.call('UNLINK', KEYS[3], KEYS[4])
    redis.call('SET', KEYS[2], ARGV[1])
end
"""
)

# journal, flushed; ids. One that is not there any more says nothing: this may be an older Redis than they came from
FORGET = (
    TAIL
    + """
local flushed = redis.call('GET', KEYS[2]) or '0-0'
for _, id in ipairs(ARGV) do
    if redis.call('XDEL', KEYS[1], id) == 1 and padded(id) > padded(flushed) then
        flushed = id
    end
end
redis.call('SET', KEYS[2], flushed)
"""
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What one row did to its ledger."""

    event: str
    item_key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """`cursor` is the last entry looked at; empty when the stream had no more."""

    examined: int
    changed: int
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Conversations looked at, and those whose ledger was made again."""

    examined: int
    changed: int


def fold(changes: Iterable[Change]) -> dict[str, str]:
    """The ledger after these changes, in their order. The first mark of an item stays until it is evicted."""
    ledger: dict[str, str] = {}
    for change in changes:
        if change.event == Injection.Event.MARKED:
            ledger.setdefault(change.item_key, change.value)
        elif change.event == Injection.Event.EVICTED:
            ledger.pop(change.item_key, None)
        else:
            ledger.clear()
    return ledger


def ledger_keys(place: Place) -> list[str]:
    """The keys of every script that reads or changes a ledger: ledger, epoch, restored, journal."""
    return [conversation_key("ledger", place), EPOCH, RESTORED, JOURNAL]


def pending() -> int:
    """How many changes are not yet rows."""
    return int(client().xlen(JOURNAL))


def look(size: int, *, after: str = "", account_id: UUID | None = None) -> Flushed:
    """What a flush with the same arguments would do (`changed` at most). Changes nothing."""
    entries, cursor = next_entries(size, after=after, account_id=account_id)
    return Flushed(examined=len(entries), changed=len(entries), cursor=cursor)


def flush(size: int, *, after: str = "", account_id: UUID | None = None) -> Flushed:
    """Move up to `size` entries after the cursor into rows, and delete them from the stream once that is committed.

    Killed anywhere and run again, nothing is lost or doubled. With an account, others' entries stay where they are.
    """
    admit_lost_tail()
    entries, cursor = next_entries(size, after=after, account_id=account_id)
    with transaction.atomic():
        changed = store_new(entries)
        if entries:
            # on commit of the caller's transaction, if there is one: an entry may not go before its row is safe
            transaction.on_commit(lambda: forget([at for at, _ in entries]))
    return Flushed(examined=len(entries), changed=changed, cursor=cursor)


def forget(ids: list[str]) -> None:
    """Delete entries that are rows now, and note how far that has come."""
    script(FORGET)(keys=[JOURNAL, FLUSHED], args=ids)


def next_entries(size: int, *, after: str, account_id: UUID | None) -> tuple[list[Entry], str]:
    """The account's among the next `size` entries, and the cursor behind them, "" when these were the last."""
    found = cast("list[Entry]", client().xrange(JOURNAL, min=f"({after}" if after else "-", count=size))
    cursor = found[-1][0] if len(found) == size else ""
    return [(at, entry) for at, entry in found if account_id in (None, UUID(entry["account"]))], cursor


def store_new(entries: list[Entry]) -> int:
    """Store the entries that have no row yet; how many. Those of accounts that are gone are nobody's any more."""
    rows = [row_of(at, entry) for at, entry in entries]
    stored = Injection.objects.filter(stream_id__in=[row.stream_id for row in rows])
    known = set(stored.values_list("stream_id", flat=True))
    accounts: Any = apps.get_model("memory", "Account")._default_manager
    alive = set(accounts.filter(id__in={row.account_id for row in rows}).values_list("id", flat=True))
    new = [row for row in rows if row.stream_id not in known and row.account_id in alive]
    Injection.objects.bulk_create(new, ignore_conflicts=True)
    return len(new)


def row_of(stream_id: str, entry: dict[str, str]) -> Injection:
    milliseconds = int(stream_id.split("-")[0])
    return Injection(
        account_id=UUID(entry["account"]),
        conversation_id=entry["conversation"],
        item_key=entry["item"],
        value=entry["value"],
        agent_id=entry["agent"],
        event=entry["event"],
        at=datetime.fromtimestamp(milliseconds / 1000, tz=UTC),
        stream_id=sortable(stream_id),
    )


def sortable(stream_id: str) -> str:
    """`<ms>-<n>` with both numbers at their full width (64 bits)."""
    milliseconds, number = stream_id.split("-")
    return f"{int(milliseconds):020}-{int(number):020}"


def last_journalled_id() -> str:
    """The newest entry that is a row, as Redis writes it; "" without rows."""
    last = Injection.objects.aggregate(last=Max("stream_id"))["last"]
    return "-".join(str(int(number)) for number in last.split("-")) if last else ""


def drain() -> None:
    """Flush until the stream has no more."""
    cursor = flush(DRAIN_SIZE).cursor
    while cursor:
        cursor = flush(DRAIN_SIZE, after=cursor).cursor


def restore(place: Place) -> None:
    """Make one ledger again, unless somebody was quicker. Needs PostgreSQL.

    Rows and stream together are the whole history, and until the ledger is restored nobody can add to it.
    """
    drain()
    history = Injection.objects.in_account(place.account_id).in_conversation(place.conversation_id).in_order()
    rows = history.values_list("event", "item_key", "value")
    changes = (Change(event=event, item_key=item_key, value=value) for event, item_key, value in rows)
    rebuild(place, fold(changes), last_journalled_id())


def rebuild(place: Place, ledger: dict[str, str], last_id: str) -> bool:
    """Put this ledger in place of what Redis has, True; False when it needs none, since it has all or was quicker."""
    pairs = [text for pair in ledger.items() for text in pair]
    return bool(script(REBUILD)(keys=ledger_keys(place), args=[last_id, *pairs]))


def restore_all(account_id: UUID | None = None) -> Restored:
    """Make every ledger again if this Redis has lost them, and say so in the epoch. With an account: only its own."""
    admit_lost_tail()
    if has_every_ledger():
        return Restored(examined=0, changed=0)
    token, last_id = str(uuid4()), last_journalled_id()
    script(BEGIN)(keys=[RESTORED, JOURNAL], args=[token, last_id])
    drain()
    examined = changed = 0
    for place, changes in histories(account_id):
        examined += 1
        changed += rebuild(place, fold(changes), last_id)
    if account_id is None:
        script(FINISH)(keys=[EPOCH, RESTORED], args=[token])
    return Restored(examined=examined, changed=changed)


def count_lost(account_id: UUID | None = None) -> int:
    """How many conversations `restore_all` would look at."""
    if has_every_ledger() and not has_lost_its_tail():
        return 0
    rows = Injection.objects.all() if account_id is None else Injection.objects.in_account(account_id)
    return rows.values("account_id", "conversation_id").distinct().count()


def has_every_ledger() -> bool:
    """False in a Redis that is new or has lost its data, until `restore_all`."""
    return bool(client().exists(EPOCH))


def has_lost_its_tail() -> bool:
    """A Redis that came back from an old copy has its epoch, but not the changes that are rows already."""
    # rows first: whatever becomes one later, the stream or `ledger_flushed` know it by the time they are asked
    last_id = last_journalled_id()
    return bool(last_id) and bool(script(LOOK_FOR_TAIL)(keys=[JOURNAL, FLUSHED], args=[last_id]))


def admit_lost_tail() -> None:
    """Where the tail is lost, take the epoch away: every ledger is then restored before it answers again."""
    if last_id := last_journalled_id():
        script(ADMIT_LOST_TAIL)(keys=[JOURNAL, FLUSHED, EPOCH, RESTORED], args=[last_id])


def histories(account_id: UUID | None) -> Iterator[tuple[Place, Iterator[Change]]]:
    """Each conversation with its changes, streamed: the journal may be long."""
    rows = Injection.objects.all() if account_id is None else Injection.objects.in_account(account_id)
    columns = rows.in_order().values_list("account_id", "conversation_id", "event", "item_key", "value")
    for (account, conversation_id), of_one in groupby(columns.iterator(), key=lambda row: row[:2]):
        place = Place(account_id=account, conversation_id=conversation_id)
        yield place, (Change(event=row[2], item_key=row[3], value=row[4]) for row in of_one)
