"""Context entries, kept by staff: found, added, corrected into their next version, deleted."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.models import (
    Account,
    AuditEntry,
    ContextAccessLog,
    ContextEntry,
    ContextEntryVersion,
    PersistentContext,
)
from memory.owner import Owner
from memory.services.contexts.entries import boost_importance, store_entries
from memory.services.embedding.embed import embed_texts
from tests.memory.admin.pages import add_url, form_values, list_url, page_url, shown
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
def test_an_invalid_importance_is_refused(staff: Client, row: ContextEntry, importance: str) -> None:
    response = save(staff, row, importance=importance)

    assert response.context["adminform"].form.errors["importance"]
    assert stored().importance == 0.5


def test_correcting_an_entry_that_has_changed_meanwhile_is_refused(
    staff: Client, owner: Owner, row: ContextEntry
) -> None:
    values = form_values(staff.get(page_url(MODEL, row.id))) | {"text": "mine"}
    boost_importance(owner, row.id, by=0.1, now=NOW)

    page = staff.post(page_url(MODEL, row.id), values)

    assert "changed in the meantime" in shown(page)
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
    assert "The context had an entry with this key, which is at version 2 now." in shown(page)


def test_nothing_is_added_to_an_archived_context(staff: Client, context: PersistentContext) -> None:
    PersistentContext.objects.update(archived=True)

    page = add(staff, context, text="Added by hand.")

    assert "Not saved. The context is archived" in shown(page)
    assert page.context["adminform"].form["text"].value() == "Added by hand."


@pytest.mark.parametrize("given", [{"context": ""}, {"context": "nonsense"}, {"text": " "}, {"key": "a\nb"}])
def test_adding_an_invalid_entry_is_refused(staff: Client, context: PersistentContext, given: dict[str, str]) -> None:
    page = add(staff, context, **({"text": "one"} | given))

    assert list(page.context["adminform"].form.errors) == list(given)
    assert not ContextEntry.objects.exists()


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


def test_deleting_an_entry_warns_that_its_versions_are_deleted_too(staff: Client, row: ContextEntry) -> None:
    question = shown(staff.get(page_url(MODEL, row.id, "delete")))
    staff.post(page_url(MODEL, row.id, "delete"), {"post": "yes"})

    assert "Their versions, vectors and links are deleted too, and snapshots lose them" in question
    assert not ContextEntryVersion.objects.exists()
    assert last_entry("delete").actor == "staff:chief"
