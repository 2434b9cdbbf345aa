"""Working memory and ledger of a conversation, which are stored in Redis, are viewed and edited in the admin."""

import re
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from ledger import store
from memory.models import Account, AuditEntry, Conversation
from memory.owner import Owner
from memory.tiers.session import SessionMemory
from memory.tiers.session_buffer import session_ref
from memory.tiers.working import WorkingMemory, stored_fields
from memory_project import redis
from memory_project.redis import ConversationRef
from tests.memory.admin.pages import list_url, page_url, shown
from tests.memory.episodes import NOW

CONVERSATION = "a/b {c} %2F é <script>alert(1)</script>"
WORKING, LEDGER = "workingmemoryaccount", "ledgeraccount"

pytestmark = pytest.mark.usefixtures("empty_redis")


@pytest.fixture
def place(account: Account) -> ConversationRef:
    return ConversationRef(account_id=account.id, conversation_id=CONVERSATION)


@pytest.fixture
def memory(owner: Owner, empty_redis: None) -> WorkingMemory:
    """Working memory as the agent `assistant` has it."""
    tier = WorkingMemory(owner)
    tier.set(CONVERSATION, {"scratchpad": "<b>buy</b> \u202e", "n": 1.0})
    return tier


@pytest.fixture
def ledger(place: ConversationRef, empty_redis: None) -> ConversationRef:
    store.mark(place, "episode:1", "injected")
    return place


def conversation_url(model: str, account_id: object) -> str:
    return page_url(model, account_id, "conversation")


def send(client: Client, model: str, place: ConversationRef, **data: Any) -> Any:
    url = f"{conversation_url(model, place.account_id)}?{urlencode({'conversation': place.conversation_id})}"
    return client.post(url, data, follow=True)


def look(client: Client, model: str, place: ConversationRef, **query: str) -> Any:
    return client.get(conversation_url(model, place.account_id), {"conversation": place.conversation_id} | query)


def names(place: ConversationRef) -> dict[tuple[str, str], str]:
    return {(field.agent_id, field.name): field.json for field in stored_fields(place)}


def last_entry() -> AuditEntry:
    return AuditEntry.objects.order_by("-id")[0]


@pytest.mark.parametrize("model", [WORKING, LEDGER])
@pytest.mark.usefixtures("memory", "ledger")
def test_conversations_are_listed_and_open_their_page(staff: Client, account: Account, model: str) -> None:
    page = staff.get(page_url(model, account.id))

    (row,) = page.context["rows"]
    assert row.name == CONVERSATION
    assert "<script>alert" not in shown(page)
    assert staff.get(row.url).status_code == 200


@pytest.mark.usefixtures("memory", "ledger")
def test_the_list_tells_how_much_is_stored_and_when_it_expires(
    staff: Client, account: Account, place: ConversationRef
) -> None:
    redis.client().expire(redis.conversation_key("working_memory", place), 90_000)

    (fields,), (items,) = (staff.get(page_url(model, account.id)).context["rows"] for model in (WORKING, LEDGER))

    # a busy machine may take some of the seconds
    day_and_hour = r"1 day, (1:00:00|0:59:\d\d)"
    assert fields.size == 2
    assert re.fullmatch(day_and_hour, fields.expires_in)
    assert (items.size, items.expires_in) == (1, "never")
    assert re.search(f"Expires in: {day_and_hour}", shown(look(staff, WORKING, place)))


def test_with_a_chosen_account_the_list_is_that_of_its_conversations(staff: Client, account: Account) -> None:
    staff.post(reverse("switcher:switch"), {"account": account.pk})

    page = staff.get(list_url("workingmemoryaccount"), follow=True)

    assert page.redirect_chain == [(page_url("workingmemoryaccount", account.pk), 302)]
    assert "Open a conversation" in shown(page)


