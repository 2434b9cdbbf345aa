"""A change of the embedding model among searches and writes of others, killed on the way; indexes and alerts of it."""

import hashlib
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest
from django.core.cache import cache
from django.db import transaction
from django.utils import timezone
from pytest_django import Settings
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from memory import conf
from memory.errors import Conflict
from memory.maintenance import JOBS
from memory.models import Memory, ReembedEntry, ServingModelState, Vector
from memory.owner import Owner
from memory.providers.embeddings import ModelSpec
from memory.retrieval.queries import Query
from memory.retrieval.retrievers.vector import INDEX_PREFIX
from memory.services.embedding.change import record_serving_model, request_finish, switch_models
from memory.services.embedding.queue import embed_pending
from memory.services.embedding.serving import serving_model
from memory.services.operations.alerts import find_alerts_of_rows
from memory.services.recall.recall import RecallRequest, recall
from tests.concurrency import PATIENCE_SECONDS, over_own_connection, wait_until
from tests.embedding_server import answer_vectors
from tests.memory.maintenance.workers import environment
from tests.memory.nested_vectors import indexes_of_accounts
from tests.memory.reembedding import begin, change_to, forget_models, found_by_meaning, go_on, remember, settle, tiny
from tests.memory.reembedding import tiny_models as tiny_models

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("tiny_models")]

WRITTEN_BEFORE = 300
SMALL = ModelSpec(name="small", provider="openai", model="small", width=384, asks_width=True)
BIG = ModelSpec(name="big", provider="openai", model="big", width=1536, asks_width=True)


@pytest.fixture
def endpoint(httpserver: HTTPServer, settings: Settings) -> Iterator[str]:
    """An endpoint with models of any width, where equal texts have equal vectors. `small` is configured."""
    httpserver.expect_request("/v1/embeddings", method="POST").respond_with_handler(answer_slowly)
    settings.OPENAI_BASE_URL, settings.EMBEDDING_PROVIDER = httpserver.url_for("/v1"), "openai"
    settings.EMBEDDING_MODEL, settings.EMBEDDING_DIMENSIONS = SMALL.model, SMALL.width
    settings.EMBEDDING_TIMEOUT_SECONDS = 20.0
    forget_models()
    cache.clear()
    yield settings.OPENAI_BASE_URL
    cache.clear()


def answer_slowly(request: Request) -> Response:
    asked = json.loads(request.data)
    texts, width = asked["input"], asked["dimensions"]
    time.sleep(0.005 * len(texts))
    seeds = (int.from_bytes(hashlib.sha256(f"{asked['model']} {text}".encode()).digest()[:8], "big") for text in texts)
    return answer_vectors([np.random.default_rng(seed).normal(size=width).tolist() for seed in seeds])


