"""`/strategies`: learn, list, find for a task, reinforce, remove; hidden from other accounts."""

from typing import Any
from uuid import uuid4

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Strategy, StrategyUse
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import MODEL, WIDTH, EmbeddingServer, vector_of

pytestmark = pytest.mark.django_db

DESCRIPTION = "Search for it, then read the first hit."


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


@pytest.fixture
def strategy_id(api: ServiceClient) -> str:
    """Return the id of a strategy that `assistant` learned."""
    return str(learn(api).json()["id"])


def learn(api: ServiceClient, description: str = DESCRIPTION, **fields: Any) -> Any:
    return api.post("/strategies", {"agent_id": "assistant", "description": description, **fields})


def find(api: ServiceClient, **fields: Any) -> Any:
    return api.post("/strategies/find", {"agent_id": "assistant", "task_description": DESCRIPTION, **fields})


def reinforce(api: ServiceClient, strategy_id: object, **fields: Any) -> Any:
    return api.post(f"/strategies/{strategy_id}/reinforce", {"agent_id": "assistant", "success": True, **fields})


def descriptions(answer: Any) -> list[str]:
    assert answer.status_code == 200, answer.content
    return [strategy["description"] for strategy in answer.json()["results"]]


def test_a_strategy_is_learned_and_read(api: ServiceClient) -> None:
    said: dict[str, Any] = {
        "context_pattern": "a question of fact",
        "tool_sequence": ["search", "read"],
        "task_type": "look up",
        "user_id": "ana",
        "channel": "web",
        "metadata": {"from": "run 7"},
    }
    learned = learn(api, success=True, **said)
    read = api.get(f"/strategies/{learned.json()['id']}?agent_id=other&user_id=ana")

    assert learned.status_code == 201
    counted = {"success_count": 1, "failure_count": 0, "success_rate": 2 / 3, "embedding": "stored"}
    assert learned.json() | said | counted | {"description": DESCRIPTION} == learned.json()
    assert learned.json()["item_key"] == f"strategy:{learned.json()['id']}"
    assert read.json() == learned.json()


def test_learning_a_quarantined_strategy_again_is_a_conflict(api: ServiceClient, strategy_id: str) -> None:
    Strategy.objects.update(quarantined=True)

    assert learn(api).status_code == 409
    assert api.get(f"/strategies/{strategy_id}?agent_id=assistant").status_code == 404


