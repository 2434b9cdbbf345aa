"""`as_of` over HTTP: before the first turn, nothing is true but what the turns themselves date earlier."""

from typing import Any

import pytest
from django.utils import timezone

from memory.models import Fact
from tests.api_client import ServiceClient
from tests.embedding_server import EmbeddingServer
from tests.memory.knowledge import extract_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis")]

SAID = (
    ("2026-02-04T12:00:00Z", "I live in Porto. I work at Brightwave as a nurse."),
    ("2026-02-05T12:00:00Z", "My sister Rita is a vet. I have two cats. I love figs and I'm allergic to nuts."),
    ("2026-02-06T12:00:00Z", "I have lived in Portugal since 2019."),
    ("2026-03-09T12:00:00Z", "I live in Lisbon now. Let's go with Postgres for the shop."),
)
BEFORE = "2026-02-03T12:00:00Z"
ME = {"agent_id": "assistant", "user_id": "ana"}


@pytest.fixture(autouse=True)
def _stored_talk(api: ServiceClient, embedding_server: EmbeddingServer) -> None:
    """Store a dated conversation by HTTP, and extract what it says."""
    turns = [{"role": "user", "content": content, "timestamp": at} for at, content in SAID]
    assert api.post("/conversations/c1/turns", {**ME, "turns": turns}).status_code == 201
    extract_all(timezone.now())


def listed(api: ServiceClient, **asked: Any) -> list[str]:
    answer = api.get("/facts", ME | asked)
    assert answer.status_code == 200, answer.content
    return sorted(fact["claim"] for fact in answer.json()["results"])


def recalled(api: ServiceClient, query: str, **asked: Any) -> list[str]:
    answer = api.post("/recall", {**ME, "query": query, "kinds": ["fact"], "top_k": 50, **asked})
    assert answer.status_code == 200, answer.content
    return sorted(found["text"] for found in answer.json()["results"])


def dated_earlier() -> list[str]:
    """Return the claims that a turn dates before the day asked for."""
    stated = Fact.objects.filter(valid_from_source="stated", valid_from__lte=BEFORE)
    return sorted(stated.values_list("text", flat=True))


def test_the_day_before_the_first_turn_nothing_undated_is_listed(api: ServiceClient) -> None:
    assert len(listed(api)) >= len(SAID)

    assert listed(api, as_of=BEFORE) == dated_earlier()
    assert dated_earlier() in ([], ["The user lives in Portugal"])


def test_the_day_before_the_first_turn_nothing_undated_is_recalled(api: ServiceClient) -> None:
    for query in ("Where does the user live?", "What does the user like?", "user"):
        assert recalled(api, query) != []

        assert set(recalled(api, query, as_of=BEFORE)) <= set(dated_earlier())


def test_what_was_said_is_true_from_then_until_it_is_replaced(api: ServiceClient) -> None:
    homes = [
        [
            claim
            for claim in listed(api, as_of=at)
            if claim.startswith(("The user lives in Porto", "The user lives in L"))
        ]
        for at in ("2026-02-04T13:00:00Z", "2026-03-20T12:00:00Z")
    ]

    assert homes == [["The user lives in Porto"], ["The user lives in Lisbon"]]
