"""`POST /recall` with invalid or strange requests: no answer is a 500, none has memories of others."""

import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.api_client import ServiceClient
from tests.properties import examples

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

ASKED = {"agent_id": "assistant", "query": "the boiler"}

MAX_CPU_SECONDS = 1.0
"""CPU time of this process; a regular expression that backtracks again and again takes longer."""

STRANGE_QUERIES = {
    "stop words only": "is it not the and of with",
    "Chinese": "锅炉在哪里？",
    "Arabic": "أين الغلاية؟",
    "emoji": "🔥🚒 👩‍👩‍👧",
    "a zero-width space": "\u200b",
    "right to left and back": "\u202eboiler\u202c",
    "search syntax": "boiler & !(cellar | <-> ) :* <2> 'x':A",
    "web search syntax": '"boiler -cellar OR',
    "unbalanced quotes": "\"the 'boiler “ » «",
    "SQL": "'; DROP TABLE memories; -- %s %(text)s {0} $1",
    "LIKE patterns": "%_\\%",
    "backslashes": "\\ \\\\ \\u0000 \\x00",
    "control characters": "\x01\x1b\x7f\r\n\t",
    "nothing but punctuation": "?!… — ()",
    "a word of 10,000 letters": "b" * 10_000,
    "10,000 characters of words": "boiler " * 1_428,
    "a thousand different words": " ".join(f"w{number}" for number in range(1_400)),
    "a thousand quotes": '"' * 1_000,
    "a thousand quoted words": '"boiler pipe" ' * 700,
    # what is longer is not looked through for names
    "1,900 blanks": "the" + " " * 1_900 + ", Boiler",
    "1,900 line ends": "the boiler" + "\n" * 1_900 + ", Pipe",
    "10,000 blanks": "the" + " " * 9_990 + "boiler",
    "10,000 line ends": "the boiler" + "\n" * 9_980 + ", b",
    "blanks and line ends in turn": '"Boiler' + " \n\t\u00a0" * 2_490 + "Pipe",
    "names of blanks and marks": "A. \n" * 2_500,
    "dates beyond the calendar": "on 2026-02-31, in 0000, at 99:99, since 99999999999999",
}

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no query": ({"query": None}, "query"),
    "an empty query": ({"query": ""}, "query"),
    "a query of blanks": ({"query": " \n\t\u00a0"}, "query"),
    "a query of 100 KB": ({"query": "b" * 100_000}, "query"),
    "a number for a query": ({"query": 7}, "query"),
    "a NUL": ({"query": "a\x00b"}, ""),
    "a posture": ({"posture": "lying"}, "posture"),
    "a mode": ({"mode": "narrow"}, "mode"),
    "a scope": ({"scopes": ["galaxy"]}, "scopes"),
    "scopes that are no list": ({"scopes": "session"}, "scopes"),
    "a kind": ({"kinds": ["rumour"]}, "kinds"),
    "a kind that is an object": ({"kinds": [{}]}, "kinds"),
    "a hundred kinds": ({"kinds": ["fact"] * 100}, "kinds"),
    "a slot": ({"slots": ["excuse"]}, "slots"),
    "slots that are no list": ({"slots": "outcome"}, "slots"),
    "five slots": ({"slots": ["outcome"] * 5}, "slots"),
    "a technique": ({"techniques": ["telepathy"]}, "techniques"),
    "a technique twice denied": ({"techniques": ["--lexical"]}, "techniques"),
    "no results": ({"top_k": 0}, "top_k"),
    "too many results": ({"top_k": 201}, "top_k"),
    "half a result": ({"top_k": 1.5}, "top_k"),
    "no time": ({"deadline_ms": 0}, "deadline_ms"),
    "less than no time": ({"deadline_ms": -1}, "deadline_ms"),
    "more than a minute": ({"deadline_ms": 60_001}, "deadline_ms"),
    "no tokens": ({"max_tokens": 0}, "max_tokens"),
    "a window of nothing": ({"time_window_hours": 0}, "time_window_hours"),
    "a confidence above 1": ({"min_confidence": 1.01}, "min_confidence"),
    "a confidence below 0": ({"min_confidence": -0.01}, "min_confidence"),
    "a moment without a zone": ({"since": "2026-05-04T12:00:00"}, "since"),
    "until before since": ({"since": "2026-05-04T12:00:00Z", "until": "2026-05-04T11:00:00Z"}, "until"),
    "until at since": ({"since": "2026-05-04T12:00:00Z", "until": "2026-05-04T14:00:00+02:00"}, "until"),
    "a day": ({"until": "2026-02-30T00:00:00Z"}, "until"),
    "words for a moment": ({"as_of": "yesterday"}, "as_of"),
    "a number for a moment": ({"known_at": 1_777_777_777}, "known_at"),
    "what will be believed": ({"known_at": "2999-01-01T00:00:00+05:30"}, "known_at"),
    "a text for a flag": ({"explain": "true"}, "explain"),
    "a vector that is empty": ({"query_embedding": []}, "query_embedding"),
    "a vector of words": ({"query_embedding": ["one"]}, "query_embedding"),
    "a vector beyond floats": ({"query_embedding": [1e39]}, "query_embedding"),
    "a vector of 4,001 numbers": ({"query_embedding": [0.1] * 4_001}, "query_embedding"),
    "a field that there is not": ({"limit": 3}, "limit"),
    "a filter of entries": ({"contexts": []}, "contexts"),
}