def test_a_strategy_that_is_learned_again_keeps_its_id(api: ServiceClient, strategy_id: str) -> None:
    again = learn(api, DESCRIPTION.upper(), success=False)

    assert (again.status_code, again.json()["id"], again.json()["failure_count"]) == (201, strategy_id, 1)
    assert Strategy.objects.count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"description": ""},
        {"description": " \n"},
        {"description": "x" * 10_001},
        {"context_pattern": 7},
        {"tool_sequence": "search"},
        {"tool_sequence": [""]},
        {"tool_sequence": ["x"] * 101},
        {"task_type": "x" * 101},
        {"success": 1},
        {"metadata": []},
        {"embedding": []},
        {"surprise": 1},
    ],
    ids=lambda change: str(change)[:40],
)
def test_an_invalid_body_is_refused_and_stores_nothing(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = api.post("/strategies", {"agent_id": "assistant", "description": DESCRIPTION} | change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)
    assert not Strategy.objects.exists()


def test_an_unknown_conversation_is_refused_as_a_source(api: ServiceClient, strategy_id: str) -> None:
    assert learn(api, "another", conversation_id="none").status_code == 422
    assert reinforce(api, strategy_id, conversation_id="none").status_code == 422


def test_a_list_is_newest_first_and_filtered_by_every_parameter(api: ServiceClient) -> None:
    learn(api, "plain", success=False)
    learn(api, "typed", task_type="look up", tool_sequence=["read", "search", "read"])
    learn(api, "on the web", channel="web", success=True)

    def listed(query: str) -> list[str]:
        return descriptions(api.get(f"/strategies{query}"))

    assert listed("") == ["typed", "plain"]
    assert listed("?channel=web") == ["on the web", "typed", "plain"]
    assert listed("?task_type=look%20up") == listed("?tool=read") == ["typed"]
    # (s + 1) / (s + f + 2): 1/3, 1/2, 2/3
    assert listed("?min_success_rate=0.5") == ["typed"]
    assert listed("?channel=web&min_success_rate=0.6") == ["on the web"]
    assert listed("?tool=none") == []


@pytest.mark.parametrize("query", ["?min_success_rate=2", "?min_success_rate=nan", "?tools=read", "?task_type=%00"])
def test_an_invalid_query_parameter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/strategies{query}").status_code == 400


def test_successful_strategies_rank_before_failed_ones(api: ServiceClient, strategy_id: str) -> None:
    fails = learn(api, "Guess.", embedding=vector_of(DESCRIPTION).tolist(), embedding_model=MODEL).json()["id"]
    for _ in range(3):
        reinforce(api, fails, success=False)
    reinforce(api, strategy_id)

    answer = find(api)

    first, second = answer.json()["results"]
    assert answer.json()["degraded"] == []
    assert [first["id"], second["id"]] == [strategy_id, fails]
    assert (first["similarity"], second["similarity"]) == pytest.approx((1, 1), abs=1e-3)
    assert (first["score"], second["score"]) == pytest.approx((2 / 3, 1 / 5), abs=1e-3)
    assert descriptions(find(api, top_k=1)) == [DESCRIPTION]


def test_a_search_can_be_limited_to_one_task_type(api: ServiceClient, strategy_id: str) -> None:
    learn(api, "typed", task_type="look up")

    assert descriptions(find(api, task_type="look up")) == ["typed"]


def test_a_search_accepts_a_vector_sent_by_the_client(
    api: ServiceClient, strategy_id: str, embedding_server: EmbeddingServer
) -> None:
    embedding_server.texts.clear()
    found = find(api, query_embedding=vector_of(DESCRIPTION).tolist(), embedding_model=MODEL)
    wide = find(api, query_embedding=[0.5] * (WIDTH + 1), embedding_model=MODEL)

    assert found.json()["results"][0]["similarity"] == pytest.approx(1, abs=1e-3)
    assert embedding_server.texts == []
    assert wide.status_code == 422


@pytest.mark.slow
def test_without_the_embedder_a_search_uses_words_and_reports_degradation(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    embedding_server.fail()
    learned = learn(api).json()

    found = find(api, task_description="read the hit").json()

    assert learned["embedding"] == "pending"
    assert [(hit["id"], hit["similarity"], hit["score"]) for hit in found["results"]] == [(learned["id"], None, 0.5)]
    assert found["degraded"] == ["embedder_unavailable", "embedding_pending"]


@pytest.mark.parametrize(
    "change", [{"task_description": " "}, {"top_k": 0}, {"top_k": 201}, {"query_embedding": "x"}, {"success": True}]
)
def test_an_invalid_search_is_refused(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = find(api, **change)

    assert answer.status_code == 400
    assert set(answer.json()["errors"]) == set(change)


def test_reinforcements_count_successes_and_failures(api: ServiceClient, strategy_id: str) -> None:
    api.post("/tool-invocations", {"agent_id": "assistant", "conversation_id": "c1", "tool_name": "search"})

    reinforce(api, strategy_id, conversation_id="c1")
    counted = reinforce(api, strategy_id, success=False)

    assert counted.status_code == 200
    assert (counted.json()["success_count"], counted.json()["failure_count"]) == (1, 1)
    assert api.get(f"/strategies/{strategy_id}").json() == counted.json()
    assert StrategyUse.objects.filter(conversation__conversation_id="c1", success=True).count() == 1


@pytest.mark.parametrize("change", [{"success": None}, {"success": "true"}, {"surprise": 1}])
def test_an_invalid_reinforcement_is_refused(api: ServiceClient, strategy_id: str, change: dict[str, Any]) -> None:
    assert reinforce(api, strategy_id, **change).status_code == 400
    assert not StrategyUse.objects.exists()


def test_a_request_repeated_with_its_idempotency_key_counts_once(api: ServiceClient, strategy_id: str) -> None:
    body = {"agent_id": "assistant", "success": True}

    for _ in range(2):
        api.post(f"/strategies/{strategy_id}/reinforce", body, HTTP_IDEMPOTENCY_KEY="k1")

    assert StrategyUse.objects.count() == 1


def test_only_its_holder_can_remove_a_strategy(api: ServiceClient, bound_api: ServiceClient, strategy_id: str) -> None:
    assert api.delete(f"/strategies/{strategy_id}?agent_id=assistant&user_id=ana").status_code == 403
    assert bound_api.delete(f"/strategies/{strategy_id}").status_code == 204
    assert bound_api.delete(f"/strategies/{strategy_id}").status_code == 404
    assert descriptions(api.get("/strategies")) == []


def test_other_accounts_and_agents_do_not_find_a_strategy(
    api: ServiceClient, stranger_api: ServiceClient, strategy_id: str
) -> None:
    assert descriptions(find(stranger_api)) == descriptions(find(api, agent_id="other")) == []
    assert descriptions(stranger_api.get("/strategies")) == descriptions(api.get("/strategies?agent_id=other")) == []
    for client, query, each_id in (
        (stranger_api, "", strategy_id),
        (api, "?agent_id=other", strategy_id),
        (api, "", uuid4()),
    ):
        assert client.get(f"/strategies/{each_id}{query}").status_code == 404
        assert client.delete(f"/strategies/{each_id}{query}").status_code == 404
    assert reinforce(api, strategy_id, agent_id="other").status_code == 404
    assert reinforce(stranger_api, strategy_id).status_code == 404


def test_a_read_only_key_finds_strategies_but_cannot_change_them(account: Account, strategy_id: str) -> None:
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    assert descriptions(find(reader)) == [DESCRIPTION]
    assert learn(reader, "another").status_code == 403
    assert reinforce(reader, strategy_id).status_code == 403
    assert reader.delete(f"/strategies/{strategy_id}").status_code == 403


def test_searches_use_four_queries_and_pages_two(
    api: ServiceClient, strategy_id: str, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    find(api)

    # the key, the search, and two for the confidence of what was found
    with django_assert_num_queries(4):
        find(api)
    with django_assert_num_queries(2):
        api.get("/strategies?tool=search")
