"""`/turn-records`: store as a whole or by slot, read by agents that take part, list, delete."""

from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, AuditEntry, IdempotentRequest, ReasoningTrace, TurnRecord, TurnSlot
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.procedures import everything_stored

pytestmark = pytest.mark.django_db

TURN = {
    "agent_id": "assistant",
    "conversation_id": "chat-1",
    "observation": "The roses hang their heads.",
    "reasoning": {
        "tier": "structured_rationale",
        "summary": "Water early.",
        "rationale": {
            "decisions": [{"what": "water at dawn", "why": "the sun burns"}],
            "rejected": ["water at noon"],
            "blockers": [],
        },
    },
    "action": {"text": "Watered.", "calls": [{"tool": "hose", "arguments": {"litres": 12}, "result": "wet"}]},
    "outcome": {"status": "open", "text": "Not dry yet."},
}
SECRET = "hunter2"
TRACE = {"tier": "raw_trace", "text": f"Hm, {SECRET}? No.", "summary": "Water early."}


@pytest.fixture(autouse=True)
def _embedder(embedding_server: EmbeddingServer) -> None:
    """Start a server that answers immediately."""


def post(api: ServiceClient, **fields: Any) -> Any:
    return api.post("/turn-records", TURN | fields)


def read(api: ServiceClient, record_id: str, query: str = "") -> dict[str, Any]:
    answer = api.get(f"/turn-records/{record_id}?agent_id=assistant{query}")
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


def numbers(api: ServiceClient, query: str = "") -> list[int]:
    answer = api.get(f"/turn-records?agent_id=assistant{query}")
    assert answer.status_code == 200, answer.content
    return [row["number"] for row in answer.json()["results"]]


def allow(tier: str, trace_tokens: int = 1_000) -> None:
    Account.objects.update(reasoning_tier=tier, raw_trace_tokens=trace_tokens)


def test_a_turn_is_recorded_and_read_again(api: ServiceClient) -> None:
    posted = post(api, client_id="t1", channel="garden", metadata={"model": "m"})
    shown = read(api, posted.json()["id"])

    assert posted.status_code == 201
    assert posted.json()["reasoning"] == {
        "posted": "structured_rationale",
        "tier": "structured_rationale",
        "reason": "",
    }
    assert [slot["slot"] for slot in shown["slots"]] == ["observation", "reasoning", "action", "outcome"]
    assert shown["slots"][1]["data"]["rationale"]["rejected"] == [{"what": "water at noon", "why": ""}]
    assert shown["slots"][2]["text"] == 'Watered.\nhose({"litres": 12}) -> wet'
    same = {"number": 0, "status": "open", "reasoning_tier": "structured_rationale", "metadata": {"model": "m"}}
    assert shown | same == shown
    assert shown["tokens"] == shown["raw_tokens"] == sum(slot["tokens"] for slot in shown["slots"])


def test_the_answer_to_a_write_contains_no_texts(api: ServiceClient) -> None:
    posted = post(api)

    assert b"roses" not in posted.content
    assert b"water" not in posted.content
    assert [set(slot) & {"text", "data"} for slot in posted.json()["slots"]] == [set()] * 4


def test_a_turn_can_be_stored_slot_by_slot(api: ServiceClient) -> None:
    first = {"agent_id": "assistant", "conversation_id": "chat-1", "observation": TURN["observation"]}
    opened = api.post("/turn-records", first)
    path = f"/turn-records/{opened.json()['id']}/slots"
    for slot in ("reasoning", "action", "outcome"):
        answer = api.post(path, {"agent_id": "assistant", slot: TURN[slot]})
        assert (opened.status_code, answer.status_code) == (201, 200), answer.content

    shown = read(api, opened.json()["id"])
    assert [slot["slot"] for slot in shown["slots"]] == ["observation", "reasoning", "action", "outcome"]
    assert TurnRecord.objects.get().version == 4


def test_an_open_outcome_is_reconciled_once(api: ServiceClient) -> None:
    path = f"/turn-records/{post(api).json()['id']}/slots"
    done = {"agent_id": "assistant", "outcome": {"status": "succeeded", "text": "Dry."}}

    answers = [api.post(path, done) for _ in range(2)]
    other = api.post(path, done | {"outcome": {"status": "failed"}})

    assert [answer.status_code for answer in answers] == [200, 200]
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    outcome = read(api, answers[0].json()["id"])["slots"][3]
    assert outcome["text"] == "Dry."
    assert [before["text"] for before in outcome["data"]["reconciled"]] == ["Not dry yet."]


