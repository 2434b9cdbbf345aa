"""`/memories`: one call to remember a text, and memories of any kind by their id."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from memory.models import Account, AuditEntry, Conversation, Fact, Goal, Memory, Vector
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from memory.services.extraction.extract import extract_due
from memory.services.facts.supersede import retract_fact
from memory.services.forgetting import find_memories
from tests.api_client import ServiceClient
from tests.memory.contexts import context_of, entry, keep
from tests.memory.facts import know
from tests.memory.goals import aim
from tests.memory.turns import say, turn

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

TEXT = "Ana prefers the window seat."
NOW = timezone.now


def remember(api: ServiceClient, **body: Any) -> dict[str, Any]:
    answer = api.post("/memories", {"text": TEXT, **body})
    assert answer.status_code in (200, 201), answer.content
    stored: dict[str, Any] = answer.json()
    return stored


def listed(api: ServiceClient, query: str = "") -> list[str]:
    return [each["text"] for each in api.get(f"/memories{query}").json()["results"]]


@pytest.fixture
def colleague(account: Account) -> ServiceClient:
    return ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id="colleague").secret)


def test_one_call_remembers_a_text_that_the_next_recalls(bound_api: ServiceClient) -> None:
    stored = remember(bound_api)

    found = bound_api.post("/recall", {"query": "Which seat does Ana prefer?"}).json()["results"]

    assert [(each["id"], each["kind"], each["text"]) for each in found] == [(stored["id"], "note", TEXT)]
    assert stored["item_key"] == f"note:{stored['id']}"
    assert (stored["embedding"], stored["importance"], stored["expires_at"]) == ("stored", 0.5, None)


def test_a_note_keeps_the_fields_that_were_sent(bound_api: ServiceClient) -> None:
    bound_api.post("/conversations", {"conversation_id": "trip", "user_id": "ana"})
    sent = {
        "user_id": "ana",
        "channel": "travel",
        "conversation_id": "trip",
        "metadata": {"origin": "form"},
        "event_time": "2026-05-04T12:00:00Z",
        "importance": 0.9,
        "expires_at": "2999-01-01T00:00:00Z",
    }

    stored = remember(bound_api, **sent)

    assert bound_api.get(f"/memories/{stored['id']}").json().items() >= sent.items()


def test_an_expired_note_is_not_found(bound_api: ServiceClient) -> None:
    note = remember(bound_api)["id"]
    Memory.objects.filter(id=note).update(expires_at=NOW() - timedelta(seconds=1))

    assert (bound_api.get(f"/memories/{note}").status_code, listed(bound_api)) == (404, [])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "text"),
        ({"text": " "}, "text"),
        ({"text": "x" * 100_001}, "text"),
        ({"text": "x" * 10_001, "kind": "fact"}, "text"),
        ({"text": "x", "kind": "turn"}, "kind"),
        ({"text": "x", "importance": 2}, "importance"),
        ({"text": "x", "kind": "fact", "importance": 0.5}, "importance"),
        ({"text": "x", "messages": [{"role": "user", "content": "x"}]}, "messages"),
        ({"infer": True}, "text"),
        ({"text": "x", "infer": True, "kind": "fact"}, "kind"),
        ({"text": "x", "messages": [{"role": "user", "content": "x"}], "infer": True}, "text"),
        ({"messages": [{"role": "user", "content": "x"}], "infer": True, "metadata": {}}, "metadata"),
    ],
    ids=str,
)
def test_a_body_that_means_nothing_is_refused(bound_api: ServiceClient, body: dict[str, Any], field: str) -> None:
    refused = bound_api.post("/memories", body)

    assert (refused.status_code, list(refused.json()["errors"])) == (400, [field])
    assert not Memory.objects.exists()


@pytest.mark.parametrize("body", [{"expires_at": "2026-01-01T00:00:00Z"}, {"conversation_id": "nowhere"}], ids=str)
def test_a_note_that_is_over_or_of_no_conversation_is_refused(bound_api: ServiceClient, body: dict[str, Any]) -> None:
    assert bound_api.post("/memories", {"text": TEXT, **body}).status_code == 422


def test_an_agent_is_required(api: ServiceClient) -> None:
    assert list(api.post("/memories", {"text": TEXT}).json()["errors"]) == ["agent_id"]


def test_a_fact_and_a_goal_are_stored_as_their_routes_store_them(bound_api: ServiceClient) -> None:
    fact, again = (bound_api.post("/memories", {"text": TEXT, "kind": "fact"}) for _ in range(2))
    goal = remember(bound_api, text="Book a window seat.", kind="goal")

    assert (fact.status_code, again.status_code, fact.json()["id"]) == (201, 200, again.json()["id"])
    assert bound_api.get(f"/facts/{fact.json()['id']}").json()["claim"] == TEXT
    assert bound_api.get(f"/goals/{goal['id']}").json()["status"] == "active"


def test_inferred_knowledge_is_extracted_from_turns(bound_api: ServiceClient) -> None:
    answer = bound_api.post("/memories", {"text": "I live in Lisbon.", "infer": True, "user_id": "ana"})

    conversation = Conversation.objects.get(conversation_id=answer.json()["conversation_id"])
    extract_due(now=NOW() + timedelta(seconds=1), limit=10)
    assert (answer.status_code, answer.json()["extraction"], len(answer.json()["turns"])) == (201, "queued", 1)
    assert conversation.turn_count == 1
    assert any("Lisbon" in fact.text for fact in Fact.objects.filter(user_id="ana"))


def test_messages_are_stored_as_the_turns_of_the_named_conversation(bound_api: ServiceClient) -> None:
    messages = [{"role": "user", "content": "I live in Lisbon."}, {"role": "assistant", "text": "Noted."}]

    bound_api.post("/memories", {"messages": messages, "infer": True, "conversation_id": "trip"})

    turns = bound_api.get("/conversations/trip/turns").json()["results"]
    assert [each["content"] for each in turns] == ["I live in Lisbon.", "Noted."]


def test_a_note_is_changed_under_its_etag(bound_api: ServiceClient) -> None:
    note = remember(bound_api, importance=0.2)["id"]
    path = f"/memories/{note}"
    tag = bound_api.get(path)["ETag"]

    changed = bound_api.patch(path, {"text": "Ana prefers the aisle.", "importance": 0.8}, HTTP_IF_MATCH=tag)
    refused = bound_api.patch(path, {"importance": 0.1}, HTTP_IF_MATCH=tag)

    assert (changed.json()["text"], changed.json()["importance"]) == ("Ana prefers the aisle.", 0.8)
    assert (changed.json()["version"], refused.status_code) == (2, 412)
    assert Vector.objects.filter(memory_id=note).count() == 1
    assert AuditEntry.objects.filter(operation="update", affected_ids=[note]).count() == 1


def test_an_equal_value_changes_nothing(bound_api: ServiceClient) -> None:
    note = remember(bound_api)["id"]

    assert bound_api.patch(f"/memories/{note}", {"text": TEXT, "expires_at": None}).json()["version"] == 1


def test_a_memory_of_another_kind_is_not_changed_here(bound_api: ServiceClient, owner: Owner) -> None:
    fact = know(owner, TEXT)

    assert bound_api.patch(f"/memories/{fact.id}", {"text": "x"}).status_code == 404
    assert bound_api.get(f"/memories/{fact.id}").json()["kind"] == "fact"


def test_a_note_of_a_user_is_changed_by_agents_of_the_user_only(
    bound_api: ServiceClient, colleague: ServiceClient
) -> None:
    of_ana, of_nobody = remember(bound_api, user_id="ana")["id"], remember(bound_api)["id"]

    changes = [
        colleague.patch(f"/memories/{of_ana}", {"text": "x", "user_id": "ana"}),
        colleague.patch(f"/memories/{of_ana}", {"text": "x", "user_id": "ben"}),
        colleague.patch(f"/memories/{of_nobody}", {"text": "x"}),
        colleague.delete(f"/memories/{of_nobody}"),
    ]

    assert [answer.status_code for answer in changes] == [200, 404, 404, 404]


def test_a_note_of_the_account_is_read_but_not_changed_by_agents(bound_api: ServiceClient, owner: Owner) -> None:
    shared = know(replace(owner, agent_id=""), TEXT)

    assert bound_api.get(f"/memories/{shared.id}").status_code == 200
    assert bound_api.delete(f"/memories/{shared.id}").status_code == 403


def test_a_memory_is_deleted_for_good(bound_api: ServiceClient) -> None:
    note = remember(bound_api)["id"]

    assert [bound_api.delete(f"/memories/{note}").status_code for _ in range(2)] == [204, 404]
    assert not Memory.objects.exists()
    assert not Vector.objects.exists()


def test_a_goal_that_is_deleted_blocks_no_other(bound_api: ServiceClient, owner: Owner) -> None:
    first = aim(owner, "Buy a ticket.")
    second = bound_api.post("/goals", {"description": "Fly.", "blocked_by": [str(first.id)]}).json()["id"]

    assert bound_api.delete(f"/memories/{first.id}").status_code == 204
    assert Goal.objects.get(id=second).status == "active"


def test_a_turn_is_read_but_not_deleted_here(bound_api: ServiceClient, owner: Owner) -> None:
    (said,) = say(owner, turn("Hello there."), conversation_id="trip").turns

    assert bound_api.get(f"/memories/{said.id}").json()["text"] == "Hello there."
    assert bound_api.delete(f"/memories/{said.id}").status_code == 422


def test_a_retracted_fact_and_an_entry_of_a_context_are_not_read_here(bound_api: ServiceClient, owner: Owner) -> None:
    fact = know(owner, TEXT)
    retract_fact(owner, fact.id, now=NOW())
    (kept,) = keep(owner, context_of(owner), entry("secret"))

    assert [bound_api.get(f"/memories/{each.id}").status_code for each in (fact, kept)] == [404, 404]
    assert listed(bound_api) == []


def test_a_replaced_fact_and_a_closed_goal_say_so(bound_api: ServiceClient) -> None:
    for text in ("Ana works at Acme", "Ana works at Initech"):
        remember(bound_api, text=text, kind="fact")
    bound_api.post("/facts", {"claim": "The visa is valid", "valid_to": "2026-05-04T12:00:00Z"})
    goal = remember(bound_api, text="Book the flight", kind="goal")
    bound_api.post(f"/goals/{goal['id']}/complete", {})
    remember(bound_api)

    rows = bound_api.get("/memories").json()["results"]
    on_timeline = {each["summary"]: each["status"] for each in bound_api.get("/timeline").json()["results"]}

    said = {each["text"]: each["status"] for each in rows}
    facts = {"Ana works at Acme": "superseded", "Ana works at Initech": "active", "The visa is valid": "ended"}
    assert said == {**facts, "Book the flight": "completed", TEXT: None}
    assert on_timeline.items() >= said.items()
    for row in rows:
        assert bound_api.get(f"/memories/{row['id']}").json()["status"] == row["status"]


def test_memories_are_listed_latest_first_in_pages(bound_api: ServiceClient) -> None:
    for day in (1, 2, 3):
        remember(bound_api, text=f"day {day}", event_time=f"2026-05-0{day}T12:00:00Z")

    first = bound_api.get("/memories?page_size=2").json()
    second = bound_api.get(first["next"].partition("/api/v1")[2]).json()

    assert [[each["text"] for each in page["results"]] for page in (first, second)] == [["day 3", "day 2"], ["day 1"]]


def test_a_memory_deleted_while_its_page_is_read_shifts_no_other(
    bound_api: ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 6):
        remember(bound_api, text=f"day {day}", event_time=f"2026-05-0{day}T12:00:00Z")

    def delete_and_find(owner: Owner, memory_ids: Sequence[UUID]) -> list[Memory]:
        Memory.objects.filter(text="day 4").delete()
        return find_memories(owner, memory_ids)

    monkeypatch.setattr("memory.api.memories.find_memories", delete_and_find)
    first = bound_api.get("/memories?page_size=3").json()
    second = bound_api.get(first["next"].partition("/api/v1")[2]).json()
    back = bound_api.get(second["previous"].partition("/api/v1")[2]).json()

    pages = [[each["text"] for each in page["results"]] for page in (first, second, back)]
    assert pages == [["day 5", "day 3"], ["day 2", "day 1"], ["day 5", "day 3"]]


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        ("?kind=note", ["of ana", "of nobody"]),
        ("?kind=fact", ["a fact"]),
        ("?kind=note&user_id=ben", ["of nobody"]),
        ("?channel=travel", ["of ana"]),
        ("?since=2026-05-03T00:00:00Z", ["of ana"]),
    ],
)
def test_memories_are_filtered(bound_api: ServiceClient, query: str, texts: list[str]) -> None:
    remember(bound_api, text="of nobody", event_time="2026-05-02T12:00:00Z")
    remember(bound_api, text="a fact", kind="fact", event_time="2026-05-01T12:00:00Z")
    remember(bound_api, text="of ana", user_id="ana", channel="travel", event_time="2026-05-04T12:00:00Z")

    assert listed(bound_api, query) == texts


def test_an_unknown_kind_is_answered_with_the_kinds(bound_api: ServiceClient) -> None:
    assert "note" in bound_api.get("/memories?kind=letter").json()["errors"]["kind"][0]


@pytest.fixture
def of_ana(bound_api: ServiceClient, owner: Owner) -> Callable[[], set[str]]:
    """Store memories of ana, ben and nobody; return what there is by user and kind."""
    ana = replace(owner, user_id="ana")
    for user_id in ("ana", "ben", ""):
        remember(bound_api, **({"user_id": user_id} if user_id else {}))
    know(ana, "Ana lives in Lisbon.")
    blocker = aim(ana, "Buy a ticket.")
    bound_api.post("/goals", {"description": "Fly.", "user_id": "ana", "blocked_by": [str(blocker.id)]})
    say(ana, turn("Hello."), conversation_id="trip")
    return lambda: {f"{user}:{kind}" for user, kind in Memory.objects.values_list("user_id", "kind")}


def test_a_dry_run_counts_what_would_be_forgotten(bound_api: ServiceClient, of_ana: Callable[[], set[str]]) -> None:
    before = of_ana()

    preview = bound_api.delete("/memories?user_id=ana&dry_run=true").json()

    assert preview == {
        "dry_run": True,
        "deleted": {"note": 1, "fact": 1, "goal": 2},
        "kept": {"turn": 1},
        "remaining": 4,
    }
    assert of_ana() == before


def test_a_user_is_forgotten_as_the_preview_says(bound_api: ServiceClient, of_ana: Callable[[], set[str]]) -> None:
    preview = bound_api.delete("/memories?user_id=ana&dry_run=true").json()

    done = bound_api.delete("/memories?user_id=ana").json()

    assert done == preview | {"dry_run": False, "remaining": 0}
    assert of_ana() == {"ben:note", ":note", "ana:turn"}


def test_only_the_named_kinds_and_channel_are_forgotten(
    bound_api: ServiceClient, of_ana: Callable[[], set[str]]
) -> None:
    nothing = bound_api.delete("/memories?user_id=ana&kind=note&channel=elsewhere").json()
    notes = bound_api.delete("/memories?user_id=ana&kind=note").json()

    assert (nothing["deleted"], notes["deleted"]) == ({}, {"note": 1})
    assert of_ana() >= {"ana:fact", "ana:goal", "ana:turn"}


def test_forgetting_needs_a_user(bound_api: ServiceClient) -> None:
    assert list(bound_api.delete("/memories").json()["errors"]) == ["user_id"]
    assert bound_api.delete("/memories?user_id=ana&dry_run=1").status_code == 400
