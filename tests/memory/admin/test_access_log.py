"""The access log of contexts is filtered by account, context, entry, agent and action, and is read-only."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from memory.models import Account, ContextAccessLog, ContextEntry, PersistentContext
from memory.owner import Owner
from memory.services.memories.correct import delete_memories
from memory_project.ids import uuid7
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import list_url, page_url, shown
from tests.memory.contexts import context_of, entry, keep, rewrite

MODEL = "contextaccesslog"


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


@pytest.fixture
def rows(owner: Owner, context: PersistentContext) -> list[ContextEntry]:
    """Two entries made now, one of them changed since."""
    now = datetime.now(UTC)
    first, second = keep(owner, context, entry("one"), entry("two"), now=now)
    rewrite(owner, first, "another", now=now)
    return [first, second]


def lose(context: PersistentContext, count: int) -> ContextAccessLog:
    return ContextAccessLog.objects.create(
        account_id=context.account_id, context=context, action="lost", count=count, accessed_at=datetime.now(UTC)
    )


def fill(context: PersistentContext, count: int) -> None:
    """Lines of the days before today."""
    now = datetime.now(UTC)
    ContextAccessLog.objects.bulk_create(
        ContextAccessLog(
            account_id=context.account_id,
            context=context,
            entry_id=uuid7(),
            action="read",
            accessed_at=now - timedelta(minutes=number),
        )
        for number in range(count)
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE context_access_logs")


def found(client: Client, **query: Any) -> int:
    return int(client.get(list_url(MODEL, **query)).context["cl"].result_count)


def test_lines_are_listed_newest_first_with_their_entry_and_context(
    staff: Client, context: PersistentContext, rows: list[ContextEntry]
) -> None:
    response = staff.get(list_url(MODEL))

    lines = response.context["cl"].result_list
    assert lines[0].action == "update"
    assert [line.accessed_at for line in lines] == sorted((line.accessed_at for line in lines), reverse=True)
    assert page_url("contextentry", rows[0].id) in shown(response)
    assert page_url("persistentcontext", context.id) in shown(response)


def test_log_lines_can_be_filtered_and_searched(
    staff: Client, account: Account, stranger: Account, context: PersistentContext, rows: list[ContextEntry]
) -> None:
    assert found(staff) == 3
    assert found(staff, account=stranger.id) == 0
    assert found(staff, action__exact="update") == 1
    assert found(staff, context=context.id) == 3
    assert found(staff, entry=rows[0].id) == 2
    assert found(staff, q="assistant") == 3
    assert found(staff, q="assist") == 0


def test_the_log_shows_the_last_week_by_default(
    staff: Client, context: PersistentContext, rows: list[ContextEntry]
) -> None:
    ContextAccessLog.objects.update(accessed_at=datetime.now(UTC) - timedelta(days=400))

    assert (found(staff), found(staff, since="ever")) == (0, 3)


def test_pages_of_contexts_and_entries_lead_to_all_of_their_lines(
    staff: Client, context: PersistentContext, rows: list[ContextEntry]
) -> None:
    of_context = list_url(MODEL, context=context.id, since="ever").replace("&", "&amp;")
    of_entry = list_url(MODEL, entry=rows[0].id, since="ever").replace("&", "&amp;")

    assert of_context in shown(staff.get(page_url("persistentcontext", context.id))).replace("&since", "&amp;since")
    assert of_entry in shown(staff.get(page_url("contextentry", rows[0].id)))


def test_lost_lines_stand_out(staff: Client, context: PersistentContext) -> None:
    line = lose(context, 1_200)

    for url in (list_url(MODEL), page_url(MODEL, line.id)):
        assert '<strong class="lost">⚠ 1,200 lines lost</strong>' in shown(staff.get(url))


def test_lines_of_an_entry_that_is_gone_are_found_in_its_account(
    staff: Client, account: Account, rows: list[ContextEntry]
) -> None:
    gone = rows[0].id
    delete_memories(Owner(account_id=account.id), [gone], now=datetime.now(UTC))

    assert found(staff, entry=gone, account=account.id) == 2
    assert found(staff, entry=gone) == 0
    assert f"{gone} (deleted)" in shown(staff.get(list_url(MODEL)))


@pytest.mark.parametrize("entry_id", ["nonsense", "01990000-0000-7000-8000-000000000000"])
def test_filtering_by_an_unknown_entry_lists_nothing(staff: Client, rows: list[ContextEntry], entry_id: str) -> None:
    assert found(staff, entry=entry_id) == 0


@pytest.mark.parametrize(
    ("narrowed", "index"), [("context", "access_of_context"), ("entry", "access_of_entry"), ("", "access_time")]
)
def test_every_list_is_read_by_its_index(
    staff: Client, context: PersistentContext, rows: list[ContextEntry], narrowed: str, index: str
) -> None:
    fill(context_of(Owner(account_id=context.account_id), "busy"), 3_000)
    query = {"context": context.id, "entry": rows[0].id}
    chosen: dict[str, Any] = {narrowed: query[narrowed], "since": "ever"} if narrowed else {}

    plan = staff.get(list_url(MODEL, **chosen)).context["cl"].queryset[:50].explain()

    assert index in plan
    assert "Seq Scan on context_access_logs" not in plan


def test_names_in_the_log_are_shown_as_text(staff: Client, owner: Owner) -> None:
    hostile = Owner(account_id=owner.account_id, agent_id=HOSTILE[:90], actor=HOSTILE)
    context = context_of(hostile, HOSTILE)
    keep(hostile, context, entry("one"), now=datetime.now(UTC))
    line = ContextAccessLog.objects.get()

    for page in (shown(staff.get(list_url(MODEL))), shown(staff.get(page_url(MODEL, line.id)))):
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "⟦U+202E⟧" in page


def test_log_lines_cannot_be_edited_or_deleted(staff: Client, newcomer: Client, context: PersistentContext) -> None:
    line = lose(context, 1)
    allow("newcomer", "view_contextaccesslog")

    for client in (staff, newcomer):
        assert client.get(page_url(MODEL, line.id)).status_code == 200
        assert client.post(page_url(MODEL, line.id), {"count": "5"}).status_code == 403
        assert client.post(page_url(MODEL, line.id, "delete"), {"post": "yes"}).status_code == 403
    assert ContextAccessLog.objects.get().count == 1
