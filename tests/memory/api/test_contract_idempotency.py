"""`Idempotency-Key`: a repeated request gets the same answer and writes once."""

import threading
import time
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from django.utils import timezone

from memory.models import Account, Agent, IdempotentRequest
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory_project.http import idempotency
from memory_project.http.credentials import Credential
from memory_project.http.idempotency import RUNNING_MARKS, IdempotentAttempt
from memory_project.redis import client
from tests.api_client import ServiceClient

PLANNER = {"agent_id": "planner"}


def post(api: ServiceClient, path: str, body: dict[str, Any], key: str) -> Any:
    return api.post(path, body, HTTP_IDEMPOTENCY_KEY=key)


def test_a_repeated_request_gets_the_recorded_response_and_writes_nothing(api: ServiceClient) -> None:
    first = post(api, "/agents", PLANNER, "a-1")

    again = post(api, "/agents", PLANNER, "a-1")

    assert (again.status_code, again.content, again["Content-Type"]) == (201, first.content, first["Content-Type"])
    assert again["Idempotency-Replayed"] == "true"
    assert "Idempotency-Replayed" not in first
    assert Agent.objects.count() == 1


def test_an_idempotency_key_reused_with_another_body_is_refused(api: ServiceClient) -> None:
    post(api, "/agents", PLANNER, "a-1")

    refused = post(api, "/agents", {"agent_id": "driver"}, "a-1")

    assert (refused.status_code, refused.json()["code"]) == (422, "idempotency_key_reused")
    assert Agent.objects.count() == 1


def test_a_refused_request_is_corrected_under_the_same_key(api: ServiceClient) -> None:
    refused = post(api, "/agents", {"agent_id": ""}, "a-1")

    corrected = post(api, "/agents", PLANNER, "a-1")

    assert (refused.status_code, corrected.status_code) == (400, 201)
    assert not IdempotentRequest.objects.filter(status__gte=400).exists()


@pytest.mark.parametrize("method", ["put", "delete"])
def test_other_writes_than_posts_are_done_once(api: ServiceClient, empty_redis: None, method: str) -> None:
    path, body = "/conversations/talk/values/plan", {"value": 1} if method == "put" else None
    api.put(path, {"value": 0})
    first = getattr(api, method)(path, body, HTTP_IDEMPOTENCY_KEY="a-1")
    api.put(path, {"value": 2})

    again = getattr(api, method)(path, body, HTTP_IDEMPOTENCY_KEY="a-1")

    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again["Idempotency-Replayed"] == "true"
    assert api.get(path).json()["value"] == 2


def test_a_change_under_an_idempotency_key_is_not_repeated_with_another_body(api: ServiceClient) -> None:
    api.post("/agents", PLANNER)
    api.patch("/agents/planner", {"description": "Plans."}, HTTP_IDEMPOTENCY_KEY="a-1")

    refused = api.patch("/agents/planner", {"description": "Drives."}, HTTP_IDEMPOTENCY_KEY="a-1")

    assert refused.json()["code"] == "idempotency_key_reused"


def test_an_idempotency_key_is_scoped_to_one_path_and_one_api_key(api: ServiceClient, bound_api: ServiceClient) -> None:
    post(api, "/agents", PLANNER, "a-1")

    elsewhere = post(api, "/teams", {"name": "crew"}, "a-1")
    of_another = post(bound_api, "/agents", {"agent_id": "assistant"}, "a-1")

    assert elsewhere.status_code == 201
    assert "Idempotency-Replayed" not in of_another


def test_an_expired_recorded_response_is_not_replayed(api: ServiceClient) -> None:
    post(api, "/agents", PLANNER, "a-1")
    IdempotentRequest.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    anew = post(api, "/agents", {"agent_id": "driver"}, "a-1")

    assert anew.json()["agent_id"] == "driver"
    assert IdempotentRequest.objects.fresh(timezone.now()).count() == 1


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "clé"])
def test_a_malformed_idempotency_key_is_refused(api: ServiceClient, key: str) -> None:
    refused = post(api, "/agents", PLANNER, key)

    assert (refused.status_code, refused.json()["code"]) == (400, "invalid_idempotency_key")


def test_idempotency_keys_on_reads_are_ignored(api: ServiceClient) -> None:
    api.get("/agents", HTTP_IDEMPOTENCY_KEY="a-1")

    assert not IdempotentRequest.objects.exists()


@pytest.fixture
def committed_key(transactional_db: None) -> str:
    return issue_key(Account.objects.create(name="workshop"), scopes=READ_WRITE_OPERATE).secret


