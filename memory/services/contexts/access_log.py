"""The access log of contexts: which agent read or wrote which entry, and when.

Writes are logged in their own transaction. Reads go through Redis (`tiers.access_log`), so that no read waits for a
database write; the next run of the job moves them into the table.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from memory.models import ContextAccessLog, ContextEntry, PersistentContext
from memory.models.statements import execute_statement, fetch_rows
from memory.owner import Owner
from memory.services.account_walk import BatchReport, group_by_account
from memory.services.accounts.access import raise_manage_refused
from memory.tiers import access_log
from memory.tiers.access_log import AccessLine, EntryReference

Action = ContextAccessLog.Action
READ_ACTIONS = frozenset({Action.READ.value, Action.SEARCH.value})

# of one account, in a distributed database, which finds the machine by its value
LINE_ACCOUNT, SEEN_ACCOUNT, LOCKED_ACCOUNT = (
    (["%(account_id)s"] * 3)
    if settings.DATABASE_IS_DISTRIBUTED
    else [f"{name}.account_id" for name in ("line", "seen", "locked")]
)
# the lock keeps contexts from being deleted meanwhile; the join drops lines of deleted contexts
INSERT_LINES = f"""
INSERT INTO context_access_logs
    (id, account_id, context_id, entry_id, agent_id, actor, action, count, accessed_at)
SELECT line.* FROM unnest(
    %(ids)s::uuid[], %(accounts)s::uuid[], %(contexts)s::uuid[], %(entries)s::uuid[], %(agents)s::text[],
    %(actors)s::text[], %(actions)s::text[], %(counts)s::int[], %(times)s::timestamptz[]
) AS line (id, account_id, context_id, entry_id, agent_id, actor, action, count, accessed_at)
JOIN persistent_contexts c ON c.account_id = {LINE_ACCOUNT} AND c.id = line.context_id
ORDER BY c.id FOR KEY SHARE OF c
ON CONFLICT (id, account_id) DO NOTHING RETURNING id
"""  # noqa: S608  made of constants

# in the order that all transactions lock memories in
COUNT_READS = f"""
WITH seen AS (
    SELECT * FROM unnest(%(accounts)s::uuid[], %(entries)s::uuid[], %(counts)s::int[], %(latest)s::timestamptz[])
        AS seen (account_id, id, reads, at)
), locked AS MATERIALIZED (
    SELECT m.account_id, m.id, seen.reads, seen.at
    FROM memories m JOIN seen ON m.account_id = {SEEN_ACCOUNT} AND m.id = seen.id
    ORDER BY m.id FOR NO KEY UPDATE OF m
)
UPDATE memories m SET access_count = m.access_count + locked.reads,
    last_accessed = greatest(m.last_accessed, locked.at)