class Others:
    """Threads that write and search until the test has ended."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.over = Event()
        self.written: list[str] = []
        self.searches = 0
        self.models: set[str] = set()

    def write(self) -> None:
        while not self.over.is_set():
            text = f"Memory {len(self.written)} is about {hashlib.sha256(str(len(self.written)).encode()).hexdigest()}"
            remember(self.owner, text)
            self.written.append(text)
            time.sleep(0.02)

    def search(self) -> None:
        """Look for what was written last, at all by the recall, and by its vector by a search of episodes."""
        while not self.over.is_set():
            if not self.written:
                continue
            text = self.written[-1]
            self.models.add(serving_model().name)
            bundle = recall(self.owner, RecallRequest(query=Query(text=text, top_k=3)), now=timezone.now())
            assert text in [result.text for result in bundle.results], bundle.degraded
            found, degraded = found_by_meaning(self.owner, text)
            assert text in found or "embedding_pending" in degraded, degraded
            self.searches += 1


def run_command(endpoint: str) -> "subprocess.Popen[bytes]":
    variables = {
        "EMBEDDING_PROVIDER": "openai",
        "OPENAI_BASE_URL": endpoint,
        "EMBEDDING_MODEL": SMALL.model,
        "EMBEDDING_DIMENSIONS": str(SMALL.width),
        "SUMMARY_MODEL": "none",
        "MEMORY_JOB_LEASE_SECONDS": "2",
    }
    command = [sys.executable, "manage.py", "reembed", "--model", BIG.model, "--width", str(BIG.width), "--json"]
    return subprocess.Popen(command, env=environment() | variables, stdout=subprocess.PIPE)


def killed_after(endpoint: str, is_enough: Callable[[], bool]) -> None:
    """Run the command until a moment, and kill it with no chance to clean up."""
    with run_command(endpoint) as process:
        try:
            wait_until(is_enough)
        finally:
            process.kill()


def embedded_by(model: str) -> int:
    return Vector.objects.whole().filter(model=model).count()


@pytest.mark.slow
def test_searches_and_writes_go_on_through_a_change_that_is_killed_twice(owner: Owner, endpoint: str) -> None:
    conf.EMBEDDING_STATE_SECONDS = 1
    for start in range(0, WRITTEN_BEFORE, 100):
        remember(owner, *(f"Before {number}" for number in range(start, start + 100)))
    record_serving_model()
    others = Others(owner)
    with ThreadPoolExecutor(3) as threads:
        acts = (others.write, others.search, others.search)
        working: list[Future[None]] = [threads.submit(over_own_connection, act) for act in acts]
        try:
            killed_after(endpoint, lambda: embedded_by(BIG.name) > WRITTEN_BEFORE // 5)
            killed_after(endpoint, lambda: embedded_by(BIG.name) > WRITTEN_BEFORE * 3 // 4)
            last = run_command(endpoint)
            printed, _ = last.communicate(timeout=5 * PATIENCE_SECONDS)
            wait_until(lambda: BIG.name in others.models)
            change_to_small_again()
            time.sleep(3 * conf.EMBEDDING_STATE_SECONDS)
        finally:
            others.over.set()
        for each in working:
            each.result(PATIENCE_SECONDS)
    assert (last.returncode, json.loads(printed)["serving"]["width"]) == (0, BIG.width)
    assert others.models == {SMALL.name, BIG.name}
    assert others.searches > 10
    embed_pending(now=timezone.now(), limit=200)
    lacking = Memory.objects.exclude(vectors__model=SMALL.name, vectors__passage=0)
    assert (serving_model().name, list(lacking.values_list("text", flat=True))) == (SMALL.name, [])


def change_to_small_again() -> None:
    assert ServingModelState.objects.get().serving["name"] == BIG.name
    begin(SMALL)
    go_on(size=200)


def test_indexes_of_large_accounts_are_built_before_the_switch(owner: Owner, large_from_100: None) -> None:
    remember(owner, *(f"Memory {number}" for number in range(120)))
    begin(tiny(384))
    go_on(until="index", size=200)
    walked = set(indexes_of_accounts())
    go_on(until="switch")
    built = set(indexes_of_accounts()) - walked
    go_on()
    served = found_by_meaning(owner, "Memory 7")[0][0]
    request_finish()
    settle()
    go_on()

    assert (walked, len(built)) == (set(), 1)
    assert all(name.startswith(INDEX_PREFIX) for name in built)
    assert served == "Memory 7"
    assert set(indexes_of_accounts()) == built


def test_the_switch_waits_for_those_who_are_storing_vectors(owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory.services.embedding.change.LOCK_TIMEOUT_MS", 200)
    begin(tiny(384))
    go_on(until="switch")
    with ThreadPoolExecutor(1) as others:
        with transaction.atomic():
            remember(owner, "Ana moved to Porto")
            attempt = others.submit(over_own_connection, lambda: switch_models(now=timezone.now()))
            with pytest.raises(Conflict, match="takes too long"):
                attempt.result(PATIENCE_SECONDS)

        assert switch_models(now=timezone.now()) == 1
    assert Memory.objects.awaiting_embedding().get().text == "Ana moved to Porto"
    assert not ReembedEntry.objects.exists()


def test_an_alert_says_that_the_settings_differ_and_what_to_do(owner: Owner, endpoint: str) -> None:
    record_serving_model()
    settings_name_small = differing()
    change_to(tiny(64))
    former = differing()
    request_finish()
    settle()
    go_on()
    unannounced = differing()
    degraded = recall(owner, RecallRequest(query=Query(text="boiler")), now=timezone.now()).degraded

    assert settings_name_small == []
    assert "small (384 dimensions), but tiny-64 (64 dimensions) serves searches." in former[0]
    assert former[0].endswith("then drop the former vectors: `manage.py reembed --finish`.")
    assert unannounced[0].endswith("Change to it by `manage.py reembed`, or set the settings back.")
    assert degraded == ["embedding_model_differs"]


def test_a_serving_model_that_cannot_be_used_is_an_alert_and_searches_find_words(
    owner: Owner, endpoint: str, settings: Settings
) -> None:
    change_to(tiny(64))
    remember(owner, "The boiler was repaired")
    settings.MEMORY_ALLOW_TINY_EMBEDDINGS = False
    forget_models()

    bundle = recall(owner, RecallRequest(query=Query(text="boiler")), now=timezone.now())

    assert bundle.degraded == ["embedder_unavailable"]
    assert [result.text for result in bundle.results] == ["The boiler was repaired"]
    assert "tiny-64 (64 dimensions), which cannot be used: EMBEDDING_PROVIDER=tiny" in differing()[0]


def differing() -> list[str]:
    alerts = find_alerts_of_rows(timezone.now(), jobs=JOBS.values())
    return [alert.text for alert in alerts if alert.name == "embedding_model_differs"]
