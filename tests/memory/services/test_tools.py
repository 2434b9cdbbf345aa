"""Uses of tools: recorded and counted, sealed at rest, visible to participants, summed up."""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from pytest_django import DjangoAssertNumQueries, Settings

from memory.errors import NotFound, TooLarge, Unprocessable
from memory.models import Account, Agent, AuditEntry, Conversation, Participant, Tool, ToolInvocation
from memory.owner import Owner
from memory.services.tools import (
    MAX_INTEGER,
    MAX_VALUE_BYTES,
    ensure_tools,
    find_invocation,
    get_tool_stats,
    record_invocations,
    visible_invocations,
)
from tests.concurrency import over_own_connection
from tests.memory.episodes import NOW
from tests.memory.procedures import invoke, sealed_bytes, use

pytestmark = pytest.mark.django_db

SECRET = "hunter2"


@pytest.fixture
def colleague(owner: Owner) -> Owner:
    return replace(owner, agent_id="colleague")


@pytest.fixture
def whole_account(owner: Owner) -> Owner:
    return replace(owner, agent_id="")


def tools_seen(owner: Owner) -> list[str]:
    return sorted(visible_invocations(owner).values_list("tool_name", flat=True))


def counts_of(name: str) -> tuple[int, ...]:
    tool = Tool.objects.get(name=name)
    return tool.usage_count, tool.success_count, tool.failure_count, tool.timed_count, tool.total_latency_ms


def stats(owner: Owner, **asked: Any) -> dict[str, int]:
    return {each.tool_name: each.usage_count for each in get_tool_stats(owner, now=NOW, **asked)}


def test_a_use_is_recorded_with_all_given_values(owner: Owner) -> None:
    recorded = invoke(
        replace(owner, user_id="ana", channel="web"),
        tool_input={"query": "mat"},
        tool_output=["under it"],
        success=True,
        latency_ms=12,
        task_type="look up",
        turn_index=3,
    )

    opened = find_invocation(owner, recorded.id)
    row = opened.invocation
    assert (opened.tool_input, opened.tool_output, opened.error_message) == ({"query": "mat"}, ["under it"], None)
    assert (row.agent_id, row.user_id, row.channel, row.conversation_id) == ("assistant", "ana", "web", "c1")
    assert (row.tool_name, row.task_type, row.turn_index, row.success, row.latency_ms) == (
        *("search", "look up", 3),
        *(True, 12),
    )
    assert (row.timestamp, opened.sealed) == (NOW, False)


@pytest.mark.parametrize("value", [None, "", 0, False, [], {}, "text", {"deep": [{"er": "ü\x00\ud800"}]}], ids=repr)
def test_any_json_value_is_stored_and_returned_unchanged(owner: Owner, value: object) -> None:
    recorded = invoke(owner, tool_input=value, tool_output=value)

    opened = find_invocation(owner, recorded.id)
    assert (opened.tool_input, opened.tool_output) == (value, value)


def test_a_use_creates_its_conversation_agent_and_tool(owner: Owner) -> None:
    invoke(owner, "search", conversation_id="new")

    assert Conversation.objects.get().conversation_id == "new"
    assert Participant.objects.get().agent_id == Agent.objects.get().agent_id == "assistant"
    assert Tool.objects.get().name == "search"


def test_using_a_tool_in_a_conversation_joins_it(owner: Owner, colleague: Owner) -> None:
    invoke(owner, "search")
    assert tools_seen(colleague) == []

    invoke(colleague, "read")

    assert tools_seen(colleague) == tools_seen(owner) == ["read", "search"]


def test_other_agents_and_accounts_see_nothing(
    owner: Owner, colleague: Owner, whole_account: Owner, stranger: Account
) -> None:
    recorded = invoke(owner)

    assert tools_seen(whole_account) == ["search"]
    for other in (colleague, Owner(account_id=stranger.id), Owner(account_id=stranger.id, agent_id="assistant")):
        assert tools_seen(other) == []
        assert get_tool_stats(other, now=NOW) == []
        with pytest.raises(NotFound):
            find_invocation(other, recorded.id)


def test_uses_are_counted_on_the_tool(owner: Owner) -> None:
    invoke(owner, success=True, latency_ms=10)
    invoke(owner, success=False, latency_ms=30, now=NOW + timedelta(hours=1))
    invoke(owner, timestamp=NOW - timedelta(days=1))

    tool = Tool.objects.get()
    assert counts_of("search") == (3, 1, 1, 2, 40)
    assert (tool.avg_latency_ms, tool.last_used) == (20.0, NOW + timedelta(hours=1))


