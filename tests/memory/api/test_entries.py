"""`/contexts/{id}/entries` and `/entries/{id}`: store one or many, edit, change importance, remove."""

from typing import Any

import pytest

from memory import conf
from memory.models import AuditEntry, ContextEntry, ContextEntryVersion, Memory
from tests.api_client import ServiceClient
from tests.embedding_server import WIDTH, EmbeddingServer
from tests.memory.api.entry_requests import keep, listed, new_context

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

ENTRY: dict[str, Any] = {
    "content": "The boiler was repaired on Monday",
    "value": {"b": 1.0, "a": [None, "123"]},
    "key": "boiler/state",
    "entry_type": "fact",
    "source_type": "tool",
    "memory_type": "experiential",
    "importance": 0.7,
    "confidence": 0.9,
    "metadata": {"a": 1},
    "user_id": "ana",
    "channel": "house",
}


@pytest.fixture
def api(bound_api: ServiceClient, embedding_server: EmbeddingServer) -> ServiceClient:
    """Return the client of the agent `assistant`, with an embedder."""
    return bound_api


@pytest.fixture
def context(api: ServiceClient) -> str:
    return new_context(api)


@pytest.fixture
def path(api: ServiceClient, context: str) -> str:
    return f"/entries/{keep(api, context).json()['id']}"


def test_an_entry_is_stored_and_read_as_it_was_sent(api: ServiceClient, context: str) -> None:
    stored = api.post(f"/contexts/{context}/entries", ENTRY)
    found = api.get(f"/entries/{stored.json()['id']}")

    assert (stored.status_code, stored["ETag"], found["ETag"]) == (201, '"1"', '"1"')
    assert stored.json() | ENTRY == stored.json()
    assert stored.json() | {"agent_id": "assistant", "version": 1, "previous_version": None} == stored.json()
    assert (stored.json()["embedding"], stored.json()["context_id"]) == ("stored", context)
    assert found.json() | {"effective_relevance_score": 0} == stored.json() | {"effective_relevance_score": 0}


def test_the_relevance_of_a_new_entry_follows_from_importance_and_confidence(api: ServiceClient, context: str) -> None:
    score = keep(api, context, importance=0.2, confidence=0.4).json()["effective_relevance_score"]

    assert score == pytest.approx(0.4 * 0.2 + 0.3 * 0.4 + 0.3, abs=1e-4)


@pytest.mark.parametrize("value", ["text", 7, 1.0, None, False, [], {}], ids=repr)
def test_an_entry_with_a_value_alone_gets_searchable_content(api: ServiceClient, context: str, value: Any) -> None:
    stored = api.post(f"/contexts/{context}/entries", {"value": value}).json()

    assert (stored["value"], type(stored["value"])) == (value, type(value))
    assert stored["content"].strip()


def test_many_entries_are_stored_in_order_in_one_request(api: ServiceClient, context: str) -> None:
    entries = [{"content": f"number {number}"} for number in range(5)]

    answer = api.post(f"/contexts/{context}/entries", {"entries": entries})

    assert answer.status_code == 201
    assert [entry["content"] for entry in answer.json()["entries"]] == [entry["content"] for entry in entries]
    assert sorted(listed(api, context)) == [entry["content"] for entry in entries]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"content": "  "},
        {"content": ""},
        {"content": None},
        {"content": 7},
        {"content": "x" * 100_001},
        {"content": "x", "importance": 1.1},
        {"content": "x", "importance": "high"},
        {"content": "x", "confidence": -0.1},
        {"content": "x", "confidence": True},
        {"content": "x", "entry_type": "rumour"},
        {"content": "x", "source_type": ""},
        {"content": "x", "memory_type": "semantic"},
        {"content": "x", "key": ""},
        {"content": "x", "key": "k" * 201},
        {"content": "x", "key": "a\nb"},
        {"content": "x", "metadata": "none"},
        {"content": "x", "embedding": []},
        {"content": "x", "surprise": 1},
        {"entries": []},
        {"entries": {}},
        {"entries": [{}]},
        {"entries": [{"content": "x"}, {"content": " "}]},
        {"entries": [{"content": "x"}], "content": "x"},
        {"entries": [{"content": "x", "user_id": "ana"}]},
        {"entries": [{"content": "x"}] * 1_001},
    ],
    ids=lambda body: str(body)[:50],
)
def test_an_invalid_entry_is_refused_and_not_stored(api: ServiceClient, context: str, body: dict[str, Any]) -> None:
    assert api.post(f"/contexts/{context}/entries", body).status_code == 400
    assert not ContextEntry.objects.exists()