def test_advisory_locks_are_released_with_the_write(committed_key: str) -> None:
    api = ServiceClient(committed_key)
    for body in (PLANNER, PLANNER, {"agent_id": "driver"}):
        post(api, "/agents", body, "a-1")

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        assert cursor.fetchone()[0] == 0


def test_of_two_simultaneous_requests_one_writes_and_the_other_must_wait(committed_key: str) -> None:
    answers: list[int] = []

    def send() -> None:
        answers.append(post(ServiceClient(committed_key), "/agents", PLANNER, "a-1").status_code)
        connection.close()

    # a write that cannot finish: the table waits for this transaction
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("LOCK TABLE agents IN EXCLUSIVE MODE")
        first = threading.Thread(target=send)
        first.start()
        wait_for_lock_holder()
        second = threading.Thread(target=send)
        second.start()
        second.join(20)
    first.join(20)

    assert answers == [409, 201]
    assert Agent.objects.count() == 1


@pytest.mark.parametrize("table", ["teams", "memories"])
def test_a_request_that_writes_in_steps_keeps_others_out_until_its_end(committed_key: str, table: str) -> None:
    team = ServiceClient(committed_key).post("/teams", {"name": "crew"}).json()["id"]
    asked = {"agent_id": "planner", "conversation_id": "talk", "query": "seats", "mark_injected": True}
    answers: list[tuple[int, str]] = []

    def send() -> None:
        api = ServiceClient(committed_key)
        answer = (
            api.delete(f"/teams/{team}", HTTP_IDEMPOTENCY_KEY="a-1")
            if table == "teams"
            else post(api, "/context", asked, "a-1")
        )
        answers.append((answer.status_code, answer.get("Idempotency-Replayed", "")))
        connection.close()

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        first = threading.Thread(target=send)
        first.start()
        give_up_at = time.monotonic() + 30
        while not list(client().scan_iter("account:*:running:*")) and time.monotonic() < give_up_at:
            time.sleep(0.005)
        second = threading.Thread(target=send)
        second.start()
        second.join(20)
    first.join(20)
    send()

    status = 204 if table == "teams" else 200
    assert answers == [(409, ""), (status, ""), (status, "true")]
    assert not list(client().scan_iter("account:*:running:*"))


def test_the_mark_of_a_request_lasts_as_long_as_the_request_and_hardly_longer_than_a_killed_process(
    empty_redis: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idempotency, "RUNNING_SECONDS", 1)
    first, second, other = (attempt_with_hash(letter) for letter in ("a", "a", "b"))
    assert first.begin_run()
    assert other.begin_run()
    assert not second.begin_run()
    # as when it is refused, which may not end the renewal of the first
    second.end_run()

    time.sleep(1.5)

    assert not second.begin_run()
    # the renewals of a killed process end
    RUNNING_MARKS.discard(first.mark)
    time.sleep(1.5)
    assert second.begin_run()
    assert not attempt_with_hash("b").begin_run()
    second.end_run()
    other.end_run()


def attempt_with_hash(letter: str) -> IdempotentAttempt:
    key = Credential(key_id=UUID(int=1), account_id=UUID(int=2), agent_id="", scopes=frozenset(), prefix="mem_x")
    return IdempotentAttempt(credential=key, request_hash=letter * 64, body_hash="", now=timezone.now())


# of this database: other tests beside this one hold locks of their own
HOLDERS = """
SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database
WHERE datname = current_database() AND locktype = 'advisory' AND objsubid = 1 AND granted
"""


def wait_for_lock_holder() -> None:
    """Wait until the first request has taken its lock."""
    give_up_at = time.monotonic() + 30
    with connection.cursor() as cursor:
        while time.monotonic() < give_up_at:
            cursor.execute(HOLDERS)
            if cursor.fetchone()[0]:
                return
            cursor.execute("SELECT pg_sleep(0.005)")
    raise AssertionError("the first request never took its lock")


def test_a_response_is_not_recorded_when_its_write_is_rolled_back(account: Account) -> None:
    issued = issue_key(account, scopes=READ_WRITE_OPERATE)
    credential = Credential(
        key_id=issued.key.id, account_id=account.id, agent_id="", scopes=frozenset(), prefix="mem_x"
    )
    attempt = IdempotentAttempt(credential=credential, request_hash="0" * 64, body_hash="1" * 64, now=timezone.now())

    with transaction.atomic():
        Agent.objects.create(account=account, agent_id="planner")
        attempt.record(201, "application/json", b"{}")
        transaction.set_rollback(True)

    assert not IdempotentRequest.objects.exists()
    assert not Agent.objects.exists()
