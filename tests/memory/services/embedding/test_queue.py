"""Tests of the queue of rows without a vector: leases, retries and postponed rows."""

from datetime import timedelta

import pytest
from werkzeug import Response

from memory import conf
from memory.models import Memory, Vector
from memory.owner import Owner
from memory.services.embedding.embed import content_hash, embed_texts
from memory.services.embedding.queue import (
    MAX_REFUSALS,
    claim_due_rows,
    embed_pending,
    postpone_failed_rows,
    store_vectors,
)
from tests.embedding_server import MODEL, EmbeddingServer
from tests.memory.episodes import NOW, draft, store

pytestmark = pytest.mark.django_db


def test_pending_rows_get_their_vector_and_leave_the_queue(owner: Owner, embedding_server: EmbeddingServer) -> None:
    store(owner, draft("first"), draft("second"))

    done = embed_pending(now=NOW, limit=10)

    assert (done.claimed, done.stored, done.failed) == (2, 2, 0)
    assert set(Vector.objects.values_list("model", "memory__text")) == {(MODEL, "first"), (MODEL, "second")}
    assert not Memory.objects.awaiting_embedding().exists()


def test_a_claimed_row_is_not_claimed_again_before_its_lease_ends(owner: Owner) -> None:
    store(owner, draft("claimed"))
    lease = timedelta(seconds=conf.EMBED_LEASE_SECONDS)

    first = claim_due_rows(now=NOW, limit=10, account_id=None)

    assert [row.text for row in first] == ["claimed"]
    assert claim_due_rows(now=NOW + lease - timedelta(seconds=1), limit=10, account_id=None) == []
    assert [row.embed_attempts for row in claim_due_rows(now=NOW + lease, limit=10, account_id=None)] == [2]


@pytest.mark.slow
def test_a_dead_embedder_leaves_work_queued_with_the_reason_and_a_longer_wait_each_time(
    owner: Owner, embedding_server: EmbeddingServer
) -> None:
    row = store(owner, draft("waits"))[0]
    embedding_server.fail()
    now, waits = NOW, []

    for _ in range(3):
        assert embed_pending(now=now, limit=10).stopped
        pending = Memory.objects.get(id=row.id)
        assert pending.embed_after is not None
        waits.append((pending.embed_after - now).total_seconds() / conf.EMBED_BACKOFF_SECONDS)
        now = pending.embed_after

    assert (pending.embed_error, waits) == ("provider_unavailable", [1, 2, 4])


def test_an_embedder_that_recovered_finishes_the_queue(owner: Owner, embedding_server: EmbeddingServer) -> None:
    store(owner, draft("waits"))
    embedding_server.fail()
    embed_pending(now=NOW, limit=10)
    embedding_server.recover()

    done = embed_pending(now=NOW + timedelta(hours=1), limit=10)

    assert (done.stored, Memory.objects.awaiting_embedding().count()) == (1, 0)
    assert Memory.objects.values_list("embed_attempts", "embed_error").get() == (0, "")


def test_one_refused_text_does_not_delay_the_others(owner: Owner, embedding_server: EmbeddingServer) -> None:
    store(owner, *(draft(f"number {number}") for number in range(9)), draft("poison"))
    embedding_server.answer = lambda texts: (
        Response("{}", status=400) if "poison" in texts else embedding_server.answer_well(texts)
    )

    done = embed_pending(now=NOW, limit=10)

    assert (done.stored, done.failed) == (9, 1)
    assert Memory.objects.awaiting_embedding().get().text == "poison"


def test_a_text_corrected_meanwhile_does_not_get_the_old_texts_vector(
    owner: Owner, embedding_server: EmbeddingServer
) -> None:
    row = store(owner, draft("before"))[0]
    claimed = claim_due_rows(now=NOW, limit=10, account_id=None)
    Memory.objects.filter(id=row.id).update(text="after", content_hash=content_hash("after"))

    assert store_vectors(claimed, embed_texts(["before"])) == 0
    assert Memory.objects.awaiting_embedding().exists()


def test_a_refused_api_key_is_tried_once_and_stops_the_run(owner: Owner, embedding_server: EmbeddingServer) -> None:
    store(owner, *(draft(f"number {number}") for number in range(9)))
    embedding_server.fail(status=401)

    assert embed_pending(now=NOW, limit=10).stopped
    assert len(embedding_server.texts) == 9


def test_an_endpoint_that_refuses_everything_is_not_asked_for_every_text(
    owner: Owner, embedding_server: EmbeddingServer
) -> None:
    store(owner, *(draft(f"number {number}") for number in range(64)))
    requests: list[int] = []

    def refuse(texts: list[str]) -> Response:
        requests.append(len(texts))
        return Response("{}", status=400)

    embedding_server.answer = refuse

    assert embed_pending(now=NOW, limit=64).stopped
    assert len(requests) == MAX_REFUSALS + 1


def test_a_worker_without_its_lease_does_not_requeue_rows_embedded_by_another(
    owner: Owner, embedding_server: EmbeddingServer
) -> None:
    store(owner, draft("slow"))
    late = claim_due_rows(now=NOW, limit=10, account_id=None)
    expired = NOW + timedelta(seconds=conf.EMBED_LEASE_SECONDS)
    embed_pending(now=expired, limit=10)

    postpone_failed_rows(late, error="provider_unavailable", now=expired)

    assert not Memory.objects.awaiting_embedding().exists()