def test_a_client_id_sent_again_returns_the_same_record(api: ServiceClient) -> None:
    first, again = post(api, client_id="t1"), post(api, client_id="t1")
    other = post(api, client_id="t1", observation="It rains.")

    assert (first.status_code, again.status_code, other.status_code) == (201, 200, 409)
    assert first.json() == again.json()


def test_a_request_repeated_with_its_idempotency_key_is_recorded_once(api: ServiceClient) -> None:
    first, again = (api.post("/turn-records", TURN, HTTP_IDEMPOTENCY_KEY="k1") for _ in range(2))

    assert first.content == again.content
    assert TurnRecord.objects.count() == 1


def test_the_records_of_a_conversation_are_listed_in_order(api: ServiceClient) -> None:
    body = {name: value for name, value in TURN.items() if name != "conversation_id"}
    for _ in range(2):
        assert api.post("/conversations/chat-1/turn-records", body).status_code == 201
    post(api, conversation_id="chat-2")

    listed = api.get("/conversations/chat-1/turn-records?agent_id=assistant").json()["results"]
    assert [(row["conversation_id"], row["number"]) for row in listed] == [("chat-1", 0), ("chat-1", 1)]
    assert listed[0]["slots"][0]["text"] == "The roses hang their heads."
    assert api.get("/conversations/chat-9/turn-records?agent_id=assistant").status_code == 404


def test_a_list_is_latest_first_and_filtered_by_every_parameter(api: ServiceClient) -> None:
    goal = api.post("/goals", {"agent_id": "assistant", "description": "roses"}).json()["id"]
    post(api, timestamp="2026-05-04T12:00:00Z", goal_id=goal)
    post(api, timestamp="2026-05-03T12:00:00Z", outcome={"status": "failed"})
    post(api, timestamp="2026-05-05T12:00:00Z", conversation_id="chat-2")

    assert numbers(api) == [0, 0, 1]
    assert numbers(api, "&conversation_id=chat-1") == numbers(api, "&until=2026-05-05T00:00:00Z") == [0, 1]
    assert numbers(api, f"&goal_id={goal}") == numbers(api, "&since=2026-05-05T00:00:00Z") == [0]
    assert numbers(api, "&status=failed") == [1]
    assert numbers(api, "&level=1") == []


def test_a_turn_is_read_with_its_references(api: ServiceClient) -> None:
    use = {"agent_id": "assistant", "conversation_id": "chat-1", "tool_name": "hose"}
    used = api.post("/tool-invocations", use).json()["id"]
    fact = api.post("/facts", {"agent_id": "assistant", "claim": "Roses drink at night."}).json()["id"]
    record_id = post(api, tool_invocations=[used], evidence=[fact]).json()["id"]

    shown = read(api, record_id)

    empty: dict[str, Any] = {"produced": [], "used": [], "truncated": False}
    assert shown | empty | {"tool_invocations": [used], "evidence": [fact]} == shown


def test_an_erased_record_loses_its_slots_and_trace_and_its_number_is_not_reused(api: ServiceClient) -> None:
    allow("raw_trace")
    record_id = post(api, reasoning=TRACE).json()["id"]

    assert api.delete(f"/turn-records/{record_id}?agent_id=assistant").status_code == 204

    assert api.get(f"/turn-records/{record_id}").status_code == 404
    assert not TurnSlot.objects.exists()
    assert not ReasoningTrace.objects.exists()
    assert post(api).json()["number"] == 1


def test_a_merged_record_can_be_neither_erased_nor_extended(api: ServiceClient) -> None:
    record_id = post(api).json()["id"]
    TurnRecord.objects.update(level=2)

    erased = api.delete(f"/turn-records/{record_id}?agent_id=assistant")
    added = api.post(f"/turn-records/{record_id}/slots", {"agent_id": "assistant", "outcome": {"status": "failed"}})

    assert (erased.status_code, added.status_code) == (409, 409)


