"""`manage.py run_job`: an immediate run, with counts on standard output and failure in the exit status."""

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from memory.maintenance import JOBS
from memory.maintenance.schedule import format_job_time, parse_job_time
from memory.models import Account, JobRun

pytestmark = pytest.mark.django_db


def run_command(*arguments: str) -> str:
    output = StringIO()
    call_command("run_job", *arguments, stdout=output)
    return output.getvalue()


def report_of(*arguments: str) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(run_command(*arguments, "--json"))
    return report


def test_a_job_is_run_and_its_counts_are_printed() -> None:
    assert run_command("expire") == "expire: 0 examined, 0 changed, 0 failed\n"

    assert list(JobRun.objects.values_list("job", "status", "requested_by")) == [("expire", "completed", "command")]


def test_the_report_can_be_one_json_object() -> None:
    report = report_of("expire")

    run = JobRun.objects.get()
    assert report == {
        "job_id": str(run.id),
        "job": "expire",
        "status": "completed",
        "dry_run": False,
        "examined": 0,
        "changed": 0,
        "failed": 0,
        "figures": {},
        "error": "",
    }


def test_a_run_uses_the_given_time_as_now() -> None:
    in_2030, in_2031 = ("--now", "2030-01-01T00:00:00Z"), ("--now", "2031-01-01T00:00:00Z")
    report_of("audit_partitions", *in_2030)

    assert report_of("audit_partitions", *in_2030)["changed"] == 0
    assert report_of("audit_partitions", *in_2031)["changed"] > 0


def test_a_dry_run_says_that_it_is_one() -> None:
    output = run_command("audit_partitions", "--dry-run", "--now", "2030-01-01T00:00:00Z")

    assert output.startswith("audit_partitions (dry run): ")
    assert report_of("audit_partitions", "--now", "2030-01-01T00:00:00Z")["changed"] > 0


def test_a_run_can_be_limited_to_an_account(account: Account) -> None:
    run_command("expire", "--account", account.name)

    assert JobRun.objects.get().account == account


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("expire", "--account", "nobody"), "There is no account 'nobody'."),
        *(
            ((name, "--account", "any"), f"{name} is of the whole installation: run it without --account.")
            for name in ("audit_partitions", "measure", "reembed")
        ),
        (("wash_dishes",), "there is no job 'wash_dishes'"),
        (("expire", "--now", "2030-01-01T00:00:00"), "is not a time with a zone"),
        ((), "Which job"),
    ],
)
def test_an_invalid_run_is_refused_with_a_message(arguments: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        run_command(*arguments)

    assert not JobRun.objects.exists()


def test_a_job_that_is_already_running_is_refused() -> None:
    JobRun.objects.create(job="embed").begin(leased_by="a worker", lease=timedelta(minutes=1))

    with pytest.raises(CommandError, match=r"^another run of embed is on\.$"):
        run_command("embed")


def test_the_list_names_every_job() -> None:
    assert [line.split()[0] for line in run_command("--list").splitlines()] == list(JOBS)
    assert [job["name"] for job in json.loads(run_command("--list", "--json"))] == list(JOBS)


def test_the_list_shows_job_times_in_the_format_of_the_setting() -> None:
    listed = {job["name"]: job["every"] for job in json.loads(run_command("--list", "--json"))}

    assert {name: listed[name] for name in ("decay", "extract_knowledge", "globalize_facts", "write_audit_reads")} == {
        "extract_knowledge": "every 15m",
        "decay": "daily at 03:15",
        "globalize_facts": "every 1h",
        "write_audit_reads": "every 15s",
    }
    assert all(parse_job_time(job.name, format_job_time(job.every)) == job.every for job in JOBS.values())


def test_the_help_explains_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        call_command("run_job", "--help")

    shown = capsys.readouterr().out
    assert "manage.py run_job expire --dry-run" in shown
    assert "Exit status: 0 when the run was completed" in shown