def test_conversations_are_found_by_a_part_of_their_id(staff: Client, account: Account) -> None:
    ids = ("order 12", "order [1]", "or*er 7", "{braces}", "50 % off", "a\\b", "a^b")
    for id_ in ids:
        WorkingMemory(Owner(account_id=account.id)).set(id_, {"n": 1})

    def found(named: str) -> list[str]:
        rows = staff.get(page_url(WORKING, account.id), {"named": named}).context["rows"]
        return [row.name for row in rows]

    assert found("der") == ["order 12", "order [1]"]
    assert [found(text) for text in ("[1", "or*", "{brace", "% o", "\\", "a^")] == [[id_] for id_ in ids[1:]]
    assert found("?") == []


def test_all_conversations_are_reached_page_by_page(staff: Client, account: Account) -> None:
    wanted = {f"c{number}" for number in range(300)}
    tier = WorkingMemory(Owner(account_id=account.id))
    for conversation_id in wanted:
        tier.set(conversation_id, {"n": 1})

    found, cursor = set(), "0"
    for _ in range(50):
        context = staff.get(page_url(WORKING, account.id), {"cursor": cursor}).context
        found |= {row.name for row in context["rows"]}
        cursor = str(context["cursor"])
        if cursor == "0":
            break

    assert found == wanted


@pytest.mark.usefixtures("memory")
def test_another_account_does_not_list_the_conversation(staff: Client, stranger: Account) -> None:
    assert staff.get(page_url(WORKING, stranger.id)).context["rows"] == []


@pytest.mark.usefixtures("memory")
def test_fields_are_shown_escaped_with_their_writers(staff: Client, place: ConversationRef) -> None:
    page = look(staff, WORKING, place)

    assert [(row.writer, row.name) for row in page.context["rows"]] == [
        ("assistant", "n"),
        ("assistant", "scratchpad"),
    ]
    assert "&lt;b&gt;buy" in shown(page)
    assert "<b>buy" not in shown(page)


@pytest.mark.usefixtures("memory")
def test_a_field_is_corrected_for_its_writer_and_audited(staff: Client, place: ConversationRef) -> None:
    send(staff, WORKING, place, action="save", agent="assistant", name="n", value='{"a": [1, "1", null]}')

    assert names(place)["assistant", "n"] == '{"a":[1,"1",null]}'
    entry = last_entry()
    assert (entry.actor, entry.operation, entry.memory_type) == ("staff:chief", "update", "working")
    assert (entry.affected_ids, entry.conversation_id) == (["n"], CONVERSATION)


@pytest.mark.parametrize("value", ["null", "[]", '""', "false", "0", "1.0", '"123"', "123"])
def test_any_json_value_may_be_set(staff: Client, place: ConversationRef, value: str) -> None:
    send(staff, WORKING, place, action="add", agent="", name="field", value=value)

    assert names(place) == {("", "field"): value}


@pytest.mark.parametrize("value", ["", "{", "NaN", '"\\u0000"', '"\\ud800"', "[" * 100_000, "1e999", "not json"])
def test_invalid_json_is_refused_and_stays_in_the_form(staff: Client, place: ConversationRef, value: str) -> None:
    page = send(staff, WORKING, place, action="add", agent="", name="field", value=value)

    assert page.status_code == 200
    assert "Nothing was changed" in shown(page)
    assert (names(place), AuditEntry.objects.count()) == ({}, 0)


def test_a_field_far_over_the_limit_is_refused_with_the_sizes(staff: Client, place: ConversationRef) -> None:
    page = send(staff, WORKING, place, action="add", agent="", name="field", value=f'"{"x" * 300_000}"')

    assert "nothing was stored" in shown(page)
    assert (names(place), AuditEntry.objects.count()) == ({}, 0)


def test_a_field_over_the_limit_is_stored_with_a_warning(staff: Client, place: ConversationRef) -> None:
    page = send(staff, WORKING, place, action="add", agent="", name="field", value=f'"{"x" * 70_000}"')

    assert "the write was stored nevertheless" in shown(page)
    assert AuditEntry.objects.count() == len(names(place)) == 1


