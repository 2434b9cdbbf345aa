"""Keys that are bound to a user: no route shows or changes anything of another user.

The walks read the OpenAPI document, and so grow with it. The key acts for the same agent that wrote the other user's
rows, which is the agent that may see most of them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from memory.errors import Unprocessable
from memory.extraction.turn_slots import Action, Outcome, Slots
from memory.models import Account, ApiKey
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE, READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.api.test_strangers import BODIES, without_chance
from tests.memory.artifacts import kept
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import draft, store
from tests.memory.facts import know
from tests.memory.goals import aim
from tests.memory.graphs import entity, link
from tests.memory.notes import jot
from tests.memory.procedures import invoke, learn
from tests.memory.records import add_record
from tests.memory.turns import say, turn
from tests.memory.work_episodes import merged
from tests.openapi import Operation, operations

SLOTS = Slots(action=Action(text="secret"), outcome=Outcome(status="open", text="secret"))

OTHER_BODIES = {
    "POST /api/v1/relationships": {"source": str(uuid4()), "target": str(uuid4()), "type": "KNOWS"},
}
"""Bodies for routes that refuse the least body that the document allows."""

HELD = {
    "goal_id": ["goal_id", "goal_ids", "parent", "blocked_by", "by"],
    "entity_id": ["entities", "source", "target", "from"],
    "relationship_id": ["links"],
    "record_id": ["record_id"],
    "episode_id": ["episode_id"],
    "invocation_id": ["tool_invocations"],
    "artifact_id": ["produced", "used", "derived_from"],
}
"""What fields of bodies hold the id of: the parameter, then the fields. Any other field may hold the id of anything."""

Ids = dict[str, str]


@pytest.fixture
def ben(owner: Owner) -> Owner:
    """The owner's agent, acting for another user than the key's."""
    return replace(owner, user_id="ben")


@pytest.fixture
def anas_api(account: Account, owner: Owner) -> ServiceClient:
    """The client of a key that is bound to the owner's agent and to the user ana."""
    return ServiceClient(issue_key(account, scopes=READ_WRITE, agent_id=owner.agent_id, user_id="ana").secret)


@pytest.fixture
def bens(api: ServiceClient, ben: Owner, empty_redis: None, embedding_server: EmbeddingServer) -> Ids:
    """Store a row of ben's for each parameter that names something of a user, and return their ids by parameter."""
    api.post("/conversations", {"conversation_id": "talk-1", "agent_id": ben.agent_id, "user_id": "ben"})
    say(ben, turn("secret"), conversation_id="talk-1")
    api.put("/working-memory/talk-1", {"data": {"scratchpad": "secret"}})
    api.post("/ledger/talk-1/mark", {"item_key": "skill:secret"})
    api.post("/conversations/talk-1/thoughts", {"thought": "secret"})
    api.put("/conversations/talk-1/active-goal", {"goal_id": "g1", "description": "secret"})
    api.put("/conversations/talk-1/values/wallet", {"value": "secret"})
    api.patch("/profiles/ben", {"preferences": {"word": "secret"}})
    store(ben, draft("secret", conversation_id="talk-1"))
    rows = {
        "fact_id": know(ben, "secret"),
        "goal_id": aim(ben, "secret"),
        "memory_id": jot(ben, "secret"),
        "strategy_id": learn(ben, "secret"),
        "artifact_id": kept(ben, "secret.md"),
        "entity_id": entity(ben, "secret entity"),
        "relationship_id": link(entity(ben, "secret"), entity(ben, "of secret")),
        "invocation_id": invoke(ben, tool_input="secret", conversation_id="talk-1"),
        "record_id": add_record(ben, "talk-1", slots=SLOTS).record,
        "episode_id": merged(ben, [add_record(ben, "talk-2").record], text="secret"),
    }
    named = {"conversation_id": "talk-1", "key": "wallet", "user_id": "ben"}
    return named | {name: str(row.id) for name, row in rows.items()}


@pytest.fixture
def unbound(bens: Ids) -> Ids:
    """Return ben's ids, and ids of nothing for parameters that name nothing of a user."""
    names = {name for operation in operations() for name in operation.parameters}
    return {name: str(uuid4()) for name in names} | {"number": "1", "name": "embed"} | bens


def send(
    api: ServiceClient, operation: Operation, ids: Ids, fields: Mapping[str, Any] = {}, *, parameters: str = ""
) -> Any:
    """Send the least body with these further fields. The key supplies the agent."""
    body = (BODIES | OTHER_BODIES).get(str(operation), operation.body)
    body = None if body is None else {name: value for name, value in body.items() if name != "agent_id"} | dict(fields)
    return getattr(api, operation.method)(operation.path.format(**ids) + parameters, body)


