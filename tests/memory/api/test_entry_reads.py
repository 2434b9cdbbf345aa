"""Reading entries: lists by age or relevance, searches, and their cost."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory.models import Memory
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, EmbeddingServer, vector_of
from tests.memory.api.entry_requests import keep, listed, new_context
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


@pytest.fixture
def api(bound_api: ServiceClient, embedding_server: EmbeddingServer) -> ServiceClient:
    """Return the client of the agent `assistant`, with an embedder."""
    return bound_api


@pytest.fixture
def context(api: ServiceClient) -> str:
    return new_context(api)


@pytest.fixture
def path(api: ServiceClient, context: str) -> str:
    return f"/entries/{keep(api, context).json()['id']}"


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?entry_type=fact", ["two"]),
        ("?source_type=user", ["one"]),
        ("?memory_type=working", ["two"]),
        ("?key=k", ["one"]),
        ("?key=k&entry_type=fact", []),
        ("?ordering=newest", ["two", "one"]),
        ("?ordering=relevance", ["one", "two"]),
        ("?ordering=relevance&entry_type=fact", ["two"]),
    ],
)
def test_lists_of_entries_are_filtered_and_ordered(
    api: ServiceClient, context: str, query: str, found: list[str]
) -> None:
    keep(api, context, "one", key="k", source_type="user", importance=1)
    keep(api, context, "two", entry_type="fact", memory_type="working")

    assert listed(api, context, query) == found


def test_a_key_filter_matches_exactly_and_uses_the_identity_index(
    api: ServiceClient, context: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for key in ("k", " k", "k "):
        keep(api, context, f"under {key!r}", key=key)

    with django_assert_num_queries(3) as queries:
        found = listed(api, context, "?key=%20k")

    assert found == ["under ' k'"]
    assert f"'{context}: k'" in queries.captured_queries[-1]["sql"]


@pytest.mark.parametrize("query", ["entry_type=rumour", "ordering=oldest", "key=" + "k" * 201, "cursor=x", "color=red"])
def test_an_invalid_filter_of_entries_is_refused(api: ServiceClient, context: str, query: str) -> None:
    assert api.get(f"/contexts/{context}/entries?{query}").status_code == 400


def path_of(url: str) -> str:
    return url.removeprefix("http://testserver")


def test_pages_by_relevance_contain_every_entry_once_in_order_of_score(api: ServiceClient, context: str) -> None:
    for number in range(12):
        # some of one score, and one that overtakes others as time goes by
        keep(api, context, f"number {number}", importance=(number % 4) / 4, confidence=(number % 3) / 2)
    Memory.objects.filter(text__in=("number 3", "number 7")).update(updated_at=timezone.now() - timedelta(days=20))

    page, found = api.get(f"/contexts/{context}/entries?ordering=relevance&page_size=5").json(), []
    while True:
        found += page["results"]
        if page["next"] is None:
            break
        page = api.get(path_of(page["next"])).json()

    scores = [entry["effective_relevance_score"] for entry in found]
    assert len({entry["id"] for entry in found}) == len(found) == 12
    assert scores == sorted(scores, reverse=True)
    assert [entry["id"] for entry in api.get(path_of(page["previous"])).json()["results"]] == [
        entry["id"] for entry in found[5:10]
    ]


def test_an_entry_is_sent_in_full_even_if_the_client_has_its_etag(api: ServiceClient, path: str) -> None:
    # its score fades, and its vector may come, under the same ETag
    for known in ('"1"', "*"):
        answer = api.get(path, HTTP_IF_NONE_MATCH=known)

        assert (answer.status_code, answer["ETag"]) == (200, '"1"')


def test_the_versions_of_an_entry_are_listed_in_pages(api: ServiceClient, path: str) -> None:
    for number in range(4):
        api.patch(path, {"content": f"number {number}"})

    first = api.get(f"{path}/versions?page_size=3").json()
    rest = api.get(path_of(first["next"])).json()

    assert [version["version"] for version in first["results"] + rest["results"]] == [1, 2, 3, 4, 5]
    assert rest["next"] is None


def test_a_search_of_entries_ranks_by_similarity(api: ServiceClient, context: str) -> None:
    for content in ("The roof leaks", "Flour was ordered", "Ana called"):
        keep(api, context, content)

    answer = api.post(f"/contexts/{context}/search", {"query": "Flour was ordered", "top_k": 2}).json()

    best = answer["results"][0]
    assert (len(answer["results"]), answer["degraded"]) == (2, [])
    assert (best["content"], best["similarity"]) == ("Flour was ordered", pytest.approx(1, abs=1e-3))
    assert (best["item_key"], best["context_id"]) == (f"context_entry:{best['id']}", context)


def test_an_entry_without_a_vector_is_found_by_words_and_reported_degraded(
    api: ServiceClient, context: str, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()
    pending = keep(api, context).json()
    embedding_server.recover()

    answer = api.post(f"/contexts/{context}/search", {"query": "a leaking roof"}).json()

    assert pending["embedding"] == "pending"
    assert [(hit["id"], hit["similarity"]) for hit in answer["results"]] == [(pending["id"], None)]
    assert answer["degraded"] == ["embedding_pending"]


def test_after_an_edit_the_old_text_of_an_entry_is_not_found(api: ServiceClient, context: str, path: str) -> None:
    api.patch(path, {"content": "Flour was ordered"})

    (hit,) = api.post(f"/contexts/{context}/search", {"query": "The roof leaks"}).json()["results"]

    assert (hit["content"], hit["similarity"] < 0.99, hit["version"]) == ("Flour was ordered", True, 2)


def test_clients_may_send_their_own_vectors(
    api: ServiceClient, context: str, embedding_server: EmbeddingServer
) -> None:
    own = {"embedding": vector_of("anything").tolist(), "embedding_model": MODEL}
    stored = keep(api, context, **own).json()
    edited = api.patch(f"/entries/{stored['id']}", {"content": "other", **own}).json()

    asked = {"query": "x", "query_embedding": own["embedding"], "embedding_model": MODEL}
    (hit,) = api.post(f"/contexts/{context}/search", asked).json()["results"]

    assert (stored["embedding"], edited["embedding"], hit["similarity"]) == (
        *("stored", "stored", pytest.approx(1, abs=1e-3)),
    )
    assert embedding_server.texts == []


@pytest.mark.parametrize("change", [{"query": " "}, {"top_k": 0}, {"top_k": 201}, {"query_embedding": [0]}], ids=str)
def test_a_search_out_of_bounds_is_refused(api: ServiceClient, context: str, change: dict[str, Any]) -> None:
    answer = api.post(f"/contexts/{context}/search", {"query": "x", **change})

    assert answer.status_code == (422 if "query_embedding" in change else 400)


@pytest.mark.parametrize(("method", "suffix", "queries"), [("get", "", 2), ("get", "/versions", 3)])
def test_reading_an_entry_takes_few_queries_and_two_redis_scripts(
    api: ServiceClient,
    path: str,
    method: str,
    suffix: str,
    queries: int,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    getattr(api, method)(path + suffix)

    # the key, the entry behind the wall, the versions
    with django_assert_num_queries(queries), counted_commands() as commands:
        getattr(api, method)(path + suffix)

    assert len([command for command in commands if "EVALSHA" in command]) == 2  # the rate limit, the access log


@pytest.mark.parametrize("query", ["", "?ordering=relevance"])
def test_a_list_of_entries_takes_three_queries(
    api: ServiceClient, context: str, path: str, query: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(3):  # the key, the context behind the wall, the page
        listed(api, context, query)


def test_a_search_uses_the_named_techniques(api: ServiceClient, context: str) -> None:
    keep(api, context, "The keel broke.")
    asked = {"query": "keel", "techniques": ["lexical"]}

    [found] = api.post(f"/contexts/{context}/search", asked).json()["results"]
    refused = api.post(f"/contexts/{context}/search", asked | {"techniques": ["-lexical", "telepathy"]})

    assert (found["content"], found["similarity"]) == ("The keel broke.", None)
    assert refused.status_code == 400


def test_a_search_of_entries_takes_five_queries(
    api: ServiceClient, context: str, path: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    # the key, the context behind the wall, the two statements of a recall, what is known of the entries
    with django_assert_num_queries(5):
        api.post(f"/contexts/{context}/search", {"query": "roof"})


def test_an_edit_of_an_entry_takes_fourteen_queries(
    api: ServiceClient, path: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(14):
        api.patch(path, {"content": "other"})