FROM locked WHERE m.account_id = {LOCKED_ACCOUNT} AND m.id = locked.id
"""  # noqa: S608  made of constants


def entry_reference(entry: ContextEntry) -> EntryReference:
    """Return the context and entry ids, as the access log takes them."""
    return entry.context_id, entry.id  # type: ignore[return-value]  # entries have contexts: the database sees to it


def log_writes(owner: Owner, touched: Sequence[EntryReference], *, action: Action, now: datetime) -> None:
    """Log writes of entries, in the transaction of the write. One statement."""
    ContextAccessLog.objects.bulk_create(
        [
            ContextAccessLog(
                account_id=owner.account_id,
                context_id=context_id,
                entry_id=entry_id,
                agent_id=owner.agent_id,
                actor=owner.actor,
                action=action,
                accessed_at=now,
            )
            for context_id, entry_id in touched
        ]
    )


def log_reads(owner: Owner, touched: Sequence[EntryReference], *, action: Action, now: datetime) -> None:
    """Log reads of entries: one round trip to Redis, or none for no entries. Call it after the read.

    Raises nothing: a read is answered even if its lines had to be counted as lost.
    """
    if touched:
        access_log.push_access_lines(owner, touched, action=action.value, now=now)


def preview_access_lines(size: int, *, after: str, account_id: UUID | None) -> BatchReport:
    """Return what `write_access_lines` would do (`changed` is an upper bound). Changes nothing."""
    lines, cursor = access_log.read_access_lines(size, after=after, account_id=account_id)
    found = len(lines) + (0 if after else access_log.count_loss_lines(account_id))
    return BatchReport(examined=found, changed=found, cursor=cursor)


def write_access_lines(size: int, *, after: str, account_id: UUID | None, now: datetime) -> BatchReport:
    """Move up to `size` lines of reads after the cursor into the table, and count the reads on their entries.

    It may be killed at any point and run again: nothing is lost or doubled, because a line has its id since the read
    and only new rows are counted. With an account, others' lines stay.
    """
    if not after:
        access_log.report_losses(now)
    lines, cursor = access_log.read_access_lines(size, after=after, account_id=account_id)
    if not lines:
        return BatchReport(examined=0, changed=0, cursor=cursor)
    # a line may have been sent twice if the connection broke in between
    different = {line.id: line for line in lines}
    new: set[UUID] = set()
    with transaction.atomic():
        for group in group_lines(list(different.values())):
            stored = insert_access_lines(group)
            count_reads([different[line_id] for line_id in stored if different[line_id].action in READ_ACTIONS])
            new |= stored
        # after the outermost commit: a line must not be deleted before its row is safe
        transaction.on_commit(lambda: access_log.delete_access_lines(lines))
    return BatchReport(examined=len(lines), changed=len(new), cursor=cursor)


def group_lines(lines: Sequence[AccessLine]) -> list[list[AccessLine]]:
    """Return all lines at once, or in a distributed database those of each account."""
    if not settings.DATABASE_IS_DISTRIBUTED:
        return [list(lines)]
    return [group for _, group in sorted(group_by_account(lines).items())]


def insert_access_lines(lines: Sequence[AccessLine]) -> set[UUID]:
    """Insert the lines and return the ids of the new ones. One statement."""
    rows = [
        (
            *(line.id, line.account_id, line.context_id, line.entry_id),
            # a text that the table refuses would block all other lines for good
            *(fit_to_length(line.agent_id, 100), fit_to_length(line.actor, 150)),
            *(line.action, line.count, line.accessed_at),
        )
        for line in lines
    ]
    columns = ("ids", "accounts", "contexts", "entries", "agents", "actors", "actions", "counts", "times")
    values = {name: list(column) for name, column in zip(columns, zip(*rows, strict=True), strict=True)}
    inserted = fetch_rows(INSERT_LINES, values | {"account_id": lines[0].account_id})
    return {line_id for (line_id,) in inserted}


def fit_to_length(text: str, length: int) -> str:
    return text.replace("\x00", "")[:length]


def count_reads(lines: Sequence[AccessLine]) -> None:
    """Count the reads on their entries, without a new version or change time. One statement."""
    reads: dict[tuple[UUID, UUID | None], list[datetime]] = {}
    for line in lines:
        reads.setdefault((line.account_id, line.entry_id), []).append(line.accessed_at)
    if not reads:
        return
    accounts, entries = zip(*reads, strict=True)
    counts, latest = [len(times) for times in reads.values()], [max(times) for times in reads.values()]
    asked = {"accounts": list(accounts), "entries": list(entries), "counts": counts, "latest": latest}
    execute_statement(COUNT_READS, asked | {"account_id": accounts[0]})


def access_logs(owner: Owner, context_id: UUID) -> QuerySet[ContextAccessLog]:
    """Return the access log of a context that the owner manages.

    Raises NotFound, and Forbidden for an agent that may only read or write.
    """
    contexts = PersistentContext.objects
    if not contexts.managed_by(owner).filter(id=context_id).exists():
        raise_manage_refused(contexts.visible_to(owner).filter(id=context_id), what="context")
    return ContextAccessLog.objects.filter(account_id=owner.account_id, context_id=context_id)
