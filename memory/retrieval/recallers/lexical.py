"""By words: BM25 over the most selective of the question's terms (`retrieval.lexical`)."""

from memory.retrieval.lexical import score_of_terms
from memory.retrieval.plans import Ground, Orientation, Recaller
from memory.retrieval.queries import Query


def serves(_query: Query, orientation: Orientation) -> bool:
    return bool(orientation.terms)


def compose(ground: Ground) -> str:
    return f"""
        SELECT id FROM (
            SELECT id, {score_of_terms(ground.shape)} AS score FROM memories
            WHERE {ground.rows} AND lexemes @@ %(selective)s::tsquery
        ) AS matched ORDER BY score DESC, id LIMIT %(candidates)s"""


LEXICAL = Recaller(name="lexical", serves=serves, compose=compose)
