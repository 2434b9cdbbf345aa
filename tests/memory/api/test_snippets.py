"""Long texts are answered by snippets: in recalls, searches of entries, and prompt contexts."""

from typing import Any

import pytest

from memory.models import Vector
from memory.tokens import estimate_tokens
from tests.api_client import ServiceClient

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

FILLER = " ".join(f"Paragraph {number} tells of the weather in the north, and of nothing else." for number in range(60))
NEEDLE = "Ana keeps the spare key of the boathouse under the blue flowerpot."
LONG = f"{FILLER} {NEEDLE} {FILLER}"
QUESTION = "Where is the key of the boathouse?"


@pytest.fixture
def api(api_key: str) -> ServiceClient:
    return ServiceClient(api_key)


def say_turns(api: ServiceClient, *contents: str) -> None:
    turns = [{"role": "user", "content": content} for content in contents]
    answer = api.post("/conversations/c1/turns", {"agent_id": "assistant", "turns": turns})
    assert answer.status_code == 201, answer.content


def ask(api: ServiceClient, path: str = "/recall", **asked: Any) -> Any:
    answer = api.post(path, {"agent_id": "assistant", "query": QUESTION} | asked)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_long_text_is_answered_by_its_snippet(api: ServiceClient) -> None:
    say_turns(api, LONG)

    (result,) = ask(api)["results"]

    assert Vector.objects.filter(passage__gt=0).exists()
    assert NEEDLE in result["snippet"]
    assert LONG[result["snippet_start"] : result["snippet_end"]] == result["snippet"] == result["text"]
    assert estimate_tokens(result["snippet"]) <= 200
    assert result["truncated"] is True


def test_a_short_text_is_answered_whole(api: ServiceClient) -> None:
    say_turns(api, NEEDLE)

    (result,) = ask(api)["results"]

    assert result["text"] == result["snippet"] == NEEDLE
    assert (result["snippet_start"], result["snippet_end"], result["truncated"]) == (0, len(NEEDLE), False)


def test_whole_texts_are_answered_on_request(api: ServiceClient) -> None:
    say_turns(api, LONG)

    (result,) = ask(api, whole=True)["results"]

    assert (result["text"], result["truncated"]) == (LONG, False)
    assert NEEDLE in result["snippet"] != LONG


@pytest.mark.parametrize(("most", "status"), [(30, 200), (4_000, 200), (9, 400), (4_001, 400), ("30", 400)])
def test_the_length_of_snippets_is_limited(api: ServiceClient, most: Any, status: int) -> None:
    say_turns(api, LONG)

    answer = api.post("/recall", {"agent_id": "assistant", "query": QUESTION, "max_snippet_tokens": most})

    assert answer.status_code == status
    if status == 200:
        assert NEEDLE in answer.json()["results"][0]["snippet"]
        assert estimate_tokens(answer.json()["results"][0]["snippet"]) <= most


def test_max_tokens_counts_what_is_answered(api: ServiceClient) -> None:
    say_turns(api, LONG)

    assert len(ask(api, max_tokens=250)["results"]) == 1
    assert ask(api, max_tokens=250, whole=True)["results"] == []


def test_a_context_quotes_snippets_of_finds_and_neighbours(api: ServiceClient) -> None:
    say_turns(api, f"Tell me of the north. {FILLER}", LONG, f"I see. {FILLER}")

    answer = ask(api, "/context", conversation_id="now", techniques=["lexical"], top_k=1)

    assert NEEDLE in answer["context"]
    assert "Tell me of the north." in answer["context"]
    assert len(answer["items"]) == 3
    assert all(estimate_tokens(item["snippet"]) <= 200 for item in answer["items"])
    assert answer["tokens"] < 1_000
    found = next(item for item in answer["items"] if item["score"] is not None)
    assert LONG[found["snippet_start"] : found["snippet_end"]] == found["snippet"]


def test_a_context_quotes_whole_texts_on_request(api: ServiceClient) -> None:
    say_turns(api, LONG)

    answer = ask(api, "/context", conversation_id="now", whole=True, max_tokens=8_000)

    assert LONG in answer["context"]


def test_entries_are_answered_by_snippets(api: ServiceClient) -> None:
    api.put("/memories/place", {"agent_id": "assistant", "tier": "long_term", "value": LONG})

    (found,) = ask(api, "/memories/search")["results"]
    (whole,) = ask(api, "/memories/search", whole=True)["results"]

    assert NEEDLE in found["snippet"] == found["content"]
    assert found["truncated"] is True
    assert NEEDLE in whole["content"]
    assert (len(whole["content"]) > len(LONG) - 1, whole["truncated"]) == (True, False)
