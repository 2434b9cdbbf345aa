"""Remembering (X1, X8): everything that bears on a query, of all kinds, with one embedding of it.

Each kind is searched for itself, as far as its own search goes; they are not ranked against each other yet.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from memory.models import Goal, UserProfile
from memory.owner import Owner
from memory.retrieval.entities import EntityHit, search_entities
from memory.retrieval.episodes import EpisodeHit, search_episodes
from memory.retrieval.facts import FactHit, search_facts
from memory.retrieval.graph import Graph, walk_graph
from memory.retrieval.search import Found
from memory.retrieval.strategies import StrategyHit, search_strategies
from memory.retrieval.turns import TurnHit, search_turns
from memory.services.goals import active_goals
from memory.services.memories import OwnVector
from memory.services.profiles import look_up_profile
from memory.services.recall import make_query, record_search

GOALS = 20
GRAPH_DEPTH = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """The documented bundle. Each list is best first; `degraded` says what kept meaning from being all of it."""

    turns: Sequence[TurnHit]
    episodes: Sequence[EpisodeHit]
    facts: Sequence[FactHit]
    entities: Sequence[EntityHit]
    related: Graph
    """What the entities are linked to."""
    strategies: Sequence[StrategyHit]
    goals: Sequence[Goal]
    """Open ones, the most urgent first."""
    profile: UserProfile | None
    degraded: Sequence[str]


def remember(
    owner: Owner,
    query: str,
    *,
    top_k: int = 10,
    time_window_hours: float | None = None,
    min_confidence: float = 0.0,
    as_of: datetime | None = None,
    own: OwnVector | None = None,
    now: datetime,
) -> Remembered:
    """What the owner remembers of the query: at most `top_k` of each kind. The window is for what was said.

    The profile is that of the owner's user. One embedding, and a statement a kind.
    """
    asked = make_query(query, top_k=top_k, own=own)
    since = None if time_window_hours is None else now - timedelta(hours=time_window_hours)
    turns = search_turns(owner, replace(asked, since=since), now=now)
    episodes = search_episodes(owner, asked, now=now)
    facts = search_facts(owner, asked, as_of=as_of, min_confidence=min_confidence, now=now)
    entities = search_entities(owner, asked, now=now)
    strategies = search_strategies(owner, asked, now=now)
    found: Sequence[Found[Any]] = [turns, episodes, facts, entities, strategies]
    ids = [hit.id for each in found for hit in each.hits]
    record_search(owner, query, ids, memory_type="all")
    return Remembered(
        turns=turns.hits,
        episodes=episodes.hits,
        facts=facts.hits,
        entities=entities.hits,
        related=walk_graph(owner, [hit.id for hit in entities.hits], depth=GRAPH_DEPTH, now=now),
        strategies=strategies.hits,
        goals=list(active_goals(owner, now=now)[:GOALS]),
        profile=look_up_profile(owner, owner.user_id) if owner.user_id else None,
        degraded=sorted({reason for each in found for reason in each.degraded}),
    )
