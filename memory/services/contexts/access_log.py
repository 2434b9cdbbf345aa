"""The access log of contexts: which agent read or wrote which entry, when.

Writes are logged in their own transaction. Reads take the way over Redis (`tiers.access_log`), so that none waits for
the database to write, and are in the table after the next run of the job.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from memory.models import ContextAccessLog, PersistentContext
from memory.owner import Owner
from memory.services.accounts.access import refuse_managing
from memory.tiers import access_log
from memory.tiers.access_log import Line, Touched

Action = ContextAccessLog.Action
READS = frozenset({Action.READ.value, Action.SEARCH.value})

# contexts cannot go before their lines are there; those of contexts that are gone are nobody's any more
INSERT_LINES = """
INSERT INTO context_access_logs
    (id, account_id, context_id, entry_id, agent_id, actor, action, count, accessed_at)
SELECT line.* FROM unnest(
    %s::uuid[], %s::uuid[], %s::uuid[], %s::uuid[], %s::text[], %s::text[], %s::text[], %s::int[], %s::timestamptz[]
) AS line (id, account_id, context_id, entry_id, agent_id, actor, action, count, accessed_at)
JOIN persistent_contexts c ON c.account_id = line.account_id AND c.id = line.context_id
ORDER BY c.id FOR KEY SHARE OF c
ON CONFLICT (id) DO NOTHING RETURNING id
"""

# locked in the order of everybody who locks memories
COUNT_READS = """
WITH seen AS (
    SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::int[], %s::timestamptz[]) AS seen (account_id, id, reads, at)
), locked AS MATERIALIZED (
    SELECT m.id, seen.reads, seen.at FROM memories m JOIN seen ON m.account_id = seen.account_id AND m.id = seen.id
    ORDER BY m.id FOR NO KEY UPDATE OF m
)
UPDATE memories m SET access_count = m.access_count + locked.reads,
    last_accessed = greatest(m.last_accessed, locked.at)
FROM locked WHERE m.id = locked.id
"""


def log_writes(owner: Owner, touched: Sequence[Touched], *, action: Action, now: datetime) -> None:
    """Write the lines of entries that were written, in the transaction of that write. One statement."""
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


def log_reads(owner: Owner, touched: Sequence[Touched], *, action: Action, now: datetime) -> None:
    """Note that entries were read: one round trip to Redis, none where there were none. Call it after the read.

    Raises nothing: a read is answered, whether its lines were taken or had to be counted as lost.
    """
    if touched:
        access_log.push(owner, touched, action=action.value, now=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Lines looked at, and those that became rows: not the ones that were rows already, or whose context is gone.

    `cursor` is the place of the last one looked at; empty when there are no more.
    """

    examined: int
    changed: int
    cursor: str


def look_at_lines(size: int, *, after: str, account_id: UUID | None) -> Written:
    """What `write_lines` would do (`changed` at most). Changes nothing."""
    lines, cursor = access_log.next_lines(size, after=after, account_id=account_id)
    found = len(lines) + (0 if after else access_log.count_settled(account_id))
    return Written(examined=found, changed=found, cursor=cursor)


def write_lines(size: int, *, after: str, account_id: UUID | None, now: datetime) -> Written:
    """Move up to `size` lines of reads after the cursor into the table, and count the reads on their entries.

    Killed anywhere and run again, nothing is lost or doubled: a line has its id from where it was read, and only what
    is new in the table counts. With an account, others' lines stay where they are.
    """
    if not after:
        access_log.settle(now)
    lines, cursor = access_log.next_lines(size, after=after, account_id=account_id)
    if not lines:
        return Written(examined=0, changed=0, cursor=cursor)
    # a line that was sent twice, since the connection broke in between, is one
    different = {line.id: line for line in lines}
    with transaction.atomic():
        new = insert_lines(list(different.values()))
        count_reads([different[line_id] for line_id in new if different[line_id].action in READS])
        # on commit of the caller's transaction, if there is one: a line may not go before its row is safe
        transaction.on_commit(lambda: access_log.forget(lines))
    return Written(examined=len(lines), changed=len(new), cursor=cursor)


def insert_lines(lines: Sequence[Line]) -> set[UUID]:
    """The ids of those that are new. One statement."""
    rows = [
        (
            *(line.id, line.account_id, line.context_id, line.entry_id),
            # one text that the table refuses would hold up all others for good
            *(fit(line.agent_id, 100), fit(line.actor, 150)),
            *(line.action, line.count, line.accessed_at),
        )
        for line in lines
    ]
    with connection.cursor() as cursor:
        cursor.execute(INSERT_LINES, [list(column) for column in zip(*rows, strict=True)])
        return {line_id for (line_id,) in cursor.fetchall()}


def fit(text: str, length: int) -> str:
    return text.replace("\x00", "")[:length]


def count_reads(lines: Sequence[Line]) -> None:
    """Count them on their entries, whose version and time of change stay what they are. One statement."""
    reads: dict[tuple[UUID, UUID | None], list[datetime]] = {}
    for line in lines:
        reads.setdefault((line.account_id, line.entry_id), []).append(line.accessed_at)
    if not reads:
        return
    accounts, entries = zip(*reads, strict=True)
    counts, latest = [len(times) for times in reads.values()], [max(times) for times in reads.values()]
    with connection.cursor() as cursor:
        cursor.execute(COUNT_READS, [list(accounts), list(entries), counts, latest])


def access_logs(owner: Owner, context_id: UUID) -> QuerySet[ContextAccessLog]:
    """The log of a context that the owner manages. Raises NotFound, and Forbidden for who may only read or write."""
    contexts = PersistentContext.objects
    if not contexts.managed_by(owner).filter(id=context_id).exists():
        refuse_managing(contexts.visible_to(owner).filter(id=context_id), what="context")
    return ContextAccessLog.objects.filter(account_id=owner.account_id, context_id=context_id)
