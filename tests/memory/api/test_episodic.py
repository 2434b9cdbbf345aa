"""`/episodic`: store summaries of conversations, search them by meaning, list those of a conversation."""

from typing import Any

import numpy as np
import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, ApiKey, AuditEntry, EpisodicMemory, Memory, Vector
from memory.services.accounts.register import issue_key
from tests.api_client import ServiceClient, segment
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of

pytestmark = pytest.mark.django_db

EPISODE: dict[str, Any] = {
    "agent_id": "assistant",
    "user_id": "ana",
    "conversation_id": "c1",
    "summary": "Filed the spacing exception for the ranch",
    "key_decisions": ["file it"],
    "entities_mentioned": [{"type": "well", "name": "2H"}],
    "tools_called": ["file_form"],
}
QUERY = {"agent_id": "assistant", "query": "spacing exception"}


@pytest.fixture
def client(api_key: str, embedding_server: EmbeddingServer) -> ServiceClient:
    return ServiceClient(api_key)


def store(client: ServiceClient, **changes: Any) -> Any:
    return client.post("/episodic/store", {**EPISODE, **changes})


def search(client: ServiceClient, **changes: Any) -> Any:
    return client.post("/episodic/search", {**QUERY, **changes})


def test_an_episode_is_stored_with_its_embedding(client: ServiceClient) -> None:
    answer = store(client)

    assert answer.status_code == 201
    assert answer.json()["embedding"] == "stored"
    assert answer.json() | EPISODE == answer.json()
    assert answer.json()["item_key"] == f"episode:{answer.json()['id']}"
    assert Vector.objects.values_list("model", "width").get() == (MODEL, WIDTH)


def test_a_search_of_episodes_ranks_by_similarity(client: ServiceClient) -> None:
    for summary in ("Asked about the weather", EPISODE["summary"], "Ordered flour"):
        store(client, summary=summary)

    answer = search(client, query=EPISODE["summary"], top_k=2).json()

    assert answer["results"][0]["similarity"] == pytest.approx(1, abs=1e-3)
    assert answer["results"][0] | EPISODE == answer["results"][0]
    assert (len(answer["results"]), answer["degraded"]) == (2, [])


def test_a_search_finds_only_episodes_of_the_agent_and_the_user(client: ServiceClient) -> None:
    store(client, summary="the user's")
    store(client, summary="another user's", user_id="ben")
    store(client, summary="another agent's", agent_id="colleague")

    found = [hit["summary"] for hit in search(client, user_id="ana").json()["results"]]

    assert found == ["the user's"]


