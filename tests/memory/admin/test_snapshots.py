"""Snapshots of contexts: taken by staff, previewed and restored."""

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.admin import snapshots
from memory.models import AuditEntry, ContextEntry, ContextEntryVersion, ContextSnapshot, PersistentContext
from memory.owner import Owner
from memory.services.contexts.entries import boost_importance, remove_entry
from memory.services.contexts.snapshots import create_snapshot
from memory.services.memories.correct import correct_memory
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import add_url, choose, form_values, list_url, page_url, shown
from tests.memory.contexts import context_of, entry, held, keep, rewrite
from tests.memory.episodes import NOW

MODEL = "contextsnapshot"


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner)


@pytest.fixture
def snapshot(owner: Owner, context: PersistentContext) -> ContextSnapshot:
    """Take a snapshot, then change `pump`, boost `tank`, remove `hose` and add `valve`; `lid` stays as it was."""
    drafts = [entry(f"The {name} is old.", key=name) for name in ("pump", "tank", "hose", "lid")]
    pump, tank, hose, _ = keep(owner, context, *drafts)
    taken = create_snapshot(owner, context.id, name="before", now=NOW)
    rewrite(owner, pump, "The pump is new.")
    boost_importance(owner, tank.id, by=0.25, now=NOW)
    remove_entry(owner, hose.id, now=NOW)
    keep(owner, context, entry("The valve is new.", key="valve"))
    return taken


def page_of(client: Client, snapshot: ContextSnapshot) -> Any:
    return client.get(page_url(MODEL, snapshot.id))


def restore(client: Client, snapshot: ContextSnapshot) -> Any:
    return client.post(page_url(MODEL, snapshot.id), follow=True)


def names(response: Any) -> dict[str, list[str]]:
    return {section.name: sorted(step.name for step in section.steps) for section in response.context["sections"]}


def last_entry(operation: str) -> AuditEntry:
    return AuditEntry.objects.filter(operation=operation).order_by("-id")[0]


