"""Tools and their uses in the admin: counted, described, and opened one by one."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from memory.models import Account, AuditEntry, Tool, ToolInvocation
from memory.owner import Owner
from memory.services.tools import InvocationDraft, record_invocation
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import choose, form_values, list_url, page_url, queries_of, shown
from tests.memory.procedures import learn


def use(owner: Owner, tool_name: str = "search", **fields: Any) -> ToolInvocation:
    given = {"conversation_id": "c1", "tool_input": {"q": "blue door"}, "success": True, "latency_ms": 40, **fields}
    return record_invocation(owner, InvocationDraft(tool_name=tool_name, **given), now=datetime.now(UTC))


def test_a_tool_shows_success_counts_and_latency_of_its_uses(staff: Client, owner: Owner) -> None:
    use(owner)
    use(owner, success=False, latency_ms=60)

    page, listed = (shown(staff.get(url)) for url in (page_url("tool", Tool.objects.get().pk), list_url("tool")))

    assert all(
        expected in text for text in (page, listed) for expected in ("2: 1 succeeded, 1 failed", "50 ms", "search")
    )


def test_a_tool_is_described_and_audited(staff: Client, owner: Owner) -> None:
    use(owner)
    url = page_url("tool", Tool.objects.get().pk)

    staff.post(url, form_values(staff.get(url)) | {"description": "Looks things up."})

    assert Tool.objects.get().description == "Looks things up."
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.actor, entry.operation, entry.memory_type) == ("staff:chief", "update", "procedural")


def test_input_and_output_are_shown_only_on_the_page_of_a_tool_use(staff: Client, owner: Owner) -> None:
    row = use(owner, tool_output=["a red mat"], error_message="the hinge broke")

    page = shown(staff.get(page_url("toolinvocation", row.pk)))

    assert all(expected in page for expected in ("blue door", "a red mat", "the hinge broke"))
    assert "blue door" not in shown(staff.get(list_url("toolinvocation")))


def test_a_list_loads_no_encrypted_columns(staff: Client, owner: Owner) -> None:
    use(owner)

    with CaptureQueriesContext(connection) as captured:
        staff.get(list_url("toolinvocation"))

    assert not [query for query in captured if "tool_input" in query["sql"]]


def test_a_value_that_cannot_be_decrypted_is_shown_as_unreadable(staff: Client, owner: Owner) -> None:
    row = use(owner)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE tool_invocations SET tool_input = 'damaged'::bytea")

    page = staff.get(page_url("toolinvocation", row.pk))

    assert page.status_code == 200
    assert "This cannot be decrypted" in shown(page)
    assert staff.get(list_url("toolinvocation")).status_code == 200


def test_without_any_key_a_page_says_so(staff: Client, owner: Owner, settings: Settings) -> None:
    row = use(owner)
    settings.ENCRYPTION_KEYS = []

    assert "This cannot be decrypted" in shown(staff.get(page_url("toolinvocation", row.pk)))


def test_a_use_leads_to_its_tool_and_into_the_transcript(staff: Client, owner: Owner) -> None:
    row = use(owner, turn_index=3)

    page = shown(staff.get(page_url("toolinvocation", row.pk)))

    assert page_url("tool", row.tool_id) in page
    assert "?turn=3#turn-3" in page


def test_uses_of_one_tool_are_listed_from_its_page(staff: Client, owner: Owner) -> None:
    wanted, _ = use(owner), use(owner, "read")

    response = staff.get(list_url("toolinvocation", tool=wanted.tool_id, since="ever"))

    assert [row.pk for row in response.context["cl"].result_list] == [wanted.pk]


@pytest.mark.parametrize("words", ["search", "c1", "assistant"])
def test_a_use_is_found_by_tool_conversation_and_agent(staff: Client, owner: Owner, words: str) -> None:
    use(owner)

    assert staff.get(list_url("toolinvocation", q=words)).context["cl"].result_count == 1
    assert staff.get(list_url("toolinvocation", q=f"{words}x")).context["cl"].result_count == 0


def test_the_list_shows_the_last_week_by_default(staff: Client, owner: Owner) -> None:
    use(owner, timestamp=datetime.now(UTC) - timedelta(days=8))

    counts = [
        staff.get(list_url("toolinvocation", **asked)).context["cl"].result_count for asked in ({}, {"since": "month"})
    ]

    assert counts == [0, 1]


def test_a_use_is_deleted_and_audited_and_never_changed(staff: Client, owner: Owner) -> None:
    row = use(owner)

    assert staff.post(page_url("toolinvocation", row.pk), {"tool_name": "x"}).status_code == 403
    choose(staff, list_url("toolinvocation"), "delete_selected", row.pk, post="yes")

    assert not ToolInvocation.objects.exists()
    assert AuditEntry.objects.order_by("-id")[0].operation == "delete"
    assert Tool.objects.get().usage_count == 1


def test_pages_cost_few_queries(staff: Client, owner: Owner) -> None:
    row = use(owner)

    costs = [
        queries_of(staff, page_url(model, pk)) for model, pk in (("tool", row.tool_id), ("toolinvocation", row.pk))
    ]

    assert max(costs) <= 10


def test_whatever_was_recorded_is_shown_as_text(staff: Client, owner: Owner) -> None:
    name = HOSTILE[:90]
    row = use(owner, name, tool_input=HOSTILE, task_type=name, error_message=HOSTILE)

    lists = [list_url("tool"), list_url("toolinvocation")]
    rows = [("tool", row.tool_id), ("toolinvocation", row.pk)]
    pages = [page_url(model, pk, page) for model, pk in rows for page in ("change", "delete")]
    for url in (*lists, *pages):
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "⟦U+202E⟧" in page
        assert "\u202e" not in page


def test_the_history_of_a_tool_names_it_by_its_id(staff: Client, owner: Owner) -> None:
    url = page_url("tool", use(owner, HOSTILE[:90]).tool_id)
    staff.post(url, form_values(staff.get(url)) | {"description": "Looks things up."})

    for page in (shown(staff.get(other)) for other in (url, url.replace("/change/", "/history/"))):
        assert "\u202e" not in page


def test_the_view_permission_alone_allows_no_deleting_or_describing(
    newcomer: Client, owner: Owner, account: Account
) -> None:
    row = use(owner)
    allow("newcomer", "view_tool", "view_toolinvocation")

    assert newcomer.get(page_url("toolinvocation", row.pk)).status_code == 200
    assert newcomer.post(page_url("toolinvocation", row.pk, "delete"), {"post": "yes"}).status_code == 403
    assert newcomer.post(page_url("tool", row.tool_id), {"description": "x"}).status_code == 403


def test_a_tools_strategies_are_shown_only_with_permission_to_view_them(
    newcomer: Client, staff: Client, owner: Owner
) -> None:
    row = use(owner)
    learn(owner, "Ask the librarian", tool_sequence=["search"])
    allow("newcomer", "view_tool")

    blind, seeing = (shown(client.get(page_url("tool", row.tool_id))) for client in (newcomer, staff))

    assert "Ask the librarian" not in blind
    assert "Ask the librarian" in seeing
