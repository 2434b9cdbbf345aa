"""By words: BM25 over the most selective of the question's terms (`retrieval.lexical`)."""

from memory.retrieval.lexical import best_by_all_words, best_by_words, score_of_terms
from memory.retrieval.plans import Ground, Orientation, Recaller, Shape
from memory.retrieval.queries import Query


def serves(_query: Query, orientation: Orientation) -> bool:
    return bool(orientation.terms)


def compose(ground: Ground) -> str:
    shape, score, limit = ground.shape, score_of_terms(ground.shape), "%(candidates)s"
    selective, every = "%(selective)s::tsquery", "%(every)s::tsquery"
    if shape.is_cut and is_narrow(shape):
        return best_by_all_words(ground.rows, score, limit=limit, selective=selective, every=every)
    return best_by_words(ground.rows, score, limit=limit, selective=selective)


def is_narrow(shape: Shape) -> bool:
    """Whether less than the account may be asked for."""
    narrowed = (shape.has_agent, shape.has_user, shape.kinds, shape.scopes, shape.has_contexts, shape.has_types)
    return any((*narrowed, shape.has_since, shape.has_until))


LEXICAL = Recaller(name="lexical", serves=serves, compose=compose)