@pytest.mark.parametrize(
    ("policy", "tokens", "tier", "reason"),
    [
        ("raw_trace", 1_000, "raw_trace", ""),
        ("raw_trace", 2, "decision_summary", "budget"),
        ("structured_rationale", 1_000, "decision_summary", "policy"),
        ("none", 1_000, "none", "policy"),
    ],
)
def test_the_answer_contains_the_stored_tier_of_a_trace_and_the_reason(
    api: ServiceClient, policy: str, tokens: int, tier: str, reason: str
) -> None:
    allow(policy, tokens)

    posted = post(api, reasoning=TRACE)

    assert posted.status_code == 201
    assert posted.json()["reasoning"] == {"posted": "raw_trace", "tier": tier, "reason": reason}
    assert read(api, posted.json()["id"])["reasoning_tier"] == tier
    assert ReasoningTrace.objects.exists() is (tier == "raw_trace")


@pytest.mark.parametrize("policy", ["raw_trace", "none"])
def test_a_trace_appears_in_no_answer_log_or_unencrypted_column(
    api: ServiceClient, policy: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("memory.conf.AUDIT_LEVEL", "verbose")
    allow(policy)
    posted = api.post("/turn-records", TURN | {"reasoning": TRACE}, HTTP_IDEMPOTENCY_KEY="k1")
    refused = api.post("/turn-records", TURN | {"reasoning": TRACE, "outcome": 1}, HTTP_IDEMPOTENCY_KEY="k2")
    shown = api.get(f"/turn-records/{posted.json()['id']}")

    # what was refused is not kept
    assert IdempotentRequest.objects.count() == 1
    assert AuditEntry.objects.exists()
    answers = posted.content + refused.content + shown.content + api.get("/turn-records").content
    assert SECRET not in answers.decode() + everything_stored() + caplog.text


def test_a_rationale_is_hidden_once_the_policy_forbids_it(api: ServiceClient) -> None:
    record_id = post(api, client_id="t1").json()["id"]
    allow("decision_summary")

    shown, again = read(api, record_id), post(api, client_id="t1")

    assert shown["slots"][1]["text"] == "Water early."
    assert (shown["slots"][1]["tier"], shown["reasoning_tier"]) == ("decision_summary", "decision_summary")
    assert (again.status_code, again.json()["reasoning"]["tier"]) == (200, "decision_summary")
    for answer in (api.get(f"/turn-records/{record_id}"), api.get("/turn-records"), again):
        assert b"noon" not in answer.content


def test_a_record_stored_under_a_lower_policy_is_not_changed_by_a_higher_one(api: ServiceClient) -> None:
    allow("decision_summary")
    post(api, client_id="t1")
    allow("structured_rationale")

    again = post(api, client_id="t1")

    kept = {"posted": "structured_rationale", "tier": "decision_summary", "reason": "policy"}
    assert (again.status_code, again.json()["reasoning"]) == (200, kept)


def test_other_agents_and_accounts_see_and_change_nothing(
    api: ServiceClient, bound_api: ServiceClient, stranger_api: ServiceClient
) -> None:
    theirs = post(api, agent_id="other").json()["id"]
    outcome = {"outcome": {"status": "failed"}}
    for client in (bound_api, stranger_api):
        path = f"/turn-records/{theirs}"
        answers = [client.get(path), client.post(f"{path}/slots", outcome), client.delete(path)]

        assert [answer.status_code for answer in answers] == [404, 404, 404]
        assert client.get("/turn-records").json()["results"] == []
    assert bound_api.get(f"/turn-records/{uuid4()}").status_code == 404
    assert bound_api.post("/turn-records", TURN).status_code == 404
    assert bound_api.post("/conversations/chat-1/turn-records", {"observation": "x"}).status_code == 404


def test_a_list_uses_four_queries_for_any_number_of_records(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(50):
        post(api, client_id=f"t{number}", timestamp=timezone.now().isoformat())

    # the key, the policy, the page, its slots
    with django_assert_num_queries(4):
        listed = api.get("/turn-records?agent_id=assistant&page_size=50").json()

    assert len(listed["results"]) == 50


def test_a_read_of_a_record_uses_six_queries(
    api: ServiceClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    record_id = post(api).json()["id"]

    # the key, the record, the policy, its slots, their links and uses of tools
    with django_assert_num_queries(6):
        read(api, record_id)
