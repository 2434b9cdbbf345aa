"""`/conversations/{id}/lineage`: what a conversation resumes, and what resumes it, as far as the agent takes part."""

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations import lineage as lineages
from memory.services.conversations.lineage import conversation_lineage
from tests.api_client import ServiceClient

pytestmark = pytest.mark.django_db

Told = list[tuple[str, int]]


def begin(api: ServiceClient, conversation_id: str, continues: str = "", agent_id: str = "assistant") -> int:
    body = {"agent_id": agent_id, "conversation_id": conversation_id}
    return int(api.post("/conversations", body | ({"continues": continues} if continues else {})).status_code)


def chain(api: ServiceClient) -> None:
    """Monday, Tuesday, Wednesday; Thursday resumes Tuesday, too."""
    for conversation_id, continues in (("mon", ""), ("tue", "mon"), ("wed", "tue"), ("thu", "tue")):
        assert begin(api, conversation_id, continues) == 201


def told(api: ServiceClient, conversation_id: str, agent_id: str = "assistant") -> tuple[Told, Told]:
    answer = api.get(f"/conversations/{conversation_id}/lineage?agent_id={agent_id}").json()
    earlier, later = ([(each["conversation_id"], each["step"]) for each in answer[way]] for way in ("earlier", "later"))
    return earlier, later


def test_both_ways_are_told(api: ServiceClient) -> None:
    chain(api)

    assert told(api, "mon") == ([], [("tue", 1), ("wed", 2), ("thu", 2)])
    assert told(api, "tue") == ([("mon", -1)], [("wed", 1), ("thu", 1)])
    assert told(api, "thu") == ([("tue", -1), ("mon", -2)], [])


def test_each_is_told_with_its_title_and_outcome(api: ServiceClient, empty_redis: None) -> None:
    chain(api)
    api.patch("/conversations/mon", {"title": "Roses"})
    api.post("/conversations/mon/end", {"outcome": "success"})

    answer = api.get("/conversations/tue/lineage").json()

    (monday,) = answer["earlier"]
    assert (monday["title"], monday["outcome"], monday["continues"]) == ("Roses", "success", "")
    assert monday["ended_at"] is not None
    assert (answer["conversation"]["conversation_id"], answer["conversation"]["step"]) == ("tue", 0)


def test_where_the_agent_takes_no_part_is_left_out(api: ServiceClient) -> None:
    begin(api, "mon")
    begin(api, "tue", "mon")
    begin(api, "tue-too", "", "colleague")
    Conversation.objects.filter(conversation_id="tue-too").update(continues="tue")
    begin(api, "wed")
    Conversation.objects.filter(conversation_id="wed").update(continues="tue-too")

    assert told(api, "wed") == ([("tue", -2), ("mon", -3)], [])
    assert told(api, "mon") == ([], [("tue", 1), ("wed", 3)])
    assert api.get("/conversations/tue-too/lineage?agent_id=assistant").status_code == 404


def test_a_ring_is_refused(api: ServiceClient) -> None:
    chain(api)

    for continues in ("mon", "tue", "wed"):
        answer = api.patch("/conversations/mon", {"continues": continues})
        assert (answer.status_code, answer.json()["code"]) == (422, "unprocessable")
    assert told(api, "mon")[0] == []


def test_a_ring_that_should_not_be_ends(api: ServiceClient) -> None:
    chain(api)
    Conversation.objects.filter(conversation_id="mon").update(continues="wed")

    earlier, later = told(api, "mon")

    assert {name for name, _ in (*earlier, *later)} == {"tue", "wed", "thu"}


def test_a_lineage_is_cut_at_its_bound(api: ServiceClient, owner: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    chain(api)
    monkeypatch.setattr(lineages, "MOST_CONVERSATIONS", 2)

    forward, back = conversation_lineage(owner, "mon"), conversation_lineage(owner, "wed")

    assert (len(forward.later), forward.truncated) == (2, True)
    assert (len(back.earlier), back.truncated) == (2, False)


def test_strangers_find_none(stranger_api: ServiceClient, api: ServiceClient) -> None:
    chain(api)

    assert stranger_api.get("/conversations/mon/lineage").status_code == 404


def test_a_lineage_takes_three_statements(
    api: ServiceClient, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    chain(api)

    for conversation_id in ("mon", "wed"):
        with django_assert_num_queries(3):
            conversation_lineage(owner, conversation_id)