@pytest.mark.usefixtures("memory")
def test_a_field_is_deleted_and_then_all(staff: Client, place: ConversationRef) -> None:
    send(staff, WORKING, place, action="delete", agent="assistant", name="n")
    left = set(names(place))
    send(staff, WORKING, place, action="clear")

    assert (left, names(place)) == ({("assistant", "scratchpad")}, {})
    assert last_entry().operation == "clear"


def test_many_fields_are_filtered_by_name(staff: Client, place: ConversationRef) -> None:
    WorkingMemory(Owner(account_id=place.account_id)).set(CONVERSATION, {f"field {n}": n for n in range(250)})

    whole, narrow = look(staff, WORKING, place), look(staff, WORKING, place, named="field 249")

    assert "100 of 250 are shown" in shown(whole)
    assert [row.name for row in narrow.context["rows"]] == ["field 249"]


def test_an_item_is_marked_once_and_evicted(staff: Client, ledger: ConversationRef) -> None:
    again = send(staff, LEDGER, ledger, action="add", name="episode:1", value="other")
    send(staff, LEDGER, ledger, action="add", name="episode:2", value="injected")
    send(staff, LEDGER, ledger, action="evict", name="episode:1")

    assert "marked before, as injected" in shown(again)
    assert store.get_all(ledger) == {"episode:2": "injected"}
    assert (last_entry().operation, last_entry().memory_type) == ("evict", "ledger")


@pytest.mark.parametrize("item_key", ["", "x" * 301, "a\x00b"])
def test_an_invalid_item_key_is_refused(staff: Client, ledger: ConversationRef, item_key: str) -> None:
    page = send(staff, LEDGER, ledger, action="add", name=item_key, value="injected")

    assert "Nothing was changed" in shown(page)
    assert list(store.get_all(ledger)) == ["episode:1"]


@pytest.mark.parametrize("model", [WORKING, LEDGER])
def test_pages_need_permission_to_look(newcomer: Client, place: ConversationRef, model: str) -> None:
    assert newcomer.get(page_url(model, place.account_id)).status_code == 403
    assert look(newcomer, model, place).status_code == 403
    assert send(newcomer, model, place, action="clear").status_code == 403


@pytest.mark.usefixtures("memory")
def test_the_view_permission_alone_allows_no_changes(newcomer: Client, place: ConversationRef) -> None:
    looker = User.objects.get(username="newcomer")
    looker.user_permissions.add(Permission.objects.get(codename="view_workingmemoryaccount"))

    page = look(newcomer, WORKING, place)

    assert page.status_code == 200
    assert "<textarea" not in shown(page)
    assert send(newcomer, WORKING, place, action="clear").status_code == 403
    assert len(names(place)) == 2


@pytest.mark.usefixtures("memory")
def test_a_form_from_elsewhere_is_refused(chief: User, place: ConversationRef) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(chief)

    assert send(client, WORKING, place, action="clear").status_code == 403
    assert len(names(place)) == 2


@pytest.mark.parametrize("model", [WORKING, LEDGER])
@pytest.mark.parametrize(
    "query", [{"conversation": ""}, {"conversation": "x" * 101}, {"cursor": "-1"}, {"cursor": "x"}]
)
def test_nonsense_in_the_address_is_no_error(staff: Client, account: Account, model: str, query: Any) -> None:
    assert staff.get(page_url(model, account.id), query).status_code == 200
    assert staff.get(conversation_url(model, account.id), query, follow=True).status_code == 200


@pytest.mark.parametrize("model", [WORKING, LEDGER])
def test_an_unknown_account_or_action_is_404(staff: Client, place: ConversationRef, model: str) -> None:
    assert staff.get(page_url(model, "nonsense")).status_code == 404
    assert send(staff, model, place, action="explode").status_code == 404


