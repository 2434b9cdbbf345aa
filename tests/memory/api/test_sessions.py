"""A session over HTTP: messages, context, thoughts, the active goal and values, shared by those that take part."""

from collections.abc import Callable
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.extraction.messages import read_message
from memory.models import Account, Conversation
from memory.owner import Owner
from memory.services.accounts.register import READ_ONLY, issue_key
from memory.services.embedding.embed import embed_texts
from memory.services.memories.correct import mark_memories
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.turns import TurnDraft
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import session_ref
from memory_project import redis
from tests.api_client import ServiceClient, segment
from tests.embedding_server import EmbeddingServer
from tests.memory.expiries import left_of
from tests.memory.summaries import remember_summary
from tests.memory.turns import say, talk, turn
from tests.round_trips import counted_commands

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

PATH = "/conversations/c1"
GOAL = {"goal_id": "g1", "description": "Repair the keel"}
CALL = {"id": "call-1", "type": "function", "function": {"name": "weigh", "arguments": "{}"}}
READS = ("messages", "context", "thoughts", "active-goal", "values", "values/k")


def messages(api: ServiceClient, query: str = "") -> Any:
    return api.get(f"{PATH}/messages{query}").json()["messages"]


def remember(owner: Owner, *summaries: str, conversation_id: str = "before") -> None:
    drafts = [EpisodeDraft(conversation_id=conversation_id, summary=summary) for summary in summaries]
    store_episodes(owner, drafts=drafts, embedded=embed_texts(summaries), now=timezone.now())


def of_sessions(commands: list[str]) -> list[str]:
    """Leave out the count of the key's requests, with which each request begins."""
    return [command for command in commands if ":value:rate:" not in command]


def test_the_latest_messages_are_returned_oldest_first(api: ServiceClient, owner: Owner) -> None:
    stored = talk(owner, 25).turns

    found = messages(api)

    assert [message["index"] for message in found] == list(range(5, 25))
    assert found[-1] == {
        "id": str(stored[24].id),
        "index": 24,
        "role": "user",
        "name": "",
        "agent_id": "assistant",
        "content": "message 24",
        "timestamp": stored[24].event_time.isoformat().replace("+00:00", "Z"),
    }
    assert [message["index"] for message in messages(api, "?limit=2")] == [23, 24]


def test_a_message_is_returned_as_it_was_sent(api: ServiceClient, owner: Owner) -> None:
    body = {"role": "assistant", "name": "Ada", "content": None, "tool_calls": [CALL]}
    result = {"role": "tool", "content": [{"type": "text", "text": "7 kg"}], "tool_call_id": "call-1"}

    say(owner, TurnDraft(message=read_message(body)), TurnDraft(message=read_message(result)))

    called, answered = messages(api)
    assert (called | body, answered | result) == (called, answered)


@pytest.mark.django_db(transaction=True)
def test_a_quarantined_turn_keeps_its_index_without_its_text(api: ServiceClient, owner: Owner) -> None:
    body = {"role": "assistant", "name": "Ada", "content": "secret", "tool_calls": [CALL]}
    stored = say(owner, turn("What is it?"), TurnDraft(message=read_message(body)), turn("Go on."))
    messages(api)

    mark_memories(owner, [stored.turns[1].pk], mark="quarantine", now=timezone.now())

    withheld = messages(api)[1]
    assert [message["index"] for message in messages(api)] == [0, 1, 2]
    assert (withheld["role"], withheld["name"], withheld["content"]) == ("assistant", "", "(withheld)")
    assert "secret" not in str(messages(api))
    assert "tool_calls" not in withheld


def test_a_conversation_without_turns_has_no_messages(api: ServiceClient) -> None:
    api.post(f"{PATH}/thoughts", {"thought": "where to begin"})

    assert messages(api) == []


@pytest.mark.parametrize("query", ["?limit=0", "?limit=201", "?limit=x", "?limit=1.0", "?limit=", "?limit=-1", "?n=5"])
@pytest.mark.parametrize("part", ["messages", "thoughts"])
def test_an_invalid_limit_is_refused(api: ServiceClient, owner: Owner, part: str, query: str) -> None:
    talk(owner, 1)

    assert api.get(f"{PATH}/{part}{query}").status_code == 400


