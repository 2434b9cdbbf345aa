"""Extracts knowledge from what was said: entities, facts, relationships, preferences (the documented consolidation)."""

from datetime import datetime

from memory.maintenance.base import Batch, Report
from memory.maintenance.queues import run_queue
from memory.services.conversations.queue import EXTRACTION
from memory.services.extraction.extract import extract_due


def run(*, now: datetime, batch: Batch) -> Report:
    """One batch of conversations with turns that nobody looked through yet."""
    return run_queue(EXTRACTION, extract_due, now=now, batch=batch)
