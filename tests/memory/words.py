"""Recall by words alone, for tests, and what it should come to: BM25 by a plain loop."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any
from uuid import UUID

from django.db import connection

from memory.models import Account, Memory
from memory.models.statements import binary_cursor
from memory.owner import Owner
from memory.providers.connections import Deadline
from memory.retrieval.gathering import gather_candidates
from memory.retrieval.plans import QueryAnalysis, RecallContext
from memory.retrieval.queries import Query
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.retrievers.lexical import K1, LEXICAL, B, bm25_ctes
from memory.retrieval.statements import STAND_INS, OwnerShape, owner_params, owner_shape, where_sql
from tests.memory.episodes import NOW

RECOUNT = """
SELECT account_id, '' AS term, count(*), sum(token_count) FROM memories
WHERE NOT (archived OR quarantined OR buried) GROUP BY account_id
UNION ALL
SELECT account_id, lexeme, count(*), 0 FROM memories CROSS JOIN LATERAL unnest(lexemes)
WHERE NOT (archived OR quarantined OR buried) GROUP BY account_id, lexeme"""

COUNT_WORDS = f"INSERT INTO memory_terms (account_id, term, docs, tokens) SELECT * FROM ({RECOUNT}) AS counted"

SUMS = """
SELECT account_id, term, sum(docs), sum(tokens) FROM memory_terms
GROUP BY account_id, term HAVING sum(docs) <> 0 OR sum(tokens) <> 0"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A memory as the plain loop sees it; its text is its terms."""

    text: str
    tokens: int
    is_counted: bool = True
    is_found: bool = True


def analysis_for(owner: Owner, text: str, **asked: Any) -> QueryAnalysis:
    """`asked` are further fields of the query."""
    return analyze_query(owner, Query(text=text, **asked), recall_context(owner))


def recall_context(owner: Owner) -> RecallContext:
    return RecallContext(owner=owner, now=NOW, deadline=Deadline.after(None))


def found_by_words(owner: Owner, text: str, **asked: Any) -> dict[UUID, float]:
    """The BM25 score of each memory that the retriever finds, best first."""
    query, context = Query(text=text, **asked), recall_context(owner)
    gathered = gather_candidates(owner, query, analyze_query(owner, query, context), [LEXICAL], context)
    ranked = sorted(gathered.candidates, key=lambda each: (-each.bm25, each.id))
    return {each.id: each.bm25 for each in ranked}


def texts_by_words(owner: Owner, text: str, **asked: Any) -> list[str]:
    """The texts that the retriever finds, best first."""
    found = found_by_words(owner, text, **asked)
    texts = dict(Memory.objects.filter(id__in=found).values_list("id", "text"))
    return [texts[memory_id] for memory_id in found]


def found_by_search(owner: Owner, text: str) -> dict[UUID, float]:
    """The same by the part that searches of one kind are made of."""
    shape: OwnerShape = owner_shape(owner)
    where = where_sql(Memory.objects.visible_to(shape.owner).recallable(STAND_INS["now"]), prefix="m")
    with binary_cursor() as cursor:
        cursor.execute(
            f"WITH {bm25_ctes(rows=where.text)} SELECT id, score FROM scored ORDER BY score DESC, id",
            {**where.parameters, **owner_params(owner, now=NOW), "query": text, "limit": 200},
        )
        return dict(cursor.fetchall())


def naive_bm25(documents: Mapping[UUID, Document], text: str) -> dict[UUID, float]:
    """Score all documents that hold a term of the text, best first, with statistics of the counted documents."""
    counted = [document for document in documents.values() if document.is_counted]
    average = sum(document.tokens for document in counted) / len(counted) if counted else 1.0
    dfs = {term: sum(term in document.text.split() for document in counted) for term in set(text.split())}
    idfs = {term: log(1 + (len(counted) - df + 0.5) / (df + 0.5)) for term, df in dfs.items()}
    scores = {
        memory_id: sum(idf * saturation(document, term, max(average, 1.0)) for term, idf in idfs.items())
        for memory_id, document in documents.items()
        if document.is_counted and document.is_found
    }
    found = [(memory_id, score) for memory_id, score in scores.items() if score > 0]
    return dict(sorted(found, key=lambda each: (-each[1], each[0])))


def saturation(document: Document, term: str, average: float) -> float:
    tf = document.text.split().count(term)
    return tf * (K1 + 1) / (tf + K1 * (1 - B + B * document.tokens / average))


def read_rows(statement: str) -> set[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return {tuple(row) for row in cursor.fetchall()}


def count_terms(account_id: UUID, counts: Mapping[str, int], *, docs: int, tokens: int) -> None:
    """Have the account's statistics say so, whatever it remembers; terms without their prefix."""
    rows: Sequence[tuple[str, int, int]] = [
        ("", docs, tokens),
        *((prefixed(account_id, t), n, 0) for t, n in counts.items()),
    ]
    with connection.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO memory_terms (account_id, term, docs, tokens) VALUES (%s, %s, %s, %s)",
            [(account_id, *row) for row in rows],
        )


def prefixed(account_id: UUID, term: str) -> str:
    return str(account_id)[-6:] + term


def count_words(account: Account) -> None:
    """Count the words of rows that a test inserted by itself, as the insert of services does. Once for an account."""
    with connection.cursor() as cursor:
        cursor.execute(f"{COUNT_WORDS} WHERE account_id = %s", [account.id])