def read_everything(api: ServiceClient, ids: Ids) -> list[str]:
    reads = [operation for operation in operations() if operation.method == "get"]
    return [without_chance(send(api, operation, ids).content.decode()) for operation in reads]


def test_another_users_ids_in_a_path_are_refused(unbound: Ids, api: ServiceClient, anas_api: ServiceClient) -> None:
    bens_api = ServiceClient(issue_bens_key(anas_api))
    before = read_everything(api, unbound)

    for operation in operations():
        if operation.parameters:
            answer = send(anas_api, operation, unbound)

            assert answer.status_code in (403, 404), (operation, answer.content)
            assert b"secret" not in answer.content, operation
            if operation.method == "get" and answer.json()["code"] not in ("bound_to_user", "missing_scope"):
                assert send(bens_api, operation, unbound).status_code == 200, operation
    assert read_everything(api, unbound) == before


def test_another_user_or_its_conversation_in_a_query_or_body_is_refused(
    unbound: Ids, api: ServiceClient, anas_api: ServiceClient
) -> None:
    own = unbound | {"user_id": "ana", "conversation_id": "talk-9"}
    anas_api.post("/conversations", {"conversation_id": "talk-9"})
    before = read_everything(api, unbound)

    for name, value in (("user_id", "ben"), ("conversation_id", "talk-1"), ("continues", "talk-1")):
        named = [each for each in operations() if name in each.fields or name in each.queries]
        walked = [each for each in named if name not in each.parameters]
        assert len(walked) > 1
        for operation in walked:
            if name in operation.queries:
                answer = send(anas_api, operation, own, parameters=f"?{name}={value}")
            else:
                target = {"decision": "secret"} if operation.path.endswith("/replay") else {}
                answer = send(anas_api, operation, own, {name: value, **target})

            assert answer.status_code in (403, 404), (operation, name, answer.content)
            assert b"secret" not in answer.content, operation
    assert read_everything(api, unbound) == before


@pytest.mark.parametrize("kinds", ["those that the field holds", pytest.param("all", marks=pytest.mark.slow)])
def test_another_users_ids_in_a_body_reveal_and_change_nothing(
    unbound: Ids, api: ServiceClient, anas_api: ServiceClient, kinds: str
) -> None:
    before = read_everything(api, unbound)
    foreign = {name: value for name, value in unbound.items() if name.endswith("_id") and len(value) == 36}

    for operation in operations():
        for name, is_list in uuid_fields(operation):
            held = [foreign[kind] for kind, fields in HELD.items() if name in fields]
            for each in held if held and kinds != "all" else foreign.values():
                answer = send(anas_api, operation, unbound, {name: [each] if is_list else each})

                assert answer.status_code in (403, 404, 422), (operation, name, answer.content)
                assert b"secret" not in answer.content, operation
    assert read_everything(api, unbound) == before


def uuid_fields(operation: Operation) -> Iterator[tuple[str, bool]]:
    """Yield the fields that hold ids of memories, and whether each holds a list of them.

    Lists of what is to be left out, and ids of ends that the least body lacks, say nothing.
    """
    for name, schema in operation.fields.items():
        is_list = schema.get("type") == "array"
        if (schema["items"] if is_list else schema).get("format") == "uuid":
            yield name, is_list


def test_no_list_and_no_search_shows_anything_of_another_user(
    bens: Ids, api: ServiceClient, anas_api: ServiceClient
) -> None:
    bens_api = ServiceClient(issue_bens_key(anas_api))
    shown = set()

    for operation in operations():
        if not operation.parameters and operation.method in ("get", "post"):
            asked: dict[str, Any] = {
                name: "secret" for name in ("query", "task_description", "decision") if name in operation.fields
            }
            asked |= {"max_tokens": 2_000} if "max_tokens" in operation.fields else {}
            given = f"?ids={bens['entity_id']}" if operation.path.endswith("/graph") else ""
            answer = send(anas_api, operation, bens, asked, parameters=given)
            if b"secret" in send(bens_api, operation, bens, asked, parameters=given).content:
                shown.add(operation.path.removeprefix("/api/v1"))

            # a replay of a decision finds an episode whose data name roses
            assert not any(word in answer.content for word in (b"secret", b"roses")), (operation, answer.content)
    searched = {"/recall", "/context", "/resume", "/graph", "/timeline", "/episodic/search"}
    assert shown >= searched | {
        "/memories",
        "/facts",
        "/entities",
        "/goals",
        "/strategies",
        "/artifacts",
        "/turn-records",
    }


def issue_bens_key(anas_api: ServiceClient) -> str:
    account = ApiKey.objects.get(user_id="ana").account
    return issue_key(account, scopes=READ_WRITE, agent_id="assistant", user_id="ben").secret


