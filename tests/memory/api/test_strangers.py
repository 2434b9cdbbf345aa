"""Ids of another account, on every route. The test reads the OpenAPI document, and so grows with it."""

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from memory.extraction.turn_slots import Action, Outcome, Slots
from memory.models import Account, ApiKey, EpisodicMemory, JobRun, Transfer
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, READ_WRITE, READ_WRITE_OPERATE, issue_key
from memory.services.contexts.manage import ContextDraft, create_context
from memory.services.contexts.snapshots import create_snapshot
from memory.services.custody.subjects import request_subject
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.artifacts import kept as kept_artifact
from tests.memory.contexts import entry, keep
from tests.memory.episodes import NOW, draft, store
from tests.memory.facts import know
from tests.memory.graphs import entity, link
from tests.memory.procedures import invoke, learn
from tests.memory.records import add_record
from tests.memory.turns import say, turn
from tests.memory.work_episodes import merged
from tests.openapi import Operation, operations

OF_NO_ACCOUNT = {"name"}
"""Path parameters that name nothing of an account's, such as a job: a stranger may use them as well."""

CHANCE = {
    # as much as the allocator happened to give
    r'"memory_bytes":\d+': '"memory_bytes":0',
    r'"ttl_seconds":\d+': '"ttl_seconds":0',
    r"\d{4}-\d\d-\d\dT[\d:.]+Z": "time",
    r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}": "uuid",
    # it fades
    r'"effective_relevance_score":[\d.e-]+': '"effective_relevance_score":0',
    # the owner's own reads, which the tests that follow them count
    r'"(access|read)_count":\d+': '"reads":0',
    r'"last_accessed_at":(null|"time")': '"last_accessed_at":"time"',
}
"""Differences between two answers that mean the same."""

BODIES: dict[str, dict[str, Any]] = {
    "POST /api/v1/conversations/{conversation_id}/turns": {
        "agent_id": "writer",
        "turns": [{"role": "user", "content": "hello"}],
    },
    "PUT /api/v1/keyed-memories/{key}": {"agent_id": "planner", "value": "hello"},
    "POST /api/v1/contexts/{context_id}/entries": {"content": "hello"},
    "PATCH /api/v1/entries/{entry_id}": {"content": "hello"},
    "POST /api/v1/memories": {"agent_id": "planner", "text": "hello"},
    "POST /api/v1/learnings/{learning_id}/vote": {"agent_id": "planner", "helpful": True},
}
"""Bodies for routes that always refuse the least body that the document allows."""

QUERIES = {
    "DELETE /api/v1/agents/{agent_id}/working-memory/{key}/share": "?target_agent_id=x",
    "GET /api/v1/keyed-memories/{key}": "?agent_id={agent_id}",
    "DELETE /api/v1/keyed-memories/{key}": "?agent_id={agent_id}",
}
"""Queries for routes that require one."""

ASKED_IN = {"query", "task_description"}
"""Names of the field that holds the text to search for."""

SECRET_TURN = Slots(action=Action(text="secret"), outcome=Outcome(status="open", text="secret"))

FIRST_VERSION = "00000001"
"""The first version of any entry, in a spelling that nothing else in an answer has."""

SHARED = tuple(f"/api/v1/{noun}" for noun in ("agents", "teams", "profiles", "jobs"))
"""Routes of what all agents of an account see, and of what belongs to a key."""
PRIVATE = {"/pools": {"scope": "agent"}}
"""Fields of a body that make a row private to its agent."""

KINDS: dict[str, dict[str, Any]] = {
    "of the account": {"scopes": READ_WRITE_OPERATE},
    "of the account, reading": {"scopes": READ_ONLY},
    "of an agent": {"scopes": READ_WRITE_OPERATE, "agent_id": "rival"},
    "of an agent, reading": {"scopes": READ_ONLY, "agent_id": "rival"},
    "of a user": {"scopes": READ_WRITE, "user_id": "zoe"},
    "of an agent and a user": {"scopes": READ_WRITE, "agent_id": "rival", "user_id": "zoe"},
}
"""Fields of API keys, by kind."""

Ids = dict[str, str]


