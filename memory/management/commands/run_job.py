"""`manage.py run_job`: one run of one job, here and now, by the same code as in the background."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import time, timedelta
from typing import Any

from django.core.management.base import CommandError
from django.utils import timezone
from rich.console import Console

from memory.errors import NotFound
from memory.maintenance import JOBS, BatchReport, Job, Progress, find_job, runner
from memory.maintenance.schedule import format_job_time
from memory.management.base import OperatorCommand, find_account, require_keys, zoned_time
from memory.models import JobRun

EPILOG = """
The run is a row like any other: GET /api/v1/jobs and the admin show it. While a worker runs the same job, this
command fails instead of running it twice. A run that a killed worker left is finished first, as of the time for
which it was requested.

  manage.py run_job --list
  manage.py run_job expire --dry-run
  manage.py run_job decay --now 2030-01-01T00:00:00Z --dry-run --json

Exit status: 0 when the run was completed, 1 when it failed, was refused, or some of its rows failed.
"""


def job_name(text: str) -> str:
    """Return the current name of a job, given that or a former one. Raises ArgumentTypeError."""
    try:
        return find_job(text).name
    except NotFound as error:
        raise ArgumentTypeError(str(error)) from None


def every(job: Job) -> str:
    intro = {timedelta: "every ", time: "daily at "}.get(type(job.every), "")
    return intro + format_job_time(job.every)


class Command(OperatorCommand):
    help = "Run one maintenance job to its end, and report what it examined, changed and failed on."
    epilog = EPILOG

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "name", nargs="?", metavar="NAME", type=job_name, help=f"the job to run: {', '.join(sorted(JOBS))}"
        )
        parser.add_argument("--list", action="store_true", help="list the jobs, and run none")
        parser.add_argument(
            "--account",
            metavar="NAME",
            help="only this account's rows (default: those of all accounts); refused by jobs of the installation",
        )
        parser.add_argument("--dry-run", action="store_true", help="count what would be changed, and change nothing")
        parser.add_argument(
            "--now", type=zoned_time, metavar="TIME", help="run as if the time were TIME (ISO 8601, with a zone)"
        )
        parser.add_argument("--json", action="store_true", help="report as one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["list"]:
            self.list_jobs(as_json=options["json"])
        elif options["name"] is None:
            raise CommandError("Which job? NAME or --list.")
        else:
            self.run(options)

    def list_jobs(self, *, as_json: bool) -> None:
        jobs = [{"name": job.name, "every": every(job), "description": job.description} for job in JOBS.values()]
        lines = ["{name:<20} {every:<16} {description}".format(**job) for job in jobs]
        self.stdout.write(json.dumps(jobs) if as_json else "\n".join(lines))

    def run(self, options: dict[str, Any]) -> None:
        require_keys()
        if options["account"] is not None and JOBS[options["name"]].of_installation:
            raise CommandError(f"{options['name']} is of the whole installation: run it without --account.")
        run = JobRun(
            job=options["name"],
            account=None if options["account"] is None else find_account(options["account"]),
            requested_by="command",
            dry_run=options["dry_run"],
            at=options["now"],
        )
        with progress_shown(run.job, shown=sys.stderr.isatty() and not options["json"]) as on_progress:
            run = runner.run_at_once(JOBS[run.job], run, clock=timezone.now, on_progress=on_progress)
        self.report(run, as_json=options["json"])

    def report(self, run: JobRun, *, as_json: bool) -> None:
        figures = {name: getattr(run, name) for name in ("examined", "changed", "failed")}
        if as_json:
            facts = {"job_id": str(run.id), "job": run.job, "status": run.status, "dry_run": run.dry_run}
            self.stdout.write(json.dumps(facts | figures | {"figures": run.figures, "error": run.error}))
        elif run.status in (JobRun.Status.COMPLETED, JobRun.Status.INCOMPLETE):
            intro = f"{run.job} (dry run)" if run.dry_run else run.job
            counted = (figures | run.figures).items()
            self.stdout.write(f"{intro}: " + ", ".join(f"{count} {name}" for name, count in counted))
        if run.status == JobRun.Status.RUNNING:
            raise CommandError("The run lost its lease; another worker has taken it up.")
        if run.status != JobRun.Status.COMPLETED:
            raise CommandError(run.error or f"Failed on {run.failed} of {run.examined} rows.")


@contextmanager
def progress_shown(job: str, *, shown: bool) -> Iterator[Progress | None]:
    """Show how far the run is, in a line on a terminal."""
    if not shown:
        yield None
        return
    examined = 0
    with Console(stderr=True).status(f"{job} …") as status:

        def show(report: BatchReport) -> None:
            nonlocal examined
            examined += report.examined
            status.update(f"{job}: {examined} examined")

        yield show
