"""`/keyed-memories`: one key space over four tiers."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, AgentShortTermMemory, ContextEntry, MemoryPool
from memory.services.accounts.register import READ_ONLY, READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient, segment
from tests.embedding_server import EmbeddingServer, vector_of
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

TIERS = ("working", "short_term", "long_term", "shared")
PATH = "/keyed-memories/k"
AGENT = "agent_id=assistant"


def store_value(api: ServiceClient, value: Any, path: str = PATH, **body: Any) -> Any:
    answer = api.put(path, {"agent_id": "assistant", "value": value} | body)
    assert answer.status_code == 200, answer.content
    return answer.json()


def tier_of(api: ServiceClient, query: str = "") -> str | None:
    """Return the tier that answers; None if there is no value."""
    answer = api.get(f"{PATH}?{AGENT}{query}")
    assert answer.status_code in (200, 404), answer.content
    return answer.json()["tier"] if answer.status_code == 200 else None


def tiers_with(api: ServiceClient) -> list[str]:
    return [tier for tier in TIERS if tier_of(api, f"&tier={tier}")]


@pytest.fixture
def planner_api(account: Account) -> ServiceClient:
    """Return the client of another agent of the account."""
    return ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id="planner").secret)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("value", ["123", 123, 1.0, None, False, [], {"b": [{"a": None}], "a": "ä"}], ids=repr)
def test_a_value_is_returned_unchanged_with_its_tier(api: ServiceClient, tier: str, value: Any) -> None:
    stored = store_value(api, value, tier=tier)

    found = api.get(f"{PATH}?{AGENT}")

    assert found.json() == stored == {"key": "k", "value": value, "tier": tier}
    assert type(found.json()["value"]) is type(value)


def test_a_value_is_stored_in_short_term_memory_by_default(api: ServiceClient) -> None:
    store_value(api, 1, session_id="s1", ttl_seconds=60, memory_type="reflection")

    entry = AgentShortTermMemory.objects.get()
    assert (entry.session_id, entry.ttl_seconds, entry.memory_type) == ("s1", 60, "reflection")
    assert [tier_of(api, "&session_id=s1"), tier_of(api)] == ["short_term", None]


def test_a_key_is_deleted_from_all_tiers_or_from_the_named_one(api: ServiceClient) -> None:
    for tier in TIERS:
        store_value(api, 1, tier=tier)

    assert api.delete(f"{PATH}?{AGENT}&tier=short_term").status_code == 204
    assert tiers_with(api) == ["working", "long_term", "shared"]
    assert [api.delete(f"{PATH}?{AGENT}").status_code for _ in range(2)] == [204, 404]
    assert tiers_with(api) == []


def test_the_named_pool_is_used_as_the_shared_tier(api: ServiceClient) -> None:
    api.post("/pools", {"pool_id": "board", "agent_id": "assistant"})
    store_value(api, 1, tier="shared", pool_id="board")

    assert [tier_of(api, "&pool_id=board"), tier_of(api)] == ["shared", None]
    assert MemoryPool.objects.get().data == {"k": 1}


@pytest.mark.parametrize("tier", TIERS)
def test_a_key_may_have_two_hundred_characters_in_every_tier(api: ServiceClient, tier: str) -> None:
    path = f"/keyed-memories/{segment('愛' * 200)}"
    store_value(api, 1, path, tier=tier)

    assert api.get(f"{path}?{AGENT}").json()["tier"] == tier
    assert api.delete(f"{path}?{AGENT}").status_code == 204


def test_a_key_may_contain_slashes_and_percent_signs(api: ServiceClient) -> None:
    path = f"/keyed-memories/{segment('a/b~c %{}')}"
    store_value(api, 1, path, tier="shared")

    assert api.get(f"{path}?{AGENT}").json()["key"] == "a/b~c %{}"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"value": 1, "tier": "nowhere"},
        {"value": 1, "ttl_seconds": 0},
        {"value": 1, "ttl_seconds": 2_592_001},
        {"value": 1, "memory_type": "dream"},
        {"value": 1, "session_id": ""},
        {"value": 1, "key": "k"},
    ],
)
def test_an_invalid_body_is_refused(api: ServiceClient, body: dict[str, Any]) -> None:
    assert api.put(PATH, body | {"agent_id": "assistant"}).status_code == 400


@pytest.mark.parametrize("query", ["&tier=nowhere", "&session_id=", "&key=k"])
def test_an_invalid_query_parameter_is_refused(api: ServiceClient, query: str) -> None:
    assert [api.get(f"{PATH}?{AGENT}{query}").status_code, api.delete(f"{PATH}?{AGENT}{query}").status_code] == [
        400
    ] * 2


@pytest.mark.parametrize(
    "body",
    [
        {"tier": "working", "ttl_seconds": 604_801},
        {"tier": "long_term", "ttl_seconds": 60},
        {"tier": "shared", "memory_type": "factual"},
        {"tier": "short_term", "pool_id": "p"},
    ],
)
def test_an_option_that_the_tier_does_not_support_is_refused(api: ServiceClient, body: dict[str, Any]) -> None:
    assert api.put(PATH, body | {"agent_id": "assistant", "value": 1}).status_code == 422
    assert tiers_with(api) == []


@pytest.mark.parametrize("tier", TIERS)
def test_every_tier_can_be_written_with_a_session_id(api: ServiceClient, tier: str) -> None:
    store_value(api, 1, tier=tier, session_id="s1")

    assert tier_of(api, "&session_id=s1") == tier


@pytest.mark.parametrize("tier", TIERS)
def test_a_value_that_is_too_large_is_refused(api: ServiceClient, tier: str) -> None:
    answer = api.put(PATH, {"agent_id": "assistant", "value": "x" * 65_535, "tier": tier})

    assert (answer.status_code, answer.json()["stored"], answer.json()["size_bytes"]) == (413, False, 65_537)


@pytest.mark.parametrize("key", ["search", "stats", "01890a5d-ac96-774b-bcce-b302099a8057"])
def test_any_text_is_a_key(api: ServiceClient, key: str) -> None:
    store_value(api, 1, f"/keyed-memories/{key}")

    assert api.get(f"/keyed-memories/{key}?{AGENT}").json()["value"] == 1
    assert api.put(f"/memories/{key}", {"agent_id": "assistant", "value": 2}).status_code == 405


def test_the_former_path_answers_for_keys_that_are_no_uuid(api: ServiceClient) -> None:
    store_value(api, 1, "/memories/k")

    assert api.get(f"{PATH}?{AGENT}").json() == api.get(f"/memories/k?{AGENT}").json()
    assert [api.delete(f"/memories/k?{AGENT}").status_code for _ in range(2)] == [204, 404]


def test_the_former_path_says_that_it_is_deprecated_and_names_the_other(api: ServiceClient) -> None:
    store_value(api, 1, "/memories/k")

    former, present = api.get(f"/memories/k?{AGENT}"), api.get(f"/keyed-memories/k?{AGENT}")

    assert former["Deprecation"].startswith("@")
    assert former["Link"] == '</api/v1/keyed-memories/k>; rel="successor-version"'
    assert not present.has_header("Deprecation")


def test_every_request_without_an_agent_is_refused(api: ServiceClient) -> None:
    answers = [
        api.get(PATH),
        api.put(PATH, {"value": 1}),
        api.delete(PATH),
        api.post("/keyed-memories/search", {"query": "keel"}),
        api.post("/memories/consolidate", {"session_id": "s1"}),
        api.get("/memories/stats"),
    ]

    assert [(answer.status_code, list(answer.json()["errors"])) for answer in answers] == [(400, ["agent_id"])] * 6


def test_a_bound_key_acts_only_as_its_agent(bound_api: ServiceClient) -> None:
    bound_api.put(PATH, {"value": 1})

    assert bound_api.get(PATH).json()["value"] == 1
    assert bound_api.get(f"{PATH}?agent_id=planner").status_code == 403
    assert bound_api.put(PATH, {"agent_id": "planner", "value": 1}).status_code == 403


def test_a_read_only_key_can_read_and_search_but_not_write(api: ServiceClient, account: Account) -> None:
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY, agent_id="assistant").secret)
    store_value(api, 1)

    allowed = [reader.get(PATH), reader.get("/memories/stats"), reader.post("/keyed-memories/search", {"query": "x"})]
    writes = [reader.put(PATH, {"value": 2}), reader.delete(PATH)]
    consolidation = reader.post("/memories/consolidate", {"session_id": "s1"})

    assert [answer.status_code for answer in allowed] == [200, 200, 200]
    assert [answer.status_code for answer in (*writes, consolidation)] == [403, 403, 403]


def test_other_agents_and_accounts_neither_find_nor_delete_a_value(
    api: ServiceClient, planner_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    for tier in TIERS:
        store_value(api, "secret", tier=tier)

    for other, agent in ((planner_api, "planner"), (stranger_api, "assistant")):
        read = other.get(f"{PATH}?agent_id={agent}", HTTP_X_REQUEST_ID="same")
        unknown = other.get(f"/keyed-memories/unknown?agent_id={agent}", HTTP_X_REQUEST_ID="same")
        assert (read.status_code, read.content) == (404, unknown.content)
        assert other.delete(f"{PATH}?agent_id={agent}").status_code == 404
        assert other.post("/keyed-memories/search", {"query": "secret", "agent_id": agent}).json()["results"] == []
    assert tiers_with(api) == list(TIERS)


def test_another_agents_private_pool_is_not_found(api: ServiceClient, planner_api: ServiceClient) -> None:
    api.post("/pools", {"pool_id": "own", "pool_type": "agent_private", "agent_id": "assistant"})
    store_value(api, "secret", tier="shared", pool_id="own")

    assert planner_api.get(f"{PATH}?pool_id=own").status_code == 404
    assert planner_api.put(PATH, {"value": 1, "tier": "shared", "pool_id": "own"}).status_code == 404
    assert planner_api.delete(f"{PATH}?pool_id=own").status_code == 404


def test_long_term_values_are_found_by_meaning(api: ServiceClient) -> None:
    store_value(api, "The keel broke.", "/keyed-memories/keel", tier="long_term")
    store_value(api, {"mast": "stands"}, "/keyed-memories/mast", tier="long_term")

    found = api.post("/keyed-memories/search", {"agent_id": "assistant", "query": "The keel broke.", "top_k": 1}).json()

    (hit,) = found["results"]
    entry = ContextEntry.objects.get(key="keel")
    assert (hit["id"], hit["item_key"], hit["key"]) == (str(entry.id), f"context_entry:{entry.id}", "keel")
    assert found["usage"]["candidates"] == 2
    assert (hit["value"], hit["content"], found["degraded"]) == ("The keel broke.", "The keel broke.", [])
    assert hit["similarity"] == pytest.approx(1, abs=1e-2)


def test_a_search_accepts_a_vector_sent_by_the_client(api: ServiceClient) -> None:
    store_value(api, "The keel broke.", tier="long_term")
    body = {"agent_id": "assistant", "query": "?", "query_embedding": vector_of("The keel broke.").tolist()}

    assert api.post("/keyed-memories/search", body).json()["results"][0]["similarity"] == pytest.approx(1, abs=1e-2)
    assert api.post("/keyed-memories/search", body | {"query_embedding": [1.0]}).status_code == 422


@pytest.mark.parametrize("body", [{}, {"query": " "}, {"query": "x", "top_k": 0}, {"query": "x", "top_k": 201}])
def test_an_invalid_search_is_refused(api: ServiceClient, body: dict[str, Any]) -> None:
    assert api.post("/keyed-memories/search", body | {"agent_id": "assistant"}).status_code == 400


def test_a_search_without_the_embedder_uses_words_and_reports_degradation(
    api: ServiceClient, embedding_server: EmbeddingServer
) -> None:
    store_value(api, "The keel broke.", tier="long_term")
    embedding_server.fail()

    found = api.post("/keyed-memories/search", {"agent_id": "assistant", "query": "keel"}).json()

    assert [hit["similarity"] for hit in found["results"]] == [None]
    assert found["degraded"] == ["embedder_unavailable"]


def test_a_value_may_have_the_name_of_the_search(api: ServiceClient) -> None:
    store_value(api, 1, "/keyed-memories/search")

    assert api.get(f"/keyed-memories/search?{AGENT}").json()["value"] == 1
    assert api.delete(f"/keyed-memories/search?{AGENT}").status_code == 204


def test_an_entry_that_was_read_three_times_is_promoted_once(api: ServiceClient) -> None:
    store_value(api, "The keel broke.", session_id="s1")
    for _ in range(3):
        tier_of(api, "&session_id=s1")
    body = {"agent_id": "assistant", "session_id": "s1"}

    first, again = (api.post("/memories/consolidate", body).json() for _ in range(2))

    assert first == {"session_id": "s1", "promoted": 1, "keys": ["k"]}
    assert again == {"session_id": "s1", "promoted": 0, "keys": []}
    assert tiers_with(api) == ["long_term"]


def test_a_consolidation_without_a_session_id_is_refused(api: ServiceClient) -> None:
    assert api.post("/memories/consolidate", {"agent_id": "assistant"}).status_code == 400
    assert api.post("/memories/consolidate", {"agent_id": "assistant", "session_id": ""}).json()["promoted"] == 0


def test_statistics_cover_every_tier(api: ServiceClient) -> None:
    store_value(api, 1, tier="working")
    store_value(api, 1, tier="shared")
    tier_of(api)
    tier_of(api, "&tier=long_term")

    found = api.get(f"/memories/stats?{AGENT}").json()

    assert found["working_memory"] == {"entries": 1, "bytes": 2, "hits": 1, "misses": 0}
    assert found["short_term"] == {"entries": 0, "bytes": 0, "hits": 0, "misses": 0}
    assert found["long_term"] == {"entries": 0, "bytes": 0, "hits": 0, "misses": 1}
    assert found["shared"] == {"entries": 1, "bytes": 7, "hits": 0, "misses": 0}


def test_a_working_memory_read_uses_only_the_key_lookup_and_two_redis_commands(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    store_value(api, 1, tier="working")
    tier_of(api)

    with django_assert_num_queries(1), counted_commands() as commands:
        tier_of(api)

    assert len([command for command in commands if ":value:rate:" not in command]) == 2


def test_without_redis_a_read_answers_503_instead_of_reading_a_slower_tier(
    api: ServiceClient, request: pytest.FixtureRequest
) -> None:
    store_value(api, "stale")
    request.getfixturevalue("dead_redis")

    assert api.get(f"{PATH}?{AGENT}").status_code == 503
    assert api.delete(f"{PATH}?{AGENT}").status_code == 503
    assert AgentShortTermMemory.objects.count() == 1