@pytest.fixture
def real(
    api: ServiceClient, account: Account, owner: Owner, empty_redis: None, embedding_server: EmbeddingServer
) -> Ids:
    """Create a row for each path parameter and return the ids by parameter.

    A route with a new path parameter needs a row here, and an unknown id below.
    """
    api.post("/agents", {"agent_id": "planner", "description": "secret"})
    team = api.post("/teams", {"name": "crew"}).json()["id"]
    api.post(f"/teams/{team}/members", {"agent_id": "planner"})
    api.put("/working-memory/talk-1", {"data": {"scratchpad": "secret"}})
    api.post("/ledger/talk-1/mark", {"item_key": "skill:secret"})
    store(owner, draft("secret", conversation_id="talk-1"))
    said = say(owner, turn("secret"), conversation_id="talk-1")
    api.post("/conversations/talk-1/thoughts", {"thought": "secret"})
    api.put("/conversations/talk-1/active-goal", {"goal_id": "g1", "description": "secret"})
    api.put("/conversations/talk-1/values/wallet", {"value": "secret"})
    kept = api.post("/short-term-memories", {"agent_id": "planner", "memory_key": "k", "memory_value": "secret"})
    api.post("/workflow-runs", {"workflow_run_id": "run-1", "metadata": {"word": "secret"}})
    api.post("/pools", {"pool_id": "board", "data": {"plan": "secret"}})
    for agent_id in ("planner", "lender"):
        api.put(f"/agents/{agent_id}/working-memory/wallet", {"value": "secret"})
    api.post("/agents/lender/working-memory/wallet/share", {"target_agent_id": "planner"})
    learning_id = api.post("/learnings", {"agent_id": "planner", "team": team, "insight": "secret"}).json()["id"]
    goal = api.post("/goals", {"agent_id": "planner", "description": "secret"}).json()["id"]
    api.patch("/profiles/ana", {"preferences": {"word": "secret"}})
    job = JobRun.objects.create(account=account, job="embed")
    context = create_context(owner, ContextDraft(name="secret"))
    (noted,) = keep(owner, context, entry("secret"))
    snapshot = create_snapshot(owner, context.id, name="secret", now=NOW)
    talk = {"conversation_id": "talk-1", "key": "wallet", "pool_id": "board", "workflow_run_id": "run-1"}
    talk |= {"source_agent_id": "lender", "participant_id": "colleague", "learning_id": learning_id}
    talk |= {"context_id": str(context.id), "snapshot_id": str(snapshot.id)}
    talk |= {"entry_id": str(noted.id), "number": FIRST_VERSION}
    talk |= {"goal_id": goal, "user_id": "ana", "fact_id": str(know(owner, "secret").id)}
    talk |= {"invocation_id": str(invoke(owner, tool_input="secret", conversation_id="talk-1").id)}
    talk |= {"strategy_id": str(learn(owner, "secret").id)}
    talk |= {"record_id": str(add_record(owner, "talk-1", slots=SECRET_TURN).record.id)}
    talk |= {"artifact_id": str(kept_artifact(owner, "secret.md").id)}
    talk |= {"episode_id": str(merged(owner, [add_record(owner, "talk-2").record], text="secret").id)}
    talk |= {"entity_id": str(entity(owner, "secret entity").id)}
    talk |= {"memory_id": api.post("/memories", {"agent_id": "planner", "text": "secret"}).json()["id"]}
    talk |= {"relationship_id": str(link(entity(owner, "secret"), entity(owner, "of secret")).id)}
    talk |= {"turn_id": str(said.turns[0].id), "erasure_id": str(request_subject(owner, "carl", now=NOW).id)}
    talk |= {f"{each}_id": str(asked(account, each)) for each in Transfer.Direction}
    return {"agent_id": "planner", "team_id": team, "job_id": str(job.id), "short_term_id": kept.json()["id"]} | talk


def asked(account: Account, direction: str) -> UUID:
    """Return the id of an export or import of the account."""
    return Transfer.objects.create(account=account, direction=direction, requested_at=NOW).id


