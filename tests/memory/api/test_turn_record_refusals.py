"""Refusals of `/turn-records`: malformed slots, reasoning deeper than its tier, too large, unknown references."""

from typing import Any
from uuid import uuid4

import pytest

from memory.models import Conversation, TurnRecord
from memory.services.records.slots import MAX_SLOT_CHARACTERS
from memory.services.tools import MAX_VALUE_BYTES
from tests.api_client import ServiceClient
from tests.hostile import HOSTILE_IDS

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]

LEAST = {"agent_id": "assistant", "conversation_id": "chat-1"}
RATIONALE = "structured_rationale"
NO_ID = "00000000-0000-7000-8000-000000000000"


def post(api: ServiceClient, **fields: Any) -> Any:
    return api.post("/turn-records", LEAST | fields)


@pytest.mark.parametrize(
    "change",
    [
        {"observation": 7},
        {"observation": ""},
        {"observation": {"data": {}}},
        {"observation": {"text": "x", "data": []}},
        {"observation": {"text": "x", "mood": "good"}},
        {"action": {}},
        {"action": {"text": " ", "calls": []}},
        {"action": {"calls": [{"arguments": 1}]}},
        {"action": {"calls": [{"tool": "x"}] * 201}},
        {"outcome": "done"},
        {"outcome": {"status": "fine"}},
        {"outcome": {}},
        {"thoughts": "x"},
        {"first_index": -1, "last_index": 0},
        {"produced": "x"},
        {"evidence": [NO_ID] * 201},
        {"goal_id": "roses"},
        {"timestamp": "2026-05-04T12:00:00"},
        {"timestamp": "2999-05-04T12:00:00Z"},
        {"client_id": ""},
        {"metadata": []},
    ],
    ids=lambda change: str(change)[:60],
)
def test_an_invalid_body_is_refused_and_stores_nothing(api: ServiceClient, change: dict[str, Any]) -> None:
    answer = post(api, **change)

    assert answer.status_code == 400
    assert {name.partition(".")[0] for name in answer.json()["errors"]} <= set(change)
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("about", [{}, {"goal_id": NO_ID}, {"evidence": [NO_ID]}, {"client_id": "run-7"}], ids=str)
@pytest.mark.parametrize("path", ["/turn-records", "/conversations/chat-1/turn-records"])
def test_a_record_without_a_slot_is_refused_and_stores_nothing(
    api: ServiceClient, path: str, about: dict[str, Any]
) -> None:
    named = LEAST if path == "/turn-records" else {"agent_id": "assistant"}

    answer = api.post(path, named | about)

    assert (answer.status_code, b"Send at least one slot" in answer.content) == (400, True)
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(
    "reasoning",
    [
        "because",
        {},
        {"tier": "deep"},
        {"tier": "raw_trace"},
        {"tier": "raw_trace", "text": ""},
        {"tier": RATIONALE},
        {"tier": RATIONALE, "text": "x"},
        {"tier": RATIONALE, "rationale": "x"},
        {"tier": RATIONALE, "rationale": {}},
        {"tier": RATIONALE, "rationale": {"decisions": []}},
        {"tier": RATIONALE, "rationale": {"decisions": "x"}},
        {"tier": RATIONALE, "rationale": {"decisions": [7]}},
        {"tier": RATIONALE, "rationale": {"decisions": [{"why": "x"}]}},
        {"tier": RATIONALE, "rationale": {"decisions": ["x"], "mood": []}},
        {"tier": RATIONALE, "rationale": {"decisions": ["x"] * 101}},
        {"tier": RATIONALE, "rationale": {"rejected": ["x" * 2_001]}},
        {"tier": "decision_summary"},
        {"tier": "decision_summary", "text": "x", "summary": "x"},
        {"tier": "decision_summary", "summary": "x", "rationale": {"decisions": ["x"]}},
        {"tier": "decision_summary", "text": "x" * 2_001},
        {"tier": "none", "summary": "x"},
        {"tier": "none", "provenance": "hearsay"},
    ],
    ids=lambda reasoning: str(reasoning)[:60],
)
def test_invalid_reasoning_is_refused(api: ServiceClient, reasoning: Any) -> None:
    answer = post(api, reasoning=reasoning)

    assert answer.status_code == 400
    assert all(name.startswith("reasoning") for name in answer.json()["errors"])
    assert not TurnRecord.objects.exists()


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"observation": "x" * (MAX_SLOT_CHARACTERS + 1)}, 400),
        ({"reasoning": {"tier": "raw_trace", "text": "x" * (MAX_SLOT_CHARACTERS + 1)}}, 400),
        ({"observation": {"text": "x", "data": {"x": "x" * MAX_VALUE_BYTES}}}, 413),
        ({"action": {"calls": [{"tool": "x", "result": "x" * MAX_VALUE_BYTES}]}}, 413),
    ],
    ids=["text", "trace", "data", "calls"],
)
def test_a_record_that_is_too_large_is_refused_and_stores_nothing(
    api: ServiceClient, change: dict[str, Any], status: int
) -> None:
    assert post(api, **change).status_code == status
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": {"status": "failed"}},
        {"observation": "x", "first_index": 0, "last_index": 0},
        {"observation": "x", "first_index": 0},
        {"observation": "x", "goal_id": NO_ID},
        {"observation": "x", "tool_invocations": [NO_ID]},
        {"observation": "x", "evidence": [NO_ID]},
        {"action": "x", "produced": [NO_ID]},
        {"outcome": {"status": "open", "data": {"reconciled": []}}, "action": "x"},
    ],
    ids=str,
)
def test_a_record_that_breaks_a_rule_of_the_service_answers_422_and_stores_nothing(
    api: ServiceClient, change: dict[str, Any]
) -> None:
    answer = post(api, **change)

    assert (answer.status_code, answer.json()["code"]) == (422, "unprocessable")
    assert not Conversation.objects.exists()


