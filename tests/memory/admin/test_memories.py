"""Pages of memories: corrected through the service, and safe to view with any content."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from memory.models import Account, AuditEntry, EpisodicMemory, Memory, Vector
from memory.owner import Owner
from memory.retrieval.queries import Query
from memory.retrieval.retrievers.lexical import has_words_or_ids
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, recall
from tests.memory.admin.pages import add_url, choose, form_values, list_url, page_url, shown
from tests.memory.episodes import MODEL, NOW, direction, draft, store

HOSTILE = "<script>alert(1)</script>\u202etfel ot thgir\u202c <img src=x onerror=alert(1)> {{ 7 }} \u200b"


@pytest.fixture
def episode(owner: Owner) -> EpisodicMemory:
    (row,) = store(owner, draft("The pump was\nbought in March.", angle=0.0))
    return row


def save(client: Client, model: str, row: Any, **edits: Any) -> Any:
    """Open the page, edit, save."""
    url = page_url(model, row.id)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def test_saving_a_page_without_edits_changes_nothing(staff: Client, episode: EpisodicMemory) -> None:
    entries = AuditEntry.objects.count()

    response = save(staff, "episodicmemory", episode)

    assert response.status_code == 200
    assert Memory.objects.get().version == 1
    assert AuditEntry.objects.count() == entries


def test_a_page_is_headed_by_what_its_memory_says(staff: Client, episode: EpisodicMemory) -> None:
    page = shown(staff.get(page_url("episodicmemory", episode.id)))

    assert "<h2>The pump was bought in March.</h2>" in page
    assert str(episode) not in page.partition("<form")[0]


def test_line_ends_of_browsers_are_no_edit(staff: Client, episode: EpisodicMemory) -> None:
    save(staff, "episodicmemory", episode, text="The pump was\r\nbought in March.")

    assert Memory.objects.get().version == 1


@pytest.mark.parametrize("model", ["memory", "episodicmemory"])
def test_an_edited_text_waits_for_its_new_vector(staff: Client, episode: EpisodicMemory, model: str) -> None:
    save(staff, model, episode, text="It was bought in April.")

    row = Memory.objects.get()
    assert (row.text, row.version) == ("It was bought in April.", 2)
    assert row.embed_after is not None
    assert not Vector.objects.exists()
    assert AuditEntry.objects.order_by("-id")[0].actor == "staff:chief"


def test_the_documented_lists_are_edited_as_json(staff: Client, episode: EpisodicMemory) -> None:
    save(staff, "episodicmemory", episode, key_decisions='["buy a pump", {"by": null}]')

    assert EpisodicMemory.objects.get().key_decisions == ["buy a pump", {"by": None}]


def test_a_value_that_is_not_a_json_list_is_refused(staff: Client, episode: EpisodicMemory) -> None:
    url = page_url("episodicmemory", episode.id)
    seen = form_values(staff.get(url))

    for value in ("{", "[NaN]", '["\\u0000"]', '["\\ud800"]', "[" * 100_000, '{"a": 1}', "7", "[1e999]"):
        response = staff.post(url, seen | {"key_decisions": value}, follow=True)

        assert response.context["adminform"].form.errors["key_decisions"], value[:20]
        assert Memory.objects.get().version == 1


def test_two_people_on_one_page_do_not_overwrite_each_other(staff: Client, episode: EpisodicMemory) -> None:
    url = page_url("episodicmemory", episode.id)
    seen = form_values(staff.get(url))
    save(staff, "episodicmemory", episode, salience="0.9")

    response = staff.post(url, seen | {"salience": "0.1"}, follow=True)

    assert "changed in the meantime" in shown(response)
    assert Memory.objects.get().salience == 0.9


@pytest.mark.parametrize("text", [HOSTILE, "\u202e" + "x" * 1_000_000, "<script>" * 1_000])
def test_whatever_a_memory_says_is_shown_as_text(staff: Client, owner: Owner, text: str) -> None:
    (row,) = store(owner, draft(text))
    save(staff, "episodicmemory", row, salience="0.9")

    pages = [list_url("memory"), list_url("episodicmemory")]
    pages += [page_url("episodicmemory", row.id, page) for page in ("change", "history", "delete")]

    for url in pages:
        page = shown(staff.get(url))
        assert "<script>alert" not in page
        assert "<script><script>" not in page
        assert "<img src=x" not in page


def test_a_list_shows_the_beginning_of_a_long_text_and_loads_no_more(staff: Client, owner: Owner) -> None:
    store(owner, draft("\u202e" + "x" * 1_000_000))

    with CaptureQueriesContext(connection) as captured:
        page = shown(staff.get(list_url("memory")))

    assert len(page) < 60_000
    assert "⟦U+202E⟧xxx" in page
    whole = [query for query in captured if '"memories"."text"' in query["sql"].replace('LEFT("memories"."text"', "")]
    assert not whole


def test_a_page_names_the_invisible_characters_of_its_text(staff: Client, owner: Owner) -> None:
    (row,) = store(owner, draft(HOSTILE))

    page = shown(staff.get(page_url("memory", row.id)))

    assert "U+202E right-to-left override (1)" in page


@pytest.mark.parametrize(("words", "found"), [("pumps bought", 1), ("pump sold", 0), ("assistant", 1), ("c1", 1)])
def test_memories_are_found_by_their_words_conversation_or_agent(
    staff: Client, account: Account, episode: EpisodicMemory, words: str, found: int
) -> None:
    anywhere = staff.get(list_url("memory", q=words)).context["cl"]
    in_account = staff.get(list_url("memory", q=words, account=account.id)).context["cl"]

    assert (anywhere.result_count, in_account.result_count) == (found, found)


def test_words_of_one_account_find_nothing_in_another(
    staff: Client, stranger: Account, episode: EpisodicMemory
) -> None:
    response = staff.get(list_url("episodicmemory", q="pump", account=stranger.id))

    assert response.context["cl"].result_count == 0


@pytest.mark.parametrize(
    ("action", "column"),
    [("archive", "archived"), ("quarantine", "quarantined"), ("pin", "pinned"), ("bury", "buried")],
)
def test_marks_are_actions_of_the_list(staff: Client, episode: EpisodicMemory, action: str, column: str) -> None:
    choose(staff, list_url("episodicmemory"), action, episode.id)

    assert getattr(Memory.objects.get(), column)
    assert AuditEntry.objects.order_by("-id")[0].operation == action


@pytest.mark.parametrize(("mark", "undo"), [("bury", "unbury"), ("quarantine", "release")])
def test_recall_omits_a_buried_or_quarantined_memory_until_that_is_undone(
    staff: Client, owner: Owner, episode: EpisodicMemory, mark: str, undo: str
) -> None:
    asked = RecallRequest(query=Query(text=episode.text), own=ClientVector(model=MODEL, vector=direction(0.0)))

    choose(staff, list_url("memory"), mark, episode.id)
    hidden = recall(owner, asked, now=NOW).results
    choose(staff, list_url("memory"), undo, episode.id)

    assert hidden == []
    assert [found.id for found in recall(owner, asked, now=NOW).results] == [episode.id]


@pytest.mark.parametrize("column", ["archived", "quarantined", "pinned", "buried"])
def test_the_list_is_filtered_by_marks(staff: Client, episode: EpisodicMemory, column: str) -> None:
    Memory.objects.update(**{column: True})

    found = [staff.get(f"{list_url('memory')}?{column}__exact={wanted}") for wanted in (0, 1)]

    assert [page.context["cl"].result_count for page in found] == [0, 1]
    assert column in shown(found[1])


@pytest.mark.parametrize("model", ["memory", "episodicmemory"])
def test_deleting_asks_first_and_then_audits(staff: Client, episode: EpisodicMemory, model: str) -> None:
    question = shown(staff.get(page_url(model, episode.id, "delete")))
    staff.post(page_url(model, episode.id, "delete"), {"post": "yes"})

    assert "Their vectors and links are deleted too" in question
    assert ("<li>Vectors: 1</li>" in question, "<li>Links: 0</li>" in question) == (True, True)
    assert "related items" not in question
    assert not Memory.objects.exists()
    assert not EpisodicMemory.objects.exists()
    assert AuditEntry.objects.order_by("-id")[0].operation == "delete"


def test_selected_memories_are_deleted_from_the_list(staff: Client, owner: Owner) -> None:
    keep, *others = store(owner, draft("one", angle=0.1), draft("two", angle=0.2), draft("three"))

    choose(staff, list_url("episodicmemory"), "delete_selected", *[row.id for row in others], post="yes")

    assert [row.id for row in Memory.objects.all()] == [keep.id]


def test_an_episode_can_be_added_and_waits_for_its_vector(staff: Client, account: Account) -> None:
    values = form_values(staff.get(add_url("episodicmemory")))
    values |= {"account": account.id, "agent_id": "assistant", "conversation_id": "a/b %2F", "text": "Added by hand."}
    values |= {"event_time_0": "2026-05-04", "event_time_1": "12:00:00"}

    response = staff.post(add_url("episodicmemory"), values, follow=True)

    assert response.status_code == 200
    row = EpisodicMemory.objects.get()
    assert (row.text, row.source, row.conversation_id) == ("Added by hand.", "staff", "a/b %2F")
    assert row.embed_after is not None
    assert AuditEntry.objects.get(operation="store").actor == "staff:chief"


@pytest.mark.parametrize("page", ["change", "delete", "history"])
def test_pages_of_a_memory_require_permission(newcomer: Client, episode: EpisodicMemory, page: str) -> None:
    assert newcomer.get(page_url("episodicmemory", episode.id, page)).status_code == 403
    assert newcomer.post(page_url("episodicmemory", episode.id, page), {"post": "yes"}).status_code == 403


def test_the_view_permission_alone_does_not_allow_archiving(newcomer: Client, episode: EpisodicMemory) -> None:
    looker = User.objects.get(username="newcomer")
    looker.user_permissions.add(Permission.objects.get(codename="view_episodicmemory"))

    choose(newcomer, list_url("episodicmemory"), "archive", episode.id)

    assert newcomer.get(list_url("episodicmemory")).status_code == 200
    assert not Memory.objects.get().archived


def test_a_list_asks_for_words_of_one_account_in_the_order_of_its_rows(owner: Owner, stranger: Account) -> None:
    pump, engine = store(owner, draft("The pump was bought.", angle=0.0), draft("The engine was sold.", angle=1.0))
    others = store(Owner(account_id=stranger.id), draft("A pump of theirs.", angle=0.0))
    found = has_words_or_ids("pumps", account_id=owner.account_id)

    rows = Memory.objects.filter(found, account_id=owner.account_id)

    assert [row.pk for row in rows] == [pump.pk]
    # in a subquery the table has another alias
    assert [row.pk for row in Memory.objects.filter(pk__in=rows.values("pk")).order_by("-pk")] == [pump.pk]
    assert [row.pk for row in Memory.objects.exclude(found).exclude(account_id=stranger.id)] == [engine.pk]
    everywhere = Memory.objects.filter(has_words_or_ids("pumps", account_id=None))
    assert {row.pk for row in everywhere} == {pump.pk, others[0].pk}


@pytest.mark.parametrize("text", ["the of", "", "' & | !", "\\", "a:*"])
def test_texts_without_words_find_only_what_is_named_so(owner: Owner, text: str) -> None:
    store(owner, draft("The pump was bought.", angle=0.0))

    assert not Memory.objects.filter(has_words_or_ids(text, account_id=owner.account_id)).exclude(user_id="").exists()