@pytest.fixture
def unknown() -> Ids:
    """Return unknown ids of the same length as the real ones."""
    talk = {"conversation_id": "talk-9", "key": "basket", "pool_id": "wharf", "workflow_run_id": "run-9"}
    talk |= {"source_agent_id": "no-one", "participant_id": "stranger!", "learning_id": str(uuid4())}
    talk |= {"context_id": str(uuid4()), "snapshot_id": str(uuid4())}
    talk |= {"entry_id": str(uuid4()), "number": FIRST_VERSION}
    talk |= {"goal_id": str(uuid4()), "user_id": "bob", "fact_id": str(uuid4())}
    talk |= {"invocation_id": str(uuid4()), "strategy_id": str(uuid4()), "record_id": str(uuid4())}
    talk |= {"relationship_id": str(uuid4()), "entity_id": str(uuid4()), "memory_id": str(uuid4())}
    talk |= {"artifact_id": str(uuid4()), "episode_id": str(uuid4())}
    talk |= {"turn_id": str(uuid4()), "erasure_id": str(uuid4())}
    talk |= {"export_id": str(uuid4()), "import_id": str(uuid4())}
    return {
        "agent_id": "nobody!",
        "team_id": str(uuid4()),
        "job_id": str(uuid4()),
        "short_term_id": str(uuid4()),
    } | talk


@pytest.fixture
def fresh_ids() -> Iterator[str]:
    """Return ids of conversations that nobody uses, as long as the real one."""
    return (f"new{number:03}" for number in range(1_000))


def with_ids() -> list[Operation]:
    return [operation for operation in operations() if set(operation.parameters) - OF_NO_ACCOUNT]


def send(api: ServiceClient, operation: Operation, ids: Ids) -> Any:
    path = (operation.path + QUERIES.get(str(operation), "")).format(**ids)
    body = BODIES.get(str(operation), operation.body)
    return getattr(api, operation.method)(path, body, HTTP_X_REQUEST_ID="same")


def same_but_for_ids(answer: Any, ids: Ids) -> tuple[int, str]:
    text = answer.content.decode()
    for name, value in ids.items():
        text = text.replace(value, name)
    return answer.status_code, without_chance(text)


def without_chance(text: str) -> str:
    for pattern, same in CHANCE.items():
        text = re.sub(pattern, same, text)
    return text


def allowed(operation: Operation) -> set[int]:
    """Return whether a stranger may get this answer: its writes to conversations, agents and users are its own."""
    own = (
        "/api/v1/conversations/",
        "/api/v1/agents/{agent_id}/working-memory",
        "/api/v1/keyed-memories/",
        "/api/v1/profiles",
    )
    if operation.path.startswith("/api/v1/subjects"):
        # users are those of each account, whoever has the same id elsewhere
        return {200, 202, 404, 409}
    if operation.path.startswith(own):
        return {200, 201, 202, 204, 404, 422}
    return {200, 201, 204} if "conversation_id" in operation.parameters else {404}


def test_every_path_parameter_has_an_example_in_these_tests(real: Ids, unknown: Ids) -> None:
    taken = {name for operation in with_ids() for name in operation.parameters} - OF_NO_ACCOUNT

    assert taken == set(real) == set(unknown)


def read_everything(api: ServiceClient, ids: Ids) -> list[str]:
    reads = [operation for operation in operations() if operation.method == "get"]
    return [without_chance(send(api, operation, ids).content.decode()) for operation in reads]


# a key of the account may do the most; what narrower keys may is a part of that
@pytest.mark.parametrize(
    "kind",
    [
        "of the account",
        pytest.param("of the account, reading", marks=pytest.mark.slow),
        pytest.param("of an agent and a user", marks=pytest.mark.slow),
    ],
)
def test_real_ids_are_answered_like_unknown_ones_to_another_account_and_nothing_changes(
    real: Ids, unknown: Ids, api: ServiceClient, stranger: Account, kind: str
) -> None:
    before = read_everything(api, real)
    stranger_api = ServiceClient(issue_key(stranger, **KINDS[kind]).secret)
    for operation in with_ids():
        theirs = send(stranger_api, operation, real)
        nobodys = send(stranger_api, operation, unknown)

        assert same_but_for_ids(theirs, real) == same_but_for_ids(nobodys, unknown), operation
        if kind == "of the account":
            assert theirs.status_code in allowed(operation), (operation, theirs.content)
        assert b"secret" not in theirs.content, operation
    assert read_everything(api, real) == before
    assert EpisodicMemory.objects.count() == 1


