"""Long memories are found by their best passage, and take one place each."""

from typing import Any
from uuid import UUID

import numpy as np
import pytest

from memory.maintenance import Batch
from memory.maintenance.embedding_jobs import vector_indexes
from memory.models.writer import PassageVector, insert_passages, insert_vectors
from memory.owner import Owner
from memory.retrieval.candidates import Candidate
from memory.retrieval.query_analysis import analyze_query
from memory.retrieval.search import search_episodes
from tests.memory.episodes import MODEL, NOW, direction, draft, query, store
from tests.memory.gatherings import asked, gathered, recall_context
from tests.memory.graphs import node
from tests.memory.nested_vectors import MODEL as NESTED_MODEL
from tests.memory.nested_vectors import Nested, fill_shelf, find_nearest

pytestmark = pytest.mark.django_db


def keep_passages(owner: Owner, memory_id: UUID, *angles: float) -> None:
    passages = [
        PassageVector(start=10 * number, end=10 * number + 9, vector=direction(angle))
        for number, angle in enumerate(angles)
    ]
    insert_passages(owner.account_id, model=MODEL, passages={memory_id: passages})


def nearest(owner: Owner, **fields: Any) -> list[Candidate]:
    question = asked(angle=0.0, **fields)
    candidates = gathered(owner, question, analyze_query(owner, question, recall_context(owner)), "vector").candidates
    return sorted(candidates, key=lambda each: -(each.similarity or 0))


def test_a_memory_counts_by_its_best_passage(owner: Owner) -> None:
    long, short = node(owner, "a long text"), node(owner, "a short text")
    insert_vectors(owner.account_id, model=MODEL, vectors=[(long.id, direction(1.2)), (short.id, direction(0.5))])
    keep_passages(owner, long.id, 1.4, 0.1, 1.2)

    first, second = nearest(owner, gist_vector=direction(1.4))

    assert (first.text, second.text) == ("a long text", "a short text")
    assert first.similarity == pytest.approx(np.cos(0.1), abs=1e-3)
    assert first.gist == pytest.approx(1.0, abs=1e-3)
    assert (first.passage_start, first.passage_end) == (10, 19)
    assert (second.passage_start, second.passage_end) == (None, None)


def test_a_nearer_vector_of_the_whole_text_counts(owner: Owner) -> None:
    long = node(owner, "a long text")
    insert_vectors(owner.account_id, model=MODEL, vectors=[(long.id, direction(0.1))])
    keep_passages(owner, long.id, 1.0, 0.5)

    [found] = nearest(owner)

    assert found.similarity == pytest.approx(np.cos(0.1), abs=1e-3)
    assert (found.passage_start, found.passage_end) == (10, 19)


def test_a_memory_with_many_passages_takes_one_place(owner: Owner) -> None:
    others = [node(owner, f"number {number}") for number in range(30)]
    vectors = [(other.id, direction(0.5 + number / 100)) for number, other in enumerate(others)]
    insert_vectors(owner.account_id, model=MODEL, vectors=vectors)
    keep_passages(owner, others[-1].id, *[0.1] * 40)

    found = nearest(owner, has_words=False, top_k=5)

    assert [each.id for each in found] == [each.id for each in (others[-1], *others[:19])]


def test_former_passages_are_replaced(owner: Owner) -> None:
    long = node(owner, "a long text")
    keep_passages(owner, long.id, 0.1, 0.2, 0.3)
    keep_passages(owner, long.id, 0.5)

    [found] = nearest(owner)

    assert found.similarity == pytest.approx(np.cos(0.5), abs=1e-3)


def test_a_search_of_one_kind_returns_a_long_memory_once(owner: Owner) -> None:
    long, other = store(owner, draft("a long text", angle=1.2), draft("another", angle=0.5, conversation_id="c2"))
    keep_passages(owner, long.id, 0.1, 0.2, 1.0)

    hits = search_episodes(owner, query(angle=0.0, top_k=2), now=NOW).hits

    assert [hit.id for hit in hits] == [long.id, other.id]
    assert hits[0].similarity == pytest.approx(np.cos(0.1), abs=1e-3)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("large_from_100")
def test_passages_of_one_memory_do_not_crowd_out_others_in_an_index(owner: Owner) -> None:
    shelf = fill_shelf(owner, Nested(512).draw(1_200))
    [question] = Nested(512, seed=9).draw(1)
    crowding = shelf.memories[0].id
    passages = [PassageVector(start=number, end=number + 1, vector=question) for number in range(420)]
    insert_passages(owner.account_id, model=NESTED_MODEL, passages={crowding: passages})
    vector_indexes(now=NOW, batch=Batch(size=1))

    found = find_nearest(owner, question)

    assert found[0] == crowding
    assert len(shelf.nearest(question) & set(found[1:])) >= 8
