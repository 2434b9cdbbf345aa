"""A turn is read as in the transcript, corrected for good, marked, and never deleted alone."""

from typing import Any

import pytest
from django.test import Client

from memory.models import AuditEntry, Conversation, Memory, Turn, Vector
from memory.owner import Owner
from memory.tiers.session_stores import session_store, session_turn
from memory_project import redis
from tests.memory.admin.chats import HOSTILE, allow, called, sent
from tests.memory.admin.pages import choose, form_values, list_url, page_url, shown
from tests.memory.turns import say, turn

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def spoken(owner: Owner) -> Turn:
    """Store a turn with a vector, and put it into the session's buffer."""
    stored = say(owner, turn("The code is 4711.", angle=0.1))
    session_store().append(stored.conversation, [session_turn(stored.turns[0])])
    return stored.turns[0]


@pytest.fixture
def call(owner: Owner) -> Turn:
    arguments = '{"code": "4711"}'
    return say(owner, sent("Opening.", role="assistant", tool_calls=[called("open_door", arguments)])).turns[0]


def save(client: Client, row: Any, **edits: Any) -> Any:
    """Open the page, edit, save."""
    url = page_url("turn", row.pk)
    return client.post(url, form_values(client.get(url)) | edits, follow=True)


def test_a_turn_is_read_as_in_the_transcript(staff: Client, call: Turn) -> None:
    page = shown(staff.get(page_url("turn", call.pk)))

    assert '<div class="said" dir="auto">Opening.</div>' in page
    assert "Calls open_door call_1" in page
    assert f"{page_url('conversation', call.log_id)}?turn=0#turn-0" in page


def test_a_long_turn_is_read_whole(staff: Client, owner: Owner) -> None:
    (long,) = say(owner, sent("word " * 100_000 + "the end")).turns

    assert "the end</div>" in shown(staff.get(page_url("turn", long.pk)))


def test_hostile_content_of_a_turn_is_shown_as_text(staff: Client, owner: Owner) -> None:
    (hostile,) = say(owner, sent(HOSTILE, name=HOSTILE, tool_calls=[called(HOSTILE, HOSTILE)])).turns

    pages = [shown(staff.get(page_url("turn", hostile.pk))), shown(staff.get(list_url("turn")))]

    assert not [page for page in pages if "<script>alert" in page or "<img src=x" in page]
    assert "⟦U+202E⟧tfel" in pages[0].partition("<fieldset")[0]


def test_saving_a_page_without_edits_changes_nothing(staff: Client, call: Turn) -> None:
    save(staff, call)

    assert Turn.objects.get().version == 1
    assert Turn.objects.get().payload == call.payload


def test_correcting_a_text_deletes_its_vector_and_is_audited(staff: Client, spoken: Turn) -> None:
    save(staff, spoken, text="[taken out]")

    row = Turn.objects.get()
    assert (row.text, row.version, row.embed_after is not None) == ("[taken out]", 2, True)
    assert not Vector.objects.exists()
    entry = AuditEntry.objects.order_by("-id")[0]
    assert (entry.actor, entry.operation, entry.affected_ids) == ("staff:chief", "update", [str(spoken.pk)])


def test_correcting_a_turn_erases_the_arguments_of_its_tool_calls(staff: Client, call: Turn) -> None:
    save(staff, call, text="[taken out]")

    row = Turn.objects.get()
    assert row.payload == {"tool_calls": [called("open_door", "{}")]}
    assert "4711" not in shown(staff.get(page_url("turn", call.pk)))
    assert "4711" not in shown(staff.get(page_url("conversation", call.log_id)))