def test_reading_messages_takes_the_key_lookup_one_statement_and_one_round_trip(
    api: ServiceClient,
    owner: Owner,
    django_assert_num_queries: DjangoAssertNumQueries,
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        talk(owner, 30)
    api.get(f"{PATH}/messages")

    with django_assert_num_queries(1 + 1), counted_commands() as commands:
        api.get(f"{PATH}/messages")

    assert len(of_sessions(commands)) == 1


def test_messages_survive_the_loss_of_redis(api: ServiceClient, owner: Owner) -> None:
    talk(owner, 3)
    before = messages(api)

    redis.client().flushdb()

    assert messages(api) == before


def test_the_context_contains_the_summary_and_similar_episodes_of_other_conversations(
    api: ServiceClient, owner: Owner, embedding_server: EmbeddingServer
) -> None:
    talk(owner, 2)
    remember_summary(owner, "They began with the hull.")
    remember(owner, "The keel broke.", "The mast stands.")

    found = api.get(f"{PATH}/context?query=The%20keel%20broke.&limit=1").json()

    assert found["summary"] == "They began with the hull."
    assert [item["conversation_id"] for item in found["items"]] == ["before"]
    assert "[Previous Context Summary]" in found["context"]
    assert "The keel broke." in found["context"]
    assert "The mast stands." not in found["context"]
    assert (found["tokens"] > 0, found["degraded"]) == (True, [])


def test_the_context_is_searched_by_the_users_latest_message_by_default(
    api: ServiceClient, owner: Owner, embedding_server: EmbeddingServer
) -> None:
    say(owner, turn("What broke?"), turn("A moment.", role="assistant"))
    remember(owner, "The keel broke.")
    embedding_server.texts.clear()

    found = api.get(f"{PATH}/context").json()

    assert embedding_server.texts == ["What broke?"]
    assert len(found["items"]) == 1


def test_the_context_of_a_conversation_without_turns_is_empty(api: ServiceClient) -> None:
    api.post(f"{PATH}/thoughts", {"thought": "where to begin"})

    found = api.get(f"{PATH}/context").json()

    assert found == {"context": "", "summary": "", "items": [], "tokens": 0, "abstained": False, "degraded": []}


@pytest.mark.parametrize("query", ["?query=", "?query=%20", "?query=" + "x" * 10_001, "?limit=21", "?limit=-1", "?q=x"])
def test_an_invalid_request_for_context_is_refused(api: ServiceClient, owner: Owner, query: str) -> None:
    talk(owner, 1)

    assert api.get(f"{PATH}/context{query}").status_code == 400


def test_thoughts_are_listed_newest_last(api: ServiceClient) -> None:
    first = api.post(f"{PATH}/thoughts", {"agent_id": "ana", "thought": "one"})
    second = api.post(f"{PATH}/thoughts", {"agent_id": "ben", "thought": {"plan": ["two", 2]}})

    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() | {"thought": "one", "agent_id": "ana"} == first.json()
    assert api.get(f"{PATH}/thoughts").json() == {"thoughts": [first.json(), second.json()]}
    assert api.get(f"{PATH}/thoughts?limit=1").json() == {"thoughts": [second.json()]}


@pytest.mark.parametrize(
    "body", [{}, {"thought": None}, {"thought": "x", "at": "now"}, {"thought": "x", "agent_id": 1}]
)
def test_an_invalid_thought_creates_no_conversation(api: ServiceClient, body: dict[str, Any]) -> None:
    assert api.post(f"{PATH}/thoughts", body).status_code == 400

    assert not Conversation.objects.exists()


def test_a_thought_repeated_with_its_idempotency_key_is_stored_once(api: ServiceClient) -> None:
    for _ in range(2):
        api.post(f"{PATH}/thoughts", {"thought": "x"}, HTTP_IDEMPOTENCY_KEY="k")

    assert len(api.get(f"{PATH}/thoughts").json()["thoughts"]) == 1


def test_the_active_goal_is_set_and_cleared(api: ServiceClient) -> None:
    answers = [api.put(f"{PATH}/active-goal", GOAL), api.get(f"{PATH}/active-goal")]

    assert [(answer.status_code, answer.json()) for answer in answers] == [(200, GOAL)] * 2
    assert api.delete(f"{PATH}/active-goal").status_code == 204
    assert api.get(f"{PATH}/active-goal").status_code == 404
    assert api.delete(f"{PATH}/active-goal").status_code == 204


@pytest.mark.parametrize(
    "change", [{"goal_id": ""}, {"goal_id": 1}, {"description": ""}, {"description": "d" * 10_001}, {"status": "new"}]
)
def test_an_invalid_active_goal_is_refused(api: ServiceClient, change: dict[str, Any]) -> None:
    assert api.put(f"{PATH}/active-goal", GOAL | change).status_code == 400

    assert not Conversation.objects.exists()


@pytest.mark.parametrize("value", ["123", 123, None, [], {"a": [True, 1.0, {}]}, False, 2**80])
def test_a_value_is_returned_as_it_was_stored(api: ServiceClient, value: Any) -> None:
    put = api.put(f"{PATH}/values/k", {"value": value})

    said = {"key": "k", "value": value, "ttl_seconds": conf.SESSION_VALUE_TTL_SECONDS}
    assert (put.status_code, put.json()) == (200, said)
    found = api.get(f"{PATH}/values/k").json()
    assert found["ttl_seconds"] in left_of(said["ttl_seconds"])
    assert found == said | {"ttl_seconds": found["ttl_seconds"]}
    assert api.get(f"{PATH}/values").json() == {"values": {"k": value}}


def test_a_value_expires_after_its_ttl(api: ServiceClient) -> None:
    put = api.put(f"{PATH}/values/k", {"value": 1, "ttl_seconds": 7})

    assert put.json()["ttl_seconds"] == 7
    assert 1 <= api.get(f"{PATH}/values/k").json()["ttl_seconds"] <= 7


def test_a_value_is_deleted(api: ServiceClient) -> None:
    api.put(f"{PATH}/values/k", {"value": 1})

    assert [api.delete(f"{PATH}/values/k").status_code for _ in range(2)] == [204, 204]

    assert api.get(f"{PATH}/values/k").status_code == 404
    assert api.get(f"{PATH}/values").json() == {"values": {}}


@pytest.mark.parametrize(
    "change", [{"ttl_seconds": 0}, {"ttl_seconds": 604_801}, {"ttl_seconds": "5"}, {"ttl_seconds": None}, {"ttl": 5}]
)
def test_an_invalid_value_is_refused(api: ServiceClient, change: dict[str, Any]) -> None:
    assert api.put(f"{PATH}/values/k", {"value": 1} | change).status_code == 400
    assert api.put(f"{PATH}/values/k", {}).status_code == 400

    assert not Conversation.objects.exists()


def test_too_large_values_are_refused_with_the_limit(api: ServiceClient) -> None:
    large = "x" * conf.SESSION_VALUE_BYTES
    api.put(f"{PATH}/values/k", {"value": 1})

    refused = [api.put(f"{PATH}/values/k", {"value": large}), api.post(f"{PATH}/thoughts", {"thought": large})]

    assert [answer.status_code for answer in refused] == [413, 413]
    assert refused[0].json()["limit_bytes"] == conf.SESSION_VALUE_BYTES
    assert api.get(f"{PATH}/values/k").json()["value"] == 1


def test_a_value_beyond_the_maximum_number_is_refused(api: ServiceClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "SESSION_VALUES", 1)
    api.put(f"{PATH}/values/one", {"value": 1})

    refused = api.put(f"{PATH}/values/two", {"value": 2})

    assert (refused.status_code, refused.json()["code"]) == (422, "unprocessable")


@pytest.mark.parametrize("text", ["turns", "a/b:{c} ü", "%2F", "context"])
def test_conversation_ids_and_keys_may_contain_any_character(api: ServiceClient, text: str) -> None:
    path = f"/conversations/{segment(text)}/values"

    api.put(f"{path}/{segment(text)}", {"value": 1})

    assert api.get(f"{path}/{segment(text)}").json()["key"] == text
    assert api.get(path).json() == {"values": {text: 1}}


def test_agents_share_the_session(api: ServiceClient) -> None:
    api.put(f"{PATH}/active-goal", GOAL | {"agent_id": "ana", "user_id": "zoe", "channel": "boats"})
    api.put(f"{PATH}/values/k", {"agent_id": "ben", "value": 1})

    assert api.get(f"{PATH}/active-goal?agent_id=ben").json() == GOAL
    assert api.get(f"{PATH}/values?agent_id=ana").json() == {"values": {"k": 1}}
    found = api.get(PATH).json()
    assert (found["participants"], found["user_id"], found["channel"]) == (["ana", "ben"], "zoe", "boats")


def test_agents_that_are_not_participants_see_nothing(
    api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient, owner: Owner
) -> None:
    api.put(f"{PATH}/active-goal", GOAL | {"agent_id": "colleague"})
    api.put(f"{PATH}/values/k", {"agent_id": "colleague", "value": "secret"})

    for client in (bound_api, stranger_api):
        answers = [client.get(f"{PATH}/{part}") for part in READS]
        answers += [client.delete(f"{PATH}/{part}") for part in ("active-goal", "values/k")]
        unknown = client.get("/conversations/unknown/values").json()
        assert [answer.status_code for answer in answers] == [404] * 8
        assert {answer.json()["detail"] for answer in answers} == {unknown["detail"]}
    assert api.get(f"{PATH}/values").json() == {"values": {"k": "secret"}}


def test_another_account_writes_to_a_separate_conversation(api: ServiceClient, stranger_api: ServiceClient) -> None:
    api.put(f"{PATH}/values/k", {"value": "ours"})

    stranger_api.put(f"{PATH}/values/k", {"value": "theirs"})

    assert api.get(f"{PATH}/values/k").json()["value"] == "ours"
    assert Conversation.objects.count() == 2


def test_reading_creates_no_conversation(api: ServiceClient) -> None:
    answers = [api.get(f"{PATH}/{part}") for part in READS]

    assert [answer.status_code for answer in answers] == [404] * len(READS)
    assert not Conversation.objects.exists()


def test_a_read_only_key_writes_nothing(account: Account) -> None:
    reader = ServiceClient(issue_key(account, scopes=READ_ONLY).secret)

    answers = [
        reader.post(f"{PATH}/thoughts", {"thought": "x"}),
        reader.put(f"{PATH}/active-goal", GOAL),
        reader.put(f"{PATH}/values/k", {"value": 1}),
        reader.delete(f"{PATH}/active-goal"),
        reader.delete(f"{PATH}/values/k"),
    ]

    assert [answer.json()["code"] for answer in answers] == ["missing_scope"] * 5


def test_every_request_takes_the_key_lookup_one_statement_and_one_round_trip(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: api.put(f"{PATH}/values/k", {"value": 1}),
        lambda: api.get(f"{PATH}/values"),
        lambda: api.post(f"{PATH}/thoughts", {"thought": "x"}),
        lambda: api.get(f"{PATH}/thoughts"),
    ]
    for call in calls:
        call()

    with django_assert_num_queries(2 * len(calls)), counted_commands() as commands:
        for call in calls:
            call()

    assert len(of_sessions(commands)) == len(calls)


def test_a_saved_session_is_restored_after_redis_lost_it(api: ServiceClient) -> None:
    api.put(f"{PATH}/active-goal", GOAL)
    api.put(f"{PATH}/values/k", {"value": 1})
    api.post(f"{PATH}/save")

    redis.client().flushdb()

    assert api.get(f"{PATH}/active-goal").json() == GOAL
    assert api.get(f"{PATH}/values").json() == {"values": {"k": 1}}


def test_a_saved_session_is_not_restored_after_its_end(api: ServiceClient) -> None:
    api.put(f"{PATH}/active-goal", GOAL)
    api.post(f"{PATH}/save")

    api.post(f"{PATH}/end")

    assert api.get(f"{PATH}/active-goal").status_code == 404


def test_redis_keys_have_the_documented_form(api: ServiceClient) -> None:
    api.put(f"{PATH}/values/k", {"value": 1, "agent_id": "ana", "user_id": "zoe"})

    session = SessionMemory(session_ref(Conversation.objects.get()))

    assert session.get("k") == 1
    assert list(redis.client().scan_iter("account:*:working:zoe:_global:{c1}:context:k"))
