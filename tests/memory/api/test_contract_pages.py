"""Pages: every row once, in order, in both directions."""

import base64
import json
import math
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from django.db.models import Q, Value
from rest_framework.serializers import ValidationError

from memory.models import Account, Agent
from memory_project.http.pagination import CursorPosition, ScoreOrdering, decode_cursor, rows_beyond
from tests.api_client import ServiceClient


@pytest.fixture
def agents(account: Account) -> list[str]:
    """Create seven agents, in the order of the list."""
    made = [Agent.objects.create(account=account, agent_id=f"agent-{number}") for number in range(7)]
    return [agent.agent_id for agent in sorted(made, key=lambda agent: agent.id, reverse=True)]


def names(page: dict[str, Any]) -> list[str]:
    return [agent["agent_id"] for agent in page["results"]]


def test_pages_contain_every_row_once_in_order(api: ServiceClient, agents: list[str]) -> None:
    page = api.get("/agents?page_size=3").json()
    found = names(page)

    while page["next"]:
        page = api.get(path_of(page["next"])).json()
        found += names(page)

    assert found == agents


def test_previous_links_lead_back_to_the_first_page(api: ServiceClient, agents: list[str]) -> None:
    first = api.get("/agents?page_size=3").json()
    second = api.get(path_of(first["next"])).json()

    back = api.get(path_of(second["previous"])).json()

    assert names(back) == names(first) == agents[:3]
    assert (first["previous"], back["previous"]) == (None, None)


def test_a_new_row_does_not_shift_the_next_page(api: ServiceClient, account: Account, agents: list[str]) -> None:
    first = api.get("/agents?page_size=3").json()
    Agent.objects.create(account=account, agent_id="newcomer")

    assert names(api.get(path_of(first["next"])).json()) == agents[3:6]


@pytest.mark.parametrize("size", ["0", "-1", "201", "1000000000", "ten", "", "1.5", "²"])
def test_a_page_size_out_of_bounds_is_refused(api: ServiceClient, size: str) -> None:
    refused = api.get("/agents", {"page_size": size})

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["page_size"])


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "é", "\0", "bnVsbA", "W10", "W3RydWVd", "W3RydWUsIG51bGxd", "W3RydWUsICJ4Il0", "a" * 9_000, "W1tb"],
)
def test_a_malformed_cursor_is_refused(api: ServiceClient, agents: list[str], cursor: str) -> None:
    refused = api.get("/agents", {"cursor": cursor})

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["cursor"])


def test_a_cursor_in_a_mixed_ordering_compares_each_column_in_its_direction() -> None:
    at = CursorPosition(values=(3, 7), backwards=False)

    assert rows_beyond(("-score", "id"), at) == Q(score__lt=3) | Q(score=3) & Q(id__gt=7)


def test_a_cursor_position_survives_encoding_and_decoding(agents: list[str]) -> None:
    agent = Agent.objects.get(agent_id=agents[0])
    at = CursorPosition(values=(datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC), agent.id), backwards=True)

    assert decode_cursor(at.encode(), Agent.objects.all(), ["created_at", "id"]) == at


SCORED = ScoreOrdering(name="relevance", score=lambda moment: Value(0.5))


def test_a_cursor_of_a_score_ordering_keeps_the_time_of_scoring(agents: list[str]) -> None:
    agent, moment = Agent.objects.get(agent_id=agents[0]), datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
    at = CursorPosition(values=(0.1 + 0.2, agent.id), backwards=False, scored_at=moment)

    assert decode_cursor(at.encode(), Agent.objects.all(), ["id"], scored=SCORED) == at


@pytest.mark.parametrize(
    "plain",
    [
        [],
        [False],
        [False, "2026-01-02T03:04:05Z"],
        [False, "2026-01-02T03:04:05", 0.5],
        [False, "today", 0.5],
        [False, 7, 0.5],
        [False, "0001-01-01T00:00:00+14:00", 0.5],
        [False, "2026-01-02T03:04:05Z", "0.5"],
        [False, "2026-01-02T03:04:05Z", True],
        [False, "2026-01-02T03:04:05Z", None],
        [False, "2026-01-02T03:04:05Z", math.inf],
        [False, "2026-01-02T03:04:05Z", 10**400],
        "false",
    ],
    ids=str,
)
def test_a_cursor_without_a_time_or_a_score_is_refused(plain: Any) -> None:
    # with an id behind it that would do
    whole = [*plain, str(UUID(int=1))] if isinstance(plain, list) else plain
    cursor = base64.urlsafe_b64encode(json.dumps(whole).encode()).decode()

    with pytest.raises(ValidationError):
        decode_cursor(cursor, Agent.objects.all(), ["id"], scored=SCORED)


def path_of(url: str) -> str:
    return url.removeprefix("http://testserver")
