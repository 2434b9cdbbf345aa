"""BM25 in the database against the formula: by hand for a few rows, by a plain loop for many."""

from collections.abc import Sequence
from dataclasses import replace
from math import log
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.models import Kind, Memory
from memory.models.binary import binary_cursor
from memory.owner import Owner
from memory.retrieval.lexical import K1, B, bm25_ctes
from memory.retrieval.statements import where_of
from memory_project.ids import uuid7
from tests.memory.episodes import draft, store

pytestmark = pytest.mark.django_db

# with their lengths in tokens: three on average
LENGTHS = {"pump pump seal": 3, "pump roof": 2, "roof roof roof field": 4}


def scores(owner: Owner, text: str) -> dict[str, float]:
    """What each of the owner's episodes that shares a word with the text gets, by its own text."""
    where = where_of(Memory.objects.visible_to(owner, Kind.EPISODE), prefix="m")
    statement = f"WITH {bm25_ctes(corpus=where.text)} SELECT text, score FROM scored JOIN memories USING (id)"
    asked = {"account_id": owner.account_id, "query": text, "limit": 200}
    parameters: dict[str, Any] = {**where.parameters, **asked}
    with binary_cursor() as cursor:
        cursor.execute(statement, parameters)
        return dict(cursor.fetchall())


# idf is ln(1 + (3 - df + 0.5) / (df + 0.5)): ln(8/5) = 0.470004 for pump and roof (df 2), ln(8/3) = 0.980829 for seal
# and field (df 1). The other factor is 2.2 tf / (tf + 1.2 (0.25 + 0.75 length / 3)): 4.4/3.2 for two in three tokens,
# 2.2/2.2 for one in three, 2.2/1.9 for one in two, 6.6/4.5 for three in four, 2.2/2.5 for one in four.
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("pump", {"pump pump seal": 0.646255, "pump roof": 0.544215}),
        ("seal", {"pump pump seal": 0.980829}),
        ("roof", {"pump roof": 0.544215, "roof roof roof field": 0.689339}),
        ("seals for the pump", {"pump pump seal": 1.627084, "pump roof": 0.544215}),
        ("roof or field", {"pump roof": 0.544215, "roof roof roof field": 1.552468}),
        ("boiler", {}),
    ],
)
def test_a_score_is_what_the_formula_gives(owner: Owner, query: str, expected: dict[str, float]) -> None:
    for text, length in LENGTHS.items():
        store(owner, draft(text))
        Memory.objects.filter(text=text).update(token_count=length)

    assert scores(owner, query) == pytest.approx(expected, abs=1e-6)


def naive_bm25(lengths: dict[str, int], query: str) -> dict[str, float]:
    documents = {text: text.split() for text in lengths}
    average = sum(lengths.values()) / len(lengths)
    found = {}
    for text, words in documents.items():
        score = 0.0
        for term in set(query.split()) & set(words):
            df = sum(term in others for others in documents.values())
            tf = words.count(term)
            idf = log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            score += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * lengths[text] / average))
        if score:
            found[text] = score
    return found


texts = st.lists(st.sampled_from(["pump", "seal", "roof", "field", "bean"]), min_size=1, max_size=8).map(" ".join)


@given(corpus=st.lists(texts, min_size=1, max_size=8, unique=True), query=texts)
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_scores_agree_with_a_plain_loop_over_the_owners_rows(owner: Owner, corpus: Sequence[str], query: str) -> None:
    somebody = replace(owner, agent_id=str(uuid7()))
    rows = store(somebody, *(draft(text) for text in corpus))

    assert scores(somebody, query) == pytest.approx(naive_bm25({row.text: row.token_count for row in rows}, query))
