"""The audit log beyond single entries: reads, which take the way over Redis, who may look, and erasing of texts.

Writes are in the log with their own transaction (`audit.record`). Reads are pushed to a stream (`tiers.audit_reads`),
where the account's level keeps them, so that none waits for the database to write; a job makes rows of them.
"""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import DataError, IntegrityError, connection, transaction
from django.db.models import QuerySet

from memory import conf
from memory.audit import Entry, compose, keeps, level_of, moment_of, record, to_json, write_entry
from memory.errors import NotFound, Unprocessable
from memory.models import Account, AuditEntry
from memory.owner import Owner
from memory.tiers import audit_reads
from memory.tiers.audit_reads import ReadLine
from memory_project.ids import uuid7

logger = logging.getLogger(__name__)

# of the line itself, which would be the same at every run
REFUSALS = (DataError, IntegrityError, UnicodeEncodeError)

MOST_ERASED = 10_000
"""Ids that one call erases the texts of."""

MAKE_PARTITIONS = """
SELECT memory_audit_make_partition(min(at)) FROM unnest(%s::timestamptz[]) AS at GROUP BY (at AT TIME ZONE 'UTC')::date
"""

# an entry that was pushed and written directly, since Redis did not tell that it took it, is one
INSERT_READS = """
INSERT INTO memory_audit_log SELECT * FROM jsonb_populate_recordset(NULL::memory_audit_log, %s::jsonb)
ON CONFLICT DO NOTHING RETURNING id
"""

ERASE = "SELECT memory_erase_audit_payloads(%s, %s::uuid[])"


def record_read(
    owner: Owner, *, memory_type: str, affected_ids: Sequence[UUID | str], operation: str = "retrieve", **columns: Any
) -> None:
    """Note that the owner was told these; where its level keeps reads, one round trip to Redis, else nothing.

    What Redis does not take is written to the table at once. `columns` as in `audit.record`.
    """
    level = level_of(owner)
    if not keeps(level, "reads"):
        return
    entry = compose_read(
        owner, level=level, operation=operation, memory_type=memory_type, affected_ids=affected_ids, **columns
    )
    if not audit_reads.push(owner.account_id, to_json(entry)):
        write_entry(entry, needed="reads")


def compose_read(owner: Owner, *, level: str, **columns: Any) -> Entry:
    """An entry that has its time already, and nothing that its level does not keep."""
    entry_id = uuid7()
    entry = dict(compose(owner, id=entry_id, timestamp=moment_of(entry_id), **columns))
    entry["config_snapshot"] = {"audit_level": level} | entry["config_snapshot"]
    if level != "verbose":
        entry["metadata"] = {}
    return entry


def keeps_reads(owner: Owner) -> bool:
    return keeps(level_of(owner), "reads")


def count_elsewhere(owner: Owner, channels: Collection[str]) -> int:
    """How many of these results, each by its channel, are of other channels than the active one."""
    return sum(1 for channel in channels if channel != owner.channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Lines looked at, and those that became rows: not the ones that were rows already.

    `failed`: those that the table refused. `cursor` is the place of the last one looked at; empty when there are no
    more.
    """

    examined: int
    changed: int
    failed: int = 0
    cursor: str


def look_at_reads(size: int, *, after: str, account_id: UUID | None) -> Written:
    """What `write_reads` would do (`changed` at most). Changes nothing."""
    lines, cursor = audit_reads.next_lines(size, after=after, account_id=account_id)
    return Written(examined=len(lines), changed=len(lines), cursor=cursor)


def write_reads(size: int, *, after: str, account_id: UUID | None) -> Written:
    """Move up to `size` reads after the cursor into the table, into the partitions of their days.

    Killed anywhere and run again, nothing is lost or doubled: an entry has its id and its time from where it was read.
    A line that the table refuses holds up no other: it is set aside. With an account, others' lines stay where they
    are.
    """
    lines, cursor = audit_reads.next_lines(size, after=after, account_id=account_id)
    if not lines:
        return Written(examined=0, changed=0, cursor=cursor)
    refused: list[ReadLine] = []
    try:
        new = insert_reads(lines)
    except REFUSALS:
        new, refused = insert_one_by_one(lines)
    # on commit of the caller's transaction, if there is one: a line may not go before its row is safe
    transaction.on_commit(lambda: audit_reads.forget(lines, aside=refused))
    return Written(examined=len(lines), changed=new, failed=len(refused), cursor=cursor)


def insert_reads(lines: Sequence[ReadLine]) -> int:
    """How many of them are new. One INSERT, after one look for the partitions; all of them or none."""
    entries = [line.entry for line in lines]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(MAKE_PARTITIONS, [[entry["timestamp"] for entry in entries]])
        cursor.execute(INSERT_READS, [to_json(entries)])
        return int(cursor.rowcount)


def insert_one_by_one(lines: Sequence[ReadLine]) -> tuple[int, list[ReadLine]]:
    """How many of them are new, and those that the table refuses."""
    new, refused = 0, []
    for line in lines:
        try:
            new += insert_reads([line])
        except REFUSALS as err:
            logger.error("the audit log refuses the read at %s: %s", line.place, type(err).__name__)
            refused.append(line)
    return new, refused


def entries_of(owner: Owner) -> QuerySet[AuditEntry]:
    """The account's entries; of an owner that is an agent, that agent's own."""
    entries = AuditEntry.objects.in_account(owner.account_id)
    return entries.filter(agent_id=owner.agent_id) if owner.agent_id else entries


def erase_payloads(owner: Owner, entry_ids: Collection[UUID]) -> int:
    """Blank query, error and metadata of these entries for good; how many there were. An entry tells of it.

    What happened, to what and by whom stays. Raises NotFound where none of them is the account's, Unprocessable for
    more than MOST_ERASED.
    """
    if len(entry_ids) > MOST_ERASED:
        raise Unprocessable(f"at most {MOST_ERASED} entries at once")
    ids = sorted(set(entry_ids))
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(ERASE, [owner.account_id, ids])
        (erased,) = cursor.fetchone()
        if not erased:
            raise NotFound("no such entries")
        record(owner, operation="erase_audit", memory_type="audit", affected_ids=ids, result_count=erased)
    return int(erased)


def erase_payloads_of_user(owner: Owner, user_id: str) -> int:
    """`erase_payloads` of all entries of a user that have something to blank; how many there were."""
    # what an erased one has left is no query and no error
    with_texts = AuditEntry.objects.in_account(owner.account_id).filter(user_id=user_id).with_payload()
    erased = 0
    while ids := list(with_texts.order_by("timestamp", "id").values_list("id", flat=True)[:MOST_ERASED]):
        erased += erase_payloads(owner, ids)
    return erased


def set_audit_level(owner: Owner, *, level: str) -> None:
    """What the log keeps of the account from now on; "" as the installation says. In the log at every level."""
    if level not in ("", *conf.AUDIT_LEVELS):
        raise Unprocessable("no such level")
    with transaction.atomic():
        account = Account.objects.select_for_update(no_key=True).get(id=owner.account_id)
        before, account.audit_level = account.audit_level, level
        account.save(update_fields=["audit_level"])
        record(
            owner,
            operation="set_audit_level",
            memory_type="account",
            affected_ids=[account.id],
            config_snapshot={"audit_level_before": before or conf.AUDIT_LEVEL},
        )
