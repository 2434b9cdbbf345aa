"""A regression guard without a clock: what ten hot paths cost may not grow by more than a tenth.

`RECORD_REQUEST_COSTS=1 pytest tests/memory/test_request_costs.py` records the counts anew, in `request_costs.json`.
Record them when a path has become cheaper, or when it has to do more; the difference in the file says how much.
"""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import count
from typing import Any

import pytest

from memory.tokens import estimate_tokens
from tests.api_client import ServiceClient
from tests.embedding_server import vector_of
from tests.memory.request_costs import RECORDED, RequestCosts, count_calls, count_costs

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

TURNS = 60
WARM_UP_REQUESTS, REQUESTS = 6, 2
"""The server prepares a statement at its sixth execution, and caches fill at the first requests."""
PLACES = ("cellar", "attic", "kitchen", "garden", "garage", "workshop", "office")
THINGS = ("pump", "boiler", "ladder", "lamp", "window", "bicycle", "piano", "kettle")
QUESTION = "Who repaired the pump in the cellar?"
NUMBERS = count()


def spoken(number: int) -> dict[str, Any]:
    thing, place = THINGS[number % len(THINGS)], PLACES[number % len(PLACES)]
    text = f"Carlos repaired the {thing} in the {place}, and then {'rested' * (number % 3)} for {number} minutes."
    return {"role": ("user", "assistant")[number % 2], "content": text, "embedding": vector_of(text).tolist()}


def question_vector() -> list[float]:
    return [float(number) for number in vector_of(QUESTION)]


def talk(api: ServiceClient, conversation_id: str, **fields: Any) -> Any:
    return api.post(f"/conversations/{conversation_id}/turns", {"agent_id": "assistant", **fields})


def paths(api: ServiceClient) -> Mapping[str, Callable[[], Any]]:
    """Return a request for each hot path by name. Those that write, write something new each time."""
    ask = {"agent_id": "assistant", "query": QUESTION}
    own = {"query_embedding": question_vector()}
    context = {**ask, "conversation_id": "talk", "max_tokens": 2_000}
    working = "/working-memory/talk?agent_id=assistant"
    return {
        "recall by vectors": lambda: api.post("/recall", {**ask, **own, "techniques": ["vector"]}),
        "recall with a vector": lambda: api.post("/recall", {**ask, **own}),
        "recall": lambda: api.post("/recall", ask),
        "context": lambda: api.post("/context", context),
        "search of memories": lambda: api.post("/memories/search", {**ask, **own}),
        "read of working memory": lambda: api.get(working),
        "write of working memory": lambda: api.put(
            "/working-memory/talk", {"agent_id": "assistant", "data": {"scratchpad": f"step {next(NUMBERS) % 10}"}}
        ),
        "mark in the ledger": lambda: api.post(
            "/ledger/talk/mark", {"agent_id": "assistant", "item_key": f"skill:{next(NUMBERS)}"}
        ),
        "one turn": lambda: talk(api, "other", turns=[spoken(next(NUMBERS))]),
        "one memory": lambda: api.post(
            "/memories",
            {"agent_id": "assistant", "text": f"Note {next(NUMBERS)}.", "embedding": question_vector()},
        ),
    }


@pytest.fixture
def measured(api: ServiceClient) -> Mapping[str, RequestCosts]:
    """The costs of each path, after some requests to fill caches, the least of several."""
    assert talk(api, "talk", turns=[spoken(number) for number in range(TURNS)]).status_code == 201
    found = {}
    for name, request in paths(api).items():
        for _ in range(WARM_UP_REQUESTS):
            answer = request()
            assert answer.status_code < 300, (name, answer.content)
        found[name] = min((count_costs(request) for _ in range(REQUESTS)), key=lambda each: each.calls)
    return found


def test_no_hot_path_costs_a_tenth_more_than_recorded(measured: Mapping[str, RequestCosts]) -> None:
    if os.environ.get("RECORD_REQUEST_COSTS"):
        RECORDED.write_text(json.dumps({name: asdict(costs) for name, costs in measured.items()}, indent=2) + "\n")
    recorded = {name: RequestCosts(**costs) for name, costs in json.loads(RECORDED.read_text()).items()}

    grown = {name: costs.grown(recorded[name]) for name, costs in measured.items()}

    assert {name: sentences for name, sentences in grown.items() if sentences} == {}


def test_growth_beyond_a_tenth_is_reported() -> None:
    former = RequestCosts(statements=4, exchanges=5, commands=1, bytes=1_000, calls=500)

    same = RequestCosts(statements=4, exchanges=5, commands=1, bytes=1_100, calls=550)
    grown = RequestCosts(statements=5, exchanges=5, commands=1, bytes=900, calls=551)

    assert same.grown(former) == []
    assert grown.grown(former) == ["statements grew from 4 to 5", "calls grew from 500 to 551"]


def test_only_calls_of_the_service_count() -> None:
    assert count_calls(lambda: len("text"))[0] == 0
    assert count_calls(lambda: estimate_tokens("text"))[0] >= 1