def test_evidence_of_another_account_is_refused_like_unknown_evidence(
    api: ServiceClient, stranger_api: ServiceClient
) -> None:
    theirs = stranger_api.post("/facts", {"agent_id": "assistant", "claim": "Roses drink."}).json()["id"]

    refused, unknown = post(api, observation="x", evidence=[theirs]), post(api, observation="x", evidence=[NO_ID])

    assert refused.status_code == unknown.status_code == 422
    assert refused.json()["detail"] == unknown.json()["detail"]


@pytest.mark.parametrize("wrong", HOSTILE_IDS, ids=repr)
def test_an_invalid_id_is_refused(api: ServiceClient, wrong: object) -> None:
    assert post(api, conversation_id=wrong, observation="x").status_code == 400
    assert not Conversation.objects.exists()


@pytest.mark.parametrize("query", ["?status=fine", "?level=4", "?since=yesterday", "?slot=action", "?goal_id=x"])
def test_an_invalid_query_parameter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/turn-records{query}").status_code == 400


def test_adding_no_slot_and_reading_an_unknown_level_or_record_are_refused(api: ServiceClient) -> None:
    record_id = post(api, observation="x").json()["id"]

    assert api.post(f"/turn-records/{record_id}/slots", {"agent_id": "assistant"}).status_code == 400
    assert api.get(f"/turn-records/{record_id}?level=2").status_code == 400
    assert api.get(f"/turn-records/{uuid4()}").status_code == 404


@pytest.mark.parametrize(
    "reasoning",
    [
        {"tier": "Zinnia thought aloud.", "text": "x"},
        {"tier": ["Zinnia thought aloud."]},
        {"tier": "raw_trace", "text": "x", "provenance": "Zinnia thought aloud."},
        {"tier": "raw_trace", "text": "x", "rationale": "Zinnia thought aloud."},
        {"tier": "raw_trace", "text": {"of": "Zinnia thought aloud."}},
        "Zinnia thought aloud.",
        ["Zinnia thought aloud."],
    ],
    ids=["tier", "tiers", "provenance", "rationale", "text", "bare", "list"],
)
def test_a_refusal_does_not_quote_a_trace_sent_in_the_wrong_field(api: ServiceClient, reasoning: Any) -> None:
    refused = post(api, reasoning=reasoning)

    assert refused.status_code == 400
    assert "Zinnia" not in refused.content.decode()
