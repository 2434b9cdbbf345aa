"""`/contexts/{id}/access-log`: reads and writes of agents over HTTP, for managers of the context."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from memory import conf
from memory.maintenance import Batch
from memory.maintenance.log_jobs import write_access_log
from memory.models import Account, ContextAccessLog, Memory, PersistentContext
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory.tiers.access_log import UNREPORTED
from tests.api_client import ServiceClient
from tests.memory.contexts import context_of, entry, keep
from tests.redis_elsewhere import redis_away
from tests.round_trips import counted_commands

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("empty_redis", "embedding_server"),
]


@pytest.fixture
def context(owner: Owner) -> Iterator[PersistentContext]:
    UNREPORTED.pop_all()
    yield context_of(owner)
    UNREPORTED.pop_all()


@pytest.fixture
def entry_ids(owner: Owner, context: PersistentContext) -> list[str]:
    return [str(row.id) for row in keep(owner, context, *(entry(f"word {number}") for number in range(10)))]


def write() -> None:
    write_access_log(now=timezone.now(), batch=Batch(size=1_000))


def log_of(api: ServiceClient, context: PersistentContext, query: str = "") -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = api.get(f"/contexts/{context.id}/access-log{query}").json()["results"]
    return lines


def search(api: ServiceClient, context: PersistentContext) -> Any:
    return api.post(f"/contexts/{context.id}/search", {"query": "word", "top_k": 10})


def test_every_read_over_http_is_in_the_log(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str]
) -> None:
    first, *_others = entry_ids
    api.get(f"/entries/{first}?agent_id=assistant")
    api.get(f"/entries/{first}/versions")
    api.get(f"/contexts/{context.id}/entries?page_size=3")
    found = search(api, context).json()["results"]
    write()

    actions = [line["action"] for line in log_of(api, context)]
    assert (actions.count("read"), actions.count("search"), actions.count("create")) == (5, len(found), 10)
    (line,) = log_of(api, context, "?accessed_by=assistant&action=read")
    assert (line["entry_id"], line["action"], line["count"]) == (first, "read", 1)
    assert line["actor"].startswith("key:")


def test_entries_found_by_a_recall_are_logged_and_counted_once(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str]
) -> None:
    found = api.post("/recall", {"agent_id": "assistant", "query": "word"}).json()["results"]
    write()

    (line, *_others) = log_of(api, context, "?action=search")
    assert {result["id"] for result in found} <= set(entry_ids)
    assert line["entry_id"] in {result["id"] for result in found}
    assert {row.access_count for row in Memory.objects.filter(id__in=[result["id"] for result in found])} == {1}


def test_a_head_request_is_not_logged_as_a_read(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str]
) -> None:
    for path in (f"/entries/{entry_ids[0]}", f"/entries/{entry_ids[0]}/versions", f"/contexts/{context.id}/entries"):
        assert api.head(path).status_code == 200
    write()

    assert log_of(api, context, "?action=read") == []


def test_every_write_is_logged_immediately(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str]
) -> None:
    first, *_others = entry_ids
    api.patch(f"/entries/{first}", {"content": "other"})
    api.post(f"/entries/{first}/boost", {"by": 0.1})
    api.post(f"/entries/{first}/reduce", {"by": 0.1})
    api.post(f"/entries/{first}/versions/1/restore", {})
    api.delete(f"/entries/{first}")

    lines = log_of(api, context, f"?entry_id={first}")

    assert [line["action"] for line in lines] == ["archive", "restore", "reduce", "boost", "update", "create"]


def test_the_job_adds_logged_reads_to_the_access_count_of_an_entry(api: ServiceClient, entry_ids: list[str]) -> None:
    for _again in range(3):
        api.get(f"/entries/{entry_ids[0]}")

    write()

    row = Memory.objects.get(id=entry_ids[0])
    assert (row.access_count, row.version) == (3, 1)


def test_a_read_costs_one_redis_round_trip_for_any_number_of_entries(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str]
) -> None:
    requests = (
        lambda: api.get(f"/entries/{entry_ids[0]}"),
        lambda: api.get(f"/contexts/{context.id}/entries"),
        lambda: search(api, context),
    )
    for request in requests:
        request()
        with counted_commands() as commands:
            assert request().status_code == 200
        assert len([command for command in commands if "access:log" in command]) == 1


def test_reads_succeed_without_redis_and_are_logged_as_lost(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str]
) -> None:
    with redis_away():
        answers = [api.get(f"/entries/{entry_ids[0]}"), search(api, context)]
    assert [answer.status_code for answer in answers] == [200, 200]
    api.get(f"/entries/{entry_ids[0]}")
    write()

    (lost,) = log_of(api, context, "?action=lost")

    assert (lost["count"], lost["entry_id"]) == (1 + len(answers[1].json()["results"]), None)
    assert Memory.objects.get(id=entry_ids[0]).access_count == 1


def test_reads_beyond_the_capacity_of_the_log_stream_are_logged_as_lost(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 4)

    assert len(api.get(f"/contexts/{context.id}/entries").json()["results"]) == 10
    write()

    assert [line["count"] for line in log_of(api, context, "?action=lost")] == [6]
    assert len(log_of(api, context, "?action=read")) == 4


def test_metrics_count_waiting_and_lost_log_lines(
    api: ServiceClient, entry_ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = figure("memory_access_log_lost_lines_total")
    monkeypatch.setattr(conf, "ACCESS_LOG_LINES", 1)
    for _again in range(3):
        api.get(f"/entries/{entry_ids[0]}")

    assert figure("memory_access_log_waiting_lines") == 1
    assert figure("memory_access_log_lost_lines_total") - before == 2


def figure(name: str) -> float:
    lines = Client().get("/metrics").content.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def test_log_lines_are_listed_newest_first_in_pages_and_filtered_by_time(
    api: ServiceClient, context: PersistentContext, entry_ids: list[str]
) -> None:
    api.patch(f"/entries/{entry_ids[0]}", {"content": "other"})
    at = log_of(api, context)[0]["accessed_at"]
    page = api.get(f"/contexts/{context.id}/access-log?page_size=6").json()
    rest = api.get(page["next"].split("/api/v1")[1]).json()

    assert [line["action"] for line in page["results"]] == ["update", *["create"] * 5]
    assert len(rest["results"]) == 5
    assert [line["action"] for line in log_of(api, context, f"?since={at}")] == ["update"]
    assert len(log_of(api, context, f"?until={at}")) == 10


@pytest.mark.parametrize("query", ["?entry_id=x", "?action=look", "?since=today", "?who=me", "?agent_id="])
def test_an_invalid_filter_of_the_access_log_is_refused(
    api: ServiceClient, context: PersistentContext, query: str
) -> None:
    assert api.get(f"/contexts/{context.id}/access-log{query}").status_code == 400


def test_an_agent_with_read_access_cannot_see_the_access_log(
    account: Account, owner: Owner, bound_api: ServiceClient
) -> None:
    context = context_of(owner, scope="account")
    reader = ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id="reader").secret)

    assert bound_api.get(f"/contexts/{context.id}/access-log").status_code == 200
    assert reader.get(f"/contexts/{context.id}").status_code == 200
    assert reader.get(f"/contexts/{context.id}/access-log").status_code == 403


def test_access_to_the_log_is_checked_for_the_agent_named_in_the_query(api: ServiceClient, owner: Owner) -> None:
    context = context_of(owner, scope="account")

    answers = [api.get(f"/contexts/{context.id}/access-log?agent_id={agent}") for agent in ("assistant", "reader")]

    assert [answer.status_code for answer in answers] == [200, 403]


def test_the_log_of_a_hidden_context_is_answered_like_that_of_an_unknown_one(
    account: Account, context: PersistentContext, stranger_api: ServiceClient
) -> None:
    other = ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id="other").secret)

    for api in (stranger_api, other):
        theirs = api.get(f"/contexts/{context.id}/access-log", HTTP_X_REQUEST_ID="same")
        nobodys = api.get(f"/contexts/{uuid4()}/access-log", HTTP_X_REQUEST_ID="same")
        assert (theirs.status_code, theirs.content) == (404, nobodys.content)


def test_log_lines_of_another_context_are_not_shown(
    api: ServiceClient, owner: Owner, context: PersistentContext
) -> None:
    keep(owner, context_of(owner, "other"), entry("elsewhere"))

    assert log_of(api, context) == []
    assert ContextAccessLog.objects.count() == 1
