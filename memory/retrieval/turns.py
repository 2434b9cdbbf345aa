"""Search in the log (X2): what was said in the conversations in which an agent takes part."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import Found, Hit, MemoryQuery, Searched, search_rows

TURNS = Searched(kind=Kind.TURN, table="turns", columns=("turns.index", "role", "name"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit(Hit):
    """A found turn, `text` as it is searched."""

    kind: ClassVar[Kind] = Kind.TURN

    index: int
    role: str
    name: str
    text: str


TurnsFound = Found[TurnHit]


def search_turns(owner: Owner, query: MemoryQuery, *, now: datetime) -> TurnsFound:
    """The `top_k` turns nearest to the query that the owner may read (see `search_rows`). One statement."""
    found = search_rows(owner, TURNS, query, now=now)
    return Found(hits=[TurnHit(**row) for row in found.hits], degraded=found.degraded)
