"""Takes samples of the installation's figures for `/metrics` and the dashboard, and deletes those that are too old.

Samples are of the installation, so a run that one account asked for does the same as any other.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from memory.maintenance.base import Batch, Report, Run
from memory.maintenance.forgetting import forget_rows
from memory.maintenance.stages import run_stages
from memory.services.operations.samples import outdated_samples, store_samples, take_samples


def sample(*, now: datetime, batch: Batch) -> Report:
    """All figures at once; a second run within the minute changes nothing."""
    samples = take_samples(now)
    changed = len(samples) if batch.dry_run else store_samples(samples, now=now)
    return Report(examined=len(samples), changed=changed)


def forget_samples(*, now: datetime, batch: Batch) -> Report:
    return forget_rows(outdated_samples(now), replace(batch, account_id=None))


STAGES: Mapping[str, Run] = {"samples_taken": sample, "samples_deleted": forget_samples}


def run(*, now: datetime, batch: Batch) -> Report:
    return run_stages(STAGES, now=now, batch=batch)
