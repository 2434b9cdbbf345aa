"""`min_score`, the least confidence of results, in every request that searches."""

from itertools import product
from typing import Any

import pytest

from tests.api_client import ServiceClient
from tests.openapi import read_document

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

ROUTES = {"/recall": "results", "/memories/search": "results", "/context": "items"}
OUTSIDE = (-0.1, 1.1, "much")


@pytest.fixture(autouse=True)
def entries(api: ServiceClient) -> None:
    """Store an entry with both words of the question, and one with the commoner of them."""
    for key, text in (("boiler", "The boiler is broken."), ("cake", "A broken cake.")):
        stored = api.put(f"/memories/{key}", {"agent_id": "assistant", "tier": "long_term", "value": text})
        assert stored.status_code == 200, stored.content


def ask(api: ServiceClient, path: str, **asked: Any) -> list[str]:
    body = {"agent_id": "assistant", "query": "boiler broken"} | asked
    answer = api.post(path, body | ({"conversation_id": "now"} if path == "/context" else {}))
    assert answer.status_code == 200, answer.content
    return sorted(result["snippet"] for result in answer.json()[ROUTES[path]])


@pytest.mark.parametrize("path", ROUTES)
def test_results_below_the_least_confidence_are_left_out(api: ServiceClient, path: str) -> None:
    assert ask(api, path) == ask(api, path, min_score=0) == ["A broken cake.", "The boiler is broken."]
    assert ask(api, path, min_score=0.2) == ["The boiler is broken."]
    assert ask(api, path, min_score=1) == []


def test_confidence_is_answered_and_an_empty_answer_says_why(api: ServiceClient) -> None:
    body = {"agent_id": "assistant", "query": "boiler broken"}

    found, left_out = (api.post("/recall", body | more).json() for more in ({}, {"min_score": 1}))

    first, second = (result["confidence"] for result in found["results"])
    assert 1 > first > 0.2 > second > 0
    assert (found["abstained"], left_out["abstained"], left_out["results"]) == (False, True, [])


def test_a_least_confidence_outside_of_0_to_1_is_refused(api: ServiceClient) -> None:
    for path, least in product(ROUTES, OUTSIDE):
        answer = api.post(path, {"agent_id": "assistant", "query": "x", "conversation_id": "c", "min_score": least})

        assert (answer.status_code, "min_score" in answer.json()["errors"]) == (400, True), (path, least)


SEARCHES = {"/episodic/search": "query", "/strategies/find": "task_description"}


@pytest.fixture
def knowledge(api: ServiceClient) -> None:
    """Store an episode and a strategy about the question, and one of each about something else."""
    for text in ("Repair the broken boiler.", "Bake a broken cake."):
        episode = {"agent_id": "assistant", "conversation_id": "c1", "summary": text}
        assert api.post("/episodic/store", episode).status_code == 201
        assert api.post("/strategies", {"agent_id": "assistant", "description": text}).status_code == 201


@pytest.mark.usefixtures("two_topics", "knowledge")
@pytest.mark.parametrize("path", SEARCHES)
def test_searches_in_one_kind_leave_out_what_is_unlikely_to_help(api: ServiceClient, path: str) -> None:
    body = {"agent_id": "assistant", SEARCHES[path]: "repair the boiler"}

    every, some, none = (
        api.post(path, body | more).json()["results"] for more in ({}, {"min_score": 0.2}, {"min_score": 1})
    )

    first, second = (result["confidence"] for result in every)
    assert 1 > first > 0.2 > second > 0
    assert (some, none) == (every[:1], [])


def test_searches_refuse_a_least_confidence_outside_of_0_to_1(api: ServiceClient) -> None:
    for path, least in product(SEARCHES, OUTSIDE):
        answer = api.post(path, {"agent_id": "assistant", SEARCHES[path]: "x", "min_score": least})

        assert (answer.status_code, "min_score" in answer.json()["errors"]) == (400, True), (path, least)


def test_the_openapi_document_has_the_least_confidence() -> None:
    document = read_document()

    for path in (*ROUTES, *SEARCHES):
        reference = document["paths"][f"/api/v1{path}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
        field = document["components"]["schemas"][reference["$ref"].rpartition("/")[2]]["properties"]["min_score"]

        assert (field["minimum"], field["maximum"]) == (0, 1), path
