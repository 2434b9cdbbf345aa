"""Answers kept for repeated requests are of no use once they have expired: such a request is answered afresh."""

from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.maintenance.forgetting import forget_rows
from memory.models import IdempotentRequest


def run(*, now: datetime, batch: Batch) -> Report:
    return forget_rows(IdempotentRequest.objects.filter(expires_at__lte=now), batch)
