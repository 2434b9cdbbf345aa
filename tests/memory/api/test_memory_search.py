"""`POST /memories/search`: memories of all kinds that answer a question."""

from typing import Any

import pytest

from memory.models import Account
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

ANA = {"agent_id": "assistant", "user_id": "ana"}
AGENT = {"agent_id": "assistant"}


@pytest.fixture
def planner_api(account: Account) -> ServiceClient:
    """Return the client of another agent of the account."""
    return ServiceClient(issue_key(account, scopes=READ_ONLY, agent_id="planner").secret)


def remember(api: ServiceClient, text: str, **fields: Any) -> dict[str, Any]:
    answer = api.post("/memories", {**ANA, "text": text} | fields)
    assert answer.status_code == 201, answer.content
    return dict(answer.json())


def search(api: ServiceClient, query: str = "boiler", **fields: Any) -> list[dict[str, Any]]:
    answer = api.post("/memories/search", {**ANA, "query": query} | fields)
    assert answer.status_code == 200, answer.content
    return list(answer.json()["results"])


def test_a_search_finds_notes_with_their_own_fields(api: ServiceClient) -> None:
    note = remember(api, "The boiler hums at night.", metadata={"room": "attic"}, importance=0.8)

    (found,) = search(api)

    assert {
        name: found[name] for name in ("id", "kind", "text", "metadata", "importance", "expires_at", "channel")
    } == {
        "id": note["id"],
        "kind": "note",
        "text": "The boiler hums at night.",
        "metadata": {"room": "attic"},
        "importance": 0.8,
        "expires_at": None,
        "channel": "_global",
    }
    assert (found["key"], found["value"], found["context_id"]) == ("", None, None)


def test_a_search_finds_facts_goals_turns_and_keyed_values(api: ServiceClient) -> None:
    remember(api, "Ana owns a boiler.", kind="fact")
    remember(api, "Replace the boiler in spring.", kind="goal")
    api.post("/conversations/c1/turns", {**ANA, "turns": [{"role": "user", "content": "My boiler is from 1987."}]})
    api.put("/keyed-memories/heating", {**AGENT, "tier": "long_term", "value": {"boiler": "gas"}})

    found = {each["kind"]: each for each in search(api)}

    assert set(found) == {"fact", "goal", "turn", "context_entry"}
    assert (found["context_entry"]["key"], found["context_entry"]["value"]) == ("heating", {"boiler": "gas"})


def test_filters_limit_a_search(api: ServiceClient) -> None:
    remember(api, "The boiler hums.", event_time="2025-01-05T00:00:00Z")
    remember(api, "Repair the boiler.", kind="goal", event_time="2025-03-05T00:00:00Z")
    api.post("/conversations/c1/turns", {**ANA, "turns": [{"role": "user", "content": "My boiler leaks."}]})

    by_kind = search(api, kinds=["goal"])
    by_time = search(api, since="2025-01-01T00:00:00Z", until="2025-02-01T00:00:00Z")
    by_conversation = search(api, conversation_id="c1")

    assert [[each["text"] for each in found] for found in (by_kind, by_time, by_conversation)] == [
        ["Repair the boiler."],
        ["The boiler hums."],
        ["My boiler leaks."],
    ]


def test_no_kinds_are_the_kinds_of_a_search_without_any(api: ServiceClient) -> None:
    remember(api, "The boiler hums.")
    record = {
        "conversation_id": "c1",
        "observation": "The boiler hums.",
        "action": {"text": "Mended the boiler."},
    }
    made = api.post("/turn-records", {**AGENT, **record})
    assert made.status_code == 201, made.json()

    assert {each["kind"] for each in search(api, kinds=[])} == {each["kind"] for each in search(api)} == {"note"}


def test_other_users_agents_and_accounts_find_nothing(
    api: ServiceClient, planner_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    remember(api, "The boiler hums.")

    assert search(api, user_id="ben") == []
    assert planner_api.post("/memories/search", {"query": "boiler"}).json()["results"] == []
    assert search(stranger_api) == []


@pytest.mark.parametrize(
    "fields", [{"query": " "}, {"top_k": 0}, {"kinds": ["turn_slot"]}, {"since": "yesterday"}, {"min_score": 2}]
)
def test_an_invalid_search_is_refused(api: ServiceClient, fields: dict[str, Any]) -> None:
    answer = api.post("/memories/search", {**ANA, "query": "boiler"} | fields)

    assert (answer.status_code, set(answer.json()["errors"])) == (400, set(fields))


def test_a_search_until_before_since_is_refused(api: ServiceClient) -> None:
    times = {"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}

    answer = api.post("/memories/search", ANA | {"query": "boiler"} | times)

    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["until"])
