"""Context entries, kept by staff: corrected into their next version, compared, restored, and their past forgotten."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from memory.models import (
    Account,
    AuditEntry,
    ContextAccessLog,
    ContextEntry,
    ContextEntryVersion,
    Memory,
    PersistentContext,
    SnapshotEntry,
)
from memory.owner import Owner
from memory.services.embedding import embed_texts
from memory.services.entries import boost_importance, store_entries
from memory.services.snapshots import create_snapshot
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import add_url, choose, form_values, list_url, page_url, shown
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


def save(client: Client, row: ContextEntry, **edits: Any) -> Any:
    """Open the page, edit, save."""
    url = page_url(MODEL, row.id)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def last_entry(operation: str) -> AuditEntry:
    return AuditEntry.objects.filter(operation=operation).order_by("-id")[0]


def stored() -> ContextEntry:
    found: ContextEntry = ContextEntry.objects.get()
    return found


def test_saving_a_page_without_edits_changes_nothing(staff: Client, row: ContextEntry) -> None:
    entries = AuditEntry.objects.count()

    save(staff, row)

    assert (stored().version, AuditEntry.objects.count()) == (row.version, entries)
    assert LogEntry.objects.get().get_change_message() == "No fields changed."


def test_a_corrected_text_is_the_next_version(staff: Client, row: ContextEntry) -> None:
    save(staff, row, text="The pump is blue.")

    version = ContextEntryVersion.objects.get(number=4)
    assert (stored().text, stored().content_version, version.content) == ("The pump is blue.", 4, "The pump is blue.")
    assert version.editor == "staff:chief"
    assert last_entry("update").actor == "staff:chief"
    assert ContextAccessLog.objects.order_by("-id")[0].actor == "staff:chief"
    assert "Changed text" in LogEntry.objects.get().get_change_message()


def test_weights_and_types_are_corrected_without_a_version(staff: Client, row: ContextEntry) -> None:
    save(staff, row, importance="0.9", confidence="0.2", entry_type="decision", memory_type="working")

    found = stored()
    assert (found.importance, found.confidence, found.entry_type, found.memory_type) == (
        *(0.9, 0.2),
        *("decision", "working"),
    )
    assert found.content_version == 3


@pytest.mark.parametrize("importance", ["1.1", "-0.1", "nan", "x", ""])
def test_a_weight_that_is_none_is_refused(staff: Client, row: ContextEntry, importance: str) -> None:
    response = save(staff, row, importance=importance)

    assert response.context["adminform"].form.errors["importance"]
    assert stored().importance == 0.5


def test_a_correction_of_what_has_changed_meanwhile_is_refused(staff: Client, owner: Owner, row: ContextEntry) -> None:
    values = form_values(staff.get(page_url(MODEL, row.id))) | {"text": "mine"}
    boost_importance(owner, row.id, by=0.1, now=NOW)

    page = staff.post(page_url(MODEL, row.id), values)

    assert "somebody else has changed it" in shown(page)
    assert stored().content_version == 3


def test_a_page_shows_context_relevance_and_value(staff: Client, owner: Owner, context: PersistentContext) -> None:
    (keyed,) = keep(owner, context, entry("", key="k\u200b", value={"<b>": 1.0}), now=datetime.now(UTC))

    page = shown(staff.get(page_url(MODEL, keyed.id)))

    assert page_url("persistentcontext", context.id) in page
    assert "0.800" in page
    assert "k⟦U+200B⟧" in page
    assert "&quot;&lt;b&gt;&quot;: 1.0" in page


def add(client: Client, to: PersistentContext, **given: Any) -> Any:
    values = form_values(client.get(f"{add_url(MODEL)}?context={to.id}"))
    return client.post(add_url(MODEL), values | given, follow=True)


def test_an_entry_is_added_to_a_context_and_waits_for_its_vector(staff: Client, context: PersistentContext) -> None:
    add(staff, context, text="Added by hand.", entry_type="fact", importance="0.8")

    found = stored()
    assert (found.text, found.entry_type, found.importance, found.source) == ("Added by hand.", "fact", 0.8, "staff")
    assert (found.context_id, found.agent_id) == (context.id, "")
    assert found.embed_after is not None
    assert ContextEntryVersion.objects.get().editor == "staff:chief"
    assert last_entry("store").actor == "staff:chief"


def test_an_entry_under_a_key_that_is_taken_is_its_next_version(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    (keyed,) = keep(owner, context, entry("old", key="k"))

    page = add(staff, context, text="new", key="k")

    assert (stored().id, stored().text, stored().content_version) == (keyed.id, "new", 2)
    assert "There was an entry under this key: it is at version 2." in shown(page)


def test_nothing_is_added_to_an_archived_context(staff: Client, context: PersistentContext) -> None:
    PersistentContext.objects.update(archived=True)

    page = add(staff, context, text="Added by hand.")

    assert "Not saved: the context is archived" in shown(page)
    assert page.context["adminform"].form["text"].value() == "Added by hand."


@pytest.mark.parametrize("given", [{"context": ""}, {"context": "nonsense"}, {"text": " "}, {"key": "a\nb"}])
def test_what_no_entry_can_be_is_refused(staff: Client, context: PersistentContext, given: dict[str, str]) -> None:
    page = add(staff, context, **({"text": "one"} | given))

    assert list(page.context["adminform"].form.errors) == list(given)
    assert not ContextEntry.objects.exists()


def test_the_latest_version_stands_beside_the_one_before(staff: Client, row: ContextEntry) -> None:
    response = versions_of(staff, row)

    compared = response.context["compared"]
    assert (compared.old.number, compared.new.number, compared.value) == (2, 3, None)
    assert "<ins>It is green.</ins>" in shown(response)
    assert [version.number for version in response.context["listed"].versions] == [3, 2, 1]


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

    assert "it has one version" in shown(versions_of(staff, single))


def test_many_versions_are_listed_by_pages_and_cost_the_same_queries(staff: Client, row: ContextEntry) -> None:
    counts = []
    for size in (0, 250):
        ContextEntryVersion.objects.bulk_create(
            ContextEntryVersion(account_id=row.account_id, entry_id=row.id, number=n, content="x", created_at=NOW)
            for n in range(4, 4 + size)
        )
        with CaptureQueriesContext(connection) as captured:
            response = versions_of(staff, row)
        counts.append(len(captured))

    listed = response.context["listed"]
    assert (len(listed.versions), listed.before) == (100, 154)
    assert versions_of(staff, row, before=4).context["listed"].versions[0].number == 3
    assert counts[0] == counts[1] <= 8


def test_a_version_is_restored_as_the_next_one_and_audited(staff: Client, row: ContextEntry) -> None:
    page = restore(staff, row, 1)

    version = ContextEntryVersion.objects.get(number=4)
    assert (stored().text, version.restored_from, version.editor) == ("The pump is old.", 1, "staff:chief")
    assert last_entry("restore").actor == "staff:chief"
    assert "Restored: version 4 says what version 1 says." in shown(page)
    assert "Restored version 1 as version 4." in shown(staff.get(page_url(MODEL, row.id, "history")))


def test_restoring_what_it_says_already_changes_nothing(staff: Client, row: ContextEntry) -> None:
    assert "Nothing to restore" in shown(restore(staff, row, 3))
    assert stored().content_version == 3


@pytest.mark.parametrize("number", [99, "x", ""])
def test_a_version_that_is_not_there_is_told(staff: Client, row: ContextEntry, number: object) -> None:
    assert "Not restored: no such version." in shown(restore(staff, row, number))


def test_restoring_what_has_changed_meanwhile_is_refused(staff: Client, row: ContextEntry) -> None:
    page = restore(staff, row, 1, seen_version="1")

    assert "by now: read it again" in shown(page)
    assert stored().content_version == 3


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"archived": True}, "unarchive it first"),
        ({"quarantined": True}, "release it first"),
        ({"expires_at": NOW}, "it has expired"),
    ],
)
def test_what_agents_do_not_see_is_not_restored(
    staff: Client, row: ContextEntry, columns: dict[str, Any], told: str
) -> None:
    Memory.objects.update(**columns)

    assert told in shown(versions_of(staff, row))
    assert f"Not restored: {'it'}" in shown(restore(staff, row, 1))
    assert stored().content_version == 3


def test_nothing_is_restored_in_an_archived_context(staff: Client, row: ContextEntry) -> None:
    PersistentContext.objects.update(archived=True)

    assert "Not restored: its context is archived" in shown(restore(staff, row, 1))


def test_earlier_versions_are_forgotten_after_a_warning(staff: Client, owner: Owner, row: ContextEntry) -> None:
    create_snapshot(owner, row.context_id, name="s", now=NOW)  # type: ignore[arg-type]
    rewrite(owner, row, "another")

    question = shown(choose(staff, list_url(MODEL), "forget", row.id))
    asked = ContextEntryVersion.objects.count()
    page = shown(choose(staff, list_url(MODEL), "forget", row.id, post="yes"))

    assert ("Snapshots lose the entries" in question, "3 earlier versions" in question, asked) == (True, True, 4)
    assert "Forgotten: 3 versions." in page
    assert [version.number for version in ContextEntryVersion.objects.all()] == [4]
    assert not SnapshotEntry.objects.exists()
    assert last_entry("forget_versions").actor == "staff:chief"
    assert "Forgot earlier versions." in shown(staff.get(page_url(MODEL, row.id, "history")))


def test_who_may_not_delete_forgets_nothing(newcomer: Client, row: ContextEntry) -> None:
    allow("newcomer", "view_contextentry", "change_contextentry")

    choose(newcomer, list_url(MODEL), "forget", row.id, post="yes")

    assert ContextEntryVersion.objects.count() == 3
    assert "Forget" not in shown(versions_of(newcomer, row))


def test_who_may_only_look_restores_nothing(newcomer: Client, row: ContextEntry) -> None:
    allow("newcomer", "view_contextentry")

    page = shown(versions_of(newcomer, row))

    assert "<ins>It is green.</ins>" in page
    assert "Restore" not in page.replace("Restored from", "")
    assert restore(newcomer, row, 1).status_code == 403
    assert newcomer.post(page_url(MODEL, row.id), {"text": "x", "seen_version": "3"}).status_code == 403
    assert stored().content_version == 3


def test_nobody_sees_versions_without_permission(newcomer: Client, row: ContextEntry) -> None:
    assert versions_of(newcomer, row).status_code == 403
    assert restore(newcomer, row, 1).status_code == 403


@pytest.mark.parametrize("row_id", ["nonsense", "01990000-0000-7000-8000-000000000000"])
def test_versions_of_an_entry_that_is_not_there_are_404(staff: Client, row_id: str) -> None:
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
    pages.append(shown(choose(staff, list_url(MODEL), "forget", stored.id)))

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

    assert "More of it differs than is shown here." in page
    assert len(page) < 100_000


def test_a_list_shows_the_beginning_of_a_long_text_and_loads_no_more(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    keep(owner, context, entry("x" * 100_000, key="k"))

    with CaptureQueriesContext(connection) as captured:
        page = shown(staff.get(list_url(MODEL)))

    assert len(page) < 60_000
    for column in ('"context_entries"."value"', '"persistent_contexts"."description"', '"memories"."metadata"'):
        assert not [query for query in captured if column in query["sql"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"entry_type__exact": "fact"}, 1),
        ({"memory_type__exact": "factual"}, 2),
        ({"source_type__exact": "tool"}, 0),
        ({"q": "pumps"}, 1),
        ({"q": "cake sold"}, 0),
    ],
)
def test_entries_are_found_by_type_and_words(
    staff: Client, owner: Owner, context: PersistentContext, query: dict[str, str], found: int
) -> None:
    keep(owner, context, entry("The pump is old.", entry_type="fact"), entry("A cake."))

    assert staff.get(list_url(MODEL, **query)).context["cl"].result_count == found


def test_entries_are_found_by_meaning(staff: Client, account: Account, owner: Owner) -> None:
    texts = ["The water pump was repaired.", "The bakery ordered flour."]
    drafts = [entry(text) for text in texts]
    store_entries(owner, context_of(owner).id, drafts=drafts, embedded=embed_texts(texts), now=NOW)

    response = staff.get(list_url(MODEL, account=account.id, meaning=texts[0]))

    assert response.context["cl"].result_list[0].text.startswith("The water")
    assert "1.000" in shown(response)
    assert f'<a href="{list_url(MODEL)}">Show all</a>' in shown(response)


def test_deleting_says_that_versions_go_too(staff: Client, row: ContextEntry) -> None:
    question = shown(staff.get(page_url(MODEL, row.id, "delete")))
    staff.post(page_url(MODEL, row.id, "delete"), {"post": "yes"})

    assert "their versions, vectors and links; snapshots lose them" in question
    assert not ContextEntryVersion.objects.exists()
    assert last_entry("delete").actor == "staff:chief"
