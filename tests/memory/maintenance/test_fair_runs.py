"""One account's requests for runs of jobs keep those of another waiting for seconds at most, with a real worker."""

from pathlib import Path
from time import monotonic

import pytest

from memory.models import Account, JobRun
from memory_project.celery import app
from tests.api_client import ServiceClient
from tests.memory.maintenance.workers import wait_until, worker_started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]


def test_hundreds_of_requests_of_one_account_leave_another_its_turn(
    api: ServiceClient, stranger_api: ServiceClient, account: Account, tmp_path: Path
) -> None:
    app.control.purge()
    with worker_started(tmp_path, "worker"):
        for _ in range(300):
            assert api.post("/jobs/extract_knowledge/run").status_code == 202
        asked = monotonic()
        job_id = stranger_api.post("/jobs/extract_knowledge/run").json()["job_id"]
        wait_until(lambda: stranger_api.get(f"/jobs/{job_id}").json()["status"] == "completed")

    assert monotonic() - asked < 10
    assert JobRun.objects.filter(account=account).count() < 300
