"""Context rot (P11): entries that went stale are archived, as if somebody had removed them.

How stale one is, `scoring.staleness` says, in SQL here: by its age since it was read or written, its reads, its
importance, and whether another live entry of its context SUPERSEDES it. Those that are pinned, archived, expired or in
quarantine are left alone, and all of a context that is archived. No text is lost: staff unarchive an entry, a snapshot
brings it back, and so does writing under its key again.

Locks: the contexts by id, then their entries by id.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.db.models import F

from memory import conf, scoring
from memory.audit import record
from memory.models import Memory, PersistentContext
from memory.owner import Owner
from memory.services.contexts.access_log import Action, log_writes

ACTOR = "job:context_rot"
FIRST = UUID(int=0)
"""Before all ids."""

# how much older than one that nothing supersedes, without which nobody looks for what does
STALE = f"""
NOT (m.pinned OR m.archived OR m.quarantined) AND (m.expires_at IS NULL OR m.expires_at > %(now)s)
AND aged.days_of_stretch >= %(stale_days)s * {scoring.SUPERSEDED_STRETCH} AND (
    aged.days_of_stretch >= %(stale_days)s OR EXISTS (
        SELECT FROM memory_links l JOIN memories newer ON newer.account_id = l.account_id AND newer.id = l.source_id
        WHERE l.account_id = m.account_id AND l.target_id = m.id AND l.type = 'SUPERSEDES'
            AND newer.kind = 'context_entry' AND newer.context_id = m.context_id
            AND NOT (newer.archived OR newer.quarantined)
            AND (newer.expires_at IS NULL OR newer.expires_at > %(now)s)
    )
)"""
AGED = f"""
JOIN context_entries e ON e.memory_ptr_id = m.id
JOIN persistent_contexts c ON c.account_id = m.account_id AND c.id = m.context_id AND NOT c.archived
CROSS JOIN LATERAL (
    SELECT date_part('epoch', %(now)s - greatest(m.updated_at, m.last_accessed)) / 86400
        / ((1 + ln(1 + m.access_count::float8)) * ({scoring.LEAST_STALE_STRETCH} + e.importance)) AS days_of_stretch
) AS aged
"""
# in the order of an index: whatever there is to archive, no entry is looked at twice
LOOK = f"""
WITH reached AS MATERIALIZED (
    SELECT id, account_id, context_id, pinned, archived, quarantined, expires_at, updated_at, last_accessed,
        access_count
    FROM memories WHERE context_id IS NOT NULL AND kind = 'context_entry'
        AND (account_id, context_id, kind, id) > (%(account_id)s, %(context_id)s, 'context_entry', %(entry_id)s)
        AND (%(only)s::uuid IS NULL OR account_id = %(only)s)
    ORDER BY account_id, context_id, kind, id LIMIT %(limit)s
), stale AS (
    SELECT m.id FROM reached m {AGED} WHERE {STALE}
)
SELECT account_id, context_id, id, id IN (SELECT id FROM stale) FROM reached ORDER BY account_id, context_id, id
"""  # noqa: S608  made of constants
LOCK = f"""
SELECT m.account_id, m.context_id, m.id FROM memories m {AGED}
WHERE m.account_id = ANY(%(accounts)s::uuid[]) AND m.id = ANY(%(entries)s::uuid[]) AND {STALE}
ORDER BY m.id FOR NO KEY UPDATE OF m
"""  # noqa: S608  made of constants


class Place(NamedTuple):
    """Where an entry is. In the order of places, an account's entries are together, and a context's."""

    account_id: UUID
    context_id: UUID = FIRST
    entry_id: UUID = FIRST


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """How many entries were looked at, and which of them are stale. `last` is the place to go on behind; None behind
    the last one."""

    examined: int
    stale: Sequence[Place]
    last: Place | None


def find_stale(*, after: Place | None, limit: int, account_id: UUID | None, now: datetime) -> Looked:
    """Look at the next entries, of one account or of all. One statement."""
    begins = after or Place(account_id or FIRST)
    given = {**begins._asdict(), "only": account_id, "limit": limit, **moment(now)}
    reached = [(Place(*place), is_stale) for *place, is_stale in fetch(LOOK, given)]
    stale = [place for place, is_stale in reached if is_stale]
    return Looked(examined=len(reached), stale=stale, last=reached[-1][0] if len(reached) == limit else None)


def archive_stale(found: Sequence[Place], *, now: datetime) -> int:
    """Archive those of the entries that are stale still, with a line of the access log each; how many they were.

    An entry of the audit log an account. As many statements for many entries of an account as for one, none for none.
    """
    if not found:
        return 0
    with transaction.atomic():
        lock_contexts(found)
        accounts, entries = {place.account_id for place in found}, [place.entry_id for place in found]
        stale = [Place(*row) for row in fetch(LOCK, {"accounts": list(accounts), "entries": entries, **moment(now)})]
        rows = Memory.objects.filter(account_id__in=accounts, id__in=[place.entry_id for place in stale])
        rows.update(archived=True, version=F("version") + 1, updated_at=now)
        record_archived(stale, now=now)
    return len(stale)


def lock_contexts(found: Sequence[Place]) -> None:
    """Nobody else writes to their contexts until the transaction ends."""
    contexts = PersistentContext.objects.filter(
        account_id__in={place.account_id for place in found}, id__in={place.context_id for place in found}
    )
    list(contexts.order_by("id").select_for_update(no_key=True, of=("self",)).values_list("id"))


def record_archived(stale: Sequence[Place], *, now: datetime) -> None:
    of_accounts: dict[UUID, list[Place]] = defaultdict(list)
    for place in stale:
        of_accounts[place.account_id].append(place)
    for account_id, places in of_accounts.items():
        owner, ids = Owner(account_id=account_id, actor=ACTOR), [place.entry_id for place in places]
        log_writes(owner, [(place.context_id, place.entry_id) for place in places], action=Action.ARCHIVE, now=now)
        record(owner, operation="archive", memory_type="semantic", affected_ids=ids, result_count=len(ids))


def moment(now: datetime) -> dict[str, Any]:
    return {"now": now, "stale_days": scoring.days_until_stale(conf.STALE_FROM)}


def fetch(statement: str, given: dict[str, Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, given)
        return list(cursor.fetchall())
