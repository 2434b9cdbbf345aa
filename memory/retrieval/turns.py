"""Search in the log (X2): what was said in the conversations in which an agent takes part."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.search import MemoryQuery, Searched, search_rows

TURNS = Searched(kind=Kind.TURN, table="turns", columns=("turns.index", "role", "name"))


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnHit:
    """A found turn, `text` as it is searched. `similarity` is 1 - cosine distance, None for one found by its words."""

    id: UUID
    index: int
    role: str
    name: str
    agent_id: str
    user_id: str
    channel: str
    conversation_id: str
    text: str
    event_time: datetime
    created_at: datetime
    metadata: dict[str, Any]
    similarity: float | None

    @property
    def item_key(self) -> str:
        return f"{Kind.TURN.value}:{self.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsFound:
    """Best first. `degraded` names what kept the answer from being by meaning alone; empty when nothing did."""

    hits: Sequence[TurnHit]
    degraded: Sequence[str]


def search_turns(owner: Owner, query: MemoryQuery, *, now: datetime) -> TurnsFound:
    """The `top_k` turns nearest to the query that the owner may read (see `search_rows`). One statement."""
    found = search_rows(owner, TURNS, query, now=now)
    return TurnsFound(hits=[TurnHit(**row) for row in found.rows], degraded=found.degraded)
