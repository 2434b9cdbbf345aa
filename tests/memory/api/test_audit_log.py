"""`/audit-log`: the account's entries of the days asked for, latest first."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone

from memory.api.audit_log import filter_audit_entries
from memory.models import Account, AuditEntry
from memory.owner import Owner
from memory.services.accounts.register import issue_key
from memory.services.audit import audit_entries
from tests.api_client import ServiceClient
from tests.memory.audits import entered, written_reads

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


def ask(api: ServiceClient, **query: object) -> list[dict[str, Any]]:
    answer = api.get(f"/audit-log?{urlencode(query)}")
    assert answer.status_code == 200, answer.content
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def hours_ago(hours: float) -> datetime:
    return timezone.now() - timedelta(hours=hours)


def test_audit_entries_are_listed_newest_first_in_pages(api: ServiceClient, account: Account) -> None:
    for hours in (3, 1, 2):
        entered(account, hours_ago(hours), operation=f"op{hours}", memory_type="listed")

    first = api.get("/audit-log?memory_type=listed&page_size=2").json()
    rest = api.get(first["next"].split("/api/v1")[1]).json()

    assert [entry["operation"] for entry in first["results"] + rest["results"]] == ["op1", "op2", "op3"]
    assert rest["next"] is None


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"operation": "promote"}, ["promotion"]),
        ({"memory_type": "turn"}, ["turn"]),
        ({"agent_id": "planner"}, ["turn"]),
        ({"user_id": "ana"}, ["promotion"]),
        ({"conversation_id": "c1"}, ["turn"]),
        ({"source_channel": "atlas"}, ["promotion"]),
        ({"success": "false"}, ["turn"]),
        ({"success": "true", "operation": "promote"}, ["promotion"]),
        ({}, ["promotion", "turn"]),
        ({"since": "2020-01-01T00:00:00Z"}, ["old", "promotion", "turn"]),
        ({"since": "2020-01-01T00:00:00Z", "until": "2021-01-01T00:00:00Z"}, ["old"]),
    ],
    ids=str,
)
def test_audit_entries_are_filtered(
    api: ServiceClient, account: Account, query: dict[str, str], found: list[str]
) -> None:
    entered(account, hours_ago(1), operation="promote", actor="promotion", user_id="ana", source_channel="atlas")
    entered(
        account, hours_ago(2), memory_type="turn", actor="turn", agent_id="planner", conversation_id="c1", success=False
    )
    entered(account, datetime.fromisoformat("2020-05-04T12:00:00Z"), operation="update", memory_type="x", actor="old")

    assert sorted({entry["actor"] for entry in ask(api, **query)} - {"command"}) == found


def test_an_audit_entry_of_a_promotion_has_the_documented_columns(api: ServiceClient, account: Account) -> None:
    columns = {
        "promoted_from_channel": "atlas",
        "promotion_confidence": 0.9,
        "promotion_access_count": 6,
        "promotion_conversation_count": 3,
        "cross_channel_count": 2,
        "config_snapshot": {"promote_confidence": 0.85},
    }
    entered(account, hours_ago(1), operation="promote", **columns)

    (entry,) = ask(api, operation="promote")

    assert entry.items() >= columns.items()


def test_the_job_writes_http_reads_to_the_audit_log_at_level_reads(api: ServiceClient, account: Account) -> None:
    Account.objects.filter(id=account.id).update(audit_level="reads")

    api.post("/learnings/search", {"agent_id": "planner", "query": "tulips"})
    written_reads()

    (entry,) = ask(api, operation="retrieve")
    assert (entry["query_text"], entry["agent_id"], entry["cross_channel_count"]) == ("tulips", "planner", 0)


READS = {
    "/facts?agent_id=planner": "facts",
    "/timeline?agent_id=planner": "timeline",
    "/facts/{id}?agent_id=planner": "facts",
}


def learn(api: ServiceClient, claim: str = "Tulips bloom in May.") -> str:
    answer = api.post("/facts", {"agent_id": "planner", "claim": claim})
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


@pytest.mark.parametrize(("path", "noun"), READS.items())
def test_a_get_of_memories_is_audited_with_the_ids_it_returned(
    api: ServiceClient, account: Account, path: str, noun: str
) -> None:
    fact_id = learn(api)
    Account.objects.filter(id=account.id).update(audit_level="reads")

    assert api.get(path.format(id=fact_id)).status_code == 200

    (entry,) = written_reads()
    assert (entry.memory_type, entry.affected_ids, entry.agent_id) == (noun, [fact_id], "planner")
    assert (entry.actor.startswith("key:"), entry.metadata) == (True, {})


def test_a_field_named_id_in_client_data_is_not_audited_as_an_affected_id(api: ServiceClient, account: Account) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")
    api.put("/working-memory/c1", {"agent_id": "planner", "data": {"id": "stolen", "results": 3}})

    api.get("/working-memory/c1?agent_id=planner")

    (entry,) = written_reads()
    assert (entry.memory_type, entry.affected_ids, entry.conversation_id) == ("working_memories", ["c1"], "c1")
    assert entry.metadata == {"query": {"agent_id": "planner"}}


@pytest.mark.parametrize("path", ["/audit-log", "/jobs", "/agents", "/teams", f"/facts/{UUID(int=7)}?agent_id=planner"])
def test_reads_that_show_no_memory_are_not_audited(api: ServiceClient, account: Account, path: str) -> None:
    Account.objects.filter(id=account.id).update(audit_level="verbose")

    api.get(path)

    assert written_reads() == []


def test_a_read_that_a_service_audits_itself_is_recorded_once(api: ServiceClient, account: Account) -> None:
    fact_id = learn(api)
    Account.objects.filter(id=account.id).update(audit_level="reads")

    api.get(f"/graph?agent_id=planner&ids={fact_id}")

    assert [entry.memory_type for entry in written_reads()] == ["semantic"]


def test_a_get_is_not_audited_at_the_default_level(api: ServiceClient) -> None:
    api.get("/facts?agent_id=planner")

    assert written_reads() == []


@pytest.mark.parametrize(("level", "is_kept"), [("writes", False), ("reads", False), ("verbose", True)])
def test_level_verbose_keeps_the_texts_that_were_sent_with_secrets_masked(
    api: ServiceClient, account: Account, level: str, is_kept: bool
) -> None:
    Account.objects.filter(id=account.id).update(audit_level=level)

    fact_id = learn(api, "The key is sk-Qm3xV9pLw2Rk7TzB4nYd.")
    api.patch(f"/facts/{fact_id}", {"agent_id": "planner", "claim": "The key is gone."})

    stored, corrected = (AuditEntry.objects.get(operation=each).metadata for each in ("store", "correct"))
    assert stored.get("texts") == (["The key is [redacted]."] if is_kept else None)
    assert corrected.get("texts") == (["The key is gone."] if is_kept else None)
    assert stored.keys() | corrected.keys() == ({"texts", "request_id"} if is_kept else {"request_id"})


def test_another_account_sees_no_audit_entries(
    api: ServiceClient, stranger_api: ServiceClient, account: Account
) -> None:
    entered(account, hours_ago(1), operation="promote")

    assert ask(stranger_api, operation="promote") == []


def test_a_bound_api_key_sees_only_the_audit_entries_of_its_agent(bound_api: ServiceClient, account: Account) -> None:
    for agent_id in ("assistant", "planner", ""):
        entered(account, hours_ago(1), agent_id=agent_id)

    assert {entry["agent_id"] for entry in ask(bound_api)} == {"assistant"}
    assert bound_api.get("/audit-log?agent_id=planner").status_code == 403


def test_reading_the_audit_log_requires_the_scope_operate(
    account: Account, client_for: Callable[[str], ServiceClient]
) -> None:
    reader = client_for(issue_key(account, scopes=["read", "write"]).secret)

    assert reader.get("/audit-log").status_code == 403


@pytest.mark.parametrize("query", ["success=maybe", "since=yesterday", "colour=red", "operation="])
def test_an_invalid_filter_of_the_audit_log_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/audit-log?{query}").status_code == 400


def test_partitions_of_other_days_are_not_scanned(account: Account) -> None:
    for days in range(0, 40, 10):
        entered(account, hours_ago(24 * days))
    rows = filter_audit_entries(audit_entries(Owner(account_id=account.id)), {}).order_by("-timestamp", "-id")[:50]

    with connection.cursor() as cursor:
        sql, params = rows.query.sql_with_params()
        cursor.execute(f"EXPLAIN {sql}", params)
        plan = "\n".join(line for (line,) in cursor.fetchall())

    for days in (10, 20, 30):
        assert f"{hours_ago(24 * days):%Y%m%d}" not in plan
    assert f"{timezone.now():%Y%m%d}" in plan
