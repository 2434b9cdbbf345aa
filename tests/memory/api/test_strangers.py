"""Another account's ids, on every route there is: the test reads the OpenAPI document and so grows with it."""

import re
from typing import Any
from uuid import uuid4

import pytest

from memory.models import Account, EpisodicMemory, JobRun
from memory.owner import Owner
from tests.api_client import ServiceClient
from tests.memory.episodes import draft, store
from tests.openapi import Operation, operations

OF_NO_ACCOUNT = {"name"}
"""Path parameters that name nothing of an account's, such as a job: a stranger may use them as well."""

Ids = dict[str, str]


@pytest.fixture
def real(api: ServiceClient, account: Account, owner: Owner, empty_redis: None) -> Ids:
    """Ids of rows that the account has, by the path parameter that they fill.

    Whoever adds a route with a new path parameter makes a row here, and an id that nobody has below.
    """
    api.post("/agents", {"agent_id": "planner", "description": "secret"})
    team = api.post("/teams", {"name": "crew"}).json()["id"]
    api.post(f"/teams/{team}/members", {"agent_id": "planner"})
    api.put("/working-memory/talk-1", {"data": {"scratchpad": "secret"}})
    api.post("/ledger/talk-1/mark", {"item_key": "skill:secret"})
    store(owner, draft("secret", conversation_id="talk-1"))
    job = JobRun.objects.create(account=account, job="embed")
    return {"agent_id": "planner", "team_id": team, "conversation_id": "talk-1", "job_id": str(job.id)}


@pytest.fixture
def unknown() -> Ids:
    """Ids that nobody has, as long as the real ones."""
    return {"agent_id": "nobody!", "team_id": str(uuid4()), "conversation_id": "talk-9", "job_id": str(uuid4())}


def with_ids() -> list[Operation]:
    return [operation for operation in operations() if set(operation.parameters) - OF_NO_ACCOUNT]


def send(api: ServiceClient, operation: Operation, ids: Ids) -> Any:
    path = operation.path.format(**ids)
    return getattr(api, operation.method)(path, operation.body, HTTP_X_REQUEST_ID="same")


def same_but_for_ids(answer: Any, ids: Ids) -> tuple[int, str]:
    text = answer.content.decode()
    for name, value in ids.items():
        text = text.replace(value, name)
    # as much as the allocator happened to give
    return answer.status_code, re.sub(r'"memory_bytes":\d+', '"memory_bytes":0', text)


def test_every_path_parameter_has_an_example_here(real: Ids, unknown: Ids) -> None:
    taken = {name for operation in with_ids() for name in operation.parameters} - OF_NO_ACCOUNT

    assert taken == set(real) == set(unknown)


def test_to_a_stranger_real_ids_are_no_different_from_unknown_ones(
    real: Ids, unknown: Ids, stranger_api: ServiceClient
) -> None:
    for operation in with_ids():
        theirs = send(stranger_api, operation, real)
        nobodys = send(stranger_api, operation, unknown)

        assert same_but_for_ids(theirs, real) == same_but_for_ids(nobodys, unknown), operation
        if "conversation_id" in operation.parameters:
            assert theirs.status_code < 300, (operation, theirs.content)
        else:
            assert theirs.status_code == 404, (operation, theirs.content)
        assert b"secret" not in theirs.content, operation


def test_a_stranger_changes_nothing(real: Ids, api: ServiceClient, stranger_api: ServiceClient) -> None:
    reads = [operation for operation in operations() if operation.method == "get"]
    before = [send(api, operation, real).content for operation in reads]

    for operation in with_ids():
        send(stranger_api, operation, real)

    assert [send(api, operation, real).content for operation in reads] == before
    assert EpisodicMemory.objects.count() == 1