def test_a_session_returns_the_corrected_text_of_a_turn(
    staff: Client, spoken: Turn, django_capture_on_commit_callbacks: Any
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        save(staff, spoken, text="[taken out]")

    (latest,) = session_store().recent(Conversation.objects.get(), 10)
    assert latest.text == "[taken out]"


def test_without_redis_nothing_is_corrected(
    staff: Client, spoken: Turn, settings: Any, request: pytest.FixtureRequest
) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    forget_clients()
    request.addfinalizer(forget_clients)

    page = save(staff, spoken, text="[taken out]")

    assert "Redis does not answer" in shown(page)
    assert Turn.objects.get().text == "The code is 4711."


def test_a_page_warns_that_a_summary_may_still_repeat_the_turn(staff: Client, spoken: Turn) -> None:
    before = shown(staff.get(page_url("turn", spoken.pk)))
    Conversation.objects.update(summarized_count=1)

    assert "a summary may still repeat it" not in before
    assert "a summary may still repeat it" in shown(staff.get(page_url("turn", spoken.pk)))


def test_the_speaker_is_corrected_too(staff: Client, spoken: Turn) -> None:
    save(staff, spoken, name="Ana")

    assert (Turn.objects.get().name, Turn.objects.get().text) == ("Ana", "The code is 4711.")


@pytest.mark.parametrize(("mark", "column"), [("archive", "archived"), ("quarantine", "quarantined")])
def test_a_turn_is_marked_on_its_page(staff: Client, spoken: Turn, mark: str, column: str) -> None:
    page = staff.post(page_url("turn", spoken.pk), {"action": mark}, follow=True)

    assert getattr(Turn.objects.get(), column)
    assert not Vector.objects.get().live
    assert AuditEntry.objects.order_by("-id")[0].operation == mark
    assert f'value="{mark}"' not in shown(page)


def test_an_unknown_action_is_404(staff: Client, spoken: Turn) -> None:
    assert staff.post(page_url("turn", spoken.pk), {"action": "explode"}).status_code == 404


def test_the_view_permission_alone_allows_no_changes(newcomer: Client, spoken: Turn) -> None:
    allow("newcomer", "view_turn")

    looked = newcomer.get(page_url("turn", spoken.pk))
    marked = newcomer.post(page_url("turn", spoken.pk), {"action": "archive"})
    saved = newcomer.post(page_url("turn", spoken.pk), {"text": "x", "seen_version": "1"})

    assert [page.status_code for page in (looked, marked, saved)] == [200, 403, 403]
    assert "<textarea" not in shown(looked)
    assert Turn.objects.get().version == 1


def test_opening_a_turn_requires_permission(newcomer: Client, spoken: Turn) -> None:
    assert newcomer.get(page_url("turn", spoken.pk)).status_code == 403
    assert newcomer.post(page_url("turn", spoken.pk), {"action": "archive"}).status_code == 403


def test_an_unknown_turn_redirects_to_a_valid_page(staff: Client) -> None:
    assert staff.get(page_url("turn", "nonsense"), follow=True).status_code == 200


@pytest.mark.parametrize("model", ["turn", "memory"])
def test_a_turn_is_not_deleted_alone(staff: Client, spoken: Turn, model: str) -> None:
    staff.post(page_url(model, spoken.pk, "delete"), {"post": "yes"})
    choose(staff, list_url(model), "delete_selected", spoken.pk, post="yes")

    assert Turn.objects.count() == Memory.objects.count() == 1


def test_the_generic_memory_page_also_erases_tool_call_arguments_of_a_turn(staff: Client, call: Turn) -> None:
    url = page_url("memory", call.pk)

    staff.post(url, form_values(staff.get(url)) | {"text": "[taken out]"}, follow=True)

    assert Turn.objects.get().payload == {"tool_calls": [called("open_door", "{}")]}


@pytest.mark.parametrize(("words", "found"), [("code", 1), ("door", 0), ("c1", 1)])
def test_turns_are_found_by_their_words_or_conversation(staff: Client, spoken: Turn, words: str, found: int) -> None:
    assert staff.get(list_url("turn", q=words)).context["cl"].result_count == found


def test_turns_are_filtered_by_role(staff: Client, owner: Owner) -> None:
    say(owner, sent("one"), sent("two", role="assistant"))

    assert staff.get(list_url("turn", role__exact="assistant")).context["cl"].result_count == 1


def forget_clients() -> None:
    redis.client.cache_clear()
    redis.script.cache_clear()
