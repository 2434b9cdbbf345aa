"""One account's requests for runs of jobs let another's be served after a few of them, with a real worker."""

from pathlib import Path

import pytest

from memory.models import Account, JobRun
from memory_project.celery import app
from tests.api_client import ServiceClient
from tests.concurrency import wait_until
from tests.memory.maintenance.workers import worker_started

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
SERVED_BEFORE = 20


def test_hundreds_of_requests_of_one_account_leave_another_its_turn(
    api: ServiceClient, stranger_api: ServiceClient, account: Account, tmp_path: Path
) -> None:
    app.control.purge()
    with worker_started(tmp_path, "worker"):
        for _ in range(300):
            assert api.post("/jobs/extract_knowledge/run").status_code == 202
        job_id = stranger_api.post("/jobs/extract_knowledge/run").json()["job_id"]
        wait_until(lambda: stranger_api.get(f"/jobs/{job_id}").json()["status"] == "completed")

    served = JobRun.objects.get(id=job_id)
    assert served.started_at is not None
    between = (served.created_at, served.started_at)
    assert JobRun.objects.filter(account=account, started_at__range=between).count() <= SERVED_BEFORE
    assert JobRun.objects.filter(account=account).count() < 300
