"""The access log of contexts is kept for ACCESS_LOG_RETENTION_DAYS."""

from datetime import datetime, timedelta

from memory import conf
from memory.maintenance.base import Batch, Report
from memory.maintenance.forgetting import forget_rows
from memory.models import ContextAccessLog


def run(*, now: datetime, batch: Batch) -> Report:
    oldest = now - timedelta(days=conf.ACCESS_LOG_RETENTION_DAYS)
    return forget_rows(ContextAccessLog.objects.filter(accessed_at__lt=oldest), batch)
