"""Tests of several concurrent workers at the queue of pending rows."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier

import pytest
from django.db import transaction

from memory.models import Vector
from memory.owner import Owner
from memory.services.embedding.queue import EmbeddedBatch, claim_due_rows, embed_pending
from tests.concurrency import PATIENCE_SECONDS, over_own_connection
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import NOW, draft, store

pytestmark = pytest.mark.django_db(transaction=True)

NOTHING_DUE = EmbeddedBatch(claimed=0, stored=0, failed=0, stopped=False)


def test_rows_that_another_worker_is_claiming_are_skipped(owner: Owner) -> None:
    store(owner, *(draft(f"number {number}") for number in range(20)))
    claim = partial(claim_due_rows, now=NOW, limit=10, account_id=None)

    with ThreadPoolExecutor(1) as others, transaction.atomic():
        first = claim()
        second = others.submit(over_own_connection, claim).result(PATIENCE_SECONDS)

    assert (len(first), len(second)) == (10, 10)
    assert not {row.id for row in first} & {row.id for row in second}


def test_concurrent_workers_embed_each_row_once(owner: Owner, embedding_server: EmbeddingServer) -> None:
    store(owner, *(draft(f"number {number}") for number in range(120)))
    together = Barrier(4)

    def work() -> list[EmbeddedBatch]:
        together.wait(PATIENCE_SECONDS)
        return list(iter(partial(embed_pending, now=NOW, limit=10), NOTHING_DUE))

    with ThreadPoolExecutor(4) as workers:
        working = [workers.submit(over_own_connection, work) for _ in range(4)]
        done = [batch for worker in working for batch in worker.result(PATIENCE_SECONDS)]

    assert (sum(batch.claimed for batch in done), sum(batch.stored for batch in done)) == (120, 120)
    assert Vector.objects.count() == 120
