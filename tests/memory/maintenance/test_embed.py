"""The job that gives pending memories their vector: batch by batch, to the end of what is due."""

import pytest
from werkzeug import Response

from memory import conf
from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import JobRun, Memory, Vector
from memory.owner import Owner
from tests.concurrency import over_own_connection
from tests.embedding_server import EmbeddingServer
from tests.memory.episodes import draft, store
from tests.memory.maintenance.jobs import clock

BATCH = conf.EMBED_BATCH_ROWS


def run_embed() -> JobRun:
    return run_at_once(JOBS["embed"], JobRun(job="embed"), clock=clock)


@pytest.mark.django_db
def test_all_pending_memories_are_embedded_in_one_run(owner: Owner, embedding_server: EmbeddingServer) -> None:
    store(owner, *(draft(f"number {number}") for number in range(2 * BATCH + 1)))

    run = run_embed()

    assert (run.status, run.examined, run.changed) == ("completed", 2 * BATCH + 1, 2 * BATCH + 1)
    assert not Memory.objects.awaiting_embedding().exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("erased", range(3))
def test_a_batch_that_is_erased_while_it_is_embedded_does_not_end_the_run(
    owner: Owner, embedding_server: EmbeddingServer, erased: int
) -> None:
    store(owner, *(draft(f"number {number}") for number in range(3 * BATCH)))
    batches: list[list[str]] = []

    def erase_one_batch(texts: list[str]) -> Response:
        batches.append(texts)
        if len(batches) == erased + 1:
            over_own_connection(Memory.objects.filter(text__in=texts).delete)
        return embedding_server.answer_well(texts)

    embedding_server.answer = erase_one_batch
    run = run_embed()

    assert (run.status, run.error, run.examined, run.changed) == ("completed", "", 3 * BATCH, 2 * BATCH)
    assert Vector.objects.count() == 2 * BATCH