def test_accounts_have_tools_of_their_own(owner: Owner, stranger: Account) -> None:
    invoke(owner)
    invoke(Owner(account_id=stranger.id, agent_id="assistant"))

    assert list(Tool.objects.values_list("name", "usage_count")) == [("search", 1)] * 2


def test_many_uses_are_recorded_together_and_counted_by_tool(owner: Owner) -> None:
    recorded = record_invocations(
        owner, [use("read", success=True), use("search", success=False), use("read", conversation_id="c2")], now=NOW
    )

    assert [row.tool_name for row in recorded] == ["read", "search", "read"]
    assert (counts_of("read"), counts_of("search")) == ((2, 1, 0, 0, 0), (1, 0, 1, 0, 0))
    assert sorted(visible_invocations(owner).values_list("conversation_id", flat=True)) == ["c1", "c1", "c2"]


@pytest.mark.parametrize(
    "fields",
    [
        {"tool_name": ""},
        {"tool_name": "x" * 101},
        {"tool_name": "a\0"},
        {"task_type": "x" * 101},
        {"conversation_id": ""},
        {"conversation_id": "x" * 101},
        {"latency_ms": -1},
        {"latency_ms": MAX_INTEGER + 1},
        {"turn_index": -1},
        {"timestamp": NOW + timedelta(minutes=6)},
        {"timestamp": NOW.replace(tzinfo=None)},
        {"tool_input": {1, 2}},
        {"tool_output": float("nan")},
    ],
    ids=str,
)
def test_an_invalid_use_is_refused_with_its_whole_batch(owner: Owner, fields: dict[str, Any]) -> None:
    with pytest.raises(Unprocessable):
        record_invocations(owner, [use("fine"), use(**fields)], now=NOW)

    assert not ToolInvocation.objects.exists()
    assert not Tool.objects.exists()


@pytest.mark.parametrize("column", ["tool_input", "tool_output", "error_message"])
def test_values_have_a_maximum_size(owner: Owner, column: str) -> None:
    record_invocations(owner, [use(**{column: "x" * (MAX_VALUE_BYTES - 2)})], now=NOW)

    with pytest.raises(TooLarge) as refused:
        record_invocations(owner, [use(**{column: "x" * (MAX_VALUE_BYTES - 1)})], now=NOW)

    assert refused.value.facts == {
        "stored": False,
        "size_bytes": MAX_VALUE_BYTES + 1,
        "limit_bytes": MAX_VALUE_BYTES,
    }
    assert ToolInvocation.objects.count() == 1


def test_no_plain_text_is_in_the_table(owner: Owner) -> None:
    invoke(owner, tool_input={"password": SECRET}, tool_output=SECRET, error_message=f"{SECRET} is wrong")

    with connection.cursor() as cursor:
        cursor.execute("SELECT tool_invocations::text FROM tool_invocations")
        [[row]] = cursor.fetchall()
    assert SECRET not in row
    assert SECRET.encode().hex() not in row
    for column in ("tool_input", "tool_output", "error_message"):
        [sealed] = sealed_bytes(column)
        assert SECRET.encode() not in sealed


