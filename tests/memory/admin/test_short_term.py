"""Short-term entries in the admin: expired ones are marked, and stay unreadable to agents."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from memory.models import AgentShortTermMemory, AuditEntry
from memory.owner import Owner
from memory.services.short_term import ShortTermDraft, store_entry
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import choose, form_values, list_url, page_url, shown

MODEL = "agentshorttermmemory"


def now() -> datetime:
    return datetime.now(UTC)


def keep(owner: Owner, key: str = "plan", value: Any = "dig", *, ago: timedelta = timedelta(), **columns: Any) -> Any:
    """An entry written so long ago, for an hour."""
    draft = ShortTermDraft(memory_key=key, memory_value=value, session_id="s1")
    entry = store_entry(owner, draft, now=now() - ago)
    AgentShortTermMemory.objects.filter(id=entry.id).update(**columns)
    entry.refresh_from_db()
    return entry


@pytest.fixture
def entry(owner: Owner) -> AgentShortTermMemory:
    found: AgentShortTermMemory = keep(owner)
    return found


@pytest.fixture
def expired(owner: Owner) -> AgentShortTermMemory:
    found: AgentShortTermMemory = keep(owner, "old", ago=timedelta(hours=2))
    return found


def save(client: Client, entry: AgentShortTermMemory, **edits: Any) -> Any:
    url = page_url(MODEL, entry.id)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


@pytest.mark.parametrize("value", ["null", "[]", '""', "false", "1.0", '"123"', '{"a":[12345678901234567890]}'])
def test_a_value_is_corrected_exactly_and_audited(staff: Client, entry: AgentShortTermMemory, value: str) -> None:
    ends = entry.expires_at

    save(staff, entry, memory_value=value)

    url = page_url(MODEL, entry.id)
    assert form_values(staff.get(url))["memory_value"].replace("\n", "").replace(" ", "") == value
    entry.refresh_from_db()
    assert entry.expires_at == ends
    assert (last_entry().actor, last_entry().operation) == ("staff:chief", "update")


def test_saving_a_page_without_edits_changes_nothing(staff: Client, entry: AgentShortTermMemory) -> None:
    entries = AuditEntry.objects.count()

    save(staff, entry)

    assert AuditEntry.objects.count() == entries


@pytest.mark.parametrize("value", ["", "{", "NaN", '"\\u0000"', "[" * 100_000, f'"{"x" * 70_000}"'])
def test_an_invalid_value_is_refused_and_stays_in_the_form(
    staff: Client, entry: AgentShortTermMemory, value: str
) -> None:
    page = save(staff, entry, memory_value=value)

    assert page.context["adminform"].form.errors
    assert page.context["adminform"].form["memory_value"].value() == value
    assert AgentShortTermMemory.objects.get().memory_value == "dig"


def test_an_entry_written_by_the_agent_meanwhile_is_not_overwritten(
    staff: Client, owner: Owner, entry: AgentShortTermMemory
) -> None:
    values = form_values(staff.get(page_url(MODEL, entry.id)))
    keep(owner, value="the agent's")

    page = staff.post(page_url(MODEL, entry.id), values | {"memory_value": '"mine"'})

    assert "The entry was written since it was read" in shown(page)
    assert page.context["adminform"].form["memory_value"].value() == '"mine"'
    assert AgentShortTermMemory.objects.get().memory_value == "the agent's"


def test_an_expired_entry_is_marked_and_not_changed(staff: Client, expired: AgentShortTermMemory) -> None:
    page = shown(staff.get(page_url(MODEL, expired.id)))

    assert "expired; to be deleted" in page
    assert "<textarea" not in page
    assert staff.post(page_url(MODEL, expired.id), {"memory_value": "1"}).status_code == 403


def test_an_expired_entry_whose_key_was_written_again_is_shown_as_waiting(staff: Client, owner: Owner) -> None:
    waiting = keep(owner, ago=timedelta(hours=2), access_count=3)
    live = keep(owner, value="anew")

    rows = staff.get(list_url(MODEL, state="waiting")).context["cl"].result_list

    assert [row.id for row in rows] == [waiting.id]
    assert "expired, key written again; waiting for promotion" in shown(staff.get(page_url(MODEL, waiting.id)))
    staff.post(page_url(MODEL, waiting.id, "delete"), {"post": "yes"})
    assert AgentShortTermMemory.objects.get() == live


@pytest.mark.parametrize(("state", "keys"), [("live", {"plan"}), ("expired", {"old", "often"}), ("waiting", {"often"})])
def test_entries_are_filtered_by_state(
    staff: Client, owner: Owner, entry: AgentShortTermMemory, expired: AgentShortTermMemory, state: str, keys: set[str]
) -> None:
    keep(owner, "often", ago=timedelta(hours=2), access_count=3)

    rows = staff.get(list_url(MODEL, state=state)).context["cl"].result_list

    assert {row.memory_key for row in rows} == keys


def test_entries_are_filtered_by_agent_or_session(staff: Client, owner: Owner) -> None:
    keep(owner)
    keep(Owner(account_id=owner.account_id, agent_id="other"))

    found = [staff.get(list_url(MODEL, **query)).context["cl"].result_count for query in NARROWINGS]

    assert found == [1, 2, 0, 1, 2]


NARROWINGS = (
    {"agent_id__exact": "other"},
    {"session_id__exact": "s1"},
    {"session_id__exact": "s2"},
    {"q": "assistant"},
    {"q": "pl"},
)


def test_selected_entries_are_refreshed_unless_they_expired(
    staff: Client, owner: Owner, expired: AgentShortTermMemory
) -> None:
    entry = keep(owner, ago=timedelta(minutes=30))

    page = choose(staff, list_url(MODEL), "refresh", entry.id, expired.id)

    entry.refresh_from_db()
    assert entry.expires_at > now() + timedelta(minutes=59)
    assert AgentShortTermMemory.objects.get(id=expired.id).expires_at == expired.expires_at
    assert "Some rows were not changed. Entries that have expired cannot be refreshed." in shown(page)


def test_entries_are_deleted_expired_or_not(
    staff: Client, entry: AgentShortTermMemory, expired: AgentShortTermMemory
) -> None:
    staff.post(page_url(MODEL, expired.id, "delete"), {"post": "yes"})
    choose(staff, list_url(MODEL), "delete_selected", entry.id, post="yes")

    assert not AgentShortTermMemory.objects.exists()
    entries = AuditEntry.objects.filter(operation="delete")
    assert set(entries.values_list("actor", flat=True)) == {"staff:chief"}
    assert entries.count() == 2


def test_whatever_an_entry_says_is_shown_as_text(staff: Client, newcomer: Client, owner: Owner) -> None:
    entry = keep(owner, HOSTILE, {HOSTILE: HOSTILE})
    allow("newcomer", "view_agentshorttermmemory")

    for client in (staff, newcomer):
        for url in (list_url(MODEL), page_url(MODEL, entry.id)):
            page = shown(client.get(url))
            assert "<script>alert" not in page
            assert "⟦U+202E⟧" in page


def test_the_view_permission_alone_allows_no_changes(newcomer: Client, entry: AgentShortTermMemory) -> None:
    allow("newcomer", "view_agentshorttermmemory")

    choose(newcomer, list_url(MODEL), "refresh", entry.id)

    assert "&quot;dig&quot;" in shown(newcomer.get(page_url(MODEL, entry.id)))
    assert newcomer.post(page_url(MODEL, entry.id), {"memory_value": "1"}).status_code == 403
    assert AgentShortTermMemory.objects.get().expires_at == entry.expires_at
