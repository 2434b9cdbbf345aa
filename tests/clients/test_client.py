"""The Python client on the service itself, in this process."""

from collections.abc import Iterator

import httpx2
import pytest
from agent_memory_client import (
    AgentMemoryError,
    AuthenticationError,
    BadRequestError,
    Client,
    NotFoundError,
    PreconditionFailedError,
)
from agent_memory_client.models import PoolAnswer, RecalledMemory, StoredGoal
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections

from memory_project.http.paths import keep_encoded_slashes
from tests.openapi import read_document

pytestmark = pytest.mark.django_db
BASE = "http://testserver"


@pytest.fixture(autouse=True)
def one_transaction() -> Iterator[None]:
    """Keep the connection of the test open between requests, as Django's own test client does."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


def connect(key: str) -> Client:
    http = httpx2.Client(transport=httpx2.WSGITransport(app=keep_encoded_slashes(get_wsgi_application())))
    return Client(BASE, key, agent_id="assistant", user_id="ana", http_client=http)


@pytest.fixture
def client(api_key: str, empty_redis: None) -> Iterator[Client]:
    with connect(api_key) as client:
        yield client


def test_what_is_remembered_is_recalled_and_forgotten(client: Client) -> None:
    noted = client.remember("The door code is 4711.", metadata={"door": "north"})

    found = client.recall("Which code opens the door?").results[0]

    assert isinstance(found, RecalledMemory)
    assert (noted.kind, noted.metadata, found.text) == ("note", {"door": "north"}, "The door code is 4711.")
    client.forget(noted.id)
    with pytest.raises(NotFoundError):
        client.get_memory(noted.id)


def test_a_key_is_never_taken_for_the_id_of_a_memory(api_key: str, client: Client) -> None:
    client.set_keyed_memory("colour", value="green")

    for use in (client.forget, client.get_memory, client.update_memory):
        with pytest.raises(ValueError, match="'colour' is not the id of a memory, which is a UUID"):
            use("colour")
    assert client.get_keyed_memory("colour").value == "green"


def test_messages_become_turns_from_which_knowledge_is_extracted(client: Client) -> None:
    inferred = client.infer([{"role": "user", "content": "I live in Lisbon."}], conversation_id="trip")

    assert [turn.content for turn in client.turns("trip")] == ["I live in Lisbon."]
    assert inferred.to_dict()


def test_a_text_becomes_a_turn_from_which_knowledge_is_extracted(client: Client) -> None:
    client.infer("I live in Lisbon.", conversation_id="trip")

    assert [turn.content for turn in client.turns("trip")] == ["I live in Lisbon."]


def test_a_conversation_is_added_to_put_into_a_prompt_and_ended(client: Client) -> None:
    client.add_turns("trip", [{"role": "user", "content": "We fly to Madeira on 4 May."}])

    prompt = client.context("booking", "When do we fly to Madeira?", max_tokens=400, mark_injected=True)
    ended = client.end("trip", outcome="success")

    assert "Madeira" in prompt.context
    assert ended.status == "ended"


def test_a_stream_of_turns_is_stored_as_it_comes(client: Client) -> None:
    client.stream_turns("trip", ({"role": "user", "content": f"turn {number}"} for number in range(30)))

    assert [turn.index for turn in client.turns("trip", page_size=10)] == list(range(30))


def test_lists_are_iterated_over_page_after_page(client: Client) -> None:
    for number in range(5):
        client.add_goal(f"goal {number}")

    pages = list(client.goals(page_size=2).pages())

    assert [len(page.results) for page in pages] == [2, 2, 1]
    assert {type(goal) for page in pages for goal in page.results} == {StoredGoal}
    assert {goal.description for goal in client.goals(page_size=2)} == {f"goal {number}" for number in range(5)}


def test_goals_facts_and_tools_have_verbs(client: Client) -> None:
    goal = client.add_goal("book seats")
    fact = client.learn("Ana lives in Lisbon.", certainty="explicit")
    client.record_tool("trip", "search_flights", success=False, error_message="timeout")

    completed = client.complete(goal.id, "12A and 12B")

    assert completed.to_dict()
    assert [each.id for each in client.facts()] == [fact.id]
    assert [each.tool_name for each in client.list_tool_invocations()] == ["search_flights"]
    assert "Ana" in str(client.resume().to_dict())


def test_what_was_set_is_saved_if_nobody_else_changed_the_object(client: Client) -> None:
    goal = client.add_goal("book seats")

    goal.priority = 5
    goal.save()
    goal.priority = 7
    goal.save()

    assert [each.priority for each in client.goals()] == [7]


def test_a_save_over_the_change_of_another_is_refused(client: Client) -> None:
    pool = client.create_pool(pool_id="board")
    mine, theirs = client.get_pool("board"), client.get_pool("board")
    theirs.expires_at = "2030-01-01T00:00:00Z"
    theirs.save()

    mine.expires_at = "2031-01-01T00:00:00Z"

    assert isinstance(mine, PoolAnswer)
    assert pool.etag
    with pytest.raises(PreconditionFailedError):
        mine.save()
    assert client.get_pool("board").expires_at == theirs.expires_at


def test_an_object_inside_another_answer_cannot_be_saved(client: Client) -> None:
    client.add_goal("book seats")
    [goal] = client.goals()
    goal.priority = 3

    with pytest.raises(TypeError, match="get_"):
        goal.save()


def test_errors_name_the_fields_and_the_request(client: Client) -> None:
    with pytest.raises(BadRequestError) as caught:
        client.create_goal(description="x", priority="high")  # type: ignore[arg-type]  # refused by the service, too

    assert (caught.value.status, caught.value.code, list(caught.value.errors)) == (400, "invalid", ["priority"])
    assert caught.value.request_id


def test_a_wrong_key_is_refused(db: None) -> None:
    with connect("wrong") as client, pytest.raises(AuthenticationError):
        client.recall("anything")


def test_raw_responses_show_status_and_headers_and_raise_when_parsed(client: Client) -> None:
    made = client.with_raw_response.add_goal("book seats")
    lost = client.with_raw_response.get_pool("nowhere")

    assert (made.status_code, made.headers["ETag"], made.parse().description) == (201, made.parse().etag, "book seats")
    assert (lost.status_code, bool(lost.request_id)) == (404, True)
    with pytest.raises(NotFoundError):
        lost.parse()
    assert len(client.with_raw_response.goals().parse().results) == 1


def test_none_as_user_means_no_user(client: Client) -> None:
    own, shared = client.learn("Ana is tall."), client.learn("Lisbon is in Portugal.", user_id=None)

    assert (own.user_id, shared.user_id) == ("ana", "")


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"BASE_URL": f"{BASE}/api/v1/", "API_KEY": "k", "AGENT_ID": "a", "USER_ID": "u"}.items():
        monkeypatch.setenv(f"AGENT_MEMORY_{name}", value)

    with Client(user_id="ben") as client:
        settings = client.settings

    assert (settings.base_url, settings.api_key) == (f"{BASE}/api/v1", "k")
    assert (settings.agent_id, settings.user_id) == ("a", "ben")
    assert "'k'" not in repr(settings)


def test_a_client_without_a_key_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENT_MEMORY_API_KEY", raising=False)

    with pytest.raises(AgentMemoryError, match="set AGENT_MEMORY_API_KEY"):
        Client(BASE)


def test_the_line_end_of_a_key_from_a_file_is_left_out() -> None:
    with Client(BASE, " mem_secret\r\n") as client:
        assert client.settings.api_key == "mem_secret"


@pytest.mark.parametrize("key", ["mem_secret\nx", "mem_sec ret", "mem_secr\u00e9t", "\x00mem_secret"])
def test_a_key_that_no_header_takes_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(AgentMemoryError, match="Pass the key alone") as caught:
        Client(BASE, key)

    assert "mem_" not in str(caught.value)


@pytest.mark.parametrize("address", ["127.0.0.1:8002", "localhost", "ftp://memory.example"])
def test_an_address_without_a_scheme_is_refused_at_once(address: str) -> None:
    with pytest.raises(AgentMemoryError, match="begins with http://"):
        Client(address, "key")


def test_lists_that_need_nothing_else_answer_on_every_route(client: Client) -> None:
    document = read_document()["paths"]
    ids = [each["get"]["operationId"] for path, each in document.items() if "{" not in path and "get" in each]

    others = {"walk_graph", "get_memory_stats", "get_key", "preview_erasure", "download_newest_export"}
    for name in sorted(set(ids) - others):
        assert list(getattr(client, name)()) == [] or name in {"list_agents", "list_audit_log", "list_timeline"}
