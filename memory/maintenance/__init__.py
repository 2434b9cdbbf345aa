"""Upkeep in the background: what nobody waits for, done in batches, by whichever worker is free.

Every job has the same shape, so that the same code runs from beat, `manage.py run_job`, the admin and the API, and
reports the same figures: `run(*, now, batch) -> Report` does one batch in a transaction of its own. The runner calls it
until its cursor is empty, under a lease in the run's row (`JobRun`). So a killed worker leaves nothing half done, the
next worker goes on at the cursor, and the row, not the broker, is the queue.

How to add a job: one module here with such a `run` (idempotent: a batch may be run again; narrowed to the batch's
account where its rows belong to accounts; changing nothing on a dry run, but moving its cursor all the same), and one
entry in `JOBS`. Beat, the command and the API then know it.
"""

from datetime import time, timedelta

from memory import conf
from memory.errors import NotFound
from memory.maintenance import (
    audit_partitions,
    cleanup,
    clear_ended,
    compress,
    consolidate,
    context_rot,
    decay,
    deduplicate,
    embed,
    expire,
    graduate,
    journal_injections,
    measure,
    patterns,
    promote,
    queue_unembedded,
    recall_statistics,
    restore_ledgers,
    summarize,
    vector_indexes,
    write_access_log,
    write_audit_reads,
)
from memory.maintenance.base import Batch, Clock, Job, Progress, Report, Run
from memory.maintenance.schedule import rescheduled

__all__ = ["JOBS", "Batch", "Clock", "Job", "Progress", "Report", "Run", "find_job"]

JOBS = rescheduled(
    (
        Job(
            name="audit_partitions",
            description="Makes the audit log's daily partitions ahead of time and drops those past their retention.",
            run=audit_partitions.run,
            every=time(hour=0, minute=10),
            batch_size=1,
        ),
        Job(
            name="cleanup",
            description="Archives conversations that nobody writes to; deletes old lines of logs and old runs.",
            run=cleanup.run,
            every=time(hour=2, minute=30),
            batch_size=1_000,
        ),
        Job(
            name="clear_ended",
            description="Clears session, working memory and ledger of ended conversations, where that was cut short.",
            run=clear_ended.run,
            every=timedelta(minutes=1),
            batch_size=100,
        ),
        Job(
            name="compress",
            description="Tells old structured turns in fewer words, merges them to work episodes, archives old ones.",
            run=compress.run,
            every=time(hour=4, minute=30),
            batch_size=20,
        ),
        Job(
            name="consolidate",
            description="Extracts entities, facts and relationships from what was said since it looked last.",
            run=consolidate.run,
            every=timedelta(minutes=15),
            batch_size=conf.EXTRACTION_BATCH,
        ),
        Job(
            name="context_rot",
            description="Archives context entries that went stale: long unread, unimportant, or superseded.",
            run=context_rot.run,
            every=time(hour=4),
            batch_size=1_000,
        ),
        Job(
            name="decay",
            description="Lets salience fade that nobody read or wrote for a day, and inferred confidence by the week.",
            run=decay.run,
            every=time(hour=3, minute=15),
            batch_size=100_000,
        ),
        Job(
            name="deduplicate",
            description="Merges facts, entries, learnings and strategies that mean and say the same as another one.",
            run=deduplicate.run,
            every=time(hour=4),
            batch_size=200,
        ),
        Job(
            name="embed",
            description="Gives pending memories their vector once the embedder answers.",
            run=embed.run,
            every=timedelta(seconds=30),
            batch_size=conf.EMBED_BATCH_ROWS,
        ),
        Job(
            name="expire",
            description="Deletes expired short-term entries (unless they wait for promotion), results, pools, answers.",
            run=expire.run,
            every=timedelta(minutes=1),
            batch_size=1_000,
        ),
        Job(
            name="graduate",
            description="Promotes expired short-term entries that were read often into their agents' long-term memory.",
            run=graduate.run,
            every=time(hour=4),
            batch_size=100,
        ),
        Job(
            name="journal_injections",
            description="Moves the ledger's changes from Redis into the durable journal.",
            run=journal_injections.run,
            every=timedelta(seconds=15),
            batch_size=1_000,
        ),
        Job(
            name="measure",
            description="Takes samples of sizes, backlogs, lags and latencies; deletes those that are too old.",
            run=measure.run,
            every=timedelta(minutes=5),
            batch_size=5_000,
        ),
        Job(
            name="patterns",
            description="Learns strategies from completed goals and from conversations that ended in success.",
            run=patterns.run,
            every=timedelta(hours=1),
            batch_size=200,
        ),
        Job(
            name="promote",
            description="Lets prominent facts of projects be known in _global: believed, read and learnt often enough.",
            run=promote.run,
            every=timedelta(hours=1),
            batch_size=100,
        ),
        Job(
            name="queue_unembedded",
            description="Queues memories without a vector of the current embedding model; run it after changing that.",
            run=queue_unembedded.run,
            every=time(hour=3, minute=30),
            batch_size=5_000,
        ),
        Job(
            name="recall_statistics",
            description="Adds up the counts of words that writes append: recall weighs words by them.",
            run=recall_statistics.run,
            # a question reads all rows of its words: at 100 writes a second 12,000 of the commonest, in a millisecond
            every=timedelta(minutes=2),
            batch_size=5_000,
        ),
        Job(
            name="restore_ledgers",
            description="Makes every ledger again from the journal after Redis has lost its data.",
            run=restore_ledgers.run,
            # until it looks, a Redis from an old copy may call an item new that was injected before
            every=timedelta(seconds=10),
            batch_size=1,
        ),
        Job(
            name="summarize",
            description="Summarizes conversations that are long, ended or idle, or that somebody asked to summarize.",
            run=summarize.run,
            every=timedelta(seconds=30),
            batch_size=conf.SUMMARY_BATCH,
        ),
        Job(
            name="vector_indexes",
            description="Makes a vector index for each large account, and drops those of accounts that are so no more.",
            run=vector_indexes.run,
            every=timedelta(hours=1),
            batch_size=1,
        ),
        Job(
            name="write_access_log",
            description="Moves the access log of contexts from Redis into its table, and counts the reads of entries.",
            run=write_access_log.run,
            every=timedelta(seconds=15),
            batch_size=1_000,
        ),
        Job(
            name="write_audit_reads",
            description="Moves the audit log's entries of reads from Redis into its table.",
            run=write_audit_reads.run,
            every=timedelta(seconds=15),
            batch_size=1_000,
        ),
    ),
    conf.JOB_TIMES,
)


def find_job(name: str) -> Job:
    """The job of that name. NotFound if there is none."""
    if name not in JOBS:
        raise NotFound("there is no such job")
    return JOBS[name]
