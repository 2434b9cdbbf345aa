"""Exports from the lists of the admin: filtered like the list, within one account, harmless to open."""

import csv
import io
import json
from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from memory.admin import exports
from memory.admin.base import BoundedAdmin
from memory.admin.exports import neutralize_cell
from memory.models import Account, AuditEntry, Conversation, StaffLimit
from memory.owner import Owner
from tests.memory.admin.chats import allow
from tests.memory.admin.pages import list_url, shown
from tests.memory.facts import know

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

FACTS, MEMORIES = "/admin/memory/fact/export/", "/admin/memory/memory/export/"


def content(response: Any) -> str:
    return b"".join(response.streaming_content).decode()


def lines(browser: Client, account: Account, url: str = FACTS, **query: str) -> list[dict[str, Any]]:
    response = browser.get(url, {"account": str(account.pk), "as": "jsonl", **query})
    return [json.loads(line) for line in content(response).splitlines()]


def test_an_export_has_the_columns_of_the_kind_and_no_hashes(staff: Client, account: Account, owner: Owner) -> None:
    fact = know(owner, "Ana lives in Berlin.", confidence=0.5)

    [line] = lines(staff, account)

    assert (line["id"], line["text"], line["confidence"]) == (str(fact.pk), "Ana lives in Berlin.", 0.5)
    assert line["event_time"].endswith("+00:00")
    assert {"content_hash", "identity", "wording"}.isdisjoint(line)


def test_an_export_is_filtered_like_the_list(staff: Client, account: Account, owner: Owner) -> None:
    know(owner, "Ana likes tea.")
    know(owner, "Ana likes cake.")

    assert [line["text"] for line in lines(staff, account, q="cake")] == ["Ana likes cake."]
    assert lines(staff, account, status="superseded") == []
    page = shown(staff.get(list_url("fact", q="cake")))
    assert 'href="export/?q=cake&amp;as=csv"' in page


def test_one_user_is_exported(staff: Client, account: Account) -> None:
    for user in ("ana", "ben"):
        know(Owner(account_id=account.pk, agent_id="assistant", user_id=user), f"{user} likes tea.")

    assert [line["text"] for line in lines(staff, account, MEMORIES, of_user="ana")] == ["ana likes tea."]
    preview = shown(staff.post("/admin/memory/erasure/erase/", {"account": account.pk, "user": "ana"}))
    assert f"{MEMORIES}?account={account.pk}&amp;of_user=ana&amp;as=csv" in preview


def test_an_export_of_all_kinds_has_the_columns_of_each(staff: Client, account: Account, owner: Owner) -> None:
    know(owner, "Ana lives in Berlin.", confidence=0.5)

    [line] = lines(staff, account, MEMORIES)

    assert (line["kind"], line["confidence"]) == ("fact", 0.5)
    assert {"valid_from", "valid_to", "data"} <= set(line)
    assert {"content_hash", "identity", "wording"}.isdisjoint(line)


def test_rows_are_read_in_slices_without_a_cursor_of_the_database(
    staff: Client, account: Account, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "PAGE_ROWS", 2)
    for number in range(5):
        know(owner, f"fact {number}")
    response = staff.get(FACTS, {"account": str(account.pk), "as": "jsonl"})

    with CaptureQueriesContext(connection) as captured:
        texts = [json.loads(line)["text"] for line in content(response).splitlines()]

    assert texts == [f"fact {number}" for number in reversed(range(5))]
    assert len(captured) == 7
    assert not any("DECLARE" in query["sql"] for query in captured)


def test_csv_has_no_formulas(staff: Client, account: Account, owner: Owner) -> None:
    for number, sign in enumerate(("=", "+", "-", "@", " =", "＝")):
        know(owner, f'{sign}HYPERLINK("http://x/{number}")')

    response = staff.get(FACTS, {"account": str(account.pk), "as": "csv"})

    table = list(csv.DictReader(io.StringIO(content(response))))
    assert len(table) == 6
    assert all(row["text"].startswith("'") for row in table)
    assert response.headers["Content-Disposition"] == 'attachment; filename="fact.csv"'


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ("=1", "'=1"), ("\t=1", "'\t=1"), ("\r1", "'\r1"), ("a=1", "a=1"), ("", ""), (-1, -1), (None, None),
        ({"a": 1}, '{"a": 1}'), (["="], '["="]'),
    ],
)  # fmt: skip
def test_only_texts_that_begin_a_formula_are_changed(value: Any, cell: Any) -> None:
    assert neutralize_cell(value) == cell


