"""A worker of the last version on the schema of this one, as one is that was not stopped before the migrations."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from memory_project.embedded.paths import PROJECT
from tests.concurrency import wait_until
from tests.memory.maintenance.workers import worker_started
from tests.upgrades.test_additive import version_of
from tests.upgrades.test_former_code import former as former
from tests.upgrades.test_former_code import run_code, variables_of
from tests.upgrades.test_upgrades import DUMPS, database_of, manage

WRITES = """
import json, os, sys

os.environ["DJANGO_SETTINGS_MODULE"] = "memory_project.settings"
import django

django.setup()
from django.test.utils import setup_test_environment

setup_test_environment()
from memory.maintenance import JOBS
from memory.models import Account, ApiKey
from memory.services.accounts.register import issue_key
from tests.api_client import ServiceClient
from tests.memory.hot_paths import STORING, HotPaths

account = Account.objects.create(name=sys.argv[1])
keys = [issue_key(account, scopes=list(ApiKey.Scope), agent_id=agent_id) for agent_id in ("assistant", "")]
paths = HotPaths(*(ServiceClient(key.secret) for key in keys))
refusals = paths.send_all(STORING)
api = ServiceClient(keys[1].secret)
if sys.argv[2:]:
    refusals += [each for each in [api.post("/exports", {})] if each.status_code != 202]
refusals += [job for job in JOBS if api.post(f"/jobs/{job}/run", {}).status_code != 202]
print(json.dumps({"account": str(account.id), "jobs": list(JOBS), "refusals": [str(each) for each in refusals]}))
"""
"""Stores something of each kind for a new account, and has every job of the version run for it."""

SEND = """
import json, sys
from memory_project.celery import app

for name in sys.argv[1:]:
    app.send_task(f"memory.tasks.{name}")
print(json.dumps(sys.argv[1:]))
"""
"""Sends messages as the present scheduler does."""

FIND_RUNS = "SELECT account_id::text, job, status FROM job_runs WHERE account_id IS NOT NULL"
FIND_STATE = """
SELECT kind, count(*), count(*) FILTER (WHERE embed_after IS NULL), count(source_turn_id), count(v.memory_id)
FROM memories m LEFT JOIN (SELECT DISTINCT memory_id FROM memory_vectors) v ON v.memory_id = m.id
WHERE account_id = %s GROUP BY kind ORDER BY kind
"""
"""The numbers of memories of an account by kind: all, those that wait for no vector, extracted ones, those with one."""


def fetch(url: str, statement: str, *params: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as session:
        return session.execute(statement.encode(), params).fetchall()


def finish_runs(tree: Path, url: str, folder: Path, *, until: int) -> str:
    """Have a worker with the code of a tree do what waits, until so many runs are left, and return its log."""

    def is_done() -> bool:
        statuses = [status for *_, status in fetch(url, FIND_RUNS)]
        return "running" not in statuses and statuses.count("queued") <= until

    with worker_started(folder, f"worker-{until}", tree=str(tree), **variables_of(tree, url)) as worker:
        run_code(PROJECT, url, SEND, "resume_jobs", "sweep_jobs")
        wait_until(is_done)
        # what it does not know comes last, or first
        run_code(PROJECT, url, SEND, "sweep_jobs")
        wait_until(lambda: worker.log.read_text().count("sweep_jobs") >= 4)
        return worker.log.read_text()


@pytest.mark.slow
@pytest.mark.django_db
def test_a_worker_of_the_last_version_does_what_both_versions_queue_and_leaves_what_it_does_not_know(
    former: Path, empty_redis: None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    with database_of(max(DUMPS, key=version_of)) as url:
        manage("migrate", "--verbosity=0", url=url)
        old, new = run_code(former, url, WRITES, "old"), run_code(PROJECT, url, WRITES, "new", "export")
        unknown = sorted({*new["jobs"], "transfer"} - set(old["jobs"]))

        log = finish_runs(former, url, folder, until=len(unknown) + 1)
        runs = set(fetch(url, FIND_RUNS))
        states = [fetch(url, FIND_STATE, each["account"]) for each in (old, new)]
        finish_runs(PROJECT, url, folder, until=0)
        statuses = {status for *_, status in fetch(url, FIND_RUNS)}
        exports = fetch(url, "SELECT status FROM transfers")

    assert old["refusals"] == new["refusals"] == []
    assert {run for run in runs if run[2] != "completed"} == {(new["account"], job, "queued") for job in unknown}
    assert {job for account, job, _ in runs if account == old["account"]} == set(old["jobs"])
    assert all(f"unknown job {job}: the message comes from another version" in log for job in unknown)
    assert states[0] == states[1]
    extracted = {kind: found for kind, *_, found, _ in states[0] if found}
    embedded = {kind for kind, *_, vectors in states[0] if vectors}
    assert extracted["fact"] >= 2
    assert embedded >= {"turn", "fact", "entity", "episode", "note", "goal", "artifact"}
    assert (statuses, exports) == ({"completed"}, [("completed",)])
