"""A request ends with its time, however the other side spends it: the real clients against a server that drips."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import active_count

import httpx2
import pytest

from memory.errors import ProviderUnavailable
from memory.providers.connections import Deadline, keep_time, time_limit
from memory.providers.embeddings.openai import OpenAIEmbeddings, OpenAIEndpoint
from memory.providers.language_models.base import Question
from memory.providers.language_models.openai import ChatEndpoint, ChatModel
from memory.providers.rerankers.http import SHAPES, HttpReranker, RerankEndpoint
from tests.dripping_server import DrippingServer
from tests.memory.providers.recipes import Recipe

GENEROUS_SECONDS = 3.5


def embed(url: str, *, timeout: float, deadline: float) -> None:
    endpoint = OpenAIEndpoint(model="m", base_url=url, timeout_seconds=timeout, max_attempts=1)
    OpenAIEmbeddings(endpoint).embed(["a"], deadline_seconds=deadline)


def answer(url: str, *, timeout: float, deadline: float) -> None:
    endpoint = ChatEndpoint(model="m", base_url=url, timeout_seconds=timeout, max_attempts=1)
    question = Question(instructions="Read.", material="Tea", max_tokens=10)
    ChatModel(endpoint).ask(question, Recipe, meter=lambda usage: None, deadline_seconds=deadline)


def rerank(url: str, *, timeout: float, deadline: float) -> None:
    endpoint = RerankEndpoint(
        model="m", base_url=f"{url}/rerank", timeout_seconds=timeout, max_attempts=1, shape=SHAPES["cohere"]
    )
    HttpReranker(endpoint).score("where", ["here"], deadline=Deadline.after(deadline))


every_provider = pytest.mark.parametrize("ask", [embed, answer, rerank])


@contextmanager
def left_after(seconds: float) -> Iterator[None]:
    began = time.monotonic()
    with pytest.raises(ProviderUnavailable, match="in time"):
        yield
    assert seconds <= time.monotonic() - began < seconds + GENEROUS_SECONDS


@every_provider
@pytest.mark.parametrize(("timeout", "deadline"), [(5, 0.3), (0.3, 30)], ids=["deadline", "timeout"])
def test_a_server_that_drips_headers_is_abandoned_in_time(
    dripping_server: DrippingServer, ask: Callable[..., None], timeout: float, deadline: float
) -> None:
    with left_after(0.3):
        ask(dripping_server.url, timeout=timeout, deadline=deadline)

    assert dripping_server.connections == 1


@every_provider
def test_a_proxy_that_drips_headers_is_abandoned_in_time(
    dripping_server: DrippingServer, monkeypatch: pytest.MonkeyPatch, ask: Callable[..., None]
) -> None:
    monkeypatch.setenv("http_proxy", dripping_server.url)

    with left_after(0.3):
        ask("http://nowhere.example", timeout=5, deadline=0.3)

    assert dripping_server.connections == 1


def test_no_thread_keeps_waiting_after_the_deadline(dripping_server: DrippingServer) -> None:
    before = active_count()

    with left_after(0.2):
        embed(dripping_server.url, timeout=5, deadline=0.2)

    # but the server's own for the connection
    assert active_count() <= before + 1


def test_each_request_has_its_own_time_limit(dripping_server: DrippingServer) -> None:
    with keep_time(httpx2.Client(timeout=0.5)) as client:
        with time_limit(0), pytest.raises(httpx2.ConnectTimeout):
            client.get(dripping_server.url)
        for _ in range(2):
            with time_limit(0.2), pytest.raises(httpx2.ReadTimeout):
                client.get(dripping_server.url)

    assert dripping_server.connections == 2
