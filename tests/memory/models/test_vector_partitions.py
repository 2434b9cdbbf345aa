"""Statements of an account open its partition of `memory_vectors` and no other one."""

from collections.abc import Callable

import pytest
from django.db import connection, transaction

from memory import conf
from memory.kinds import Kind
from memory.models import Account, Memory, Vector
from memory.models.writer import delete_memory_rows, insert_vectors
from memory.owner import Owner
from memory.retrieval.plans import QueryAnalysis
from memory.retrieval.retrievers import RETRIEVERS
from memory.retrieval.search import search_episodes
from memory.services.duplicates.deduplicate import FreshMemory, find_similar_pairs
from memory.services.embedding.account_indexes import AccountVectors
from memory.services.embedding.vector_index import find_partitions
from memory.services.entities.resolve import SoughtName, find_misspelt_entities
from tests.memory.episodes import MODEL, NOW, WIDTH, direction, query
from tests.memory.gatherings import asked, gathered
from tests.memory.graphs import node
from tests.memory.partitions import locked_partitions

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def filled(owner: Owner, stranger: Account) -> Owner:
    """An owner with two embedded memories, beside another account."""
    for each in (owner, Owner(account_id=stranger.id, agent_id="assistant")):
        rows = [node(each, text, kind=kind) for text, kind in (("red", Kind.ENTITY), ("green", Kind.GOAL))]
        insert_vectors(each.account_id, model=MODEL, vectors=[(row.id, direction(0.1)) for row in rows])
    return owner


def recall(owner: Owner) -> None:
    # without the analysis before it: its plan is kept for all accounts, so it locks every partition and reads one
    assert gathered(owner, asked("red", angle=0.0), QueryAnalysis(), *RETRIEVERS).candidates


def embed(owner: Owner) -> None:
    memory_id = Memory.objects.filter(account_id=owner.account_id).values_list("id", flat=True)[0]
    assert insert_vectors(owner.account_id, model="another", vectors=[(memory_id, direction(0.2))])


def archive(owner: Owner) -> None:
    assert Memory.objects.filter(account_id=owner.account_id).update(archived=True)
    assert Vector.objects.filter(account_id=owner.account_id, live=False).exists()


def delete(owner: Owner) -> None:
    ids = Memory.objects.filter(account_id=owner.account_id).values_list("id", flat=True)
    delete_memory_rows(owner.account_id, list(ids))
    assert not Vector.objects.filter(account_id=owner.account_id).exists()


def resolve(owner: Owner) -> None:
    find_misspelt_entities(owner, [SoughtName(name="Rec", type="color", vector=direction(0.1))], model=MODEL)


def search(owner: Owner) -> None:
    search_episodes(owner, query("red", angle=0.0), now=NOW)


@pytest.mark.parametrize("act", [recall, embed, archive, delete, resolve, search])
def test_what_an_account_does_opens_its_partition_alone(filled: Owner, act: Callable[[Owner], None]) -> None:
    partition = find_partitions(filled.account_id)

    with transaction.atomic():
        act(filled)

        assert locked_partitions() == partition


def test_similar_memories_are_looked_for_in_the_partition_of_their_account(filled: Owner) -> None:
    fresh = Memory.objects.filter(account_id=filled.account_id).values_list("account_id", "id")

    with transaction.atomic():
        find_similar_pairs(list(map(FreshMemory._make, fresh)))

        assert locked_partitions() == find_partitions(filled.account_id)


def test_each_account_has_one_partition_of_the_number_that_is_set(account: Account, filled: Owner) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT tableoid::regclass::text FROM memory_vectors WHERE account_id = %s", [account.id]
        )
        found = [name for (name,) in cursor.fetchall()]

    assert (
        found
        == find_partitions(account.id)
        == AccountVectors(account_id=account.id, model=MODEL, width=WIDTH).partitions()
    )
    assert len(find_partitions()) == conf.VECTOR_PARTITIONS
