"""Keys that are bound to an agent take part only where the agent opened the conversation or was added."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.models import Account, Participant
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.api.test_strangers import BODIES, without_chance
from tests.openapi import Operation, operations

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

TALK = "/conversations/talk-1"
REFUSED = "Not found: it does not exist, or this key may not see it."
SAID = {"turns": [{"role": "user", "content": "secret"}]}


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start an embedding server, so that every text gets its vector."""


@pytest.fixture
def client(account: Account) -> Callable[[str], ServiceClient]:
    """Return the client of a key that is bound to an agent."""
    return lambda agent_id: ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id=agent_id).secret)


@pytest.fixture
def ada(client: Callable[[str], ServiceClient]) -> ServiceClient:
    """The client of the agent that opened talk-1, with something secret in each of its places."""
    ada = client("ada")
    ada.post(f"{TALK}/turns", SAID)
    ada.put("/working-memory/talk-1", {"data": {"scratchpad": "secret"}})
    ada.post("/ledger/talk-1/mark", {"item_key": "skill:secret"})
    ada.post(f"{TALK}/thoughts", {"thought": "secret"})
    return ada


@pytest.fixture
def bob(ada: ServiceClient, client: Callable[[str], ServiceClient]) -> ServiceClient:
    """The client of an agent that takes no part in talk-1."""
    return client("bob")


def participants(api: ServiceClient) -> list[str]:
    answer = api.get(f"{TALK}/participants")
    assert answer.status_code == 200, answer.content
    return sorted(each["agent_id"] for each in answer.json()["results"])


def add(api: ServiceClient, participant_id: str = "bob", **fields: Any) -> Any:
    return api.post(f"{TALK}/participants", {"participant_id": participant_id, **fields})


def of_conversations() -> list[Operation]:
    return [operation for operation in operations() if "conversation_id" in operation.parameters]


def send(api: ServiceClient, operation: Operation, conversation_id: str) -> Any:
    path = operation.path.format(
        conversation_id=conversation_id, participant_id="bob", key="k", turn_id="01976d3e-8f00-7c3a-9d2e-5b1f0a6c4e21"
    )
    body = BODIES.get(str(operation), operation.body)
    body = None if body is None else {name: value for name, value in body.items() if name != "agent_id"}
    return getattr(api, operation.method)(path, body, HTTP_X_REQUEST_ID="same")


def refusal(answer: Any, conversation_id: str) -> tuple[int, str]:
    return answer.status_code, without_chance(answer.content.decode()).replace(conversation_id, "id")


def test_an_agent_that_was_not_added_finds_no_such_conversation(bob: ServiceClient) -> None:
    assert len(of_conversations()) > 25

    for operation in of_conversations():
        taken = send(bob, operation, "talk-1")

        assert taken.status_code == 404, (operation, taken.content)
        assert b"secret" not in taken.content
        if operation.method == "get":
            assert refusal(taken, "talk-1") == refusal(send(bob, operation, "talk-9"), "talk-9"), operation
    assert list(Participant.objects.filter(agent_id="bob")) == []


@pytest.mark.parametrize("conversation_id", ["talk-1", "talk-9"])
def test_a_read_that_names_a_conversation_of_others_is_refused_as_one_of_none(
    bob: ServiceClient, conversation_id: str
) -> None:
    named = [operation for operation in operations() if "conversation_id" in operation.queries]
    assert len(named) > 5

    for operation in named:
        answer = bob.get(f"{operation.path}?conversation_id={conversation_id}")

        assert (answer.status_code, answer.json()["detail"]) == (404, REFUSED), operation


def test_a_body_that_names_a_conversation_of_others_is_refused(bob: ServiceClient) -> None:
    named = [operation for operation in operations() if "conversation_id" in operation.fields]
    assert len(named) > 8

    for operation in (each for each in named if not each.parameters):
        body = BODIES.get(str(operation), operation.body) or {}
        target = {"decision": "x"} if operation.path.endswith("/replay") else {}
        body = {name: value for name, value in body.items() if name != "agent_id"} | target
        answer = bob.post(operation.path, body | {"conversation_id": "talk-1"})

        assert (answer.status_code, answer.json()["detail"]) == (404, REFUSED), operation


def test_opening_a_conversation_with_a_taken_id_tells_nothing_of_it(bob: ServiceClient, ada: ServiceClient) -> None:
    opened = [bob.post("/conversations", {"conversation_id": f"talk-{number}"}) for number in (1, 2)]

    assert [answer.status_code for answer in opened] == [404, 201]
    assert opened[0].json()["detail"] == bob.get("/conversations/talk-9").json()["detail"]
    assert ada.post("/conversations", {"conversation_id": "talk-1"}).status_code == 409
    assert bob.patch("/conversations/talk-2", {"continues": "talk-1"}).status_code == 422


def test_an_added_agent_takes_part_until_it_is_removed(bob: ServiceClient, ada: ServiceClient) -> None:
    added = [add(ada).status_code for _ in range(2)]
    reads = [bob.get(f"{TALK}/turns").json()["results"][0]["content"], bob.get("/ledger/talk-1").json()]
    written = bob.post(f"{TALK}/thoughts", {"thought": "mine"})
    removed = [ada.delete(f"{TALK}/participants/bob").status_code for _ in range(2)]

    assert (added, written.status_code, removed) == ([201, 201], 201, [204, 404])
    assert reads == ["secret", {"skill:secret": "injected"}]
    assert bob.get(f"{TALK}/turns").status_code == 404
    assert participants(ada) == ["ada"]


