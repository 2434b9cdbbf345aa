"""HyDE: a made-up answer is nearer to the real one than the question is (Gao et al. 2022).

Only a language model can make one up; without it there is none, and nothing stands in for it.
"""

from memory.retrieval.plans import Moment
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.query_expansion import with_expansions
from memory.retrieval.rewriters.readings import HYDE, LONGEST_ANSWER, LikelyAnswer, on_one_line, read_question


def imagine_answer(query: Query, moment: Moment) -> Query:
    """With a likely answer among its expansions; the same query without a model."""
    if moment.model is None or not query.text.strip():
        return query
    reading = read_question(query, moment, HYDE, LikelyAnswer, model=moment.model, fallback=query)
    return with_expansions(query, [on_one_line(reading.answer, longest=LONGEST_ANSWER)])
