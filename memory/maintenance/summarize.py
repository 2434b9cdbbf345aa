"""Summarizes conversations: long ones, ended ones, those that fell idle, and those somebody asked for."""

from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.maintenance.queues import run_queue
from memory.services.conversations.queue import SUMMARIES
from memory.services.summaries.summarize import summarize_due


def run(*, now: datetime, batch: Batch) -> Report:
    """One batch of due conversations."""
    return run_queue(SUMMARIES, summarize_due, now=now, batch=batch)
