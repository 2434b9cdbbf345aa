"""Single values of an account, which only Python programs write, are listed, corrected and deleted in the admin."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from memory.models import Account, AuditEntry
from memory.owner import Owner
from memory.tiers.key_values import KeyValues
from tests.memory.admin.pages import page_url, shown

MODEL = "valueaccount"
KEY = "a:b {c} [1] <script>alert(1)</script>"

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def values(account: Account, empty_redis: None) -> KeyValues:
    return KeyValues(Owner(account_id=account.id))


def look(client: Client, account: Account, **query: str) -> Any:
    return client.get(page_url(MODEL, account.id, "value"), query)


def send(client: Client, account: Account, **data: Any) -> Any:
    return client.post(page_url(MODEL, account.id, "value"), data, follow=True)


def listed(client: Client, account: Account, **query: str) -> list[str]:
    return [row.name for row in client.get(page_url(MODEL, account.id), query).context["rows"]]


def test_values_are_listed_with_their_size_and_expiry(staff: Client, account: Account, values: KeyValues) -> None:
    values.set("b", "<b>bold</b>", ex=90_000)
    values.set("a", "ä" * 1_000)

    page = staff.get(page_url(MODEL, account.id))

    kept, expiring = page.context["rows"]
    assert (kept.name, kept.beginning, kept.size, kept.expires_in) == ("a", "ä" * 200, 2_000, "never")
    assert (expiring.name, expiring.size) == ("b", 11)
    assert expiring.expires_in.startswith("1 day, ")
    assert "&lt;b&gt;bold" in shown(page)
    assert "<b>bold" not in shown(page)


@pytest.mark.parametrize("text", ["x😀" * 300, "😀" * 300, "ä" * 799 + "😀" * 10, "", "é" * 400 + "x"])
def test_the_beginning_of_any_text_is_whole_characters(values: KeyValues, text: str) -> None:
    values.set("key", text)

    for characters in (1, 2, 3, 100, 200):
        (found,) = values.describe(["key"], characters=characters)
        assert text.startswith(found.beginning)
        assert len(found.beginning) == min(characters, len(text))


def test_values_of_other_accounts_and_missing_ones_are_not_listed(
    staff: Client, account: Account, stranger: Account, values: KeyValues
) -> None:
    KeyValues(Owner(account_id=stranger.id)).set("theirs", "x")
    values.set("ours", "x")

    assert listed(staff, account) == ["ours"]
    assert [found.name for found in values.describe(["ours", "theirs"], characters=9)] == ["ours"]


def test_values_are_found_by_a_part_of_their_key(staff: Client, account: Account, values: KeyValues) -> None:
    for key in ("order [1]", "or*er 7", "{braces}", "a\\b"):
        values.set(key, "x")

    assert [listed(staff, account, named=text) for text in ("[1", "or*", "{brace", "\\", "?")] == [
        ["order [1]"], ["or*er 7"], ["{braces}"], ["a\\b"], [],
    ]  # fmt: skip


def test_all_values_are_reached_page_by_page(staff: Client, account: Account, values: KeyValues) -> None:
    wanted = {f"key {number}" for number in range(300)}
    for key in wanted:
        values.set(key, "x")

    found, cursor = set(), "0"
    for _ in range(50):
        context = staff.get(page_url(MODEL, account.id), {"cursor": cursor}).context
        found |= {row.name for row in context["rows"]}
        cursor = str(context["cursor"])
        if cursor == "0":
            break

    assert found == wanted


def test_a_value_is_corrected_with_an_expiry_and_audited(staff: Client, account: Account, values: KeyValues) -> None:
    values.set(KEY, "before")

    page = look(staff, account, name=KEY)
    send(staff, account, action="save", name=KEY, value="two\r\nlines", ttl_seconds="50")

    assert "before" in shown(page)
    assert "<script>alert" not in shown(page)
    found = values.find(KEY)
    assert found is not None
    assert found.text == "two\nlines"
    assert found.ttl_seconds is not None
    assert 40 < found.ttl_seconds <= 50
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.actor, entry.operation, entry.affected_ids) == ("staff:chief", "update", [KEY])


def test_without_seconds_to_live_a_value_is_kept(staff: Client, account: Account, values: KeyValues) -> None:
    values.set("key", "x", ex=50)

    send(staff, account, action="save", name="key", value="y", ttl_seconds="")

    found = values.find("key")
    assert found is not None
    assert (found.text, found.ttl_seconds) == ("y", None)


def test_a_value_is_deleted_once(staff: Client, account: Account, values: KeyValues) -> None:
    values.set("key", "x")

    first = send(staff, account, action="delete", name="key")
    again = send(staff, account, action="delete", name="key")

    assert values.get("key") is None
    assert "Deleted key" in shown(first)
    assert "gone already" in shown(again)


@pytest.mark.parametrize("data", [{"name": ""}, {"name": "x" * 201}, {"ttl_seconds": "0"}, {"value": "x" * 100_001}])
def test_what_is_not_valid_is_refused_and_stays_in_the_form(
    staff: Client, account: Account, values: KeyValues, data: dict[str, str]
) -> None:
    page = send(staff, account, **({"action": "save", "name": "key", "value": "typed", "ttl_seconds": ""} | data))

    assert "Nothing was changed" in shown(page)
    assert "typed" in shown(page) or "value" in data
    assert values.describe(["key"], characters=9) == []


def test_a_long_text_is_shown_and_cannot_be_edited(staff: Client, account: Account, values: KeyValues) -> None:
    values.set("key", "x" * 100_001)

    page = look(staff, account, name="key")

    assert "too long to be edited" in shown(page)
    assert "<textarea" not in shown(page)


def test_pages_need_permission(newcomer: Client, account: Account, values: KeyValues) -> None:
    values.set("key", "x")

    assert newcomer.get(page_url(MODEL, account.id)).status_code == 403
    assert look(newcomer, account, name="key").status_code == 403
    User.objects.get(username="newcomer").user_permissions.add(Permission.objects.get(codename="view_valueaccount"))
    assert "<textarea" not in shown(look(newcomer, account, name="key"))
    assert send(newcomer, account, action="delete", name="key").status_code == 403
    assert values.get("key") == "x"


def test_nonsense_in_the_address_is_no_error(staff: Client, account: Account) -> None:
    assert staff.get(page_url(MODEL, account.id), {"cursor": "x"}).status_code == 200
    assert look(staff, account, name="x" * 999).status_code == 200
    assert "no value with this key" in shown(look(staff, account, name="gone"))
    assert staff.get(page_url(MODEL, "nonsense")).status_code == 404
    assert send(staff, account, action="explode").status_code == 404
