"""Extracts knowledge from what was said: entities, facts, relationships, preferences (the documented consolidation)."""

from datetime import datetime, timedelta

from memory import conf
from memory.maintenance.base import Batch, BatchReport, job
from memory.maintenance.queues import run_queue
from memory.services.conversations.queue import EXTRACTION
from memory.services.extraction.extract import extract_due


@job(every=timedelta(minutes=15), batch_size=conf.EXTRACTION_BATCH, aliases=("consolidate",))
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Extract entities, facts, relationships and preferences from new turns.

    One batch of conversations with turns that nobody looked through yet.
    """
    return run_queue(EXTRACTION, extract_due, now=now, batch=batch)
