"""`/jobs`: request runs, and read them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from memory import conf
from memory.maintenance import JOBS
from memory.models import Account, ApiKey, AuditEntry, JobRun
from memory.services.accounts.register import issue_key
from tests.api_client import ServiceClient
from tests.openapi import read_document

ClientFor = Callable[[str], ServiceClient]

FORMER_NAMES = {former: job.name for job in JOBS.values() for former in job.aliases}


def test_a_job_run_is_requested_and_read(api: ServiceClient, account: Account) -> None:
    accepted = api.post("/jobs/expire/run", {"dry_run": True})

    seen = api.get(f"/jobs/{accepted.json()['job_id']}").json()

    assert (accepted.status_code, accepted.json()["status"]) == (202, "queued")
    assert (seen["job"], seen["dry_run"]) == ("expire", True)
    assert JobRun.objects.get().account == account


def test_a_job_run_can_be_requested_without_a_body(api: ServiceClient) -> None:
    assert api.post("/jobs/expire/run").status_code == 202


def test_the_request_of_a_job_run_is_audited(api: ServiceClient) -> None:
    job_id = api.post("/jobs/expire/run").json()["job_id"]

    entry = AuditEntry.objects.get(operation="run_job")
    assert (entry.memory_type, entry.affected_ids) == ("job", [job_id])
    assert (entry.config_snapshot["job"], entry.config_snapshot["dry_run"]) == ("expire", False)


def test_a_request_repeated_with_its_idempotency_key_makes_one_run(api: ServiceClient) -> None:
    first, again = (api.post("/jobs/embed/run", {}, headers={"Idempotency-Key": "k"}) for _ in range(2))

    assert first.json() == again.json()
    assert JobRun.objects.count() == 1


def test_the_same_run_is_requested_once_while_it_waits(api: ServiceClient) -> None:
    ids = {api.post("/jobs/embed/run").json()["job_id"] for _ in range(20)}
    dry = api.post("/jobs/embed/run", {"dry_run": True}).json()["job_id"]
    JobRun.objects.filter(id__in=ids).update(status="completed")

    later = api.post("/jobs/embed/run").json()["job_id"]

    assert len(ids) == 1
    assert len({*ids, dry, later}) == 3


def test_an_account_requests_a_limited_number_of_runs_an_hour(
    api: ServiceClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "JOB_RUNS_PER_HOUR", 2)
    api.post("/jobs/embed/run")
    first = JobRun.objects.get()
    JobRun.objects.update(created_at=first.created_at - timedelta(minutes=50))

    answers = [api.post(f"/jobs/{name}/run") for name in ("expire", "embed", "decay")]

    assert [answer.status_code for answer in answers] == [202, 202, 429]
    assert answers[2].json()["code"] == "too_many_runs"
    assert 590 <= int(answers[2]["Retry-After"]) <= 601
    JobRun.objects.filter(id=first.id).update(created_at=first.created_at - timedelta(hours=2))
    assert api.post("/jobs/decay/run").status_code == 202


def test_a_worker_is_notified_once_the_run_is_committed(
    api: ServiceClient, django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks
) -> None:
    with django_capture_on_commit_callbacks() as callbacks:
        api.post("/jobs/embed/run")

    assert len(callbacks) == 1


def test_an_unknown_job_is_not_found_and_the_answer_lists_the_jobs(api: ServiceClient) -> None:
    refused = api.post("/jobs/wash_dishes/run")

    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    assert refused.json()["detail"] == f"There is no job 'wash_dishes'; jobs: {', '.join(JOBS)}."
    assert not JobRun.objects.exists()


def test_answers_under_a_former_name_of_a_job_say_that_it_is_deprecated(api: ServiceClient) -> None:
    former, present = api.post("/jobs/graduate/run"), api.post("/jobs/promote_short_term/run")

    assert former["Deprecation"].startswith("@")
    assert former["Link"].endswith('/jobs/promote_short_term/run>; rel="successor-version"')
    assert not {"Deprecation", "Link"} & set(present.headers)


@pytest.mark.parametrize("former", FORMER_NAMES)
def test_a_former_name_of_a_job_requests_and_lists_its_runs(api: ServiceClient, former: str) -> None:
    job_id = api.post(f"/jobs/{former}/run").json()["job_id"]

    listed = api.get("/jobs", {"job": former}).json()["results"]

    assert [(run["job_id"], run["job"]) for run in listed] == [(job_id, FORMER_NAMES[former])]


@pytest.mark.parametrize(
    ("path", "method", "parameter", "choice"),
    [("/jobs/{name}/run", "post", "name", "oneOf"), ("/jobs", "get", "job", "anyOf")],
)
def test_the_openapi_document_marks_former_names_of_jobs_as_deprecated(
    path: str, method: str, parameter: str, choice: str
) -> None:
    described = read_document()["paths"][f"/api/v1{path}"][method]["parameters"]
    (schema,) = (each["schema"] for each in described if each["name"] == parameter)

    names: list[dict[str, Any]] = [each for each in schema[choice] if "const" in each]

    assert {each["const"] for each in names if not each.get("deprecated")} == set(JOBS)
    deprecated = {each["const"]: each["description"] for each in names if each.get("deprecated")}
    assert deprecated == {former: f"Former name of `{name}`." for former, name in FORMER_NAMES.items()}


@pytest.mark.parametrize("body", [{"dry_run": "perhaps"}, {"dry_run": None}, {"wet_run": True}, {"account": "other"}])
def test_an_invalid_body_is_refused_and_stores_nothing(api: ServiceClient, body: dict[str, object]) -> None:
    assert api.post("/jobs/embed/run", body).status_code == 400
    assert not JobRun.objects.exists()


def test_runs_are_listed_newest_first(api: ServiceClient) -> None:
    asked = [api.post(f"/jobs/{name}/run").json()["job_id"] for name in ("embed", "expire")]

    listed = api.get("/jobs").json()

    assert [run["job_id"] for run in listed["results"]] == asked[::-1]


def test_a_list_is_filtered_by_job_and_status(api: ServiceClient, account: Account) -> None:
    for name in ("embed", "expire"):
        JobRun.objects.create(account=account, job=name)
        JobRun.objects.create(account=account, job=name, status="completed")

    listed = api.get("/jobs", {"job": "embed", "status": "completed"}).json()

    assert [(run["job"], run["status"]) for run in listed["results"]] == [("embed", "completed")]


def test_the_list_of_runs_is_paginated(api: ServiceClient, account: Account) -> None:
    made = [str(JobRun.objects.create(account=account, job="embed").id) for _ in range(3)]

    first = api.get("/jobs", {"page_size": 2}).json()
    rest = api.get(first["next"].removeprefix("http://testserver")).json()

    ids = [run["job_id"] for run in first["results"] + rest["results"]]
    assert ids == sorted(made, reverse=True)


@pytest.mark.parametrize("query", [{"status": "asleep"}, {"page_size": "0"}, {"colour": "red"}, {"job": "j" * 51}])
def test_a_list_with_an_invalid_parameter_is_refused(api: ServiceClient, query: dict[str, str]) -> None:
    assert api.get("/jobs", query).status_code == 400


def test_runs_over_all_accounts_whose_figures_are_of_others_too_are_not_found(api: ServiceClient) -> None:
    run = JobRun.objects.create(job="embed", requested_by="schedule")

    assert api.get(f"/jobs/{run.id}").status_code == 404
    assert api.get("/jobs").json()["results"] == []


def test_a_key_that_is_bound_to_an_agent_sees_the_runs_that_it_requested(
    api: ServiceClient, account: Account, client_for: ClientFor
) -> None:
    bound = client_for(issue_key(account, scopes=ApiKey.Scope.values, agent_id="planner").secret)
    others, own = (each.post("/jobs/embed/run").json()["job_id"] for each in (api, bound))

    assert [run["job_id"] for run in bound.get("/jobs").json()["results"]] == [own]
    assert bound.get(f"/jobs/{others}").status_code == 404
    assert {run["job_id"] for run in api.get("/jobs").json()["results"]} == {own, others}


def test_a_run_of_another_account_is_not_found_like_an_unknown_one(
    api: ServiceClient, stranger_api: ServiceClient
) -> None:
    theirs = stranger_api.post("/jobs/embed/run").json()["job_id"]

    found, listed = api.get(f"/jobs/{theirs}"), api.get("/jobs")

    nothing = api.get("/jobs/01900000-0000-7000-8000-000000000000")
    assert found.status_code == nothing.status_code == 404
    assert found.json() | {"request_id": ""} == nothing.json() | {"request_id": ""}
    assert listed.json()["results"] == []


def test_a_key_without_operate_scope_neither_reads_nor_requests_runs(account: Account, client_for: ClientFor) -> None:
    reader = client_for(issue_key(account, scopes=(ApiKey.Scope.READ, ApiKey.Scope.WRITE)).secret)

    answers = [reader.get("/jobs"), reader.get(f"/jobs/{account.id}"), reader.post("/jobs/embed/run")]

    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(403, "missing_scope")] * 3
