"""Persistent contexts, edited by staff: names and grants; archived, and deleted with their entries."""

from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.models import Account, AuditEntry, ContextEntry, ContextSnapshot, PersistentContext
from memory.owner import Owner
from memory.services.contexts.manage import change_context
from memory.services.contexts.snapshots import create_snapshot
from tests.memory.admin.chats import HOSTILE, allow
from tests.memory.admin.pages import add_url, choose, form_values, list_url, page_url, shown
from tests.memory.contexts import context_of, entry, keep
from tests.memory.episodes import NOW
from tests.memory.pools import make_team

MODEL = "persistentcontext"


@pytest.fixture
def context(owner: Owner) -> PersistentContext:
    return context_of(owner, "notes", description="Of the pump.\nAnd more.", metadata={"a": 1})


def typed(client: Client, context: PersistentContext, **edits: Any) -> dict[str, Any]:
    """Return what a browser would send of the page as it is now, with these edits."""
    return form_values(client.get(page_url(MODEL, context.id))) | edits


def save(client: Client, context: PersistentContext, values: dict[str, Any]) -> Any:
    return client.post(page_url(MODEL, context.id), values, follow=True)


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def change_meanwhile(context: PersistentContext) -> None:
    owner = Owner(account_id=context.account_id)
    change_context(owner, context.id, changes={"name": "theirs"}, expected=None, now=NOW)


def test_name_description_and_metadata_are_changed_and_audited(staff: Client, context: PersistentContext) -> None:
    save(staff, context, typed(staff, context, name=" notes ", description="a\r\nb", metadata='{"b": [1.0]}'))

    context.refresh_from_db()
    assert (context.name, context.description, context.metadata) == (" notes ", "a\nb", {"b": [1.0]})
    assert context.version == 2
    assert (last_entry().actor, last_entry().operation) == ("staff:chief", "update")


def test_saving_a_page_without_edits_changes_nothing(staff: Client, owner: Owner) -> None:
    context = context_of(owner, "no\ntes ", description=" a\n")
    entries = AuditEntry.objects.count()

    save(staff, context, typed(staff, context, name="notes "))

    context.refresh_from_db()
    assert (context.name, context.version, AuditEntry.objects.count()) == ("no\ntes ", 1, entries)
    assert LogEntry.objects.get().get_change_message() == "No fields changed."


def test_an_agent_is_granted_access_on_the_page(staff: Client, context: PersistentContext) -> None:
    values = typed(staff, context) | {"access_control-0-agent": "ana", "access_control-0-write": "on"}

    save(staff, context, values)

    context.refresh_from_db()
    assert context.access_control == {"read": [], "write": ["ana"], "public_read": False}


def test_saving_an_outdated_page_shows_a_conflict_and_overwrites_nothing(
    staff: Client, context: PersistentContext
) -> None:
    values = typed(staff, context, name="mine")
    change_meanwhile(context)

    page = save(staff, context, values)

    context.refresh_from_db()
    assert context.name == "theirs"
    assert "Not saved. It was changed since you read it and is at version 2 now" in shown(page)
    assert page.context["adminform"].form["name"].value() == "mine"


@pytest.mark.parametrize(
    ("name", "expected"), [("other", "The owner already has a context with this name"), ("  ", "must have a name")]
)
def test_a_taken_or_empty_name_is_refused_with_a_message(
    staff: Client, owner: Owner, context: PersistentContext, name: str, expected: str
) -> None:
    context_of(owner, "other")

    assert expected in shown(save(staff, context, typed(staff, context, name=name)))


@pytest.mark.parametrize(("is_archived", "setting"), [(False, "archive"), (True, "unarchive")])
def test_a_context_is_archived_and_brought_back_on_its_page(
    staff: Client, context: PersistentContext, is_archived: bool, setting: str
) -> None:
    PersistentContext.objects.update(archived=is_archived)

    page = staff.post(page_url(MODEL, context.id), {"action": setting, "seen_version": "1"}, follow=True)

    context.refresh_from_db()
    assert (context.archived, f"The context is {setting}d." in shown(page)) == (not is_archived, True)
    assert (last_entry().actor, last_entry().operation) == ("staff:chief", setting)
    assert LogEntry.objects.get().change_message == f"{setting.capitalize()}."


