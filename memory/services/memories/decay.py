"""Decay (X14): salience of memories that nobody reads or writes falls by the documented formula.

Reinforcement (X11) slows it down: a recall counts as a use of the memories it returns.

The formulas are `scoring.decayed_salience` and `scoring.decayed_confidence` in SQL, one statement for many rows of a
kind. Each value is computed from a stored base and the age, so that a second run changes nothing, and one run after a
month equals a month of daily runs. Code that sets a salience or confidence need not know of this: a value other than
the decayed one becomes the new base. A memory that is read returns to its base.

Age counts from the last read or write. A memory that was not changed since it was stored ages from its `event_time`, so
that an imported history has faded as if it had been stored when it happened.

Decay does not count as a change of a memory: it changes neither version nor time of change, records no new belief of a
fact and no audit entry. No index has a decaying column, so that an update rewrites only the row, if its page has room.
Pinned, archived and quarantined memories do not decay.
"""

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection

from memory import scoring
from memory.models.statements import execute_statement, fetch_rows
from memory.owner import Owner

# locked in one order, so that two recalls of the same memories do not deadlock. No index has the counted columns, so
# that the update rewrites only the row. As an array: planning a join with the locked rows takes longer than all else
REINFORCE = """
UPDATE memories SET access_count = LEAST(access_count::bigint + 1, 2147483647),
    last_accessed = GREATEST(last_accessed, %s)
WHERE account_id = %s AND id = ANY(ARRAY(
    SELECT id FROM memories WHERE account_id = %s AND id = ANY(%s::uuid[]) ORDER BY id FOR NO KEY UPDATE
))
"""
# commits without waiting for the disk: a crash may lose the latest counts. Not used in a transaction of the caller,
# whose commit it would weaken. Sent together, the two statements are one transaction and one round trip
# a distributed database would send the whole text to its machines as the setting
REINFORCE_LAX = REINFORCE if settings.DATABASE_IS_DISTRIBUTED else f"SET LOCAL synchronous_commit = off; {REINFORCE}"

FIRST_ID = UUID(int=0)
"""An id before all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayedColumn:
    """A column that decays. `faded` is its formula in SQL over `memories`, `base` and `age_days`."""

    column: str
    condition: str
    faded: str


SALIENCE = DecayedColumn(
    column="salience",
    condition="true",
    # at least 1e-9, since PostgreSQL raises an error for products that are too small for a float
    faded=f"""CASE WHEN age_days < {scoring.DECAY_AFTER_DAYS} THEN base ELSE least(base, greatest(base, 1e-9)
        * power({scoring.DAILY_DECAY}::float8, least(age_days, {scoring.MAX_DECAY_STEPS}))
        * (1 + {scoring.DECAY_FREQUENCY_BOOST} * ln(1 + access_count::float8))
        * (1 + {scoring.DECAY_RECENCY_BOOST} * exp(-least(age_days, {scoring.MAX_DECAY_STEPS})))) END""",
)
CONFIDENCE = DecayedColumn(
    column="confidence",
    # inferred facts that are still believed
    condition="certainty = 'inferred' AND status = 'active'",
    faded=f"""least(base, greatest(base, 1e-9) * power(
        {scoring.DAILY_DECAY}::float8, least(floor(age_days / {scoring.WEEK_DAYS}), {scoring.MAX_DECAY_STEPS})
    ))""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayBatch:
    """Rows of one kind in one account to decay next: at most `limit`, in the order of ids, after the id `after`."""

    account_id: UUID
    kind: str
    after: UUID = FIRST_ID
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DecayResult:
    """Numbers of rows that were due and that changed. `last` is the last id, or None if there are no more rows."""

    examined: int
    changed: int
    last: UUID | None


# the current value, its base, and the value that it should have. Rows are due if old enough, or decayed before
VALUES = f"""
SELECT id, {{column}} AS former, base, {{faded}} AS faded
FROM memories CROSS JOIN LATERAL (
    SELECT CASE WHEN {{column}} = faded_{{column}} THEN base_{{column}} ELSE {{column}} END AS base,
        greatest(date_part('epoch', %(now)s - greatest(
            CASE WHEN version = 1 THEN least(updated_at, event_time) ELSE updated_at END, last_accessed
        )) / 86400, 0) AS age_days
) AS aged
WHERE account_id = %(account_id)s AND kind = %(kind)s AND {{condition}} AND NOT (pinned OR archived OR quarantined)
    AND (age_days >= {scoring.DECAY_AFTER_DAYS} OR {{column}} < base)
"""  # noqa: S608  made of constants
DUE = f"""
WITH due AS MATERIALIZED (
    SELECT id, abs(faded - former) >= {scoring.MIN_DECAY_STEP} AS has_moved FROM (
        {VALUES} AND id > %(after)s ORDER BY id LIMIT %(limit)s
    ) AS found
)"""  # noqa: S608  made of constants
RESULT = "SELECT count(*), {moved}, (SELECT id FROM due ORDER BY id DESC LIMIT 1) FROM due"
PREVIEW = f"{DUE} {RESULT.format(moved='count(*) FILTER (WHERE has_moved)')}"
# rows are locked in the order that is used everywhere, and computed again under the lock, since one may have been read
# or changed meanwhile
DECAY = f"""{DUE}, moving AS MATERIALIZED (
    {VALUES} AND id IN (SELECT id FROM due WHERE has_moved) ORDER BY id FOR NO KEY UPDATE OF memories
), moved AS (
    UPDATE memories SET {{column}} = moving.faded, faded_{{column}} = moving.faded, base_{{column}} = moving.base
    FROM moving WHERE memories.account_id = %(account_id)s AND memories.id = moving.id RETURNING 1
) {RESULT.format(moved="(SELECT count(*) FROM moved)")}
"""  # noqa: S608  made of constants


def decay_rows(decayed: DecayedColumn, rows: DecayBatch, *, now: datetime) -> DecayResult:
    """Lower the column of due rows whose value changes by MIN_DECAY_STEP or more. One statement."""
    return run_decay_statement(DECAY, decayed, rows, now=now)


def preview_decay(decayed: DecayedColumn, rows: DecayBatch, *, now: datetime) -> DecayResult:
    """Return what `decay_rows` would return, without changing anything."""
    return run_decay_statement(PREVIEW, decayed, rows, now=now)


def run_decay_statement(statement: str, decayed: DecayedColumn, rows: DecayBatch, *, now: datetime) -> DecayResult:
    found = fetch_rows(statement.format(**asdict(decayed)), {**asdict(rows), "now": now})
    [(examined, changed, last)] = found
    return DecayResult(examined=examined, changed=changed, last=last if examined == rows.limit else None)


def reinforce(owner: Owner, ids: Collection[UUID], *, now: datetime) -> int:
    """Count a read of each memory and return how many still exist. One statement, none for no ids.

    The count stops at the maximum of the column, and `last_accessed` never goes back.
    """
    if not ids:
        return 0
    parameters: list[Any] = [now, owner.account_id, owner.account_id, list(ids)]
    if connection.in_atomic_block:
        return execute_statement(REINFORCE, parameters)
    with connection.cursor() as cursor:
        cursor.execute(REINFORCE_LAX, parameters)
        cursor.nextset()
        return int(cursor.rowcount)
