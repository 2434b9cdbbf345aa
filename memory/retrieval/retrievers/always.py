"""Retrievers of what a recall returns whatever else is better: pinned memories and, for contexts, episodes."""

from dataclasses import replace
from typing import Any

from memory.kinds import kinds_where
from memory.retrieval.plans import QueryAnalysis, Retriever, VisibleRows
from memory.retrieval.queries import Query
from memory.retrieval.retrievers.lexical import LEXICAL
from memory.retrieval.retrievers.vector import VECTOR
from memory.retrieval.statements import SEARCHED_COLUMNS

MAX_PINNED = 5
HAS_NO_VECTOR = " AND embed_after IS NOT NULL"


class PinnedRetriever(Retriever):
    """Finds what people pinned, for every recall that may see it."""

    name = "pinned"

    def to_sql(self, visible: VisibleRows) -> str:
        # few memories are pinned: OFFSET 0 spares the planner all other plans
        return f"""
            SELECT id FROM (
                SELECT {SEARCHED_COLUMNS} FROM memories WHERE account_id = %(account_id)s AND pinned OFFSET 0
            ) AS memories WHERE {visible.rows}
            ORDER BY salience DESC, event_time DESC, id LIMIT {MAX_PINNED}"""


class EpisodeRetriever(Retriever):
    """Finds the summaries nearest to the question, for clients that ask for some in any case.

    By meaning, and by words those without a vector, or all if the question has no vector: the same way as `vector` and
    `lexical`, but among episodes, or other kinds quoted like them, alone.
    """

    name = "episodes"

    def applies(self, query: Query, analysis: QueryAnalysis) -> bool:
        can_search = VECTOR.applies(query, analysis) or LEXICAL.applies(query, analysis)
        return query.nearest_episodes > 0 and can_search

    def to_sql(self, visible: VisibleRows) -> str:
        kinds = ", ".join(repr(kind.value) for kind in sorted(kinds_where(lambda spec: spec.prompt_quote == "summary")))
        is_summary = f" AND kind IN ({kinds})"
        episodes = replace(visible, rows=f"{visible.rows}{is_summary}", vectors=f"{visible.vectors}{is_summary}")
        if not visible.shape.width:
            return nearest_of(LEXICAL.to_sql(episodes))
        pending = replace(episodes, rows=f"{episodes.rows}{HAS_NO_VECTOR}")
        return f"{nearest_of(VECTOR.to_sql(episodes))} UNION ALL {nearest_of(LEXICAL.to_sql(pending))}"

    def params(self, query: Query, analysis: QueryAnalysis) -> dict[str, Any]:
        return {**VECTOR.params(query, analysis), "nearest_episodes": query.nearest_episodes}


def nearest_of(part: str) -> str:
    return f"(SELECT id FROM ({part}) AS nearest LIMIT %(nearest_episodes)s)"


PINNED, EPISODES = PinnedRetriever(), EpisodeRetriever()