def test_an_export_is_audited_with_its_size(staff: Client, account: Account, owner: Owner) -> None:
    know(owner)

    lines(staff, account)

    entry = AuditEntry.objects.get(operation="export")
    assert (entry.actor, entry.memory_type, entry.result_count) == ("staff:chief", "fact", 1)


def test_without_an_account_nothing_is_exported(
    staff: Client, account: Account, stranger: Account, owner: Owner
) -> None:
    know(owner)

    page = staff.get(FACTS, {"as": "jsonl"}, follow=True)

    assert "Choose an account" in shown(page)
    assert not AuditEntry.objects.filter(operation="export").exists()


def test_too_many_rows_are_refused(
    staff: Client, account: Account, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_EXPORTED_ROWS", 1)
    know(owner, "one")
    know(owner, "two")

    page = staff.get(FACTS, {"as": "jsonl", "account": str(account.pk)}, follow=True)

    assert "An export has at most 1 rows" in shown(page)


@pytest.mark.parametrize(
    "query",
    [
        {"as": "exe"}, {"as": "csv", "odd__x": "1"}, {"as": "csv", "of_user": "\x00"}, {},
        {"as": "csv", "kind__exact": "\x00"},
    ],
)  # fmt: skip
def test_a_wrong_request_leads_back_to_the_list(staff: Client, account: Account, query: dict[str, str]) -> None:
    response = staff.get(FACTS, {"account": str(account.pk), **query})

    assert response.status_code == 302
    assert response.headers["Location"] == list_url("fact")


def test_only_those_who_may_look_at_the_account_export_it(
    newcomer: Client, account: Account, stranger: Account, owner: Owner
) -> None:
    know(owner)
    assert newcomer.get(FACTS, {"account": str(account.pk), "as": "csv"}).status_code == 403
    allow("newcomer", "view_fact")
    StaffLimit.objects.create(user=User.objects.get(username="newcomer"), account_ids=[stranger.pk])

    assert newcomer.get(FACTS, {"account": str(account.pk), "as": "csv"}).status_code == 302
    assert newcomer.post(FACTS, {"as": "csv"}).status_code == 405


def lists_of_accounts() -> list[str]:
    """Return the names of all models whose rows belong to an account and are listed in the admin."""
    pages = {model: page for model, page in site._registry.items() if isinstance(page, BoundedAdmin)}
    with_account = [model for model in pages if any(field.name == "account" for field in model._meta.fields)]
    return sorted(str(model._meta.model_name) for model in with_account)


NOT_EXPORTED = {
    "bulkchange": "what staff did, which the audit log says",
    "blackboardposting": "a part of its pool",
    "erasure": "its receipt is downloaded instead",
    "facttombstone": "digests of what was rejected",
    "idempotentrequest": "answers kept for a repeated request",
    "savedworkingmemory": "exported with its account",
    "toolcacheentry": "a part of its pool",
    "vector": "numbers of a memory",
}
"""Lists whose rows are not exported, with the reason."""


@pytest.mark.parametrize("name", [name for name in lists_of_accounts() if name not in NOT_EXPORTED])
def test_every_other_list_of_an_account_is_exported_without_secrets(staff: Client, account: Account, name: str) -> None:
    response = staff.get(f"/admin/memory/{name}/export/", {"account": str(account.pk), "as": "csv"})

    columns = next(csv.reader(io.StringIO(content(response))))
    assert {"id", "account_id"} <= set(columns)
    sealed = {"secret_hash", "saved_session", "tool_input", "tool_output", "error_message", "vector"}
    assert sealed.isdisjoint(columns) or name == "auditentry"


def test_what_an_agent_used_and_said_is_exported_from_its_lists(staff: Client, account: Account, owner: Owner) -> None:
    times = {"started_at": timezone.now(), "last_turn_at": timezone.now()}
    Conversation.objects.create(account=account, conversation_id="c1", agent_id="assistant", title="=1+1", **times)

    [line] = lines(staff, account, "/admin/memory/conversation/export/", q="c1")
    table = content(staff.get("/admin/memory/conversation/export/", {"account": str(account.pk), "as": "csv"}))

    assert (line["conversation_id"], line["agent_id"]) == ("c1", "assistant")
    assert "'=1+1" in table
