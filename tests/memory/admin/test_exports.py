"""Exports of memories from the lists of the admin: filtered like the list, within one account, harmless to open."""

import csv
import io
import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.admin import exports
from memory.admin.exports import neutralize_cell
from memory.models import Account, AuditEntry, StaffLimit
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
