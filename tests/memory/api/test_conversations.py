"""`/conversations`: create, find, change, summarize, save and end; hidden from agents that take no part."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, Conversation
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from tests.api_client import ServiceClient, segment
from tests.memory.conversation_requests import create
from tests.memory.turns import talk

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]


NEW = {"agent_id": "assistant", "conversation_id": "c1"}


def listed(api: ServiceClient, query: str = "") -> list[str]:
    return [row["conversation_id"] for row in api.get(f"/conversations{query}").json()["results"]]


def test_a_conversation_is_created_and_read(api: ServiceClient) -> None:
    facts = {"user_id": "ana", "channel": "boats", "title": "The keel", "metadata": {"from": ["app", 1]}}

    made = create(api, "c1", **facts)

    assert made.status_code == 201
    assert made.json() | NEW | facts == made.json()
    assert api.get("/conversations/c1").json() == made.json()


def test_a_new_conversation_has_no_turns_and_one_participant(api: ServiceClient) -> None:
    made = create(api, "c1").json()

    counts = {"turn_count": 0, "summarized_count": 0, "summary": False, "summary_error": "", "outcome": ""}
    times = {"last_turn_at": None, "ended_at": None, "archived": False}
    assert made | counts | times | {"channel": "_global", "participants": ["assistant"]} == made


def test_a_conversation_without_an_id_gets_a_generated_one(api: ServiceClient) -> None:
    made = api.post("/conversations", {"agent_id": "assistant"}).json()

    assert str(UUID(made["conversation_id"])) == made["conversation_id"]
    assert api.get(f"/conversations/{made['conversation_id']}").status_code == 200


def test_a_conversation_id_is_unique_within_an_account(api: ServiceClient, stranger_api: ServiceClient) -> None:
    create(api, "c1", title="first")

    again = create(api, "c1", title="second", agent_id="colleague")

    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert api.get("/conversations/c1").json()["title"] == "first"
    assert create(stranger_api, "c1").status_code == 201


@pytest.mark.django_db(transaction=True)
def test_only_one_of_many_simultaneous_requests_creates_a_conversation_id(api: ServiceClient) -> None:
    def make(number: int) -> int:
        try:
            return int(create(api, "c1", agent_id=f"agent-{number}").status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as clients:
        statuses = list(clients.map(make, range(8)))

    assert sorted(statuses) == [201] + [409] * 7
    assert len(api.get("/conversations/c1").json()["participants"]) == 1


def test_a_conversation_created_twice_with_one_idempotency_key_is_created_once(api: ServiceClient) -> None:
    answers = [api.post("/conversations", {"agent_id": "a"}, HTTP_IDEMPOTENCY_KEY="k") for _ in range(2)]

    assert [answer.status_code for answer in answers] == [201, 201]
    assert answers[0].content == answers[1].content
    assert Conversation.objects.count() == 1


@pytest.mark.parametrize(
    "change",
    [
        {"agent_id": 7},
        {"agent_id": ""},
        {"conversation_id": ""},
        {"conversation_id": "c" * 101},
        {"conversation_id": "a\nb"},
        {"title": "t" * 201},
        {"title": None},
        {"continues": ""},
        {"metadata": []},
        {"metadata": None},
        {"metadata": {"x": "y" * 65_536}},
        {"turn_count": 5},
        {"outcome": "success"},
    ],
)
def test_an_invalid_conversation_is_refused_and_not_created(api: ServiceClient, change: dict[str, Any]) -> None:
    refused = api.post("/conversations", NEW | change)

    assert (refused.status_code, list(refused.json()["errors"])) == (400, list(change))
    assert not Conversation.objects.exists()


def test_creating_a_conversation_requires_an_agent(api: ServiceClient, bound_api: ServiceClient) -> None:
    assert api.post("/conversations", {"conversation_id": "c1"}).status_code == 400
    assert bound_api.post("/conversations", {"conversation_id": "c1"}).json()["agent_id"] == "assistant"


def test_a_conversation_can_continue_only_an_existing_one(api: ServiceClient) -> None:
    create(api, "c1")

    resumed, refused = create(api, "c2", continues="c1"), create(api, "c3", continues="unknown")

    assert resumed.json()["continues"] == "c1"
    assert (refused.status_code, refused.json()["code"]) == (422, "unprocessable")
    assert listed(api) == ["c2", "c1"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["c3", "c2", "c1"]),
        ("?user_id=ana", ["c1"]),
        ("?channel=boats", ["c2"]),
        ("?continues=c1", ["c3"]),
        ("?ended=true", ["c2"]),
        ("?ended=false", ["c3", "c1"]),
        ("?archived=true", ["c1"]),
        ("?archived=false", ["c3", "c2"]),
        ("?agent_id=colleague", ["c3"]),
        ("?agent_id=nobody", []),
    ],
)
def test_conversations_are_listed_newest_first_and_filtered(api: ServiceClient, query: str, found: list[str]) -> None:
    create(api, "c1", user_id="ana")
    create(api, "c2", channel="boats")
    create(api, "c3", continues="c1")
    api.post("/conversations/c3/thoughts", {"agent_id": "colleague", "thought": "mine too"})
    api.post("/conversations/c2/end", {})
    Conversation.objects.filter(conversation_id="c1").update(archived=True)

    assert listed(api, query) == found


@pytest.mark.parametrize("query", ["?ended=yes", "?archived=1", "?title=x", "?user_id=" + "u" * 101])
def test_an_invalid_filter_of_conversations_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/conversations{query}").status_code == 400


def test_conversations_are_listed_in_pages(api: ServiceClient) -> None:
    for number in range(3):
        create(api, f"c{number}")

    first = api.get("/conversations?page_size=2").json()
    second = api.get(first["next"].partition("/api/v1")[2]).json()

    assert [row["conversation_id"] for row in first["results"] + second["results"]] == ["c2", "c1", "c0"]


def test_the_title_metadata_and_continues_of_a_conversation_can_be_changed(api: ServiceClient) -> None:
    create(api, "c0")
    made = create(api, "c1", title="old", metadata={"old": 1}).json()

    changed = api.patch("/conversations/c1", {"title": "", "metadata": {}, "continues": "c0"})

    assert changed.status_code == 200
    assert changed.json() == api.get("/conversations/c1").json()
    rest = {"title": "", "metadata": {}, "continues": "c0", "updated_at": changed.json()["updated_at"]}
    assert changed.json() == made | rest
    assert api.patch("/conversations/c1", {"continues": ""}).json()["continues"] == ""


@pytest.mark.parametrize("change", [{"user_id": "ben"}, {"turn_count": 1}, {"title": 5}, {"metadata": "x"}])
def test_other_fields_of_a_conversation_cannot_be_changed(api: ServiceClient, change: dict[str, Any]) -> None:
    made = create(api, "c1").json()

    assert api.patch("/conversations/c1", change).status_code == 400

    assert api.get("/conversations/c1").json() == made


def test_continuing_a_conversation_in_a_cycle_is_refused(api: ServiceClient) -> None:
    create(api, "c1")
    create(api, "c2", continues="c1")

    refused = [api.patch("/conversations/c1", {"continues": other}) for other in ("c2", "c1", "unknown")]

    assert [answer.status_code for answer in refused] == [422] * 3


def test_a_conversation_is_hidden_from_agents_that_take_no_part(
    api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    create(api, "c1", agent_id="colleague")

    for client in (bound_api, stranger_api):
        answers = [
            client.get("/conversations/c1"),
            client.patch("/conversations/c1", {"title": "mine"}),
            *(client.post(f"/conversations/c1/{deed}", {}) for deed in ("summarize", "save", "end")),
        ]
        assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "not_found")] * 5
        assert listed(client) == []
    assert Conversation.objects.get().ended_at is None


def test_an_agent_that_writes_to_a_conversation_by_an_unbound_key_becomes_a_participant(
    api: ServiceClient, bound_api: ServiceClient
) -> None:
    create(api, "c1", agent_id="colleague")

    api.post("/conversations/c1/thoughts", {"agent_id": "assistant", "thought": "let me in"})

    found = bound_api.get("/conversations/c1").json()
    assert (found["agent_id"], found["participants"]) == ("colleague", ["assistant", "colleague"])
    assert listed(bound_api) == ["c1"]


def test_a_bound_api_key_is_refused_the_id_of_another_agent(bound_api: ServiceClient) -> None:
    refused = [create(bound_api, "c1", agent_id="colleague"), bound_api.get("/conversations?agent_id=colleague")]

    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(403, "wrong_agent")] * 2


@pytest.mark.parametrize("conversation_id", ["turns", "a/b {c} ü", "%2F", ".."])
def test_a_conversation_id_may_have_any_characters(api: ServiceClient, conversation_id: str) -> None:
    create(api, conversation_id)
    path = f"/conversations/{segment(conversation_id)}"

    assert api.get(path).json()["conversation_id"] == conversation_id
    assert api.post(f"{path}/end", {}).json()["conversation_id"] == conversation_id


def test_reading_a_list_takes_two_queries_and_a_conversation_three(
    api: ServiceClient, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(3):
        talk(owner, 2, conversation_id=f"c{number}")
    api.get("/agents")

    with django_assert_num_queries(1 + 1):
        api.get("/conversations?agent_id=assistant")
    with django_assert_num_queries(1 + 2):
        api.get("/conversations/c1")


def test_a_read_only_api_key_cannot_change_a_conversation(account: Account, owner: Owner) -> None:
    talk(owner, 1)
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    answers = [reader.post(f"/conversations/c1/{deed}", {}) for deed in ("summarize", "save", "end")]
    answers += [create(reader, "c2"), reader.patch("/conversations/c1", {"title": "x"})]

    assert [answer.json()["code"] for answer in answers] == ["missing_scope"] * 5
    assert reader.get("/conversations/c1").status_code == 200
