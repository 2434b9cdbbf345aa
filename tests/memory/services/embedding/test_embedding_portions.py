"""Tests of portions: a claim is embedded in parts that fit the embedder's time, so that the queue moves."""

import time
from collections.abc import Iterator, Sequence
from datetime import timedelta

import pytest
from django.core.cache import cache
from pytest_django import Settings

from memory import conf
from memory.errors import ProviderTooSlow
from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import JobRun, Memory, Vector
from memory.owner import Owner
from memory.providers.embeddings import PROVIDERS, Vectors, embedding_provider
from memory.providers.embeddings.tiny import TinyEmbeddings
from memory.services.embedding import queue
from memory.services.embedding.queue import MAX_PORTION_TOKENS, embed_pending
from tests.memory.episodes import NOW, draft, store
from tests.memory.maintenance.jobs import clock

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

BACKOFF = timedelta(seconds=conf.EMBED_BACKOFF_SECONDS)
FILLING = "one " * MAX_PORTION_TOKENS
"""A text as long as a portion may be."""


class SlowEmbeddings(TinyEmbeddings):
    """An embedder that can embed at most `most` characters in time, and takes `seconds` for each call."""

    most, seconds = 1_000_000, 0.0

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[int] = []
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str], *, deadline_seconds: float | None) -> Vectors:
        self.asked.append(len(texts))
        self.texts += texts
        time.sleep(self.seconds)
        if sum(map(len, texts)) > self.most:
            raise ProviderTooSlow("the deadline has passed")
        return super().embed(texts, deadline_seconds=deadline_seconds)


@pytest.fixture
def slow(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowEmbeddings]:
    embedder = SlowEmbeddings()
    monkeypatch.setitem(PROVIDERS, "slow", lambda: embedder)
    settings.EMBEDDING_PROVIDER = "slow"
    embedding_provider.cache_clear()
    cache.clear()
    yield embedder
    embedding_provider.cache_clear()


def pending() -> list[tuple[str, int, str]]:
    rows = Memory.objects.awaiting_embedding().order_by("text")
    return list(rows.values_list("text", "embed_attempts", "embed_error"))


def test_a_portion_that_takes_too_long_is_halved_until_it_fits(owner: Owner, slow: SlowEmbeddings) -> None:
    store(owner, *(draft(f"number {number:02}") for number in range(16)))
    slow.most = 4 * len("number 00")

    done = embed_pending(now=NOW, limit=64)

    assert (done.stored, done.failed, done.left, done.stopped) == (16, 0, 0, False)
    assert slow.asked == [16, 8, 4, 4, 4, 4]
    assert (Vector.objects.count(), pending()) == (16, [])


def test_a_text_that_is_too_long_alone_is_postponed_alone(owner: Owner, slow: SlowEmbeddings) -> None:
    store(owner, draft("endless " * 50), *(draft(f"number {number}") for number in range(5)))
    slow.most = 100

    done = embed_pending(now=NOW, limit=64)

    assert (done.stored, done.failed, done.stopped) == (5, 1, False)
    row = Memory.objects.awaiting_embedding().get()
    assert (row.embed_after, row.embed_attempts, row.embed_error) == (NOW + BACKOFF, 1, "provider_unavailable")
    assert slow.asked[-1] == 1


def test_rows_that_failed_before_come_last(owner: Owner, slow: SlowEmbeddings) -> None:
    store(owner, draft("failed"), draft("fresh but longer"))
    Memory.objects.filter(text="failed").update(embed_attempts=5)

    embed_pending(now=NOW, limit=64)

    assert slow.texts == ["fresh but longer", "failed"]


def test_rows_that_often_failed_together_are_tried_in_small_growing_portions(
    owner: Owner, slow: SlowEmbeddings
) -> None:
    store(owner, *(draft(f"number {number}") for number in range(12)))
    Memory.objects.update(embed_attempts=4)

    assert embed_pending(now=NOW, limit=64).stored == 12

    assert slow.asked == [4, 8]


def test_rows_not_reached_in_time_are_due_immediately_without_an_attempt(
    owner: Owner, slow: SlowEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "EMBED_LEASE_SECONDS", 0.2)
    monkeypatch.setattr(queue, "MAX_CLAIM_TOKENS", 8 * queue.MAX_PORTION_TOKENS)
    store(owner, *(draft(f"{number} {FILLING}") for number in range(4)))
    slow.seconds = 0.2

    done = embed_pending(now=NOW, limit=4)

    assert (done.stored, done.left, done.failed, done.stopped) == (1, 3, 0, False)
    assert {row[1:] for row in pending()} == {(0, "")}
    assert embed_pending(now=NOW, limit=4).stored == 1


def test_an_embedder_that_never_answers_in_time_counts_as_down(
    owner: Owner, slow: SlowEmbeddings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "EMBED_LEASE_SECONDS", 0.2)
    store(owner, *(draft(f"number {number}") for number in range(16)))
    slow.seconds, slow.most = 0.1, 0

    done = embed_pending(now=NOW, limit=16)

    assert (done.stored, done.failed, done.left, done.stopped) == (0, 16, 0, True)
    assert set(Memory.objects.values_list("embed_attempts", "embed_after")) == {(1, NOW + BACKOFF)}


def test_a_run_continues_with_the_last_portion_size(owner: Owner, slow: SlowEmbeddings) -> None:
    store(owner, *(draft(f"number {number:03}") for number in range(conf.EMBED_BATCH_ROWS + 4)))
    slow.most = 4 * len("number 000")

    run = run_at_once(JOBS["embed"], JobRun(job="embed"), clock=clock)

    assert (run.status, run.changed, run.figures) == ("completed", run.examined, {"vectors_stored": run.changed})
    assert slow.asked.count(64) == 1
    assert slow.asked[-1] == 4


JAPANESE = "港の古い灯台は毎晩七時に灯をともし、漁師たちは網を繕いながら明日の天気について話し合っていた。"


def test_the_local_model_makes_progress_with_long_texts_in_limited_time(
    owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"{number} {JAPANESE * 8}" for number in range(5)]
    cache.clear()
    began = time.monotonic()
    embedding_provider().embed([f"warm {texts[0]}"], deadline_seconds=None)
    took = time.monotonic() - began
    store(owner, *map(draft, texts))
    # time for two of the five in one call, and for a few portions
    monkeypatch.setattr(conf, "EMBED_LEASE_SECONDS", took * 10)

    claims = 0
    while pending() and claims < 20:
        embed_pending(now=NOW + timedelta(hours=claims), limit=64)
        claims += 1

    assert (Vector.objects.whole().count(), pending()) == (5, [])