def test_a_snapshot_is_taken_from_the_page_of_its_context(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    keep(owner, context, entry("one"), entry("two"))
    values = form_values(staff.get(f"{add_url(MODEL)}?context={context.id}"))

    staff.post(add_url(MODEL), values | {"name": "by hand"})

    taken = ContextSnapshot.objects.get()
    assert (taken.name, taken.context_id, taken.entry_count, taken.agent_id) == ("by hand", context.id, 2, "")
    assert last_entry("snapshot").actor == "staff:chief"


@pytest.mark.parametrize("chosen", ["", "nonsense", "01990000-0000-7000-8000-000000000000"])
def test_a_snapshot_of_an_unknown_context_is_refused(staff: Client, context: PersistentContext, chosen: str) -> None:
    page = staff.post(f"{add_url(MODEL)}?context={chosen}", {"context": chosen, "name": "x"})

    assert page.context["adminform"].form.errors["context"]


def test_no_snapshot_is_taken_of_an_archived_context(staff: Client, context: PersistentContext) -> None:
    PersistentContext.objects.update(archived=True)

    page = staff.post(add_url(MODEL), {"context": context.id, "name": "x"})

    assert "Not saved. The context is archived" in shown(page)


def test_a_snapshots_page_previews_the_changes_of_a_restore(staff: Client, snapshot: ContextSnapshot) -> None:
    response = page_of(staff, snapshot)

    assert names(response) == {"Changed": ["pump", "tank"], "Unarchived": ["hose"], "Archived": ["valve"]}
    assert "The pump is <del>new</del>." in shown(response)
    assert "The pump is <ins>old</ins>." in shown(response)
    assert "importance 0.75 → 0.5" in shown(response)
    assert (response.context["preview"].unchanged, response.context["preview"].missing) == (1, 0)


def test_a_changed_entry_leads_to_its_versions_side_by_side(staff: Client, snapshot: ContextSnapshot) -> None:
    changed = page_of(staff, snapshot).context["sections"][0].steps
    (step,) = [step for step in changed if step.name == "pump"]

    compared = staff.get(step.compare_url).context["compared"]

    assert (compared.old.content, compared.new.content) == ("The pump is old.", "The pump is new.")


def test_a_changed_value_with_the_same_text_is_shown(staff: Client, owner: Owner, context: PersistentContext) -> None:
    keep(owner, context, entry("same", key="k", value={"a": 1}))
    taken = create_snapshot(owner, context.id, name="", now=NOW)
    keep(owner, context, entry("same", key="k", value={"a": 2}))

    page = shown(page_of(staff, taken))

    assert "Only the value differs. The text is the same." in page
    assert "<ins>1</ins>" in page


def test_changed_types_and_metadata_are_shown(staff: Client, owner: Owner, context: PersistentContext) -> None:
    (row,) = keep(owner, context, entry("same", metadata={"a": "<b>"}))
    taken = create_snapshot(owner, context.id, name="", now=NOW)
    changes = {"entry_type": "fact", "metadata": {"a": HOSTILE}}
    correct_memory(owner, row.id, changes=changes, version=1, now=NOW)

    page = shown(page_of(staff, taken))

    assert "entry type fact → observation" in page
    assert "⟦U+202E⟧" in page
    assert "→ {&quot;a&quot;: &quot;&lt;b&gt;&quot;}" in page


def test_a_difference_beyond_the_compared_text_is_mentioned(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    (long,) = keep(owner, context, entry("x " * 20_000))
    taken = create_snapshot(owner, context.id, name="", now=NOW)
    rewrite(owner, long, "x " * 20_000 + "y")

    assert "The first difference is beyond what is compared here." in shown(page_of(staff, taken))


def test_entries_that_cannot_be_restored_are_counted(staff: Client, snapshot: ContextSnapshot) -> None:
    ContextSnapshot.objects.update(entry_count=7)

    assert "3. These entries cannot be restored" in shown(page_of(staff, snapshot))


def test_a_snapshot_is_restored_and_audited(
    staff: Client, owner: Owner, context: PersistentContext, snapshot: ContextSnapshot
) -> None:
    page = restore(staff, snapshot)

    texts = {text for _, text, *_ in held(context)}
    assert texts == {f"The {name} is old." for name in ("pump", "tank", "hose", "lid")}
    assert "Restored: 2 changed, 1 unarchived, 1 archived, 1 unchanged." in shown(page)
    assert "there is nothing to restore" in shown(page)
    assert last_entry("restore").actor == "staff:chief"
    assert ContextEntryVersion.objects.order_by("-number")[0].editor == "staff:chief"
    assert "1 unarchived" in shown(staff.get(page_url(MODEL, snapshot.id, "history")))


def test_a_restore_reports_the_actual_changes_not_the_previewed_ones(
    staff: Client, owner: Owner, context: PersistentContext, snapshot: ContextSnapshot
) -> None:
    page_of(staff, snapshot)
    keep(owner, context, entry("later"))

    assert "2 changed, 1 unarchived, 2 archived" in shown(restore(staff, snapshot))


def test_restoring_twice_changes_nothing_more(staff: Client, snapshot: ContextSnapshot) -> None:
    restore(staff, snapshot)
    versions = ContextEntryVersion.objects.count()

    assert "Restored: nothing had to change, 4 unchanged." in shown(restore(staff, snapshot))
    assert ContextEntryVersion.objects.count() == versions


def test_nothing_is_restored_in_an_archived_context(staff: Client, snapshot: ContextSnapshot) -> None:
    PersistentContext.objects.update(archived=True)

    assert "Restore this snapshot" not in shown(page_of(staff, snapshot))
    assert "Nothing was restored. The context is archived" in shown(restore(staff, snapshot))


@pytest.mark.parametrize(
    ("granted", "may_read"),
    [("", False), ("change_contextsnapshot", False), ("change_contextentry", True), ("view_contextentry", True)],
)
def test_restoring_requires_permission_to_change_snapshots_and_entries(
    newcomer: Client, snapshot: ContextSnapshot, granted: str, may_read: bool
) -> None:
    allow("newcomer", "view_contextsnapshot", granted)

    page = shown(page_of(newcomer, snapshot))

    assert "What restoring it would change now" in page
    assert "Restore this snapshot" not in page
    assert ("The pump is" in page) == may_read
    assert restore(newcomer, snapshot).status_code == 403
    assert not LogEntry.objects.exists()


def test_a_page_elsewhere_restores_nothing(chief: User, context: PersistentContext, snapshot: ContextSnapshot) -> None:
    before, client = held(context), Client(enforce_csrf_checks=True)
    client.force_login(chief)

    assert restore(client, snapshot).status_code == 403
    assert held(context) == before


def test_a_snapshot_is_deleted_and_entries_stay(staff: Client, snapshot: ContextSnapshot) -> None:
    question = shown(staff.get(page_url(MODEL, snapshot.id, "delete")))
    staff.post(page_url(MODEL, snapshot.id, "delete"), {"post": "yes"})

    assert "Its entries stay as they are" in question
    assert not ContextSnapshot.objects.exists()
    assert ContextEntry.objects.count() == 5
    assert last_entry("delete_snapshot").actor == "staff:chief"


def test_deleting_a_snapshot_of_an_archived_context_is_refused_with_the_reason(
    staff: Client, snapshot: ContextSnapshot
) -> None:
    PersistentContext.objects.update(archived=True)

    alone = staff.post(page_url(MODEL, snapshot.id, "delete"), {"post": "yes"}, follow=True)
    selected = choose(staff, list_url(MODEL), "delete_selected", snapshot.id, post="yes")

    assert all("The context is archived" in shown(page) for page in (alone, selected))
    assert ContextSnapshot.objects.exists()


def test_a_page_costs_as_many_queries_for_many_entries_as_for_few(
    staff: Client, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []
    monkeypatch.setattr(snapshots, "MAX_STEPS_SHOWN", 20)

    for name, count in (("few", 2), ("many", 40)):
        context = context_of(owner, name)
        rows = keep(owner, context, *[entry(f"entry {number}") for number in range(count)])
        taken = create_snapshot(owner, context.id, name="s", now=NOW)
        for row in rows[1:]:
            rewrite(owner, row, f"{row.text}, changed")
        remove_entry(owner, rows[0].id, now=NOW)
        keep(owner, context, entry("later"))
        with CaptureQueriesContext(connection) as captured:
            page = page_of(staff, taken)
        counts.append(len(captured))

    assert counts[0] == counts[1] <= 10
    assert len(page.context["sections"][0].steps) == 20
    assert "19 more are not shown." in shown(page)


def test_whatever_entries_and_snapshots_say_is_shown_as_text(staff: Client, owner: Owner) -> None:
    context = context_of(owner, HOSTILE)
    first, second = keep(owner, context, entry(HOSTILE, key=HOSTILE[:90]), entry(f"{HOSTILE} two"))
    taken = create_snapshot(owner, context.id, name=HOSTILE, now=NOW)
    rewrite(owner, first, f"{HOSTILE} \u202emore <b>")
    remove_entry(owner, second.id, now=NOW)
    keep(owner, context, entry(f"{HOSTILE} three"))

    pages = [shown(staff.get(page_url(MODEL, taken.id, page))) for page in ("change", "delete", "history")]

    for page in [*pages, shown(staff.get(list_url(MODEL)))]:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "<b>" not in page
    assert "\u202e" not in pages[0]


def test_pages_of_a_snapshot_require_permission(newcomer: Client, snapshot: ContextSnapshot) -> None:
    assert page_of(newcomer, snapshot).status_code == 403
    assert restore(newcomer, snapshot).status_code == 403


@pytest.mark.parametrize("row_id", ["nonsense", "01990000-0000-7000-8000-000000000000"])
def test_an_unknown_snapshot_is_404(staff: Client, row_id: str) -> None:
    assert staff.get(page_url(MODEL, row_id)).status_code == 404