@pytest.mark.parametrize("seen", ["1", "", "x", "9" * 30])
def test_archiving_a_context_that_has_changed_meanwhile_is_refused(
    staff: Client, context: PersistentContext, seen: str
) -> None:
    change_meanwhile(context)

    page = staff.post(page_url(MODEL, context.id), {"action": "archive", "seen_version": seen}, follow=True)

    assert "Nothing was changed." in shown(page)
    assert not PersistentContext.objects.get().archived


def test_selected_contexts_are_archived_and_brought_back(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    other = context_of(owner, "other")

    choose(staff, list_url(MODEL), "archive", context.id, other.id)
    archived = PersistentContext.objects.filter(archived=True).count()
    choose(staff, list_url(MODEL), "unarchive", other.id)

    assert (archived, PersistentContext.objects.filter(archived=True).count()) == (2, 1)
    assert last_entry().actor == "staff:chief"


@pytest.mark.parametrize("scope", ["agent", "account", "team"])
def test_a_context_is_added_for_an_agent(staff: Client, account: Account, scope: str) -> None:
    team = make_team(account, agents=["assistant"])
    values = form_values(staff.get(add_url(MODEL))) | {
        "account": account.id,
        "name": "new",
        "context_type": "knowledge_base",
        "scope": scope,
        "agent_id": "assistant",
        "team": team.id if scope == "team" else "",
    }

    staff.post(add_url(MODEL), values)

    context = PersistentContext.objects.get()
    assert (context.name, context.agent_id, context.scope) == ("new", "assistant", scope)
    assert context.team_id == (team.id if scope == "team" else None)
    assert (last_entry().operation, last_entry().actor) == ("create", "staff:chief")


def test_adding_an_invalid_context_is_refused_with_a_message(
    staff: Client, account: Account, context: PersistentContext
) -> None:
    values = form_values(staff.get(add_url(MODEL))) | {"account": account.id, "agent_id": "assistant"}

    taken = staff.post(add_url(MODEL), values | {"name": "notes"})
    without_team = staff.post(add_url(MODEL), values | {"name": "new", "scope": "team"})

    assert "The owner already has a context with this name" in shown(taken)
    assert "Team is required for scope team" in shown(without_team)
    assert PersistentContext.objects.count() == 1


def test_deleting_a_context_lists_the_rows_deleted_with_it_and_is_audited(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    keep(owner, context, entry("one"), entry("two"))
    create_snapshot(owner, context.id, name="s", now=NOW)

    question = shown(staff.get(page_url(MODEL, context.id, "delete")))
    staff.post(page_url(MODEL, context.id, "delete"), {"post": "yes"})

    assert "entries and learnings (2) with all versions, vectors, links and votes; snapshots (1)" in question
    assert not PersistentContext.objects.exists()
    assert not ContextEntry.objects.exists()
    assert not ContextSnapshot.objects.exists()
    assert (last_entry().operation, last_entry().actor) == ("delete", "staff:chief")


def test_selected_contexts_are_deleted_from_the_list(staff: Client, owner: Owner, context: PersistentContext) -> None:
    other = context_of(owner, "other")

    choose(staff, list_url(MODEL), "delete_selected", context.id, post="yes")

    assert PersistentContext.objects.get().id == other.id


def test_deleting_a_context_requires_permission_to_delete_its_entries(
    newcomer: Client, owner: Owner, context: PersistentContext
) -> None:
    allow("newcomer", "view_persistentcontext", "delete_persistentcontext")

    page = newcomer.get(page_url(MODEL, context.id, "delete"))

    assert "context entry" in shown(page)
    assert newcomer.post(page_url(MODEL, context.id, "delete"), {"post": "yes"}).status_code == 403
    assert PersistentContext.objects.exists()


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ({"q": "not"}, 1),
        ({"q": "assistant"}, 2),
        ({"q": "assist"}, 0),
        ({"scope__exact": "account"}, 1),
        ({"archived__exact": "1"}, 0),
        ({"context_type__exact": "agent_memory"}, 2),
    ],
)
def test_contexts_are_found_by_name_owner_and_kind(
    staff: Client, owner: Owner, context: PersistentContext, query: dict[str, str], found: int
) -> None:
    context_of(owner, "other", scope="account")

    assert staff.get(list_url(MODEL, **query)).context["cl"].result_count == found


