"""Versions of entries in the admin: side by side, restored, and forgotten."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from memory.models import AuditEntry, ContextEntry, ContextEntryVersion, Memory, PersistentContext, SnapshotEntry
from memory.owner import Owner
from memory.services.contexts.snapshots import create_snapshot
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import choose, list_url, page_url, queries_of, shown
from tests.memory.contexts import context_of, entry, keep, rewrite
from tests.memory.episodes import NOW

MODEL = "contextentry"


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


@pytest.fixture
def row(owner: Owner, context: PersistentContext) -> ContextEntry:
    """An entry of three versions, whose second was another."""
    (stored,) = keep(owner, context, entry("The pump is old."))
    rewrite(owner, stored, "The pump is new.")
    return rewrite(owner, stored, "The pump is new.\nIt is green.")


def versions_of(client: Client, row: ContextEntry, **query: Any) -> Any:
    return client.get(reverse("admin:memory_contextentry_versions", args=[row.id]), query)


def restore(client: Client, row: ContextEntry, number: object, **more: Any) -> Any:
    seen = Memory.objects.get(id=row.id).version
    url = reverse("admin:memory_contextentry_versions", args=[row.id])
    return client.post(url, {"number": str(number), "seen_version": str(seen)} | more, follow=True)


def last_entry(operation: str) -> AuditEntry:
    return AuditEntry.objects.filter(operation=operation).order_by("-id")[0]


def stored() -> ContextEntry:
    found: ContextEntry = ContextEntry.objects.get()
    return found


def test_the_latest_version_is_compared_with_the_previous_one(staff: Client, row: ContextEntry) -> None:
    response = versions_of(staff, row)

    compared = response.context["compared"]
    assert (compared.old.number, compared.new.number, compared.value) == (2, 3, None)
    assert "<ins>It is green.</ins>" in shown(response)
    assert [version.number for version in response.context["versions"]] == [3, 2, 1]


@pytest.mark.parametrize(
    ("query", "pair"),
    [
        ({"left": 1, "right": 3}, (1, 3)),
        ({"left": 3, "right": 1}, (1, 3)),
        ({"right": 2}, (1, 2)),
        ({"left": 1}, (1, 3)),
        ({"left": "x", "right": "-1"}, (2, 3)),
        ({"left": 2, "right": 2}, (1, 2)),
        ({"left": "9" * 30, "right": 99}, (2, 3)),
        ({"left": 99, "right": 2}, (1, 2)),
        ({"right": 1}, (1, 2)),
    ],
)
def test_any_two_versions_are_compared(
    staff: Client, row: ContextEntry, query: dict[str, object], pair: tuple[int, int]
) -> None:
    compared = versions_of(staff, row, **query).context["compared"]

    assert (compared.old.number, compared.new.number) == pair


def test_words_that_changed_are_marked_on_both_sides(staff: Client, row: ContextEntry) -> None:
    page = shown(versions_of(staff, row, right=2))

    assert "The pump is <del>old</del>." in page
    assert "The pump is <ins>new</ins>." in page


def test_values_are_compared_as_json_over_lines(staff: Client, owner: Owner, context: PersistentContext) -> None:
    (keyed,) = keep(owner, context, entry("same", key="k", value={"a": 1, "b": 2}))
    keep(owner, context, entry("same", key="k", value={"a": 1, "b": 3}))

    response = versions_of(staff, keyed)

    assert response.context["compared"].content.is_same
    assert "<ins>3</ins>" in shown(response)


def test_an_entry_of_one_version_has_nothing_to_compare(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    (single,) = keep(owner, context, entry("one"))

    assert "There is only one version" in shown(versions_of(staff, single))


def test_many_versions_are_listed_by_pages_and_cost_the_same_queries(staff: Client, row: ContextEntry) -> None:
    counts = []
    for size in (0, 250):
        ContextEntryVersion.objects.bulk_create(
            ContextEntryVersion(account_id=row.account_id, entry_id=row.id, number=n, content="x", created_at=NOW)
            for n in range(4, 4 + size)
        )
        counts.append(queries_of(staff, reverse("admin:memory_contextentry_versions", args=[row.id])))

    listed = versions_of(staff, row).context
    assert (len(listed["versions"]), listed["next_before"]) == (100, 154)
    assert versions_of(staff, row, before=4).context["versions"][0].number == 3
    assert counts[0] == counts[1] <= 8


def test_a_version_is_restored_as_the_next_one_and_audited(staff: Client, row: ContextEntry) -> None:
    page = restore(staff, row, 1)

    version = ContextEntryVersion.objects.get(number=4)
    assert (stored().text, version.restored_from, version.editor) == ("The pump is old.", 1, "staff:chief")
    assert last_entry("restore").actor == "staff:chief"
    assert "Restored version 1 as version 4." in shown(page)
    assert "Restored version 1 as version 4." in shown(staff.get(page_url(MODEL, row.id, "history")))


def test_restoring_the_current_content_changes_nothing(staff: Client, row: ContextEntry) -> None:
    assert "Nothing was restored. The entry has the same content" in shown(restore(staff, row, 3))
    assert stored().content_version == 3


@pytest.mark.parametrize("number", [99, "x", ""])
def test_restoring_an_unknown_version_shows_a_message(staff: Client, row: ContextEntry, number: object) -> None:
    assert "Nothing was restored. No such version." in shown(restore(staff, row, number))


def test_restoring_an_entry_that_has_changed_meanwhile_is_refused(staff: Client, row: ContextEntry) -> None:
    page = restore(staff, row, 1, seen_version="1")

    assert "now: read it again" in shown(page)
    assert stored().content_version == 3


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"archived": True}, "Unarchive it first"),
        ({"quarantined": True}, "Release it first"),
        ({"expires_at": NOW}, "The entry has expired"),
    ],
)
def test_an_entry_hidden_from_agents_is_not_restored(
    staff: Client, row: ContextEntry, columns: dict[str, Any], expected: str
) -> None:
    Memory.objects.update(**columns)

    assert expected in shown(versions_of(staff, row))
    assert "Nothing was restored. The entry " in shown(restore(staff, row, 1))
    assert stored().content_version == 3


def test_nothing_is_restored_in_an_archived_context(staff: Client, row: ContextEntry) -> None:
    PersistentContext.objects.update(archived=True)

    assert "Nothing was restored. The context is archived" in shown(restore(staff, row, 1))


def test_earlier_versions_are_forgotten_after_a_warning(staff: Client, owner: Owner, row: ContextEntry) -> None:
    create_snapshot(owner, row.context_id, name="s", now=NOW)  # type: ignore[arg-type]
    rewrite(owner, row, "another")

    question = shown(choose(staff, list_url(MODEL), "forget", row.id, post=""))
    asked = ContextEntryVersion.objects.count()
    page = shown(choose(staff, list_url(MODEL), "forget", row.id))

    assert ("lose the entry" in question, "It cannot be undone." in question, asked) == (True, True, 4)
    assert "Deleted old versions: 1 " in page
    assert [version.number for version in ContextEntryVersion.objects.all()] == [4]
    assert "There is only one version" in shown(versions_of(staff, row))
    assert not SnapshotEntry.objects.exists()
    assert last_entry("forget_versions").actor == "staff:chief"
    assert "Deleted old versions." in shown(staff.get(page_url(MODEL, row.id, "history")))


def test_forgetting_versions_requires_permission_to_delete(newcomer: Client, row: ContextEntry) -> None:
    allow("newcomer", "view_contextentry", "change_contextentry")

    choose(newcomer, list_url(MODEL), "forget", row.id, post="yes")

    assert ContextEntryVersion.objects.count() == 3
    assert "Forget" not in shown(versions_of(newcomer, row))


def test_the_view_permission_alone_does_not_allow_restoring(newcomer: Client, row: ContextEntry) -> None:
    allow("newcomer", "view_contextentry")

    page = shown(versions_of(newcomer, row))

    assert "<ins>It is green.</ins>" in page
    assert "Restore" not in page.replace("Restored from", "")
    assert restore(newcomer, row, 1).status_code == 403
    assert newcomer.post(page_url(MODEL, row.id), {"text": "x", "seen_version": "3"}).status_code == 403
    assert stored().content_version == 3


def test_a_page_elsewhere_restores_nothing(chief: User, row: ContextEntry) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(chief)

    assert restore(client, row, 1).status_code == 403
    assert stored().content_version == 3


def test_viewing_versions_requires_permission(newcomer: Client, row: ContextEntry) -> None:
    assert versions_of(newcomer, row).status_code == 403
    assert restore(newcomer, row, 1).status_code == 403


@pytest.mark.parametrize("row_id", ["nonsense", "01990000-0000-7000-8000-000000000000"])
def test_versions_of_an_unknown_entry_are_404(staff: Client, row_id: str) -> None:
    assert staff.get(reverse("admin:memory_contextentry_versions", args=[row_id])).status_code == 404


def test_whatever_an_entry_says_is_shown_as_text(staff: Client, owner: Owner, context: PersistentContext) -> None:
    (stored,) = keep(owner, context, entry("", key=HOSTILE[:90], value={"a": HOSTILE}))
    keep(owner, context, entry(f"{HOSTILE} more", key=HOSTILE[:90], value=[HOSTILE, "<b>"]))
    ContextEntryVersion.objects.filter(number=1).delete()
    ContextEntryVersion.objects.create(
        account_id=stored.account_id, entry=stored, number=1, content=f"\u202e{HOSTILE}", editor=HOSTILE, created_at=NOW
    )
    urls = [page_url(MODEL, stored.id, page) for page in ("change", "history", "delete")]
    urls += [list_url(MODEL), reverse("admin:memory_contextentry_versions", args=[stored.id])]

    pages = [shown(staff.get(url)) for url in urls]
    pages.append(shown(choose(staff, list_url(MODEL), "forget", stored.id, post="")))

    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
    assert "\u202e" not in pages[4]
    assert "\u202e" not in pages[5]


def test_versions_of_a_million_characters_are_shown_in_part(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    (long,) = keep(owner, context, entry("x" * 1_000_000))
    rewrite(owner, long, "y " * 500_000)

    page = shown(versions_of(staff, long))

    assert "There are more differences than are shown here." in page
    assert len(page) < 100_000
