"""Answers stay below MEMORY_ANSWER_LIMIT_BYTES: pages end early, other answers lose elements of their lists."""

from typing import Any

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import Turn
from memory_project.large_values import SMALL_BYTES, has_large_values, read_with_small_values
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.api.turn_requests import say

pytestmark = pytest.mark.django_db

LIMIT = 300_000
LONG = "The harbour crane lifts containers. " * 2_500  # 90 kB
SHORT = "The crane is painted yellow."


@pytest.fixture
def client(api_key: str, embedding_server: EmbeddingServer, empty_redis: None, settings: LazySettings) -> ServiceClient:
    settings.ANSWER_LIMIT_BYTES = LIMIT
    return ServiceClient(api_key)


def write_log(client: ServiceClient, *texts: str) -> None:
    say(client, *({"role": "user", "content": f"{number} {text}"} for number, text in enumerate(texts)))


def path_of(url: str | None) -> str:
    return (url or "").removeprefix("http://testserver")


def read_all(client: ServiceClient, path: str, *, link: str = "next") -> list[list[Any]]:
    pages = []
    while path:
        answer = client.get(path)
        assert len(answer.content) <= LIMIT
        pages.append(answer.json()["results"])
        path = path_of(answer.json()[link])
    return pages


@pytest.mark.parametrize("path", ["/conversations/c1/turns", "/memories", "/timeline"])
def test_a_page_ends_early_and_the_next_one_goes_on(client: ServiceClient, path: str) -> None:
    write_log(client, *[LONG, SHORT] * 5)

    pages = read_all(client, path + "?agent_id=assistant")

    assert [len(page) for page in pages] != [10] or path == "/timeline"
    assert len({turn["id"] for page in pages for turn in page}) == sum(map(len, pages)) == 10


@pytest.mark.slow
def test_a_page_read_backwards_ends_early_where_it_begins(client: ServiceClient) -> None:
    write_log(client, *[LONG] * 8)
    first = client.get("/conversations/c1/turns?page_size=7&agent_id=assistant").json()
    last = client.get(path_of(first["next"])).json()
    while last["next"]:
        last = client.get(path_of(last["next"])).json()

    back = read_all(client, path_of(last["previous"]), link="previous")

    assert [turn["index"] for page in reversed(back) for turn in page] == list(range(last["results"][0]["index"]))


@pytest.mark.slow
def test_small_rows_that_are_too_many_end_a_page_as_well(client: ServiceClient) -> None:
    write_log(client, *["x" * 50_000] * 10)

    assert [len(page) for page in read_all(client, "/conversations/c1/turns?agent_id=assistant")] == [5, 5]


def test_a_row_that_is_larger_than_an_answer_is_answered_alone(client: ServiceClient) -> None:
    write_log(client, SHORT, LONG * 5, SHORT)

    page = client.get("/conversations/c1/turns?agent_id=assistant").json()
    alone = client.get(path_of(page["next"])).json()

    assert [turn["index"] for turn in page["results"]] == [0]
    assert [turn["index"] for turn in alone["results"]] == [1]
    assert alone["results"][0]["content"] == f"1 {LONG * 5}"


def test_a_recall_of_long_texts_says_how_many_it_left_out(client: ServiceClient) -> None:
    write_log(client, *[f"{number} {LONG}" for number in range(8)])
    asked = {"agent_id": "assistant", "query": "harbour crane", "top_k": 8, "whole": True}

    answer = client.post("/recall", asked, format="json")

    assert answer.status_code == 200
    assert len(answer.content) <= LIMIT
    found = answer.json()
    assert found["cut"] == {"results": found["cut"]["results"]}
    assert not found["results"][0]["truncated"]


def test_small_answers_are_not_marked(client: ServiceClient) -> None:
    write_log(client, SHORT)

    assert "cut" not in client.post("/recall", {"agent_id": "assistant", "query": "crane"}, format="json").json()


def test_large_texts_are_read_only_when_they_are_needed(client: ServiceClient) -> None:
    write_log(client, LONG, SHORT)

    with CaptureQueriesContext(connection) as queries:
        large, small = read_with_small_values(Turn.objects.only("id", "text", "payload").order_by("index"))

        assert (has_large_values(large), has_large_values(small)) == (True, False)
        assert (small.text, small.payload) == (f"1 {SHORT}", None)
        assert len(queries) == 1
        assert len(large.text) > SMALL_BYTES
        assert large.payload is None
        assert len(queries) == 2
        assert '"account_id" =' in queries[1]["sql"]
