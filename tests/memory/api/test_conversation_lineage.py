"""`/conversations/{id}/lineage`: the conversations that one resumes and that resume it, among the agent's."""

import pytest
from pytest_django import DjangoAssertNumQueries

from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations import lineage
from memory.services.conversations.lineage import read_conversation_lineage
from tests.api_client import ServiceClient

pytestmark = pytest.mark.django_db

LineageStep = list[tuple[str, int]]


def begin(api: ServiceClient, conversation_id: str, continues: str = "", agent_id: str = "assistant") -> int:
    body = {"agent_id": agent_id, "conversation_id": conversation_id}
    return int(api.post("/conversations", body | ({"continues": continues} if continues else {})).status_code)


def chain(api: ServiceClient) -> None:
    """Create Monday to Wednesday, each resuming the one before; Thursday also resumes Tuesday."""
    for conversation_id, continues in (("mon", ""), ("tue", "mon"), ("wed", "tue"), ("thu", "tue")):
        assert begin(api, conversation_id, continues) == 201


def lineage_of(
    api: ServiceClient, conversation_id: str, agent_id: str = "assistant"
) -> tuple[LineageStep, LineageStep]:
    answer = api.get(f"/conversations/{conversation_id}/lineage?agent_id={agent_id}").json()
    earlier, later = ([(each["conversation_id"], each["step"]) for each in answer[way]] for way in ("earlier", "later"))
    return earlier, later


def test_a_lineage_lists_earlier_and_later_conversations(api: ServiceClient) -> None:
    chain(api)

    assert lineage_of(api, "mon") == ([], [("tue", 1), ("wed", 2), ("thu", 2)])
    assert lineage_of(api, "tue") == ([("mon", -1)], [("wed", 1), ("thu", 1)])
    assert lineage_of(api, "thu") == ([("tue", -1), ("mon", -2)], [])


def test_each_conversation_of_a_lineage_has_its_title_and_outcome(api: ServiceClient, empty_redis: None) -> None:
    chain(api)
    api.patch("/conversations/mon", {"title": "Roses"})
    api.post("/conversations/mon/end", {"outcome": "success"})

    answer = api.get("/conversations/tue/lineage").json()

    (monday,) = answer["earlier"]
    assert (monday["title"], monday["outcome"], monday["continues"]) == ("Roses", "success", "")
    assert monday["ended_at"] is not None
    assert (answer["conversation"]["conversation_id"], answer["conversation"]["step"]) == ("tue", 0)


def test_a_lineage_omits_conversations_in_which_the_agent_takes_no_part(api: ServiceClient) -> None:
    begin(api, "mon")
    begin(api, "tue", "mon")
    begin(api, "tue-too", "", "colleague")
    Conversation.objects.filter(conversation_id="tue-too").update(continues="tue")
    begin(api, "wed")
    Conversation.objects.filter(conversation_id="wed").update(continues="tue-too")

    assert lineage_of(api, "wed") == ([("tue", -2), ("mon", -3)], [])
    assert lineage_of(api, "mon") == ([], [("tue", 1), ("wed", 3)])
    assert api.get("/conversations/tue-too/lineage?agent_id=assistant").status_code == 404


def test_a_conversation_cannot_continue_itself_or_a_later_one(api: ServiceClient) -> None:
    chain(api)

    for continues in ("mon", "tue", "wed"):
        answer = api.patch("/conversations/mon", {"continues": continues})
        assert (answer.status_code, answer.json()["code"]) == (422, "unprocessable")
    assert lineage_of(api, "mon")[0] == []


def test_reading_a_lineage_terminates_even_if_the_stored_links_form_a_cycle(api: ServiceClient) -> None:
    chain(api)
    Conversation.objects.filter(conversation_id="mon").update(continues="wed")

    earlier, later = lineage_of(api, "mon")

    assert {name for name, _ in (*earlier, *later)} == {"tue", "wed", "thu"}


def test_a_lineage_is_truncated_at_the_maximum_length(
    api: ServiceClient, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain(api)
    monkeypatch.setattr(lineage, "MAX_LINEAGE", 2)

    forward, back = read_conversation_lineage(owner, "mon"), read_conversation_lineage(owner, "wed")

    assert (len(forward.later), forward.truncated) == (2, True)
    assert (len(back.earlier), back.truncated) == (2, False)


def test_another_account_cannot_read_a_lineage(stranger_api: ServiceClient, api: ServiceClient) -> None:
    chain(api)

    assert stranger_api.get("/conversations/mon/lineage").status_code == 404


def test_reading_a_lineage_takes_three_statements(
    api: ServiceClient, owner: Owner, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    chain(api)

    for conversation_id in ("mon", "wed"):
        with django_assert_num_queries(3):
            read_conversation_lineage(owner, conversation_id)
