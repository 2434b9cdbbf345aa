"""The history of jobs is kept for JOB_RUN_RETENTION_DAYS. What waits or runs stays, however old."""

from datetime import datetime, timedelta

from memory import conf
from memory.maintenance.base import Batch, Report
from memory.maintenance.forgetting import forget_rows
from memory.models import JobRun


def run(*, now: datetime, batch: Batch) -> Report:
    oldest = now - timedelta(days=conf.JOB_RUN_RETENTION_DAYS)
    return forget_rows(JobRun.objects.finished().filter(finished_at__lt=oldest), batch)