def test_a_context_is_found_by_its_id(staff: Client, owner: Owner, context: PersistentContext) -> None:
    context_of(owner, "other")

    assert staff.get(list_url(MODEL, q=context.id)).context["cl"].result_count == 1


def test_a_contexts_page_links_to_its_entries_snapshots_learnings_and_log(
    staff: Client, owner: Owner, context: PersistentContext
) -> None:
    other = context_of(owner, "other")
    for each in (context, other):
        keep(owner, each, entry("one"), now=datetime.now(UTC))
        create_snapshot(owner, each.id, name="s", now=NOW)

    page = shown(staff.get(page_url(MODEL, context.id)))

    for model in ("contextentry", "contextsnapshot", "contextaccesslog"):
        assert list_url(model, context=context.id) in page
        assert staff.get(list_url(model, context=context.id)).context["cl"].result_count == 1
    assert list_url("learning", context=context.id) in page
    assert staff.get(list_url("learning", context=context.id)).context["cl"].result_count == 0


@pytest.mark.parametrize("model", ["contextentry", "contextsnapshot", "contextaccesslog"])
@pytest.mark.parametrize("chosen", ["nonsense", "01990000-0000-7000-8000-000000000000"])
def test_filtering_by_an_unknown_context_lists_nothing(
    staff: Client, owner: Owner, context: PersistentContext, model: str, chosen: str
) -> None:
    keep(owner, context, entry("one"), now=datetime.now(UTC))

    assert staff.get(list_url(model, context=chosen)).context["cl"].result_count == 0


def test_a_list_of_contexts_loads_no_long_columns(staff: Client, context: PersistentContext) -> None:
    with CaptureQueriesContext(connection) as captured:
        staff.get(list_url(MODEL))

    assert not [query for query in captured if '"persistent_contexts"."description"' in query["sql"]]


def test_whatever_a_context_is_called_is_shown_as_text(staff: Client, newcomer: Client, owner: Owner) -> None:
    context = context_of(owner, HOSTILE, description=HOSTILE, metadata={HOSTILE: HOSTILE})
    allow("newcomer", "view_persistentcontext")
    urls = [list_url(MODEL), *(page_url(MODEL, context.id, page) for page in ("change", "delete", "history"))]

    pages = [shown(staff.get(url)) for url in urls] + [shown(newcomer.get(url)) for url in urls[:2]]

    for page in pages:
        assert "<script>alert" not in page
        assert "<img src=x" not in page
    assert "⟦U+202E⟧" in pages[0]


def test_the_view_permission_alone_allows_no_changes(newcomer: Client, context: PersistentContext) -> None:
    allow("newcomer", "view_persistentcontext")

    page = shown(newcomer.get(page_url(MODEL, context.id)))

    assert "Of the pump." in page
    assert "<button" not in page.partition('id="content-main"')[2].partition('class="footer"')[0]
    for sent in ({"name": "x", "seen_version": "1"}, {"action": "archive", "seen_version": "1"}):
        assert newcomer.post(page_url(MODEL, context.id), sent).status_code == 403
    choose(newcomer, list_url(MODEL), "archive", context.id)
    assert PersistentContext.objects.get().version == 1


@pytest.mark.parametrize("page", ["change", "delete", "history"])
def test_pages_of_a_context_require_permission(newcomer: Client, context: PersistentContext, page: str) -> None:
    assert newcomer.get(page_url(MODEL, context.id, page)).status_code == 403


def test_a_page_costs_a_fixed_number_of_queries(
    staff: Client, owner: Owner, context: PersistentContext, django_assert_max_num_queries: Any
) -> None:
    keep(owner, context, *[entry(f"entry {number}") for number in range(60)])

    with django_assert_max_num_queries(8):
        staff.get(page_url(MODEL, context.id))
