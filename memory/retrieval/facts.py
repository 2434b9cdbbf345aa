"""Search in facts (X3, B3): what is true now, or was at another time, as it is or was believed."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import Found, Hit, MemoryQuery, Row, Searched, search_rows

TRUE = """({0}.valid_from IS NULL OR {0}.valid_from <= %(as_of)s::timestamptz)
    AND ({0}.valid_to IS NULL OR {0}.valid_to > %(as_of)s::timestamptz)
    AND {0}.confidence >= %(min_confidence)s::float8"""

BELIEVED_NOW = f"own.recorded_at IS NOT NULL AND own.retracted_at IS NULL AND {TRUE.format('own')}"

# by its key, which begins with account and fact
BELIEVED_THEN = """known.account_id = %(account_id)s AND known.fact_id = {0}
    AND known.recorded_at <= %(known_at)s::timestamptz
    AND (known.retracted_at IS NULL OR known.retracted_at > %(known_at)s::timestamptz)"""

KNOWN_THEN = f"""EXISTS (
    SELECT FROM fact_versions AS known
    WHERE {BELIEVED_THEN.format("own.memory_ptr_id")} AND {TRUE.format("known")}
)"""

COLUMNS = (
    *("confidence", "certainty", "temporal", "status", "valid_from", "valid_to"),
    *("recorded_at", "retracted_at", "source_turn_id"),
)
OF_VERSIONS = ("confidence", "temporal", "valid_from", "valid_to", "recorded_at", "retracted_at")


def known_column(column: str, *, name: str = "") -> str:
    """What was believed of a found fact: of the few rows that come back, each by its key."""
    where = BELIEVED_THEN.format("memories.id")
    return f"(SELECT known.{column} FROM fact_versions AS known WHERE {where}) AS {name or column}"


TRUE_NOW = Searched(
    kind=Kind.FACT, table="facts", columns=COLUMNS, type_column="status", condition=BELIEVED_NOW.replace("\n", " ")
)
TRUE_THEN = replace(
    TRUE_NOW,
    columns=(
        *("certainty", "status", "source_turn_id", known_column("claim", name="claim")),
        *map(known_column, OF_VERSIONS),
    ),
    condition=KNOWN_THEN,
)
OF_STATUS = replace(TRUE_NOW, condition="own.confidence >= %(min_confidence)s::float8")


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHit(Hit):
    """A found fact; with `known_at`, claim, confidence, temporal and times as they were believed then."""

    kind: ClassVar[Kind] = Kind.FACT

    claim: str
    confidence: float
    certainty: str
    temporal: str
    status: str
    valid_from: datetime | None
    valid_to: datetime | None
    recorded_at: datetime | None
    retracted_at: datetime | None
    source_turn_id: UUID | None


FactsFound = Found[FactHit]


def search_facts(
    owner: Owner,
    query: MemoryQuery,
    *,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    min_confidence: float = 0.0,
    now: datetime,
) -> FactsFound:
    """The `top_k` facts nearest to the query, of those that are true now, or at `as_of`, as believed now, or at
    `known_at` (see `search_rows`). One statement.

    With `query.types`, facts of these statuses, whenever they hold. What is nearest is said by the latest wording,
    whatever was believed before.
    """
    values = {"as_of": as_of or now, "known_at": known_at, "min_confidence": min_confidence}
    searched = OF_STATUS if query.types else TRUE_NOW if known_at is None else TRUE_THEN
    found = search_rows(owner, searched, replace(query, values=values), now=now)
    return Found(hits=[make_hit(row) for row in found.hits], degraded=found.degraded)


def make_hit(row: Row) -> FactHit:
    own = {name: value for name, value in row.items() if name != "text"}
    return FactHit(**{"claim": row["text"], **own})
