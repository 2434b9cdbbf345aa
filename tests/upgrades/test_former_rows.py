"""Rows of every kind that the last version's API stored, read, changed, exported and erased by this one."""

import json
from pathlib import Path

import pytest

from memory.kinds import all_kinds
from memory_project.embedded.paths import PROJECT
from tests.upgrades.test_additive import version_of
from tests.upgrades.test_former_code import former as former
from tests.upgrades.test_former_code import run_code
from tests.upgrades.test_upgrades import DUMPS, database_of, manage

START = """
import json, os, sys
from datetime import timedelta

os.environ["DJANGO_SETTINGS_MODULE"] = "memory_project.settings"
import django

django.setup()
from django.db.models import Count
from django.test.utils import setup_test_environment
from django.utils import timezone

setup_test_environment()
from memory import conf
from memory.maintenance import find_job
from memory.maintenance.runner import run_at_once
from memory.models import Account, ApiKey, JobRun, Memory
from memory.services.accounts.register import issue_key
from tests.api_client import ServiceClient
from tests.memory import hot_paths

conf.COMPRESS_KEEP_RECORDS = conf.COMPRESS_AFTER_HOURS = conf.MERGE_AFTER_HOURS = 0


def run_jobs(account, *names):
    for name in names:
        clock = lambda: timezone.now() + timedelta(hours=1)
        run = run_at_once(find_job(name), JobRun(account=account, job=name), clock=clock)
        assert run.status == "completed", (name, run.error)


def count_memories(account):
    rows = Memory.objects.filter(account_id=account.id).order_by("kind")
    return dict(rows.values_list("kind").annotate(Count("id")))


"""
STORE = f"""{START}
account = Account.objects.create(name=sys.argv[1])
secrets = [issue_key(account, scopes=list(ApiKey.Scope), agent_id=each).secret for each in ("assistant", "")]
paths = hot_paths.HotPaths(*map(ServiceClient, secrets))
refusals = paths.send_all(hot_paths.STORING)
run_jobs(account, "extract_knowledge", "summarize", "compress", "embed")
answer = {{"account": account.name, "secrets": secrets, "ids": paths.ids, "refusals": refusals}}
print(json.dumps(answer | {{"counts": count_memories(account)}}))
"""
"""Stores something of each kind through the API of a version, and has its jobs derive the rest."""
USE = f"""{START}
given = json.loads(sys.argv[1])
account = Account.objects.get(name=given["account"])
agent, whole = map(ServiceClient, given["secrets"])
paths = hot_paths.HotPaths(agent, whole)
paths.ids.update(given["ids"])
asked = {{**hot_paths.QUESTION, "user_id": "ana", "conversation_id": "talk-1"}}
found = {{kind: agent.post("/recall", asked | {{"kinds": [kind]}}).json() for kind in given["counts"]}}
recalled = {{kind: len(answer["results"]) for kind, answer in found.items()}}
timeline = {{kind: agent.get(f"/timeline?memory_type={{kind}}&archived=any").json() for kind in given["counts"]}}
listed = {{kind: len(answer["results"]) for kind, answer in timeline.items()}}
exported = whole.post("/exports", {{}}).json()["id"]
run_jobs(account, "transfer")
counts = whole.get(f"/exports/{{exported}}").json()["counts"]
refusals = paths.send_all([*hot_paths.READING, *hot_paths.CHANGING])
run_jobs(account, "transfer")
refusals += paths.send_all([*hot_paths.OF_WORK, *hot_paths.ERASING])
erasure = whole.delete("/subjects/ana")
run_jobs(account, "erase")
answer = {{"recalled": recalled, "listed": listed, "exported": counts["memories"], "refusals": refusals}}
answer |= {{"erasure": erasure.status_code, "of_user": Memory.objects.filter(account=account, user_id="ana").count()}}
print(json.dumps(answer))
"""
"""Recalls, lists, exports, corrects and erases what was stored."""


@pytest.mark.slow
@pytest.mark.django_db
def test_rows_of_the_last_version_are_recalled_listed_corrected_exported_and_erased(
    former: Path, empty_redis: None
) -> None:
    with database_of(max(DUMPS, key=version_of)) as url:
        stored = run_code(former, url, STORE, "old")
        manage("migrate", "--verbosity=0", url=url)
        used = run_code(PROJECT, url, USE, json.dumps(stored))

    assert stored["refusals"] == []
    assert stored["counts"].keys() == {str(kind) for kind in all_kinds()}
    assert [kind for kind, number in used["recalled"].items() if not number] == []
    assert used["listed"] == stored["counts"]
    assert used["exported"] == sum(stored["counts"].values())
    # the requests erase this user themselves, and the job that does it has not run then
    assert [each.partition(" {")[0] for each in used["refusals"]] == ["POST /subjects/{user_id}/readmit: 409"]
    assert (used["erasure"], used["of_user"]) == (202, 0)