def test_the_key_supplies_its_user(anas_api: ServiceClient, empty_redis: None) -> None:
    for number, body in enumerate(({}, {"user_id": "ana"})):
        fact = anas_api.post("/facts", {"claim": f"Ana has {number} boats.", **body})

        assert (fact.status_code, fact.json()["user_id"]) == (201, "ana")
    created = anas_api.post("/conversations", {"conversation_id": "talk-9"})
    anas_api.post("/conversations/talk-9/turns", {"turns": [{"role": "user", "content": "I like figs."}]})

    assert created.json()["user_id"] == "ana"
    assert [each["user_id"] for each in anas_api.get("/conversations").json()["results"]] == ["ana"]
    assert anas_api.get("/conversations/talk-9/messages").json()["messages"][0]["content"] == "I like figs."
    assert anas_api.put("/working-memory/talk-9", {"data": {"mood": "fine"}}).status_code == 200
    assert anas_api.get("/working-memory/talk-9").json() == {"mood": "fine"}
    assert anas_api.post("/ledger/talk-9/mark", {"item_key": "skill:x"}).json()["first"]


def test_a_key_of_a_user_shows_the_agents_own_knowledge_of_no_user_and_the_accounts(
    anas_api: ServiceClient, owner: Owner
) -> None:
    for agent_id, claim in ((owner.agent_id, "own"), ("", "the account's"), ("colleague", "another agent's")):
        know(replace(owner, agent_id=agent_id), claim)

    listed = anas_api.get("/facts").json()["results"]

    assert {fact["claim"] for fact in listed} == {"own", "the account's"}


def test_turns_of_another_user_in_the_users_conversation_are_not_shown(
    anas_api: ServiceClient, owner: Owner, ben: Owner, empty_redis: None
) -> None:
    say(replace(owner, user_id="ana"), turn("mine"), conversation_id="group")
    say(ben, turn("secret"), conversation_id="group")

    turns = anas_api.get("/conversations/group/turns").json()["results"]
    messages = anas_api.get("/conversations/group/messages").json()["messages"]

    assert ([each["content"] for each in turns], [each["content"] for each in messages]) == (["mine"], ["mine"])


def test_data_under_an_id_without_a_conversation_are_nobodys_to_take_over(
    api: ServiceClient, anas_api: ServiceClient, empty_redis: None
) -> None:
    api.put("/working-memory/talk-7", {"data": {"scratchpad": "secret"}})
    api.post("/ledger/talk-8/mark", {"item_key": "skill:secret"})

    for conversation_id in ("talk-7", "talk-8"):
        opened = anas_api.post("/conversations", {"conversation_id": conversation_id})
        reads = [anas_api.get(f"/{where}/{conversation_id}") for where in ("working-memory", "ledger")]
        written = anas_api.put(f"/working-memory/{conversation_id}", {"data": {"scratchpad": "mine"}})

        assert [each.status_code for each in (opened, *reads, written)] == [404, 404, 404, 404]


def test_a_key_of_a_user_never_acts_for_the_account(account: Account, empty_redis: None) -> None:
    unbound = ServiceClient(issue_key(account, scopes=READ_WRITE, user_id="ana").secret)

    refused, named = unbound.get("/facts"), unbound.get("/facts?agent_id=assistant")

    assert (refused.status_code, named.status_code) == (400, 200)
    assert "never acts for the account" in refused.json()["errors"]["agent_id"][0]


def test_what_belongs_to_no_user_is_refused(anas_api: ServiceClient) -> None:
    for path in ("/pools", "/contexts", "/short-term-memories", "/workflow-runs", "/agents", "/teams"):
        answer = anas_api.get(path)

        assert (answer.status_code, answer.json()["code"]) == (403, "bound_to_user"), path


def test_no_search_finds_entries_of_contexts_that_name_no_user(
    api: ServiceClient, anas_api: ServiceClient, owner: Owner
) -> None:
    keep(owner, context_of(owner, "langgraph"), entry('{"text": "Ben is allergic to figs."}'))

    for path, asked in (("/recall", {}), ("/context", {"conversation_id": "talk"}), ("/memories/search", {})):
        body = {"query": "allergic to figs", **asked}

        assert b"Ben" in api.post(path, {"agent_id": owner.agent_id, **body}).content, path
        assert b"Ben" not in anas_api.post(path, body).content, path


def test_another_user_is_refused_with_a_sentence(anas_api: ServiceClient) -> None:
    answers = [anas_api.get("/facts?user_id=ben"), anas_api.post("/recall", {"query": "figs", "user_id": "ben"})]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "wrong_user")] * 2
    assert "bound to another user" in answers[0].json()["detail"]


def test_a_key_of_a_user_cannot_operate(account: Account) -> None:
    with pytest.raises(Unprocessable):
        issue_key(account, scopes=READ_WRITE_OPERATE, user_id="ana")

    assert not ApiKey.objects.exists()
