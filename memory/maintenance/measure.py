"""Takes samples of the installation's figures for `/metrics` and the dashboard, and deletes those that are too old.

Samples are of the installation, so a run that one account asked for does the same as any other.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from memory.maintenance.base import Batch, BatchReport, RunBatch, job
from memory.maintenance.forgetting import forget_rows
from memory.maintenance.stages import run_stages
from memory.services.operations.samples import outdated_samples, store_samples, take_samples


def sample(*, now: datetime, batch: Batch) -> BatchReport:
    """Sample all figures; a second run within the minute changes nothing."""
    samples = take_samples(now)
    changed = len(samples) if batch.dry_run else store_samples(samples, now=now)
    return BatchReport(examined=len(samples), changed=changed)


def forget_samples(*, now: datetime, batch: Batch) -> BatchReport:
    return forget_rows(outdated_samples(now), replace(batch, account_id=None))


STAGES: Mapping[str, RunBatch] = {"samples_taken": sample, "samples_deleted": forget_samples}


@job(every=timedelta(minutes=5), batch_size=5_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Sample sizes, backlogs, lags and latencies; delete samples past their retention."""
    return run_stages(STAGES, now=now, batch=batch)
