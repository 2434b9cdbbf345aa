"""`/work-episodes`: list, read, expand; hidden from agents that take no part."""

from typing import Any

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Account, WorkEpisode
from memory.owner import Owner
from tests.api_client import ServiceClient
from tests.memory.goals import aim
from tests.memory.records import add_record
from tests.memory.work_episodes import DATA, TEXT, archived, merged

pytestmark = pytest.mark.django_db


def episode_of(owner: Owner, conversation_id: str = "chat-1", **fields: Any) -> WorkEpisode:
    goal = fields.pop("goal_id", None)
    return merged(owner, [add_record(owner, conversation_id, goal_id=goal).record], **fields)


def listed(api: ServiceClient, query: str = "") -> list[str]:
    return [each["id"] for each in api.get(f"/work-episodes?agent_id=assistant{query}").json()["results"]]


def test_a_work_episode_is_read(api: ServiceClient, owner: Owner) -> None:
    goal = aim(owner)
    episode = episode_of(owner, goal_id=goal.id, status="succeeded", raw_tokens=700, compressor="extractive")

    read = api.get(f"/work-episodes/{episode.id}?agent_id=assistant").json()

    said = {
        "text": TEXT,
        "data": DATA,
        "level": 2,
        "status": "succeeded",
        "raw_tokens": 700,
        "tier": "structured_rationale",
    }
    said |= {"conversation_id": "chat-1", "goal_id": str(goal.id), "first_number": 0, "last_number": 0}
    said |= {"tokens": episode.token_count, "archived": False, "derived_from": None, "records": [], "truncated": False}
    assert read | said == read


@pytest.mark.parametrize("expand", ["0", "1"])
def test_a_work_episode_can_be_expanded_to_its_records(api: ServiceClient, owner: Owner, expand: str) -> None:
    former = episode_of(owner)
    episode = archived(owner, former)

    read = api.get(f"/work-episodes/{episode.id}?agent_id=assistant&expand={expand}").json()

    (record,) = read["records"]
    slots = [(slot["slot"], slot["level"], slot["text"]) for slot in record["slots"]]
    assert (read["derived_from"], record["number"], record["status"]) == (str(former.id), 0, "succeeded")
    assert slots == [
        ("observation", 0, "The roses hang their heads."),
        ("action", 0, "Watered the roses."),
        ("outcome", 0, "The roses stand upright."),
    ]


def test_a_list_is_filtered_by_every_parameter(api: ServiceClient, owner: Owner) -> None:
    goal = aim(owner)
    first = episode_of(owner, goal_id=goal.id, status="failed")
    second = archived(owner, episode_of(owner, "chat-2"))

    assert listed(api) == [str(second.id), str(first.id)]
    assert listed(api, "&conversation_id=chat-2") == listed(api, "&level=3") == [str(second.id)]
    assert (
        listed(api, f"&goal_id={goal.id}")
        == listed(api, "&level=2")
        == listed(api, "&status=failed")
        == [str(first.id)]
    )


@pytest.mark.parametrize("query", ["level=1", "status=done", "goal_id=x", "surprise=1"])
def test_an_invalid_filter_is_refused(api: ServiceClient, query: str) -> None:
    assert api.get(f"/work-episodes?{query}").status_code == 400


def test_expanding_to_an_unknown_level_is_refused(api: ServiceClient, owner: Owner) -> None:
    assert api.get(f"/work-episodes/{episode_of(owner).id}?expand=2").status_code == 400


def test_reasoning_that_the_account_does_not_allow_is_hidden(api: ServiceClient, owner: Owner) -> None:
    episode = episode_of(owner)
    Account.objects.filter(id=owner.account_id).update(reasoning_tier="none")

    (in_list,) = api.get("/work-episodes").json()["results"]
    read = api.get(f"/work-episodes/{episode.id}?expand=0").json()

    for shown in (in_list, read):
        assert (shown["tier"], set(shown["data"])) == ("none", {"goal", "produced", "tools", "outcome"})
        assert "Water them daily" not in str(shown)


def test_a_work_episode_is_hidden_from_other_agents_and_accounts(
    api: ServiceClient, stranger_api: ServiceClient, owner: Owner
) -> None:
    path = f"/work-episodes/{episode_of(owner).id}"

    assert api.get(f"{path}?agent_id=colleague").status_code == stranger_api.get(path).status_code == 404
    assert stranger_api.get("/work-episodes").json()["results"] == []


def test_a_list_executes_three_statements_for_any_length(
    api: ServiceClient, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(6):
        episode_of(owner, f"chat-{number}")
    api.get("/work-episodes")

    for size in (2, 5):
        with django_assert_num_queries(3):
            assert len(api.get(f"/work-episodes?agent_id=assistant&page_size={size}").json()["results"]) == size
