"""`/jobs`: request runs, and read them."""

from collections.abc import Callable

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from memory.models import Account, ApiKey, AuditEntry, JobRun
from memory.services.accounts.register import issue_key
from tests.api_client import ServiceClient

ClientFor = Callable[[str], ServiceClient]


def test_a_run_is_asked_for_and_looked_at(api: ServiceClient, account: Account) -> None:
    accepted = api.post("/jobs/expire/run", {"dry_run": True})

    seen = api.get(f"/jobs/{accepted.json()['job_id']}").json()

    assert (accepted.status_code, accepted.json()["status"]) == (202, "queued")
    assert (seen["job"], seen["dry_run"], seen["scope"]) == ("expire", True, "account")
    assert JobRun.objects.get().account == account


def test_a_run_needs_no_body(api: ServiceClient) -> None:
    assert api.post("/jobs/expire/run").status_code == 202


def test_asking_for_a_run_is_audited(api: ServiceClient) -> None:
    job_id = api.post("/jobs/expire/run").json()["job_id"]

    entry = AuditEntry.objects.get(operation="run_job")
    assert (entry.memory_type, entry.affected_ids) == ("job", [job_id])
    assert (entry.config_snapshot["job"], entry.config_snapshot["dry_run"]) == ("expire", False)


def test_a_run_asked_for_twice_under_one_key_is_one_run(api: ServiceClient) -> None:
    first, again = (api.post("/jobs/embed/run", {}, headers={"Idempotency-Key": "k"}) for _ in range(2))

    assert first.json() == again.json()
    assert JobRun.objects.count() == 1


def test_a_worker_is_notified_once_the_run_is_committed(
    api: ServiceClient, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        api.post("/jobs/embed/run")

    assert len(callbacks) == 1


def test_an_unknown_job_is_not_found(api: ServiceClient) -> None:
    refused = api.post("/jobs/wash_dishes/run")

    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    assert not JobRun.objects.exists()


@pytest.mark.parametrize("body", [{"dry_run": "perhaps"}, {"dry_run": None}, {"wet_run": True}, {"account": "other"}])
def test_a_run_of_the_wrong_shape_is_refused(api: ServiceClient, body: dict[str, object]) -> None:
    assert api.post("/jobs/embed/run", body).status_code == 400
    assert not JobRun.objects.exists()


def test_runs_are_listed_newest_first(api: ServiceClient) -> None:
    asked = [api.post(f"/jobs/{name}/run").json()["job_id"] for name in ("embed", "expire")]

    listed = api.get("/jobs").json()

    assert [run["job_id"] for run in listed["results"]] == asked[::-1]


def test_a_list_is_filtered_by_job_and_status(api: ServiceClient) -> None:
    for name in ("embed", "expire"):
        JobRun.objects.create(job=name)
        JobRun.objects.create(job=name, status="completed")

    listed = api.get("/jobs", {"job": "embed", "status": "completed"}).json()

    assert [(run["job"], run["status"]) for run in listed["results"]] == [("embed", "completed")]


def test_a_list_comes_in_pages(api: ServiceClient) -> None:
    made = [str(JobRun.objects.create(job="embed").id) for _ in range(3)]

    first = api.get("/jobs", {"page_size": 2}).json()
    rest = api.get(first["next"].removeprefix("http://testserver")).json()

    ids = [run["job_id"] for run in first["results"] + rest["results"]]
    assert ids == sorted(made, reverse=True)


@pytest.mark.parametrize("query", [{"status": "asleep"}, {"page_size": "0"}, {"colour": "red"}, {"job": "j" * 51}])
def test_a_list_with_a_wrong_parameter_is_refused(api: ServiceClient, query: dict[str, str]) -> None:
    assert api.get("/jobs", query).status_code == 400


def test_the_installations_runs_are_seen_by_every_operator(api: ServiceClient) -> None:
    run = JobRun.objects.create(job="embed", requested_by="schedule")

    seen = api.get(f"/jobs/{run.id}").json()

    assert (seen["scope"], seen["requested_by"]) == ("installation", "schedule")


def test_anothers_run_is_no_different_from_none(api: ServiceClient, stranger_api: ServiceClient) -> None:
    theirs = stranger_api.post("/jobs/embed/run").json()["job_id"]

    found, listed = api.get(f"/jobs/{theirs}"), api.get("/jobs")

    nothing = api.get("/jobs/01900000-0000-7000-8000-000000000000")
    assert found.status_code == nothing.status_code == 404
    assert found.json() | {"request_id": ""} == nothing.json() | {"request_id": ""}
    assert listed.json()["results"] == []


def test_a_key_that_may_not_operate_sees_and_asks_for_nothing(account: Account, client_for: ClientFor) -> None:
    reader = client_for(issue_key(account, scopes=(ApiKey.Scope.READ, ApiKey.Scope.WRITE)).secret)

    answers = [reader.get("/jobs"), reader.get(f"/jobs/{account.id}"), reader.post("/jobs/embed/run")]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "missing_scope")] * 3
