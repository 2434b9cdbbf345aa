"""Search in the log (X2): turns of the conversations in which an agent takes part."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from memory.kinds import Kind
from memory.owner import Owner
from memory.retrieval.search import Hit, KindSearch, MemoryQuery, SearchResults, search_kind


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit(Hit):
    """A found turn. `text` is the text that is searched."""

    kind: ClassVar[Kind] = Kind.TURN

    index: int
    role: str
    name: str
    text: str


TurnResults = SearchResults[TurnHit]
TURNS = KindSearch(kind=Kind.TURN, hit=TurnHit, table="turns", columns=("turns.index", "role", "name"))


def search_turns(owner: Owner, query: MemoryQuery, *, now: datetime) -> TurnResults:
    """Return the `top_k` turns nearest to the query that the owner may read (see `search_rows`). One statement."""
    return search_kind(owner, TURNS, query, now=now)