def test_a_value_that_is_too_large_is_refused_with_the_limit_and_not_stored(api: ServiceClient, context: str) -> None:
    for body in ({"value": "x" * conf.TIER_VALUE_BYTES}, {"content": "x", "value": "x" * conf.TIER_VALUE_BYTES}):
        refused = api.post(f"/contexts/{context}/entries", body)

        assert refused.status_code == 413
        assert (refused.json()["stored"], refused.json()["limit_bytes"]) == (False, conf.TIER_VALUE_BYTES)
    assert not ContextEntry.objects.exists()


def test_one_vector_of_a_wrong_width_stores_none_of_the_entries(api: ServiceClient, context: str) -> None:
    entries = [{"content": "one"}, {"content": "two", "embedding": [1.0] * (WIDTH + 1)}]

    assert api.post(f"/contexts/{context}/entries", {"entries": entries}).status_code == 422
    assert not ContextEntry.objects.exists()


def test_one_key_used_twice_in_a_request_is_refused(api: ServiceClient, context: str) -> None:
    entries = [{"content": "one", "key": "k"}, {"content": "two", "key": "k"}]

    answer = api.post(f"/contexts/{context}/entries", {"entries": entries})

    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["entries"])
    assert not ContextEntry.objects.exists()


def test_an_entry_stored_twice_with_one_idempotency_key_is_stored_once(api: ServiceClient, context: str) -> None:
    url, body = f"/contexts/{context}/entries", {"content": "once"}
    answers = [api.post(url, body, HTTP_IDEMPOTENCY_KEY="k") for _again in range(2)]

    assert (answers[0].content, answers[0]["ETag"]) == (answers[1].content, answers[1]["ETag"])
    assert ContextEntry.objects.count() == 1


def test_storing_under_an_existing_key_makes_the_next_version_of_its_entry(api: ServiceClient, context: str) -> None:
    first, second = (keep(api, context, content, key="k") for content in ("one", "two"))

    assert first.json()["id"] == second.json()["id"]
    assert (second.json()["version"], second.json()["previous_version"], second["ETag"]) == (2, 1, '"2"')
    assert listed(api, context, "?key=k") == ["two"]


def test_storing_the_same_content_under_an_existing_key_updates_its_other_fields(
    api: ServiceClient, context: str
) -> None:
    keep(api, context, key="k", metadata={"a": 1}, entry_type="plan")

    answer = keep(api, context, key="k", metadata={"b": 2}, importance=0.9)

    assert answer.json() | {"metadata": {"b": 2}, "importance": 0.9, "entry_type": "plan"} == answer.json()
    assert (answer.json()["version"], answer["ETag"]) == (1, '"2"')


def test_an_edit_makes_a_version_with_its_editor(api: ServiceClient, path: str) -> None:
    edited = api.patch(path, {"content": "The roof is tight", "editor": "ana"}, HTTP_IF_MATCH='"1"')
    versions = api.get(f"{path}/versions").json()["results"]

    assert (edited.status_code, edited["ETag"], edited.json()["version"]) == (200, '"2"', 2)
    assert [(each["version"], each["previous_version"], each["content"], each["editor"]) for each in versions] == [
        (1, None, "The roof leaks", "assistant"),
        (2, 1, "The roof is tight", "ana"),
    ]


