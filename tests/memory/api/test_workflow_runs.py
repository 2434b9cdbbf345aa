"""`/workflow-runs`: start, list, end; hidden from agents without a part in them."""

from collections.abc import Callable
from typing import Any

import pytest

from memory.models import Account, WorkflowRun
from memory.services.accounts.register import READ_WRITE_OPERATE, issue_key
from tests.api_client import ServiceClient, segment

RUN_ID = "night/run %2F ü"
RUN = f"/workflow-runs/{segment(RUN_ID)}"


@pytest.fixture
def key_of(account: Account) -> Callable[[str], ServiceClient]:
    """Return the client of an agent's own key."""
    return lambda agent_id: ServiceClient(issue_key(account, scopes=READ_WRITE_OPERATE, agent_id=agent_id).secret)


@pytest.fixture
def run(bound_api: ServiceClient) -> Any:
    """Start a run as `assistant`, with `ana` in it."""
    body = {"workflow_run_id": RUN_ID, "workflow": "nightly", "agents": ["ana"], "metadata": {"step": 1}}
    return bound_api.post("/workflow-runs", body).json()


def test_a_workflow_run_is_created_read_and_listed(bound_api: ServiceClient, run: Any) -> None:
    assert (run["workflow_run_id"], run["agent_id"], run["agents"]) == (RUN_ID, "assistant", ["ana"])
    assert (run["status"], run["ended_at"], run["metadata"]) == ("running", None, {"step": 1})
    assert bound_api.get(RUN).json() == run
    assert bound_api.get("/workflow-runs").json()["results"] == [run]


def test_a_run_without_an_id_is_given_one(api: ServiceClient) -> None:
    begun = api.post("/workflow-runs", {})

    assert begun.status_code == 201
    assert api.get(f"/workflow-runs/{begun.json()['workflow_run_id']}").json() == begun.json()


def test_creating_a_run_with_an_id_in_use_is_a_conflict(api: ServiceClient, run: Any) -> None:
    assert api.post("/workflow-runs", {"workflow_run_id": RUN_ID}).status_code == 409


def test_a_request_repeated_with_its_idempotency_key_creates_one_run(api: ServiceClient) -> None:
    first, again = (api.post("/workflow-runs", {}, HTTP_IDEMPOTENCY_KEY="k1") for _twice in range(2))

    assert first.json() == again.json()
    assert WorkflowRun.objects.count() == 1


@pytest.mark.parametrize(
    "body",
    [
        {"workflow_run_id": ""},
        {"workflow_run_id": "a\nb"},
        {"agents": "ana"},
        {"agents": [""]},
        {"agents": ["ana"] * 1_001},
        {"metadata": []},
        {"status": "running"},
    ],
)
def test_an_invalid_body_is_refused(api: ServiceClient, body: dict[str, Any]) -> None:
    assert api.post("/workflow-runs", body).status_code == 400


def test_the_list_is_filtered_by_status_and_workflow(api: ServiceClient, run: Any) -> None:
    api.post("/workflow-runs", {"workflow": "daily"})
    api.patch(RUN, {"status": "failed"})

    assert [row["status"] for row in api.get("/workflow-runs?status=failed").json()["results"]] == ["failed"]
    assert [row["workflow"] for row in api.get("/workflow-runs?workflow=daily").json()["results"]] == ["daily"]
    assert api.get("/workflow-runs?status=asleep").status_code == 400


def test_an_ended_run_cannot_be_reopened(bound_api: ServiceClient, run: Any) -> None:
    ended = bound_api.patch(RUN, {"status": "completed", "metadata": {"step": 2}})

    assert ended.status_code == 200
    assert ended.json()["ended_at"] is not None
    assert bound_api.get(RUN).json() == ended.json()
    assert bound_api.patch(RUN, {"status": "running"}).status_code == 422


def test_ending_a_run_again_with_the_same_status_changes_nothing(bound_api: ServiceClient, run: Any) -> None:
    first, again = (bound_api.patch(RUN, {"status": "completed"}) for _twice in range(2))

    assert (again.status_code, again.json()) == (200, first.json())


def test_agents_are_added_and_removed_by_name(bound_api: ServiceClient, run: Any) -> None:
    changed = bound_api.patch(RUN, {"add_agents": ["zoe"], "remove_agents": ["ana"]})

    assert (changed.status_code, changed.json()["agents"]) == (200, ["zoe"])


@pytest.mark.parametrize("body", [{"agents": []}, {"agents": ["ana"]}, {"add_agents": ["bob"]}])
def test_an_agent_that_is_both_added_and_removed_is_refused(
    bound_api: ServiceClient, run: Any, body: dict[str, Any]
) -> None:
    refused = bound_api.patch(RUN, body | {"remove_agents": ["bob"]})

    assert (refused.status_code, list(refused.json()["errors"])) == (400, ["remove_agents"])
    assert bound_api.get(RUN).json() == run


@pytest.mark.parametrize("body", [{"status": "asleep"}, {"workflow": "other"}, {"agents": [1]}])
def test_an_invalid_change_is_refused(api: ServiceClient, run: Any, body: dict[str, Any]) -> None:
    assert api.patch(RUN, body).status_code == 400


def test_an_agent_of_a_run_can_read_it_but_not_end_it(key_of: Callable[[str], ServiceClient], run: Any) -> None:
    ana = key_of("ana")

    assert ana.get(RUN).json() == run
    assert ana.patch(RUN, {"status": "completed"}).status_code == 403


def test_a_bound_key_cannot_act_for_another_agent(bound_api: ServiceClient, run: Any) -> None:
    assert bound_api.get(f"{RUN}?agent_id=ana").status_code == 403
    assert bound_api.patch(RUN, {"agent_id": "ana"}).status_code == 403


@pytest.mark.parametrize("method", ["get", "patch"])
def test_agents_without_access_receive_the_answer_for_an_unknown_run(
    key_of: Callable[[str], ServiceClient], stranger_api: ServiceClient, run: Any, method: str
) -> None:
    for client in (key_of("zoe"), stranger_api):
        theirs = getattr(client, method)(RUN, HTTP_X_REQUEST_ID="same")
        unknown = getattr(client, method)("/workflow-runs/unknown", HTTP_X_REQUEST_ID="same")

        assert theirs.status_code == 404
        assert theirs.content == unknown.content
        assert client.get("/workflow-runs").json()["results"] == []
