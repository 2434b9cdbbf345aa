"""Query expansion: the question in other words, beside its own.

By rules a question becomes the beginning of its answer, where they are sure how. With a language model, up to three
rephrasings come beside that.
"""

from collections.abc import Iterable
from dataclasses import replace

from memory.retrieval.plans import Moment
from memory.retrieval.queries import Query
from memory.retrieval.rewriters.readings import (
    LONGEST_REPHRASING,
    MOST_REPHRASINGS,
    QUERY_EXPANSION,
    OtherWords,
    on_one_line,
    read_question,
)
from memory.retrieval.rewriters.statements import statement_of
from memory.retrieval.rewriters.words import merge

MOST_EXPANSIONS = 6


def expand(query: Query, moment: Moment) -> Query:
    """With what the text comes to in other words; the same query where nothing does."""
    by_rules = with_expansions(query, [statement_of(query.text)])
    if moment.model is None or not query.text.strip():
        return by_rules
    answer = read_question(query, moment, QUERY_EXPANSION, OtherWords, model=moment.model, fallback=by_rules)
    lines = [on_one_line(each, longest=LONGEST_REPHRASING) for each in answer.rephrasings[:MOST_REPHRASINGS]]
    return with_expansions(by_rules, lines)


def with_expansions(query: Query, lines: Iterable[str]) -> Query:
    """With the lines that say anything, and that neither the text nor an expansion is already."""
    known = {each.casefold() for each in (query.text.strip(), *query.expansions)}
    new = [line for line in lines if line and line.casefold() not in known]
    return replace(query, expansions=merge(query.expansions, new, most=MOST_EXPANSIONS)) if new else query
