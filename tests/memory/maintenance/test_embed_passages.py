"""Long memories of former versions get vectors of their passages."""

import pytest
from django.core.cache import cache

from memory.maintenance import Batch
from memory.maintenance.embedding_jobs import embed_passages
from memory.models import Memory, Vector
from memory.owner import Owner
from memory.services.embedding.queue import embed_pending
from memory.services.memories.store import ClientVector
from memory.services.summaries.store import EpisodeDraft
from tests.embedding_server import MODEL, EmbeddingServer, vector_of
from tests.memory.episodes import NOW, draft, store

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]
BATCH = Batch(size=10)
LONG = "The boiler was repaired by a man who came in the rain. " * 40


def store_as_before(owner: Owner, *texts: str) -> None:
    store(owner, *map(draft, texts))
    embed_pending(now=NOW, limit=10)
    Vector.objects.filter(passage__gt=0).delete()
    cache.clear()


def numbers_of_passages() -> list[int]:
    return sorted(Vector.objects.values_list("passage", flat=True))


def test_long_memories_get_passages_and_keep_their_vector(owner: Owner) -> None:
    store_as_before(owner, LONG, "short")
    before = set(Vector.objects.values_list("id", "created_at"))

    done = embed_passages(now=NOW, batch=BATCH)

    assert (done.examined, done.changed, done.failed, done.cursor) == (1, 1, 0, "")
    assert numbers_of_passages() == [0, 0, 1, 2, 3]
    assert before < set(Vector.objects.values_list("id", "created_at"))


def test_repeating_it_changes_nothing(owner: Owner) -> None:
    store_as_before(owner, LONG)
    embed_passages(now=NOW, batch=BATCH)

    assert embed_passages(now=NOW, batch=BATCH).changed == 0


def test_a_memory_with_a_vector_of_the_client_gets_none(owner: Owner) -> None:
    own = ClientVector(model=MODEL, vector=vector_of("anything"))
    store(owner, EpisodeDraft(conversation_id="c1", summary=LONG, own=own))
    Memory.objects.update(embed_after=None)

    assert embed_passages(now=NOW, batch=BATCH).changed == 0
    assert numbers_of_passages() == [0]


def test_a_dry_run_counts_and_stores_nothing(owner: Owner) -> None:
    store_as_before(owner, LONG)

    assert embed_passages(now=NOW, batch=Batch(size=10, dry_run=True)).changed == 1
    assert numbers_of_passages() == [0]


def test_it_stops_when_the_embedder_is_down(owner: Owner, embedding_server: EmbeddingServer) -> None:
    store_as_before(owner, LONG, f"Another one: {LONG}")
    embedding_server.fail(status=401)

    done = embed_passages(now=NOW, batch=Batch(size=1))

    assert (done.changed, done.failed, done.cursor) == (0, 1, "")