# keys of a user are walked through by test_key_users, and reading is a part of what the first kind may do
@pytest.mark.parametrize(
    "kind",
    [
        "of an agent",
        pytest.param("of an agent and a user", marks=pytest.mark.slow),
        pytest.param("of an agent, reading", marks=pytest.mark.slow),
    ],
)
def test_ids_of_another_agent_and_user_are_answered_like_unknown_ones(
    real: Ids, unknown: Ids, api: ServiceClient, account: Account, fresh_ids: Iterator[str], kind: str
) -> None:
    api.post("/pools", {"agent_id": "planner", "pool_id": "desk", "scope": "agent", "data": {"plan": "secret"}})
    private = real | {"pool_id": "desk"}
    rival = ServiceClient(issue_key(account, **KINDS[kind]).secret)
    not_found = rival.get(f"/goals/{uuid4()}", HTTP_X_REQUEST_ID="same").content.decode()
    for operation in with_ids():
        if operation.path.startswith(SHARED):
            continue
        theirs = same_but_for_ids(send(rival, operation, private), private)

        if theirs != (404, not_found):
            # a write under an id that nobody uses opens the conversation
            free = unknown | {"conversation_id": next(fresh_ids)}
            assert theirs == same_but_for_ids(send(rival, operation, free), free), operation
        assert "secret" not in theirs[1], operation


@pytest.mark.parametrize("taken", ["/pools", "/workflow-runs", "/conversations"])
def test_an_id_that_another_agent_took_is_not_found(
    real: Ids, account: Account, api: ServiceClient, taken: str
) -> None:
    name = {"/pools": "pool_id", "/workflow-runs": "workflow_run_id"}.get(taken, "conversation_id")
    assert api.post(taken, {"agent_id": "planner", name: "desk"} | PRIVATE.get(taken, {})).status_code == 201
    rival = ServiceClient(issue_key(account, **KINDS["of an agent"]).secret)

    refused = rival.post(taken, {name: "desk"}, HTTP_X_REQUEST_ID="same")

    assert refused.status_code == 404
    assert refused.content == rival.get(f"/goals/{uuid4()}", HTTP_X_REQUEST_ID="same").content


def test_unusable_keys_get_one_answer_on_every_route(real: Ids, unknown: Ids, account: Account) -> None:
    past = timezone.now() - timedelta(days=1)
    expired = issue_key(account, scopes=READ_WRITE_OPERATE, expires_at=past).secret
    revoked = issue_key(account, scopes=READ_WRITE_OPERATE)
    ApiKey.objects.filter(id=revoked.key.id).update(revoked_at=past)
    keys = [ServiceClient(secret) for secret in (expired, revoked.secret, "am_unknown", "not one")]
    for operation in with_ids():
        answers = [send(each, operation, real) for each in keys] + [send(keys[0], operation, unknown)]
        without = [send(ServiceClient(), operation, ids) for ids in (real, unknown)]

        assert {answer.status_code for answer in answers + without} == {401}, operation
        assert len({answer.content for answer in answers}) == 1, operation
        assert without[0].content == without[1].content, operation


def searches() -> list[tuple[str, dict[str, Any]]]:
    """Return every search without an id in its path, for text that only the account knows."""
    asked = [(operation, set(operation.body or {}) & ASKED_IN) for operation in operations()]
    return [
        (operation.path, (operation.body or {}) | dict.fromkeys(words, "secret") | {"agent_id": "planner"})
        for operation, words in asked
        if words and not operation.parameters
    ]


def test_a_search_by_another_account_finds_nothing(real: Ids, api: ServiceClient, stranger_api: ServiceClient) -> None:
    found = {path for path, body in searches() if b"secret" in api.post(path, body).content}

    assert {"/api/v1/recall", "/api/v1/learnings/search"} <= found
    for path, body in searches():
        for named in ({}, {"user_id": "ana"}):
            answer = stranger_api.post(path, body | named)

            assert (answer.status_code, b"secret" in answer.content) == (200, False), (path, answer.content)


@pytest.mark.parametrize("narrowed", [{}, {"conversation_id": "talk-1", "scopes": ["session"]}], ids=str)
def test_another_account_recalls_nothing_for_any_agent_or_user(
    real: Ids, stranger_api: ServiceClient, narrowed: dict[str, Any]
) -> None:
    for named in ({}, {"agent_id": "planner"}, {"agent_id": "assistant", "user_id": "ana"}):
        bundle = stranger_api.post("/recall", {"query": "secret", **narrowed, **named}).json()

        assert (bundle["results"], bundle["goals"], bundle["profile"]) == ([], [], None)
