"""`/agents`: the agents of an account."""

from memory.models import AuditEntry
from tests.api_client import ServiceClient, segment


def test_an_agent_is_created_with_a_description_and_found_by_its_id(api: ServiceClient) -> None:
    made = api.post("/agents", {"agent_id": "planner", "description": "Plans routes"})

    found = api.get("/agents/planner")

    assert made.status_code == 201
    assert found.json() == made.json()
    assert found.json()["description"] == "Plans routes"
    assert AuditEntry.objects.filter(memory_type="agent", operation="create").count() == 1


def test_an_agent_id_may_have_a_slash_and_a_percent_sign(api: ServiceClient) -> None:
    api.post("/agents", {"agent_id": "north/50%2F é"})

    found = api.get(f"/agents/{segment('north/50%2F é')}")

    assert found.json()["agent_id"] == "north/50%2F é"


def test_a_second_agent_of_the_same_id_is_a_conflict(api: ServiceClient) -> None:
    api.post("/agents", {"agent_id": "planner"})

    again = api.post("/agents", {"agent_id": "planner"})

    assert (again.status_code, again.json()["code"]) == (409, "conflict")


def test_an_agents_description_can_be_changed(api: ServiceClient) -> None:
    api.post("/agents", {"agent_id": "planner"})

    changed = api.patch("/agents/planner", {"description": "Plans detours"})

    assert changed.json()["description"] == "Plans detours"
    assert api.get("/agents/planner").json() == changed.json()


def test_a_list_of_agents_contains_only_those_of_the_account(api: ServiceClient, stranger_api: ServiceClient) -> None:
    stranger_api.post("/agents", {"agent_id": "spy"})
    api.post("/agents", {"agent_id": "planner"})

    listed = api.get("/agents").json()

    assert [agent["agent_id"] for agent in listed["results"]] == ["planner"]
    assert (listed["next"], listed["previous"]) == (None, None)


def test_an_api_key_bound_to_an_agent_cannot_describe_another_agent(bound_api: ServiceClient) -> None:
    refused = bound_api.patch("/agents/planner", {"description": "mine now"})

    assert (refused.status_code, refused.json()["code"]) == (403, "wrong_agent")
