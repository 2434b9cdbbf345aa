"""Requests that name an erased user, on every route that writes: one 409, whichever guard finds the mark first.

The walk reads the OpenAPI document, and so grows with it.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from memory.models import Account, Conversation, Erasure, Memory, ToolInvocation, TurnRecord, UserProfile
from memory.owner import Owner
from memory.services.custody.subjects import request_subject
from tests.api_client import ServiceClient
from tests.memory.api.test_strangers import Ids
from tests.memory.api.test_strangers import real as real
from tests.memory.api.test_subject_canary import USER, Planter, writes
from tests.openapi import Operation

GUARDED = (Memory, Conversation, TurnRecord, ToolInvocation, UserProfile)
"""Models whose rows the database refuses if they name an erased user."""
MARK_LATE = """
CREATE SEQUENCE late_marks;
CREATE FUNCTION mark_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- a sequence keeps what a refused transaction has counted
    PERFORM nextval('late_marks');
    UPDATE erasures SET lifted_at = NULL;
    RETURN NEW;
END $$;
"""
MARK_LATE_IN = """
CREATE TRIGGER mark_late BEFORE INSERT OR UPDATE OF user_id ON {table}
FOR EACH ROW WHEN (NEW.user_id = '{user}') EXECUTE FUNCTION mark_late();
"""
ROUTES_THAT_INSERT = {
    *("artifacts", "contexts", "conversations", "entities", "episodic", "facts", "goals", "memories", "strategies"),
    *("tool-invocations", "turn-records"),
}
"""First parts of the paths of which at least one write inserts rows with the id of the user that it names."""
Request = tuple[str, str, dict[str, Any]]
"""Method, path and body."""


def names_user(operation: Operation) -> bool:
    return "user_id" in operation.fields or "user_id" in operation.parameters


def send(api: ServiceClient, request: Request) -> Any:
    method, path, body = request
    return getattr(api, method)(path, body, HTTP_IDEMPOTENCY_KEY=str(uuid4()))


@pytest.fixture
def planter(real: Ids) -> Planter:
    return Planter(real | {"user_id": USER, "conversation_id": "own-talk"})


@pytest.fixture
def accepted(planter: Planter, api: ServiceClient) -> list[Request]:
    """Requests that name the user, with new words and all fields that the route accepts together, or with the least.

    Some find nothing, as the user sees no such row. Those of which even the least body is malformed are left out.
    """
    found = []
    for operation in filter(names_user, writes()):
        for least, limit in ((False, 399), (True, 499)):
            answer = send(api, build_request(planter, operation, least=least))
            if answer.status_code <= limit and answer.status_code != 400:
                found.append(build_request(planter, operation, least=least))
                break
    return found


def build_request(planter: Planter, operation: Operation, *, least: bool) -> Request:
    body = planter.body(operation, named=False, least=least)
    body |= {"user_id": USER} if "user_id" in operation.fields else {}
    return operation.method, operation.path.format(**planter.ids), body


@pytest.fixture
def marks_late(account: Account, owner: Owner) -> Iterator[None]:
    """Mark the user as erased when the first row that names it is on its way into a table: after all checks before."""
    request_subject(owner, USER, now=timezone.now())
    Erasure.objects.filter(account=account).update(lifted_at=timezone.now())
    tables = [model._meta.db_table for model in GUARDED]
    with connection.cursor() as cursor:
        cursor.execute(MARK_LATE + "".join(MARK_LATE_IN.format(table=table, user=USER) for table in tables))
    yield
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION mark_late CASCADE; DROP SEQUENCE late_marks")


def late_marks() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM late_marks")
        return int(cursor.fetchone()[0])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_every_write_that_names_an_erased_user_is_answered_409(
    accepted: list[Request], api: ServiceClient, owner: Owner
) -> None:
    request_subject(owner, USER, now=timezone.now())

    answers = [(request, send(api, request)) for request in accepted]

    wrong = [(request, answer.content) for request, answer in answers if answer.status_code != 409]
    assert not wrong
    assert all("This user was erased" in answer.json()["detail"] for _request, answer in answers)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_every_write_that_an_erasure_overtakes_is_answered_409_by_the_guard_in_the_database(
    accepted: list[Request], api: ServiceClient, marks_late: None
) -> None:
    met, wrong = [], []
    for request in accepted:
        before = late_marks()
        answer = send(api, request)
        if late_marks() == before:
            continue
        met.append(request[:2])
        if answer.status_code != 409 or "This user was erased" not in answer.json()["detail"]:
            wrong.append((request, answer.status_code, answer.content))

    assert not wrong
    assert {path.split("/")[3] for _method, path in met} >= ROUTES_THAT_INSERT
