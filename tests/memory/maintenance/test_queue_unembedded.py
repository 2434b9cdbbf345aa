"""Memories are queued for a new embedding model after it was changed, and searches say so meanwhile."""

import pytest
from django.utils import timezone

from memory.checks import check_vectors
from memory.maintenance import Batch
from memory.maintenance.embedding_jobs import queue_unembedded
from memory.models import Memory, Vector
from memory.owner import Owner
from memory.services.embedding.queue import embed_pending
from memory.services.recall.recall import search_episodes_by_text
from tests.embedding_server import MODEL, EmbeddingServer
from tests.memory.episodes import NOW, draft, store

pytestmark = pytest.mark.django_db
BATCH = Batch(size=10)


@pytest.fixture
def of_former_model(owner: Owner, embedding_server: EmbeddingServer) -> None:
    """One memory with a vector of another model only, as they all are once the model has changed."""
    store(owner, draft("The boiler was repaired", angle=0.1))
    Memory.objects.update(embed_after=None)


@pytest.mark.usefixtures("of_former_model")
def test_a_check_warns_if_no_vector_is_of_the_configured_model() -> None:
    assert [message.id for message in check_vectors(databases=["default"])] == ["memory.W003"]


@pytest.mark.usefixtures("of_former_model")
def test_queued_memories_are_found_by_words_and_then_by_meaning(owner: Owner) -> None:
    queue_unembedded(now=NOW, batch=BATCH)
    meanwhile = search_episodes_by_text(owner, text="boiler", top_k=3, own=None, now=timezone.now())
    embed_pending(now=NOW, limit=10)
    after = search_episodes_by_text(owner, text="boiler", top_k=3, own=None, now=timezone.now())

    assert ([hit.similarity for hit in meanwhile.hits], meanwhile.degraded) == ([None], ["embedding_pending"])
    assert (after.hits[0].similarity is not None, after.degraded) == (True, [])
    assert Vector.objects.filter(model=MODEL).count() == 1
    assert check_vectors(databases=["default"]) == []


def test_only_memories_without_a_vector_are_queued_in_batches(owner: Owner, embedding_server: EmbeddingServer) -> None:
    store(owner, *(draft(f"number {number}") for number in range(3)))
    embed_pending(now=NOW, limit=2)
    Memory.objects.update(embed_after=None)

    first = queue_unembedded(now=NOW, batch=Batch(size=2))
    second = queue_unembedded(now=NOW, batch=Batch(size=2, cursor=first.cursor))

    assert (first.examined, second.examined, second.cursor) == (2, 1, "")
    assert first.changed + second.changed == Memory.objects.awaiting_embedding().count() == 1


@pytest.mark.usefixtures("of_former_model")
def test_a_dry_run_counts_and_queues_nothing() -> None:
    assert queue_unembedded(now=NOW, batch=Batch(size=10, dry_run=True)).changed == 1
    assert not Memory.objects.awaiting_embedding().exists()
