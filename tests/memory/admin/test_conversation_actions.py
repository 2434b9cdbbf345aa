"""Staff actions on the page of a conversation: through services, audited, and by permission."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from ledger import store as ledger
from memory.models import (
    Account,
    AuditEntry,
    Conversation,
    EpisodicMemory,
    JobRun,
    Link,
    Memory,
    Participant,
    Turn,
    Vector,
)
from memory.owner import Owner
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import session_ref
from memory.tiers.working import WorkingMemory
from memory_project import redis
from memory_project.redis import ConversationRef
from tests.memory.admin.chats import allow
from tests.memory.admin.pages import choose, list_url, page_url, shown
from tests.memory.episodes import NOW, draft, store
from tests.memory.turns import say, talk, turn

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def conversation(owner: Owner) -> Conversation:
    return say(owner, turn("one", angle=0.1), turn("two", angle=0.2, role="assistant")).conversation


def send(client: Client, conversation: Conversation, action: str, **data: Any) -> Any:
    return client.post(page_url("conversation", conversation.id), {"action": action, **data}, follow=True)


def delete(client: Client, conversation: Conversation, **data: str) -> Any:
    return client.post(page_url("conversation", conversation.id, "delete"), {"post": "yes", **data}, follow=True)


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


def test_title_and_metadata_are_corrected(staff: Client, conversation: Conversation) -> None:
    page = send(staff, conversation, "correct", title=" A pump ", metadata='{"ticket": 7}')

    conversation.refresh_from_db()
    assert (conversation.title, conversation.metadata) == (" A pump ", {"ticket": 7})
    assert (last_entry().operation, last_entry().actor) == ("update", "staff:chief")
    assert "Saved: metadata, title." in shown(page)


def test_saving_unchanged_values_writes_no_audit_entry(staff: Client, conversation: Conversation) -> None:
    entries = AuditEntry.objects.count()

    send(staff, conversation, "correct", title="", metadata="{}")

    assert AuditEntry.objects.count() == entries


@pytest.mark.parametrize("data", [{"title": "x" * 201}, {"title": "\x00"}, {"metadata": "["}, {"metadata": "[]"}])
def test_an_invalid_title_or_metadata_is_refused_with_a_message(
    staff: Client, conversation: Conversation, data: dict[str, str]
) -> None:
    page = send(staff, conversation, "correct", **{"title": "new", "metadata": "{}", **data})

    assert "Nothing was changed" in shown(page)
    assert Conversation.objects.get().title == ""


def test_a_conversation_is_ended_and_its_live_side_cleared(
    staff: Client, owner: Owner, conversation: Conversation
) -> None:
    WorkingMemory(owner).set("c1", {"n": 1})

    page = send(staff, conversation, "end", outcome="success")

    conversation.refresh_from_db()
    assert conversation.ended_at is not None
    assert (conversation.outcome, WorkingMemory(owner).get("c1")) == ("success", {})
    assert last_entry().operation == "end"
    assert 'value="end"' not in shown(page)


def test_a_summary_is_requested(staff: Client, conversation: Conversation) -> None:
    page = send(staff, conversation, "summarize")

    conversation.refresh_from_db()
    assert (conversation.summarize_to, conversation.summarize_after is not None) == (2, True)
    assert JobRun.objects.get().job == "summarize"
    assert {"summarize", "run_job"} <= set(AuditEntry.objects.values_list("operation", flat=True))
    assert "A summary of all turns is queued." in shown(page)


def test_a_failing_summary_is_retried_immediately(staff: Client, conversation: Conversation) -> None:
    later = NOW.replace(year=NOW.year + 10)
    Conversation.objects.update(summary_error="provider_refused", summary_attempts=4, summarize_after=later)

    page = send(staff, conversation, "retry")

    conversation.refresh_from_db()
    assert conversation.summarize_after is not None
    assert conversation.summarize_after < later
    assert conversation.summary_attempts == 4
    assert "tried again now" in shown(page)


def test_there_is_nothing_to_retry_where_nothing_failed(staff: Client, conversation: Conversation) -> None:
    page = send(staff, conversation, "retry")

    assert "No summary of this conversation waits after a failure." in shown(page)
    assert not JobRun.objects.exists()


def test_extraction_is_requested(staff: Client, conversation: Conversation) -> None:
    before = shown(staff.get(page_url("conversation", conversation.id)))
    Conversation.objects.update(extract_after=None)

    page = send(staff, conversation, "extract")

    conversation.refresh_from_db()
    assert "Extract now" in before
    assert conversation.extract_after is not None
    assert JobRun.objects.get().job == "extract_knowledge"
    assert (last_entry().operation, last_entry().actor) == ("consolidate", "staff:chief")
    assert "Extraction from the remaining turns is queued." in shown(page)


def test_failing_extraction_is_retried_immediately(staff: Client, conversation: Conversation) -> None:
    later = NOW.replace(year=NOW.year + 10)
    Conversation.objects.update(extract_error="provider_refused", extract_attempts=4, extract_after=later)
    before = shown(staff.get(page_url("conversation", conversation.id)))

    send(staff, conversation, "extract")

    conversation.refresh_from_db()
    assert "none, failing: provider_refused (4×)" in before
    assert "Retry extraction now" in before
    assert conversation.extract_after is not None
    assert conversation.extract_after < later


def test_extraction_is_not_offered_once_all_turns_are_extracted(staff: Client, conversation: Conversation) -> None:
    Conversation.objects.update(extracted_count=2, extract_after=None)

    page = shown(send(staff, conversation, "extract"))

    assert "Knowledge was already extracted from all turns." in page
    assert 'value="extract"' not in page
    assert not JobRun.objects.exists()


def test_extraction_is_requested_for_selected_conversations(
    staff: Client, owner: Owner, conversation: Conversation
) -> None:
    done, _ = (talk(owner, 1, conversation_id=name).conversation for name in ("done", "left alone"))
    later = NOW.replace(year=NOW.year + 10)
    Conversation.objects.update(extract_error="provider_refused", extract_after=later)
    Conversation.objects.filter(id=done.id).update(extracted_count=1, extract_after=None, extract_error="")

    page = choose(staff, list_url("conversation"), "extract", conversation.id, done.id)

    due: dict[str, Any] = dict(Conversation.objects.values_list("conversation_id", "extract_after"))
    assert due.pop("c1") < later
    assert due == {"done": None, "left alone": later}
    assert JobRun.objects.get().job == "extract_knowledge"
    assert "Queued for extraction: 1 conversation." in shown(page)


def test_selected_parked_conversations_are_queued_again(
    staff: Client, owner: Owner, conversation: Conversation
) -> None:
    well = talk(owner, 1, conversation_id="well").conversation
    parked: dict[str, Any] = {"summary_error": "request_refused", "summary_parked_at": NOW, "summary_attempts": 8}
    parked |= {"extract_error": "IntegrityError", "extract_parked_at": NOW, "extract_attempts": 8}
    Conversation.objects.filter(id=conversation.id).update(**parked, summarize_after=None, extract_after=None)
    assert "none, parked: IntegrityError (8×)" in shown(staff.get(list_url("conversation")))

    page = choose(staff, list_url("conversation"), "try_again", conversation.id, well.id)

    conversation.refresh_from_db()
    assert (conversation.summary_parked_at, conversation.summary_error, conversation.summarize_to) == (None, "", 2)
    assert (conversation.extract_parked_at, conversation.extract_error) == (None, "")
    assert conversation.extract_after is not None
    assert sorted(JobRun.objects.values_list("job", flat=True)) == ["extract_knowledge", "summarize"]
    assert "Queued once more: 1 conversation." in shown(page)


def test_archiving_also_archives_unpinned_turns_and_unarchiving_restores_them(
    staff: Client, conversation: Conversation
) -> None:
    Turn.objects.filter(index=1).update(pinned=True)

    send(staff, conversation, "archive")
    archived = [Conversation.objects.get().archived, *Turn.objects.order_by("index").values_list("archived", flat=True)]
    live = sorted(Vector.objects.values_list("live", flat=True))
    send(staff, conversation, "unarchive")

    assert (archived, live) == ([True, True, False], [False, True])
    assert not Conversation.objects.get().archived
    assert not Turn.objects.filter(archived=True).exists()
    assert last_entry().operation == "unarchive"


def test_an_unarchived_conversation_counts_as_recently_updated(staff: Client, conversation: Conversation) -> None:
    Conversation.objects.update(updated_at=NOW.replace(year=2000), archived=True)

    send(staff, conversation, "unarchive")

    conversation.refresh_from_db()
    assert conversation.updated_at.year > 2000


@pytest.fixture
def surroundings(owner: Owner, stranger: Account, conversation: Conversation) -> Conversation:
    """Create episodes, links and live state, a conversation that continues this one, and one of another account."""
    (episode,) = store(owner, draft("They counted.", angle=0.3))
    first = Turn.objects.get(log=conversation, index=0)
    Link.objects.create(account_id=owner.account_id, source_id=episode.pk, target_id=first.pk, type="ABOUT")
    following = talk(owner, 1, conversation_id="following").conversation
    Conversation.objects.filter(id=following.id).update(continues="c1")
    Conversation.objects.filter(id=conversation.id).update(continues="earlier")
    talk(Owner(account_id=stranger.id, agent_id="assistant"), 1)
    WorkingMemory(owner).set("c1", {"n": 1})
    ledger.mark(ConversationRef(account_id=owner.account_id, conversation_id="c1"), "episode:1", "injected")
    SessionMemory(session_ref(conversation)).set_active_goal("g", "Count")
    return conversation


def test_deleting_erases_turns_participants_and_live_side_and_keeps_episodes(
    staff: Client, owner: Owner, surroundings: Conversation
) -> None:
    place = ConversationRef(account_id=owner.account_id, conversation_id="c1")

    delete(staff, surroundings)

    assert sorted(Conversation.objects.values_list("conversation_id", flat=True)) == ["c1", "following"]
    assert not Turn.objects.filter(account_id=owner.account_id, conversation_id="c1").exists()
    assert [vector.memory_id for vector in Vector.objects.all()] == [EpisodicMemory.objects.get().pk]
    assert not Link.objects.exists()
    assert not Participant.objects.filter(account_id=owner.account_id, conversation_id="c1").exists()
    assert (WorkingMemory(owner).get("c1"), ledger.get_all(place)) == ({}, {})
    assert SessionMemory(session_ref(surroundings)).get_active_goal() is None


def test_deleting_a_conversation_can_also_delete_its_episodes(
    staff: Client, owner: Owner, surroundings: Conversation
) -> None:
    question = shown(staff.get(page_url("conversation", surroundings.id, "delete")))

    delete(staff, surroundings, episodes="yes")

    assert "its 2 turns with their vectors" in question
    assert "the input and output of tools in it" in question
    assert 'name="episodes" value="yes" checked> Also delete its 1 episode:' in question
    assert not Memory.objects.filter(account_id=owner.account_id, conversation_id="c1").exists()


def test_questions_and_messages_name_a_conversation_once(staff: Client, surroundings: Conversation) -> None:
    question = shown(staff.get(page_url("conversation", surroundings.id, "delete")))

    message = shown(delete(staff, surroundings))

    assert "Delete the conversation <bdi>c1</bdi>?" in question
    assert "The conversation “c1” was deleted" in message
    assert str(surroundings.id) not in message


def test_deleting_is_in_the_audit_log_by_ids_alone(staff: Client, surroundings: Conversation) -> None:
    turns = {str(pk) for pk in Turn.objects.filter(log=surroundings).values_list("pk", flat=True)}
    before = AuditEntry.objects.latest("id").id

    delete(staff, surroundings)

    of_turns, whole = AuditEntry.objects.filter(id__gt=before, operation="delete").order_by("id")
    assert (set(of_turns.affected_ids), of_turns.memory_type) == (turns, "episodic")
    assert (whole.affected_ids, whole.memory_type) == ([str(surroundings.id)], "conversation")
    assert (whole.conversation_id, whole.result_count, whole.actor) == ("c1", 2, "staff:chief")


def test_deleting_a_conversation_relinks_its_continuation_to_its_predecessor(
    staff: Client, surroundings: Conversation
) -> None:
    delete(staff, surroundings)

    assert Conversation.objects.get(conversation_id="following").continues == "earlier"


def test_without_redis_nothing_is_deleted(
    staff: Client, surroundings: Conversation, settings: Any, request: pytest.FixtureRequest
) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    forget_clients()
    request.addfinalizer(forget_clients)

    page = delete(staff, surroundings)

    assert "Redis does not answer" in shown(page)
    assert Turn.objects.filter(log=surroundings).count() == 2
    assert not AuditEntry.objects.filter(operation="delete").exists()


def test_deleting_the_episodes_too_requires_permission(newcomer: Client, surroundings: Conversation) -> None:
    allow("newcomer", "view_conversation", "delete_conversation")

    question = shown(newcomer.get(page_url("conversation", surroundings.id, "delete")))
    refused = delete(newcomer, surroundings, episodes="yes")

    assert 'name="episodes"' not in question
    assert refused.status_code == 403
    assert EpisodicMemory.objects.count() == 1
    assert Turn.objects.filter(log=surroundings).count() == 2


@pytest.mark.parametrize("action", ["correct", "end", "summarize", "retry", "extract", "archive", "unarchive"])
def test_the_view_permission_alone_allows_no_actions(newcomer: Client, conversation: Conversation, action: str) -> None:
    allow("newcomer", "view_conversation", "view_turn")
    entries = AuditEntry.objects.count()

    refused = send(newcomer, conversation, action, title="x", metadata="{}")

    assert refused.status_code == 403
    assert delete(newcomer, conversation).status_code == 403
    choose(newcomer, list_url("conversation"), "extract", conversation.id)
    assert AuditEntry.objects.count() == entries


def test_an_unknown_action_is_404(staff: Client, conversation: Conversation) -> None:
    assert send(staff, conversation, "explode").status_code == 404


def test_a_form_from_elsewhere_is_refused(chief: User, conversation: Conversation) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(chief)

    assert send(client, conversation, "archive").status_code == 403
    assert not Conversation.objects.get().archived


def test_conversations_are_not_deleted_by_the_list(staff: Client, conversation: Conversation) -> None:
    data = {"action": "delete_selected", "_selected_action": [str(conversation.id)], "post": "yes"}

    staff.post(list_url("conversation"), data, follow=True)

    assert Conversation.objects.count() == 1


def forget_clients() -> None:
    redis.client.cache_clear()
    redis.script.cache_clear()