def test_an_edit_without_an_agent_names_the_api_key_as_its_editor(api_key: str, api: ServiceClient, path: str) -> None:
    ServiceClient(api_key).patch(path, {"value": [1, 2]})

    version = ContextEntryVersion.objects.latest("number")
    assert version.editor == AuditEntry.objects.get(operation="update").actor == f"key:{api_key[:12]}"
    assert (version.content, version.value) == ("[1,2]", [1, 2])


def test_the_audit_log_names_the_agent_and_not_the_given_editor(api: ServiceClient, path: str) -> None:
    api.patch(path, {"content": "other", "editor": "somebody else"})

    entry = AuditEntry.objects.get(operation="update")
    assert (entry.agent_id, entry.actor.startswith("key:")) == ("assistant", True)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"editor": "ana"},
        {"content": " "},
        {"content": "x" * 100_001},
        {"importance": 1},
        {"content": "x", "key": "k"},
    ],
    ids=lambda body: str(body)[:40],
)
def test_an_invalid_edit_of_an_entry_is_refused(api: ServiceClient, path: str, body: dict[str, Any]) -> None:
    assert api.patch(path, body).status_code == 400
    assert api.patch(path, {"value": "x" * conf.TIER_VALUE_BYTES}).status_code == 413
    assert api.get(path).json()["version"] == 1


def test_restoring_a_version_makes_it_the_next_version(api: ServiceClient, path: str) -> None:
    api.patch(path, {"content": "other"})

    restored = api.post(f"{path}/versions/1/restore", {})

    assert (restored.status_code, restored["ETag"]) == (200, '"3"')
    assert (restored.json()["content"], restored.json()["version"]) == ("The roof leaks", 3)
    assert restored.json()["embedding"] == "stored"
    assert api.get(f"{path}/versions").json()["results"][2]["restored_from"] == 1
    assert api.post(f"{path}/versions/9/restore", {}).status_code == 404


def test_the_importance_of_an_entry_is_boosted_and_reduced(api: ServiceClient, path: str) -> None:
    boosted, more = api.post(f"{path}/boost", {}), api.post(f"{path}/boost", {"by": 1})
    reduced = api.post(f"{path}/reduce", {"by": 0.25})

    assert [answer.json()["importance"] for answer in (boosted, more, reduced)] == pytest.approx([0.6, 1.0, 0.75])
    assert (reduced["ETag"], reduced.json()["version"]) == ('"4"', 1)


@pytest.mark.parametrize("by", [0, -0.1, 1.01, "0.1", True, None, 1e308])
def test_a_change_of_importance_must_be_above_zero_and_at_most_one(api: ServiceClient, path: str, by: Any) -> None:
    assert api.post(f"{path}/boost", {"by": by}).status_code == 400
    assert api.post(f"{path}/reduce", {"by": by}).status_code == 400


def test_a_request_with_a_stale_etag_changes_nothing(api: ServiceClient, path: str) -> None:
    api.post(f"{path}/boost", {})
    before = Memory.objects.values().get()

    answers = [
        api.patch(path, {"content": "other"}, HTTP_IF_MATCH='"1"'),
        api.delete(path, HTTP_IF_MATCH='"1"'),
        *(
            api.post(f"{path}/{action}", {}, HTTP_IF_MATCH='"1"')
            for action in ("boost", "reduce", "versions/1/restore")
        ),
    ]

    assert [answer.status_code for answer in answers] == [412] * 5
    assert Memory.objects.values().get() == before


def test_a_removed_entry_is_gone_except_for_its_history(api: ServiceClient, context: str, path: str) -> None:
    removed = api.delete(path, HTTP_IF_MATCH='"1"')

    assert (removed.status_code, removed.content) == (204, b"")
    assert (api.get(path).status_code, api.delete(path).status_code, listed(api, context)) == (404, 404, [])
    assert ContextEntryVersion.objects.count() == 1


def test_the_text_of_an_entry_is_not_in_the_audit_log(api: ServiceClient, path: str) -> None:
    api.patch(path, {"content": "The password is swordfish"})

    assert "swordfish" not in str(list(AuditEntry.objects.values()))