CONTRADICTIONS: dict[str, dict[str, Any]] = {
    "until before the window": {"time_window_hours": 1, "until": "2001-01-01T00:00:00Z"},
    "a session without a conversation": {"scopes": ["session"]},
    "a turn without a conversation": {"scopes": ["workspace", "turn"]},
    "a lineage without a conversation": {"scopes": ["lineage"], "user_id": "ana"},
    "a profile without a user": {"scopes": ["profile"], "conversation_id": "c1"},
    "a ledger without a conversation": {"suppress_injected": True},
    "a technique that is left out": {"techniques": ["lexical", "-lexical"]},
    "no technique that finds": {"techniques": ["-hybrid", "-temporal", "-graph", "-pinned"]},
}


@pytest.fixture
def boiler(api: ServiceClient) -> ServiceClient:
    """Return a client of an owner who has one memory."""
    turns = {"agent_id": "assistant", "turns": [{"role": "user", "content": "The boiler is in the cellar."}]}
    assert api.post("/conversations/c1/turns", turns).status_code == 201
    return api


def test_a_strange_query_is_answered_quickly(boiler: ServiceClient) -> None:
    for asked, query in STRANGE_QUERIES.items():
        began = time.process_time()

        answer = boiler.post("/recall", ASKED | {"query": query, "explain": True})

        assert time.process_time() - began < MAX_CPU_SECONDS, asked
        assert answer.status_code == 200, answer.content
        assert [result["text"] for result in answer.json()["results"]] == ["The boiler is in the cellar."], asked


def test_a_strange_query_is_answered_by_techniques_without_vectors(boiler: ServiceClient) -> None:
    for asked, query in STRANGE_QUERIES.items():
        body = ASKED | {"query": query, "techniques": ["lexical", "graph", "temporal"]}

        assert boiler.post("/recall", body).status_code == 200, asked


@pytest.mark.parametrize("case", REFUSED)
def test_an_invalid_field_is_named_in_the_refusal(api: ServiceClient, case: str) -> None:
    changes, field = REFUSED[case]

    answer = api.post("/recall", ASKED | changes)

    assert answer.status_code == 400, answer.content
    assert not field or set(answer.json()["errors"]) == {field}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_contradictory_filters_are_refused(api: ServiceClient, case: str) -> None:
    answer = api.post("/recall", ASKED | CONTRADICTIONS[case])

    assert (answer.status_code, answer.json()["code"]) == (422, "unprocessable")


