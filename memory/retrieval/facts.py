"""Search in facts (X3, B3): those true now or at another time, as believed now or at another time."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import ClassVar
from uuid import UUID

from memory.kinds import Kind
from memory.owner import Owner
from memory.retrieval.search import Hit, KindSearch, MemoryQuery, SearchResults, search_kind

TRUE = """({0}.valid_from IS NULL OR {0}.valid_from <= %(as_of)s::timestamptz)
    AND ({0}.valid_to IS NULL OR {0}.valid_to > %(as_of)s::timestamptz)
    AND {0}.confidence >= %(min_confidence)s::float8"""

BELIEVED_NOW = f"own.recorded_at IS NOT NULL AND own.retracted_at IS NULL AND {TRUE.format('own')}"

# looked up by the primary key, which begins with account and fact
VERSION_BELIEVED_THEN = """known.account_id = %(account_id)s AND known.fact_id = {0}
    AND known.recorded_at <= %(known_at)s::timestamptz
    AND (known.retracted_at IS NULL OR known.retracted_at > %(known_at)s::timestamptz)"""

TRUE_AND_BELIEVED_THEN = f"""EXISTS (
    SELECT FROM fact_versions AS known
    WHERE {VERSION_BELIEVED_THEN.format("own.memory_ptr_id")} AND {TRUE.format("known")}
)"""

FACT_COLUMNS = (
    *("confidence", "certainty", "temporal", "status", "valid_from", "valid_to"),
    *("recorded_at", "retracted_at", "source_turn_id"),
)
VERSION_COLUMNS = ("claim", "confidence", "temporal", "valid_from", "valid_to", "recorded_at", "retracted_at")


def believed_column(column: str) -> str:
    """Return a column of the version that was believed then, looked up by key for the few facts that are found."""
    where = VERSION_BELIEVED_THEN.format("memories.id")
    return f"(SELECT known.{column} FROM fact_versions AS known WHERE {where}) AS {column}"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactHit(Hit):
    """A found fact. With `known_at` its claim, confidence, temporal and times are those believed then."""

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


FactResults = SearchResults[FactHit]
TRUE_NOW = KindSearch(
    kind=Kind.FACT,
    hit=FactHit,
    table="facts",
    columns=FACT_COLUMNS,
    text_field="claim",
    type_column="status",
    condition=BELIEVED_NOW.replace("\n", " "),
)
TRUE_THEN = replace(
    TRUE_NOW,
    columns=("certainty", "status", "source_turn_id", *map(believed_column, VERSION_COLUMNS)),
    condition=TRUE_AND_BELIEVED_THEN,
)
WITH_STATUS = replace(TRUE_NOW, condition="own.confidence >= %(min_confidence)s::float8")


def search_facts(
    owner: Owner,
    query: MemoryQuery,
    *,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    min_confidence: float = 0.0,
    now: datetime,
) -> FactResults:
    """Return the `top_k` facts nearest to the query that are true at `as_of` as believed at `known_at`, or now.

    One statement (see `search_rows`). With `query.types`, facts of these statuses, whenever they are true. Similarity
    is that of the current text, whatever was believed before.
    """
    values = {"as_of": as_of or now, "known_at": known_at, "min_confidence": min_confidence}
    searched = WITH_STATUS if query.types else TRUE_NOW if known_at is None else TRUE_THEN
    return search_kind(owner, searched, replace(query, values=values), now=now)
