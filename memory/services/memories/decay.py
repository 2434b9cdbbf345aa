"""Decay (X14): what nobody reads or writes fades, by the documented formula, from a base that is kept.

`scoring.decayed` and `scoring.decayed_confidence` in SQL, one statement for many rows of a kind. What is left is made
from base and age each time, so that a second run changes nothing, and a month of daily runs is one run after a month.
Who sets a salience or a confidence meanwhile, knowing nothing of this, sets the base: a value that is not the faded one
is somebody's. What was read since goes back to its base.

Fading is no change of a memory: neither its version nor its time of change, no new belief of a fact, no entry of the
audit log. No index is over what fades: of a row nothing is rewritten but itself, where its page has room. What is
pinned, archived or in quarantine does not fade.
"""

from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import Exists, OuterRef

from memory import scoring
from memory.models import Account, Memory

FIRST = UUID(int=0)
"""Before all ids."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fading:
    """A column that fades, and how: SQL over `memories` (and `facts`) with `base` and `age_days`."""

    table: str
    key: str
    column: str
    joined: str
    condition: str
    faded: str


SALIENCE = Fading(
    table="memories",
    key="id",
    column="salience",
    joined="",
    condition="true",
    # what is nearly nothing stays so: PostgreSQL refuses products that are too small for a float
    faded=f"""CASE WHEN age_days < {scoring.FADES_AFTER_DAYS} THEN base ELSE least(base, greatest(base, 1e-9)
        * power({scoring.DECAY_A_DAY}::float8, age_days)
        * (1 + {scoring.FADING_FREQUENCY_BOOST} * ln(1 + memories.access_count::float8))
        * (1 + {scoring.FADING_RECENCY_BOOST} * exp(-age_days))) END""",
)
CONFIDENCE = Fading(
    table="facts",
    key="memory_ptr_id",
    column="confidence",
    joined="JOIN facts ON facts.memory_ptr_id = memories.id",
    # what was inferred, and is believed still
    condition="facts.certainty = 'inferred' AND facts.status = 'active'",
    faded=f"""least(base, greatest(base, 1e-9)
        * power({scoring.DECAY_A_DAY}::float8, floor(age_days / {scoring.WEEK_DAYS})))""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """At most `limit` rows of one kind in one account, behind the id `after`, in the order of ids."""

    account_id: UUID
    kind: str
    after: UUID = FIRST
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Faded:
    """Rows that were due, and those of them that moved. `last` is the id to go on behind; None behind the last one."""

    examined: int
    changed: int
    last: UUID | None


# the value as it is, its base, and what it has to be by now. Due is what is old enough, and what has faded before
VALUES = f"""
SELECT memories.id, own.value, own.base, {{faded}} AS faded
FROM memories {{joined}} CROSS JOIN LATERAL (
    SELECT {{table}}.{{column}} AS value,
        CASE WHEN {{table}}.{{column}} = {{table}}.faded_{{column}} THEN {{table}}.base_{{column}}
            ELSE {{table}}.{{column}} END AS base,
        greatest(memories.updated_at, memories.last_accessed) AS used_at
) AS own CROSS JOIN LATERAL (
    SELECT least(greatest(date_part('epoch', %(now)s - used_at) / 86400, 0), {scoring.OLDEST_FADING_DAYS}) AS age_days
) AS aged
WHERE memories.account_id = %(account_id)s AND memories.kind = %(kind)s AND {{condition}}
    AND NOT (memories.pinned OR memories.archived OR memories.quarantined)
    AND (age_days >= {scoring.FADES_AFTER_DAYS} OR own.value < own.base)
"""  # noqa: S608  made of constants
DUE = f"""
WITH due AS MATERIALIZED (
    SELECT id, abs(faded - value) >= {scoring.FADING_STEP} AS has_moved FROM (
        {VALUES} AND memories.id > %(after)s ORDER BY memories.id LIMIT %(limit)s
    ) AS found
)"""  # noqa: S608  made of constants
TELL = "SELECT count(*), {moved}, (SELECT id FROM due ORDER BY id DESC LIMIT 1) FROM due"
LOOK = f"{DUE} {TELL.format(moved='count(*) FILTER (WHERE has_moved)')}"
# locked in the order of everybody who locks memories, and reckoned anew then: one may have been read, or have been
# given another value, while we waited
FADE = f"""{DUE}, moving AS MATERIALIZED (
    {VALUES} AND memories.id IN (SELECT id FROM due WHERE has_moved)
    ORDER BY memories.id FOR NO KEY UPDATE OF {{locked}}
), moved AS (
    UPDATE {{table}} SET {{column}} = moving.faded, faded_{{column}} = moving.faded, base_{{column}} = moving.base
    FROM moving WHERE {{table}}.{{key}} = moving.id RETURNING 1
) {TELL.format(moved="(SELECT count(*) FROM moved)")}
"""  # noqa: S608  made of constants


def fade(fading: Fading, rows: Slice, *, now: datetime) -> Faded:
    """Let those of the rows fade that are due, and have moved by FADING_STEP. One statement."""
    return tell(FADE, fading, rows, now=now)


def look_at_fading(fading: Fading, rows: Slice, *, now: datetime) -> Faded:
    """What `fade` would do. Changes nothing."""
    return tell(LOOK, fading, rows, now=now)


def tell(statement: str, fading: Fading, rows: Slice, *, now: datetime) -> Faded:
    locked = "memories" if fading.table == "memories" else f"memories, {fading.table}"
    with connection.cursor() as cursor:
        cursor.execute(statement.format(**asdict(fading), locked=locked), {**asdict(rows), "now": now})
        examined, changed, last = cursor.fetchone()
    return Faded(examined=examined, changed=changed, last=last if examined == rows.limit else None)


def next_account(kind: str, *, after: UUID | None) -> UUID | None:
    """The account behind this one, by id, that has a memory of the kind; None where there is no other."""
    has_any = Memory.objects.filter(account_id=OuterRef("id"), kind=kind)
    accounts = Account.objects.filter(Exists(has_any), id__gt=after or FIRST)
    return accounts.order_by("id").values_list("id", flat=True).first()
