"""The status of goals and facts in a recall says whether they hold, now or at another time."""

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.api_client import ServiceClient
from tests.memory.api.test_recall import ask, learn, say_turns

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]


def test_goals_and_facts_have_a_status(api: ServiceClient) -> None:
    say_turns(api, "The boiler leaks.")
    learn(api, "The boiler is in the cellar.")
    for description in ("Repair the boiler", "Paint the boiler"):
        goal = api.post("/goals", {"agent_id": "assistant", "description": description}).json()
        if description.startswith("Repair"):
            api.post(f"/goals/{goal['id']}/complete", {"agent_id": "assistant"})

    assert {result["text"]: result["status"] for result in ask(api)["results"]} == {
        "The boiler leaks.": None,
        "The boiler is in the cellar.": "active",
        "Repair the boiler": "completed",
        "Paint the boiler": "active",
    }


def test_a_fact_that_is_over_has_ended(api: ServiceClient) -> None:
    over = {"valid_from": "2023-01-01T00:00:00Z", "valid_to": "2024-01-01T00:00:00Z"}
    learn(api, "The boiler was rented.", event_time="2023-02-01T00:00:00Z", **over)

    [result] = ask(api, as_of="2023-06-01T00:00:00Z")["results"]

    assert (result["text"], result["status"]) == ("The boiler was rented.", "ended")


def test_a_fact_that_another_one_replaces_later_is_active_until_then(api: ServiceClient) -> None:
    first = learn(api, "The boiler is in the cellar.")
    ahead = (timezone.now() + timedelta(days=30)).isoformat()
    after = {"agent_id": "assistant", "claim": "The boiler is in the attic.", "confidence": 0.9, "valid_from": ahead}
    answer = api.post(f"/facts/{first}/supersede", after)
    assert answer.status_code == 201, answer.content

    [result] = ask(api, kinds=["fact"])["results"]

    assert (result["id"], result["status"], result["superseded_by"]) == (first, "active", None)


def test_with_known_at_the_status_is_the_one_believed_then(api: ServiceClient) -> None:
    first = learn(api, "The boiler is in the cellar.")
    known_at = timezone.now().isoformat()
    answer = api.post(
        f"/facts/{first}/supersede",
        {"agent_id": "assistant", "claim": "The boiler is in the attic.", "confidence": 0.9},
    )
    assert answer.status_code == 201, answer.content

    [then] = ask(api, kinds=["fact"], known_at=known_at, as_of=known_at)["results"]
    now = ask(api, kinds=["fact"], known_at=timezone.now().isoformat(), as_of=known_at)["results"]

    assert (then["id"], then["status"]) == (first, "active")
    assert [(each["id"], each["status"]) for each in now] == [(first, "superseded")]


def test_with_known_at_a_fact_that_is_retracted_now_was_active(api: ServiceClient) -> None:
    fact_id = learn(api, "The boiler is in the cellar.")
    known_at = timezone.now().isoformat()
    retracted = api.delete(f"/facts/{fact_id}?agent_id=assistant")
    assert retracted.status_code in (200, 204), retracted.content

    [result] = ask(api, kinds=["fact"], known_at=known_at)["results"]

    assert (result["id"], result["status"]) == (fact_id, "active")
