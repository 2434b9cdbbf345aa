"""Summarizes conversations: long ones, ended ones, those that fell idle, and those somebody asked for."""

from datetime import datetime, timedelta

from memory import conf
from memory.maintenance.base import Batch, BatchReport, job
from memory.maintenance.queues import run_queue
from memory.services.conversations.queue import SUMMARIES
from memory.services.summaries.summarize import summarize_due


@job(every=timedelta(seconds=30), batch_size=conf.SUMMARY_BATCH)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Summarize conversations that are long, ended or idle, or for which a summary was requested.

    One batch of due conversations.
    """
    return run_queue(SUMMARIES, summarize_due, now=now, batch=batch)
