"""Knowledge of no user belongs to the agent that learnt it: no route shows it to another agent, whichever its user.

The walk reads the OpenAPI document, and so grows with it.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from memory.models import Account
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.artifacts import kept
from tests.memory.facts import know
from tests.memory.goals import aim
from tests.memory.graphs import entity, link
from tests.memory.notes import jot
from tests.memory.procedures import learn
from tests.openapi import Operation, operations

ASKED_IN = ("query", "task_description", "decision")
READS = {"/recall", "/context", "/resume", "/graph", "/timeline", "/facts", "/entities", "/relationships", "/goals"}
READS |= {"/memories", "/strategies", "/strategies/find", "/artifacts"}
"""Routes that show knowledge without an id in their path."""

Ids = dict[str, str]


def store_knowledge(owner: Owner, word: str) -> Ids:
    """Store a row of each kind of knowledge that says this word, and return their ids by path parameter."""
    rows = {
        "fact_id": know(owner, f"{word} fact"),
        "goal_id": aim(owner, f"{word} goal"),
        "memory_id": jot(owner, f"{word} note"),
        "strategy_id": learn(owner, f"{word} strategy"),
        "artifact_id": kept(owner, f"{word}.md"),
        "entity_id": (place := entity(owner, f"{word} place")),
        "relationship_id": link(place, entity(owner, f"{word} town"), note=word),
    }
    return {name: str(row.id) for name, row in rows.items()}


@pytest.fixture
def learnt(owner: Owner, empty_redis: None, embedding_server: EmbeddingServer) -> Ids:
    """Knowledge of no user: of the owner's agent (`secret`) and of the account itself (`common`)."""
    store_knowledge(replace(owner, agent_id=""), "common")
    return store_knowledge(owner, "secret")


def client(account: Account, agent_id: str) -> ServiceClient:
    return ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id=agent_id).secret)


def ask(api: ServiceClient, operation: Operation, ids: Ids, *, named: Mapping[str, str]) -> bytes:
    """Return the answer to a read for these words, by this user if the route takes one."""
    given = {**dict.fromkeys(ASKED_IN, "secret common"), "max_tokens": 4_000, "top_k": 50, **named}
    body = (operation.body or {}) | {name: value for name, value in given.items() if name in operation.fields}
    body.pop("agent_id", None)
    query = {name: value for name, value in named.items() if name in operation.queries}
    query |= {"ids": ids["entity_id"]} if operation.path.endswith("/graph") else {}
    parameters = "&".join(f"{name}={value}" for name, value in query.items())
    path = operation.path.format(**ids) + (f"?{parameters}" if parameters else "")
    answer: bytes = getattr(api, operation.method)(path, None if operation.method == "get" else body).content
    return answer


def reads() -> list[Operation]:
    """Return the reads of knowledge, and all other reads and searches without an id in their path."""
    found = [each for each in operations() if each.method == "get" or set(each.fields) & {*ASKED_IN, "conversation_id"}]
    return [each for each in found if not each.parameters or each.method == "get"]


@pytest.mark.parametrize("named", [pytest.param({}, marks=pytest.mark.slow), {"user_id": "ana"}], ids=str)
def test_no_route_shows_another_agent_what_an_agent_learnt_of_no_user(
    learnt: Ids, account: Account, owner: Owner, named: dict[str, str]
) -> None:
    own, others = client(account, owner.agent_id), client(account, "colleague")
    shown: dict[str, set[str]] = {"own": set(), "of others": set(), "common": set()}

    for operation in reads():
        if set(operation.parameters) <= set(learnt) and "/audit-log" not in operation.path:
            path = operation.path.removeprefix("/api/v1")
            theirs = ask(others, operation, learnt, named=named)
            shown["own"] |= {path} if b"secret" in ask(own, operation, learnt, named=named) else set()
            shown["of others"] |= {path} if b"secret" in theirs else set()
            shown["common"] |= {path} if b"common" in theirs else set()

    assert shown["of others"] == set()
    assert shown["own"] >= READS | {"/facts/{fact_id}", "/relationships/{relationship_id}", "/goals/{goal_id}"}
    assert shown["common"] >= READS - {"/graph"}


@pytest.mark.parametrize("named", [{}, {"user_id": "ana"}], ids=str)
def test_another_agent_can_neither_find_nor_change_it_by_its_id(
    learnt: Ids, account: Account, owner: Owner, named: dict[str, str]
) -> None:
    others = client(account, "colleague")

    for operation in operations():
        if operation.parameters and set(operation.parameters) <= set(learnt):
            query = f"?user_id={named['user_id']}" if named and "user_id" in operation.queries else ""
            body = None if operation.body is None else {**operation.body, "agent_id": "colleague", **named}
            if "agent_id" not in operation.fields and body is not None:
                body.pop("agent_id")
            answer = getattr(others, operation.method)(operation.path.format(**learnt) + query, body)

            assert answer.status_code in (400, 404), (operation, answer.content)
            assert b"secret" not in answer.content


def test_a_users_knowledge_is_shared_by_its_agents(account: Account, owner: Owner, empty_redis: None) -> None:
    know(replace(owner, user_id="ana"), "secret")
    others = client(account, "colleague")

    found = {user: others.get(f"/facts?user_id={user}").json()["results"] for user in ("ana", "ben")}

    assert ([fact["claim"] for fact in found["ana"]], found["ben"]) == (["secret"], [])
    assert others.get("/facts").json()["results"] == []
