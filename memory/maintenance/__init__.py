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
    archive_conversations,
    audit_partitions,
    clear_ended,
    compress,
    consolidate,
    embed,
    forget_access_log,
    forget_answers,
    forget_expired,
    forget_job_runs,
    journal_injections,
    promote_short_term,
    queue_unembedded,
    recall_statistics,
    restore_ledgers,
    summarize,
    vector_indexes,
    write_access_log,
)
from memory.maintenance.base import Batch, Clock, Job, Progress, Report, Run

__all__ = ["JOBS", "Batch", "Clock", "Job", "Progress", "Report", "Run", "find_job"]

JOBS = {
    job.name: job
    for job in (
        Job(
            name="archive_conversations",
            description="Archives conversations, and their turns, that nobody wrote to for the retention period.",
            run=archive_conversations.run,
            every=time(hour=2, minute=30),
            batch_size=100,
        ),
        Job(
            name="audit_partitions",
            description="Makes the audit log's daily partitions ahead of time and drops those past their retention.",
            run=audit_partitions.run,
            every=time(hour=0, minute=10),
            batch_size=1,
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
            name="embed",
            description="Gives pending memories their vector once the embedder answers.",
            run=embed.run,
            every=timedelta(seconds=30),
            batch_size=conf.EMBED_BATCH_ROWS,
        ),
        Job(
            name="forget_access_log",
            description="Deletes lines of the contexts' access log past their retention.",
            run=forget_access_log.run,
            every=time(hour=0, minute=50),
            batch_size=5_000,
        ),
        Job(
            name="forget_answers",
            description="Deletes answers kept for repeated requests (Idempotency-Key) once they have expired.",
            run=forget_answers.run,
            every=timedelta(hours=1),
            batch_size=1_000,
        ),
        Job(
            name="forget_expired",
            description="Deletes expired short-term entries (unless they wait for promotion), tool results and pools.",
            run=forget_expired.run,
            every=timedelta(minutes=1),
            batch_size=1_000,
        ),
        Job(
            name="forget_job_runs",
            description="Deletes runs of jobs that finished long ago.",
            run=forget_job_runs.run,
            every=time(hour=0, minute=40),
            batch_size=1_000,
        ),
        Job(
            name="journal_injections",
            description="Moves the ledger's changes from Redis into the durable journal.",
            run=journal_injections.run,
            every=timedelta(seconds=15),
            batch_size=1_000,
        ),
        Job(
            name="promote_short_term",
            description="Promotes expired short-term entries that were read often into their agents' long-term memory.",
            run=promote_short_term.run,
            every=time(hour=4),
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
    )
}


def find_job(name: str) -> Job:
    """The job of that name. NotFound if there is none."""
    if name not in JOBS:
        raise NotFound("there is no such job")
    return JOBS[name]