@pytest.mark.parametrize("technique", ["names", "self_query", "query_expansion", "hyde"])
def test_choosing_only_a_query_rewriter_keeps_all_retrievers(boiler: ServiceClient, technique: str) -> None:
    found = boiler.post("/recall", ASKED | {"techniques": [technique]}).json()

    assert [result["text"] for result in found["results"]] == ["The boiler is in the cellar."]
    assert {metric["technique"] for metric in found["metrics"]} >= {"lexical", "vector", technique}


@pytest.mark.parametrize(
    "body", [b'{"query": "\\ud800"}', b'{"query": "b", "query_embedding": [NaN]}'], ids=["half a letter", "NaN"]
)
def test_values_that_json_does_not_allow_are_refused(api: ServiceClient, body: bytes) -> None:
    assert api.generic("POST", "/recall", body, "application/json").status_code == 400


def test_a_vector_of_another_width_is_refused_with_both_widths(api: ServiceClient) -> None:
    answer = api.post("/recall", ASKED | {"query_embedding": [0.5, 0.5], "embedding_model": "served-model"})

    assert (answer.status_code, answer.json()["code"]) == (422, "wrong_vector_width")
    assert "2 dimensions" in answer.json()["detail"]
    assert "have 8" in answer.json()["detail"]


def test_a_query_vector_of_an_unknown_model_falls_back_to_words(boiler: ServiceClient) -> None:
    found = boiler.post("/recall", ASKED | {"query_embedding": [0.5, 0.5], "embedding_model": "unheard-of"}).json()

    assert [result["similarity"] for result in found["results"]] == [None]


def test_a_zero_vector_is_refused(boiler: ServiceClient) -> None:
    answer = boiler.post("/recall", ASKED | {"query_embedding": [0.0] * 8, "embedding_model": "served-model"})

    assert (answer.status_code, answer.json()["code"]) == (422, "unprocessable")


@pytest.mark.parametrize("deadline_ms", [1, 60_000])
def test_a_deadline_may_be_a_millisecond_or_a_minute(boiler: ServiceClient, deadline_ms: int) -> None:
    answer = boiler.post("/recall", ASKED | {"deadline_ms": deadline_ms})

    assert answer.status_code == 200
    assert all(code.endswith(("_deadline", "_failed", "_unavailable")) for code in answer.json()["degraded"])


def test_a_bound_key_cannot_recall_for_another_agent(bound_api: ServiceClient) -> None:
    assert bound_api.post("/recall", {"query": "boiler"}).status_code == 200
    assert bound_api.post("/recall", {"agent_id": "planner", "query": "boiler"}).status_code == 403


def test_a_recall_without_a_key_is_refused() -> None:
    assert ServiceClient().post("/recall", ASKED).status_code == 401


def test_without_redis_only_a_recall_that_needs_the_ledger_fails(boiler: ServiceClient, dead_redis: None) -> None:
    asked = [{}, {"suppress_injected": True, "conversation_id": "c1"}]

    assert [boiler.post("/recall", ASKED | each).status_code for each in asked] == [200, 503]


@given(
    query=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=60).filter(str.strip),
    techniques=st.lists(st.sampled_from(["lexical", "temporal", "graph", "-vector", "rrf", "hybrid"]), max_size=3),
    top_k=st.sampled_from([1, 200]),
    mode=st.sampled_from(["broad", "default", "deep"]),
    posture=st.sampled_from(["active_turn", "resume", "recovery", "audit"]),
)
@settings(parent=examples(25, derandomize=True), suppress_health_check=list(HealthCheck))
def test_any_combination_of_valid_parameters_is_answered(boiler: ServiceClient, **asked: Any) -> None:
    answer = boiler.post("/recall", ASKED | asked)

    assert answer.status_code == 200, asked


def test_memories_of_other_agents_and_accounts_are_never_in_an_answer(
    boiler: ServiceClient, stranger_api: ServiceClient
) -> None:
    for asked in STRANGE_QUERIES.values():
        for client, agent in ((stranger_api, "assistant"), (boiler, "planner")):
            answer = client.post("/recall", {"agent_id": agent, "query": asked, "conversation_id": "c1"})

            assert (answer.status_code, answer.json()["results"]) == (200, [])
