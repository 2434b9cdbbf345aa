"""Exports and imports over HTTP: requests, progress, downloads, and what keys may see."""

import zipfile
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest
from django.utils import timezone

from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import Account, Fact, JobRun, Transfer
from memory.owner import Owner
from memory.services.accounts.register import READ_WRITE, issue_key
from tests.api_client import ServiceClient
from tests.memory.facts import know
from tests.memory.transfers import export_bytes

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _known(owner: Owner, empty_redis: None) -> None:
    know(replace(owner, user_id="ana"), "Likes figs.")
    know(replace(owner, agent_id="planner"), "The pump leaks.")


def run_job(account: Account) -> None:
    run_at_once(JOBS["transfer"], JobRun(account=account, job="transfer"), clock=timezone.now)


def bytes_of(answer: Any) -> bytes:
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/zip"), answer.content
    data = b"".join(answer.streaming_content)
    assert int(answer["Content-Length"]) == len(data)
    return data


def send(api: ServiceClient, archive: bytes, query: str = "") -> Any:
    return api.generic("POST", f"/imports{query}", archive, "application/zip")


def test_an_archive_is_made_by_a_job_and_downloaded(api: ServiceClient, account: Account) -> None:
    asked = api.post("/exports", {})
    export_id = asked.json()["id"]
    early = api.get(f"/exports/{export_id}/download")
    run_job(account)

    assert (asked.status_code, asked.json()["status"], early.status_code) == (202, "queued", 409)
    assert api.get(f"/exports/{export_id}").json()["counts"]["memories"] == 2
    assert [each["id"] for each in api.get("/exports?status=completed").json()["results"]] == [export_id]
    # raw reasoning is for those who may replay it
    archive = export_bytes(account.id, include_traces=False)
    assert bytes_of(api.get(f"/exports/{export_id}/download")) == bytes_of(api.get("/export")) == archive


def test_a_transfer_is_completed_after_it_was_started(api: ServiceClient, account: Account) -> None:
    asked = api.post("/exports", {}).json()["id"], send(api, export_bytes(account.id)).json()["id"]
    run_job(account)

    for path, transfer_id in zip(("exports", "imports"), asked, strict=True):
        done = api.get(f"/{path}/{transfer_id}").json()
        assert (done["status"], done["started_at"] < done["completed_at"]) == ("completed", True)


def test_an_archive_is_imported_into_another_account(
    api: ServiceClient, stranger_api: ServiceClient, account: Account, stranger: Account
) -> None:
    asked = send(stranger_api, export_bytes(account.id))
    run_job(stranger)

    done = stranger_api.get(f"/imports/{asked.json()['id']}").json()
    assert (asked.status_code, done["status"], done["error"], done["remaps"]) == (202, "completed", "", True)
    assert Fact.objects.filter(account_id=stranger.id).count() == 2
    assert stranger_api.get("/imports").json()["results"][0]["id"] == done["id"]


def test_a_dry_run_imports_nothing(stranger_api: ServiceClient, account: Account, stranger: Account) -> None:
    import_id = send(stranger_api, export_bytes(account.id), "?dry_run=true").json()["id"]
    run_job(stranger)

    assert stranger_api.get(f"/imports/{import_id}").json()["counts"]["memories"] == 2
    assert not Fact.objects.filter(account_id=stranger.id).exists()


@pytest.mark.parametrize("part", ["text", "begin", "end", "nothing"])
def test_what_is_no_complete_zip_is_refused_at_once(api: ServiceClient, account: Account, part: str) -> None:
    archive = export_bytes(account.id)
    body = {"text": b"no zip", "begin": archive[:-100], "end": archive[100:], "nothing": b"PK"}[part]

    refused = send(api, body)

    assert (refused.status_code, "no complete zip" in refused.json()["detail"]) == (422, True)
    assert not Transfer.objects.exists()


def test_a_zip_that_is_no_archive_fails_with_a_reason(api: ServiceClient, account: Account) -> None:
    target = BytesIO()
    with zipfile.ZipFile(target, "w") as written:
        written.writestr("notes.txt", "Likes figs.")
    import_id = send(api, target.getvalue()).json()["id"]
    run_job(account)

    failed = api.get(f"/imports/{import_id}").json()
    assert (failed["status"], "no archive of this service" in failed["error"]) == ("failed", True)


def test_a_body_of_another_type_is_refused(api: ServiceClient) -> None:
    assert api.post("/imports", {}).status_code == 415
    assert api.generic("POST", "/agents", b"zip", "application/zip").status_code == 415


def texts_in(archive: bytes) -> bytes:
    with zipfile.ZipFile(BytesIO(archive)) as opened:
        return opened.read("memories.jsonl")


def test_a_key_of_an_agent_exports_what_belongs_to_it_alone(
    api: ServiceClient, bound_api: ServiceClient, account: Account
) -> None:
    of_all = api.post("/exports", {}).json()["id"]
    own = bound_api.post("/exports", {}).json()
    run_job(account)

    texts = texts_in(bytes_of(bound_api.get(f"/exports/{own['id']}/download")))
    assert (own["agent_id"], b"figs" in texts, b"pump" in texts) == ("assistant", True, False)
    assert bound_api.get(f"/exports/{of_all}/download").status_code == 404
    assert [each["id"] for each in bound_api.get("/exports").json()["results"]] == [own["id"]]
    assert bound_api.post("/exports", {"agent_id": "planner"}).status_code == 403
    assert bound_api.post("/exports", {"user_id": "ana"}).status_code == 403
    assert bound_api.get("/export?user_id=ana").status_code == 403
    assert send(bound_api, b"zip").status_code == 403


def test_a_key_of_a_user_exports_nothing(account: Account) -> None:
    users = ServiceClient(issue_key(account, scopes=READ_WRITE, user_id="ana").secret)

    assert [users.post("/exports", {}).status_code, users.get("/export").status_code] == [403, 403]
    assert send(users, b"zip").status_code == 403


def test_an_agent_and_a_user_together_are_refused(api: ServiceClient) -> None:
    assert api.post("/exports", {"agent_id": "assistant", "user_id": "ana"}).status_code == 422
