"""Jobs of the installation's own logs and figures: entries of reads move from Redis into tables, samples are taken."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from memory.maintenance.base import Batch, BatchReport, RunBatch, job
from memory.maintenance.stages import forget_installation_rows, run_stages
from memory.services.audit import preview_reads, write_reads
from memory.services.contexts.access_log import preview_access_lines, write_access_lines
from memory.services.operations.samples import outdated_samples, store_samples, take_samples


@job(every=timedelta(seconds=15), batch_size=1_000)
def write_access_log(*, now: datetime, batch: Batch) -> BatchReport:
    """Write the access log of contexts from Redis into its table, and count the reads of entries.

    The counts of lines that were lost are written too. Lines whose context is gone, and those that a killed worker had
    written before, count as examined alone.
    """
    if batch.dry_run:
        return preview_access_lines(batch.size, after=batch.cursor, account_id=batch.account_id)
    return write_access_lines(batch.size, after=batch.cursor, account_id=batch.account_id, now=now)


@job(every=timedelta(seconds=15), batch_size=1_000)
def write_audit_reads(*, now: datetime, batch: Batch) -> BatchReport:
    """Write the audit log's read entries from Redis into its table.

    Entries that a killed worker had written before count as examined alone.
    """
    move = preview_reads if batch.dry_run else write_reads
    done = move(batch.size, after=batch.cursor, account_id=batch.account_id)
    counts = {"reads_written": done.changed, "reads_refused": done.failed}
    return replace(done, figures={name: count for name, count in counts.items() if count})


def sample(*, now: datetime, batch: Batch) -> BatchReport:
    """Sample all figures; a second run within the minute changes nothing."""
    samples = take_samples(now)
    changed = len(samples) if batch.dry_run else store_samples(samples, now=now)
    return BatchReport(examined=len(samples), changed=changed)


def forget_samples(*, now: datetime, batch: Batch) -> BatchReport:
    return forget_installation_rows(outdated_samples(now), batch)


MEASURE_STAGES: Mapping[str, RunBatch] = {"samples_taken": sample, "samples_deleted": forget_samples}


@job(every=timedelta(minutes=5), batch_size=5_000, of_installation=True)
def measure(*, now: datetime, batch: Batch) -> BatchReport:
    """Sample sizes, backlogs, lags and latencies; delete samples past their retention.

    `/metrics` and the dashboard show them. Samples are of the installation, so a run that one account asked for does
    the same as any other.
    """
    return run_stages(MEASURE_STAGES, now=now, batch=batch)