def test_sealed_values_appear_in_no_audit_log_log_or_error(
    owner: Owner, settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memory.conf.AUDIT_LEVEL", "verbose")
    caplog.set_level(logging.DEBUG, logger="memory")
    invoke(owner, tool_input=SECRET, tool_output=SECRET, error_message=SECRET)

    with pytest.raises(Unprocessable) as refused:
        invoke(owner, tool_input={SECRET: object()})

    texts = [*map(str, AuditEntry.objects.values()), caplog.text, str(refused.value), repr(refused.value.__cause__)]
    assert not any(SECRET in text for text in texts)


def test_recording_is_in_the_audit_log(owner: Owner) -> None:
    recorded = invoke(owner)

    entry = AuditEntry.objects.get(memory_type="procedural")
    assert (entry.operation, entry.affected_ids, entry.conversation_id) == ("store", [str(recorded.id)], "c1")


def test_an_invocation_encrypted_with_a_lost_key_is_reported_as_sealed(owner: Owner, settings: Settings) -> None:
    lost = invoke(owner, tool_input=SECRET, success=True, latency_ms=7)
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    opened = find_invocation(owner, lost.id)

    assert (opened.sealed, opened.tool_input, opened.tool_output, opened.error_message) == (True, None, None, None)
    assert (opened.invocation.success, opened.invocation.latency_ms) == (True, 7)


def test_statistics_hold_counts_rates_and_latencies_by_tool(owner: Owner) -> None:
    for latency_ms, success in [(10, True), (20, True), (30, True), (40, False), (None, None)]:
        invoke(owner, "search", latency_ms=latency_ms, success=success)
    invoke(owner, "read")

    read, search = get_tool_stats(owner, now=NOW)

    assert (search.tool_name, search.usage_count, search.success_count, search.failure_count) == ("search", 5, 3, 1)
    # between the 2nd and the 3rd of four; 0.95 x 3 = 2.85 of the way from the first to the last
    assert (search.success_rate, search.latency_p50_ms, search.latency_p95_ms) == (0.75, 25.0, 38.5)
    assert (search.task_type, search.channel, search.last_used) == (None, None, NOW)
    assert (read.tool_name, read.success_rate, read.latency_p50_ms, read.latency_p95_ms) == ("read", None, None, None)


def test_statistics_can_be_filtered_by_task_type_channel_and_time(owner: Owner) -> None:
    invoke(owner, "old", timestamp=NOW - timedelta(days=2))
    invoke(owner, "typed", task_type="look up")
    invoke(replace(owner, channel="web"), "on the web")

    assert stats(owner) == {"old": 1, "on the web": 1, "typed": 1}
    assert stats(owner, since=NOW - timedelta(days=1)) == {"on the web": 1, "typed": 1}
    assert stats(owner, task_type="look up") == {"typed": 1}
    assert stats(owner, channel="web") == {"on the web": 1}


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ((), [(None, None, 3)]),
        (("task_type",), [("", None, 1), ("look up", None, 2)]),
        (("channel",), [(None, "_global", 2), (None, "web", 1)]),
        (("channel", "task_type"), [("", "_global", 1), ("look up", "_global", 1), ("look up", "web", 1)]),
    ],
)
def test_statistics_can_be_grouped_by_task_type_and_channel(
    owner: Owner, by: Sequence[str], expected: list[tuple[str | None, str | None, int]]
) -> None:
    invoke(owner)
    invoke(owner, task_type="look up")
    invoke(replace(owner, channel="web"), task_type="look up")

    stats_by_group = get_tool_stats(owner, by=by, now=NOW)

    assert [(each.task_type, each.channel, each.usage_count) for each in stats_by_group] == expected


def test_tools_are_created_once_by_name(owner: Owner) -> None:
    invoke(owner, "read")

    tools = ensure_tools(owner, ["read", "write", "write"])

    assert tools == dict(Tool.objects.values_list("name", "id"))
    assert sorted(tools) == ["read", "write"]
    assert ensure_tools(owner, []) == {}


def test_recording_and_reading_cost_as_many_queries_as_stated(
    owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    recorded = invoke(owner)

    # savepoint and release (in real life a transaction), the conversation, found and locked, tools, rows, audit log
    with django_assert_num_queries(7):
        invoke(owner)
    with django_assert_num_queries(7):
        record_invocations(owner, [use(f"tool {number % 7}") for number in range(100)], now=NOW)
    with django_assert_num_queries(1):
        find_invocation(owner, recorded.id)
    with django_assert_num_queries(1):
        get_tool_stats(owner, by=("task_type", "channel"), now=NOW)


def test_an_unknown_invocation_is_not_found(owner: Owner) -> None:
    with pytest.raises(NotFound):
        find_invocation(owner, uuid4())


@pytest.mark.django_db(transaction=True)
def test_fifty_uses_at_the_same_time_are_all_counted(owner: Owner) -> None:
    def record(number: int) -> None:
        names = ["search", "read"] if number % 2 else ["read", "search"]
        drafts = [use(name, success=True, latency_ms=2) for name in names]
        over_own_connection(lambda: record_invocations(owner, drafts, now=NOW))

    with ThreadPoolExecutor(10) as pool:
        list(pool.map(record, range(50)))

    assert counts_of("search") == counts_of("read") == (50, 50, 0, 50, 100)
    assert ToolInvocation.objects.count() == 100