def test_a_guest_sees_who_takes_part_but_does_not_change_it(bob: ServiceClient, ada: ServiceClient) -> None:
    add(ada)

    refused = [add(bob, "eve"), bob.delete(f"{TALK}/participants/ada"), bob.delete(f"{TALK}/participants/bob")]

    assert [answer.status_code for answer in refused] == [403, 403, 403]
    assert participants(bob) == ["ada", "bob"]


def test_a_key_of_no_agent_adds_and_removes_but_not_the_opener(api: ServiceClient, bob: ServiceClient) -> None:
    assert add(api).status_code == 201
    assert participants(api) == ["ada", "bob"]

    removed = [api.delete(f"{TALK}/participants/{agent_id}").status_code for agent_id in ("bob", "ada")]

    assert removed == [204, 422]
    assert add(api, "bob", agent_id="eve").status_code == 404


def test_a_key_of_no_agent_joins_the_agent_that_it_names_by_writing(api: ServiceClient, bob: ServiceClient) -> None:
    assert api.post(f"{TALK}/thoughts", {"agent_id": "bob", "thought": "mine"}).status_code == 201

    assert bob.get(f"{TALK}/turns").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("put", "/working-memory/talk-7", {"data": {"k": 1}}),
        ("post", "/ledger/talk-7/mark", {"item_key": "skill:x"}),
        ("post", "/episodic/store", {"conversation_id": "talk-7", "summary": "They planted roses."}),
        ("post", "/context", {"conversation_id": "talk-7", "query": "roses", "mark_injected": True}),
    ],
    ids=["working memory", "ledger", "episode", "context"],
)
def test_who_writes_to_a_new_id_first_takes_part_in_it(
    ada: ServiceClient, bob: ServiceClient, method: str, path: str, body: dict[str, Any]
) -> None:
    assert getattr(ada, method)(path, body).status_code in (200, 201)

    assert getattr(bob, method)(path, body).status_code == 404
    assert bob.post("/conversations/talk-7/turns", SAID).status_code == 404
    assert ada.post("/conversations/talk-7/turns", SAID).status_code == 201


def test_live_data_of_a_key_of_no_agent_are_not_taken_over(api: ServiceClient, bob: ServiceClient) -> None:
    api.put("/working-memory/talk-7", {"data": {"k": "secret"}})
    api.post("/ledger/talk-8/mark", {"item_key": "skill:secret"})

    for conversation_id in ("talk-7", "talk-8"):
        path = f"/conversations/{conversation_id}/thoughts"
        assert bob.post(path, {"thought": "x"}).status_code == 404
        assert bob.put(f"/working-memory/{conversation_id}", {"data": {"k": 1}}).status_code == 404


def test_the_end_by_a_guest_clears_only_its_own_working_memory(bob: ServiceClient, ada: ServiceClient) -> None:
    add(ada)
    bob.put("/working-memory/talk-1", {"data": {"note": "mine"}})

    ended = bob.post(f"{TALK}/end", {})

    answer = ended.json()
    assert (ended.status_code, answer["status"], answer["ended_at"], answer["cleared"]) == (200, "left", None, True)
    assert (bob.get("/working-memory/talk-1").json(), ada.get("/working-memory/talk-1").json()) == (
        {},
        {"scratchpad": "secret"},
    )
    assert ada.get("/ledger/talk-1").json() == {"skill:secret": "injected"}
    assert [each["thought"] for each in ada.get(f"{TALK}/thoughts").json()["thoughts"]] == ["secret"]
    assert ada.get(TALK).json()["ended_at"] is None


@pytest.mark.parametrize(
    "body", [{"outcome": "failure"}, {"event_time": "2026-01-01T00:00:00Z"}], ids=["outcome", "time"]
)
def test_a_guest_ends_a_conversation_for_nobody_else(
    bob: ServiceClient, ada: ServiceClient, body: dict[str, Any]
) -> None:
    add(ada)

    refused = bob.post(f"{TALK}/end", body)

    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert (ada.get(TALK).json()["ended_at"], ada.get(TALK).json()["outcome"]) == (None, "")


def test_a_guest_leaves_an_ended_conversation_ended(bob: ServiceClient, ada: ServiceClient) -> None:
    add(ada)
    ended_at = ada.post(f"{TALK}/end", {"outcome": "success"}).json()["ended_at"]

    answer = bob.post(f"{TALK}/end", {}).json()

    assert (answer["status"], answer["ended_at"], answer["outcome"]) == ("left", ended_at, "success")


@pytest.mark.parametrize("ends", ["opener", "account"])
def test_the_end_by_the_opener_or_the_account_clears_everything(
    api: ServiceClient, bob: ServiceClient, ada: ServiceClient, ends: str
) -> None:
    add(ada)
    bob.put("/working-memory/talk-1", {"data": {"note": "mine"}})

    assert (ada if ends == "opener" else api).post(f"{TALK}/end", {}).status_code == 200

    assert [each.get("/working-memory/talk-1").json() for each in (ada, bob)] == [{}, {}]
    assert ada.get("/ledger/talk-1").json() == {}