@pytest.mark.parametrize("model", [WORKING, LEDGER])
def test_without_redis_a_page_says_so(
    staff: Client, place: ConversationRef, model: str, settings: Any, request: pytest.FixtureRequest
) -> None:
    settings.REDIS_URL = "unix:///nowhere/valkey.sock"
    forget_clients()
    request.addfinalizer(forget_clients)

    pages = [
        staff.get(page_url(model, place.account_id)),
        look(staff, model, place),
        send(staff, model, place, action="add", agent="", name="n", value="1"),
    ]

    assert [page.status_code for page in pages] == [503, 503, 503]
    assert all("which does not answer" in shown(page) for page in pages)
    assert not AuditEntry.objects.exists()


def forget_clients() -> None:
    redis.client.cache_clear()
    redis.script.cache_clear()


@pytest.fixture
def session(owner: Owner, empty_redis: None) -> SessionMemory:
    """The session of a conversation of a user in a channel."""
    conversation = Conversation.objects.create(
        account_id=owner.account_id, conversation_id=CONVERSATION, user_id="ana", channel="web", started_at=NOW
    )
    tier = SessionMemory(session_ref(conversation))
    tier.set("step", {"n": 1}, ttl_seconds=500)
    return tier


def test_values_of_the_session_are_shown_corrected_and_deleted(
    staff: Client, place: ConversationRef, session: SessionMemory
) -> None:
    page = look(staff, WORKING, place)
    send(staff, WORKING, place, action="save_session_value", name="step", value="2", ttl_seconds="60")
    send(staff, WORKING, place, action="save_session_value", name="next", value='"x"', ttl_seconds="60")

    assert [(row.name, row.value) for row in page.context["session_rows"]] == [("step", '{\n  "n": 1\n}')]
    assert session.get_context() == {"step": 2, "next": "x"}
    assert (last_entry().operation, last_entry().affected_ids) == ("update", ["next"])
    found = session.find("step")
    assert found is not None
    assert found.ttl_seconds <= 60
    send(staff, WORKING, place, action="delete_session_value", name="step")
    again = send(staff, WORKING, place, action="delete_session_value", name="step")
    assert session.get_context() == {"next": "x"}
    assert "gone already" in shown(again)


@pytest.mark.usefixtures("session")
def test_a_value_of_the_session_that_is_not_valid_is_refused(staff: Client, place: ConversationRef) -> None:
    page = send(staff, WORKING, place, action="save_session_value", name="step", value="{", ttl_seconds="60")

    assert "Nothing was changed" in shown(page)
    assert [row.name for row in page.context["session_rows"]] == ["step"]


def test_a_conversation_that_there_is_not_has_no_session(staff: Client, place: ConversationRef) -> None:
    page = look(staff, WORKING, place)
    refused = send(staff, WORKING, place, action="save_session_value", name="step", value="1", ttl_seconds="60")

    assert "Values of the session" not in shown(page)
    assert "no such conversation" in shown(refused)


@pytest.mark.parametrize("model", [WORKING, LEDGER])
def test_characters_that_turn_a_text_around_are_marked(staff: Client, owner: Owner, model: str) -> None:
    named = "a\u202eb"
    place = ConversationRef(account_id=owner.account_id, conversation_id=named)
    store.mark(place, named, named)
    WorkingMemory(replace(owner, agent_id=named)).set(named, {named: named})
    Conversation.objects.create(account_id=owner.account_id, conversation_id=f"{named}2", started_at=NOW)
    added = (
        {"agent": named, "name": f"{named}3", "value": "1"}
        if model == WORKING
        else {"name": f"{named}3", "value": named}
    )

    pages = [
        staff.get(page_url(model, owner.account_id)),
        look(staff, model, place),
        send(staff, model, place, action="add", **added),
    ]

    for page in pages:
        typed = re.sub(r'value="[^"]*"', "", shown(page))
        assert "a⟦U+202E⟧b" in typed
        assert "\u202e" not in typed