@pytest.mark.slow
def test_without_the_embedder_an_episode_is_stored_pending_and_found_by_words(
    client: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()

    assert store(client).json()["embedding"] == "pending"

    answer = search(client).json()
    assert [(hit["summary"], hit["similarity"]) for hit in answer["results"]] == [(EPISODE["summary"], None)]
    assert answer["degraded"] == ["embedder_unavailable", "embedding_pending"]


def test_clients_may_bring_their_own_vectors(client: ServiceClient, embedding_server: EmbeddingServer) -> None:
    vector = vector_of("anything").tolist()

    stored = store(client, embedding=vector, embedding_model=MODEL)
    found = search(client, query_embedding=vector, embedding_model=MODEL)

    assert stored.json()["embedding"] == "stored"
    assert found.json()["results"][0]["similarity"] == pytest.approx(1, abs=1e-3)
    assert embedding_server.texts == []


@pytest.mark.parametrize(
    ("vector", "status"),
    [
        ([], 400),
        ("no list", 400),
        ([1.0, "2"], 400),
        ([True] * WIDTH, 400),
        ([10**400] * WIDTH, 400),
        ([0.5] * 4001, 400),
        ([0] * WIDTH, 422),
        ([0.5] * (WIDTH + 1), 422),
    ],
    ids=["empty", "text", "mixed", "booleans", "huge", "too long", "zeros", "too wide"],
)
def test_an_invalid_vector_is_refused_and_nothing_is_stored(client: ServiceClient, vector: Any, status: int) -> None:
    assert store(client, embedding=vector, embedding_model=MODEL).status_code == status
    assert search(client, query_embedding=vector, embedding_model=MODEL).status_code == status
    assert Memory.objects.count() == 0


def test_the_error_for_a_wrong_vector_width_names_both_widths(client: ServiceClient) -> None:
    detail = store(client, embedding=[0.5] * 3).json()["detail"]

    assert "3 dimensions" in detail
    assert str(WIDTH) in detail


@pytest.mark.parametrize(
    "change",
    [
        {"summary": ""},
        {"summary": "x" * 100_001},
        {"summary": 7},
        {"conversation_id": ""},
        {"conversation_id": "c" * 101},
        {"key_decisions": "none"},
        {"agent_id": None},
        {"surprise": 1},
    ],
    ids=str,
)
def test_an_invalid_episode_is_refused_and_not_stored(client: ServiceClient, change: dict[str, Any]) -> None:
    answer = store(client, **change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert Memory.objects.count() == 0


@pytest.mark.parametrize("change", [{"top_k": 0}, {"top_k": -1}, {"top_k": 10**9}, {"query": ""}], ids=str)
def test_a_search_out_of_bounds_is_refused(client: ServiceClient, change: dict[str, Any]) -> None:
    assert search(client, **change).status_code == 400


def test_blank_summaries_are_refused(client: ServiceClient) -> None:
    assert store(client, summary=" \n\t ").status_code == 400


def test_an_agent_is_required_unless_the_api_key_is_bound_to_one(client: ServiceClient, account: Account) -> None:
    nameless = {name: value for name, value in EPISODE.items() if name != "agent_id"}
    bound = ServiceClient(issue_key(account, scopes=list(ApiKey.Scope), agent_id="bound-agent").secret)

    assert client.post("/episodic/store", nameless).status_code == 400
    assert bound.post("/episodic/store", nameless).json()["agent_id"] == "bound-agent"


def test_the_episodes_of_a_conversation_are_listed_in_pages(client: ServiceClient) -> None:
    for number in range(3):
        store(client, summary=f"number {number}")
    store(client, summary="elsewhere", conversation_id="c2")

    first = client.get("/episodic/c1?agent_id=assistant&page_size=2").json()
    rest = client.get(first["next"].split("/api/v1", 1)[1]).json()

    assert [row["summary"] for row in first["results"] + rest["results"]] == ["number 2", "number 1", "number 0"]
    assert rest["next"] is None


def test_an_unknown_conversation_has_no_episodes(client: ServiceClient) -> None:
    assert client.get("/episodic/unknown").json() == {"next": None, "previous": None, "results": []}


@pytest.mark.parametrize("conversation_id", ["a/b", "ünïcode ✓", "a%2Fb", "x?y#z", "search "])
def test_a_conversation_id_may_have_any_characters(client: ServiceClient, conversation_id: str) -> None:
    store(client, conversation_id=conversation_id)

    rows = client.get(f"/episodic/{segment(conversation_id)}").json()["results"]

    assert [row["conversation_id"] for row in rows] == [conversation_id]


def test_another_account_finds_no_episodes(client: ServiceClient, stranger: Account) -> None:
    store(client)
    theirs = ServiceClient(issue_key(stranger, scopes=list(ApiKey.Scope)).secret)

    assert search(theirs).json()["results"] == []
    assert theirs.get("/episodic/c1").json()["results"] == []


def test_an_episode_stored_twice_with_one_idempotency_key_is_stored_once(client: ServiceClient) -> None:
    answers = [client.post("/episodic/store", EPISODE, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2)]

    assert answers[0].content == answers[1].content
    assert EpisodicMemory.objects.count() == 1


def test_the_summary_of_an_episode_is_not_in_the_audit_log(client: ServiceClient) -> None:
    store(client)

    entry = AuditEntry.objects.get(operation="store")

    assert EPISODE["summary"] not in str(entry.__dict__)


def test_a_search_by_vector_takes_two_queries_and_one_by_text_four(
    client: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    store(client)
    vector = np.ones(WIDTH).tolist()

    with django_assert_num_queries(2):  # the key, and the one statement of the search
        client.post("/episodic/search", {"agent_id": "assistant", "query_embedding": vector, "embedding_model": MODEL})
    search(client)
    with django_assert_num_queries(4):  # two more for the confidence of what was found
        search(client)


@pytest.mark.parametrize("conversation_id", ["store", "search"])
def test_the_episodes_of_a_conversation_named_like_a_route_are_listed(
    client: ServiceClient, conversation_id: str
) -> None:
    body = {"agent_id": "planner", "conversation_id": conversation_id, "summary": "We chose the second plan."}
    stored = client.post("/episodic/store", body).json()

    listed = client.get(f"/episodic/{conversation_id}?agent_id=planner&page_size=5").json()

    assert [episode["id"] for episode in listed["results"]] == [stored["id"]]
    assert client.get(f"/episodic/{conversation_id}?agent_id=nobody").json()["results"] == []
