"""Jobs of conversations: their summaries, what is learned from them, and the compression of structured turns."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, time, timedelta
from functools import partial

from memory import conf
from memory.maintenance.base import Batch, BatchReport, job
from memory.maintenance.stages import run_stages
from memory.services.account_walk import AccountPage
from memory.services.claims import count_due_rows, has_due_rows
from memory.services.compression.compress import compress_slots
from memory.services.compression.merge import archive_episodes, merge_records
from memory.services.conversations.queue import EXTRACTION, SUMMARIES, ConversationQueue
from memory.services.extraction.extract import extract_due
from memory.services.replacements import former_conversations, link_former_conversations
from memory.services.strategies.patterns import extract_patterns
from memory.services.strategies.sources import WorkSource, next_conversation_sources, next_goal_sources
from memory.services.summaries.summarize import summarize_due


def count_due(queue: ConversationQueue, *, now: datetime, batch: Batch) -> BatchReport:
    """Report on a dry run how many rows are due."""
    waiting = count_due_rows(queue.due_rows(now), account_id=batch.account_id)
    return BatchReport(examined=waiting, changed=waiting)


def report_claims(queue: ConversationQueue, done: BatchReport, *, now: datetime, batch: Batch) -> BatchReport:
    """Return the report with its cursor, to continue while any rows are due. Stops when the model is down.

    The rows are their own queue, so the cursor only counts batches.
    """
    more = done.examined and not done.stopped and has_due_rows(queue.due_rows(now), account_id=batch.account_id)
    return replace(done, cursor=str(int(batch.cursor or 0) + 1) if more else "")


@job(every=timedelta(seconds=30), batch_size=conf.SUMMARY_BATCH)
def summarize(*, now: datetime, batch: Batch) -> BatchReport:
    """Summarize conversations that are long, ended or idle, or for which a summary was requested.

    One batch of due conversations.
    """
    if batch.dry_run:
        return count_due(SUMMARIES, now=now, batch=batch)
    done = summarize_due(now=now, limit=batch.size, account_id=batch.account_id, renew=batch.renew)
    return report_claims(SUMMARIES, done, now=now, batch=batch)


@job(every=timedelta(minutes=15), batch_size=conf.EXTRACTION_BATCH, aliases=("consolidate",))
def extract_knowledge(*, now: datetime, batch: Batch) -> BatchReport:
    """Extract entities, facts, relationships and preferences from new turns.

    One batch of conversations with turns that nobody looked through yet: the documented consolidation.
    """
    if batch.dry_run:
        return count_due(EXTRACTION, now=now, batch=batch)
    done = extract_due(now=now, limit=batch.size, account_id=batch.account_id, renew=batch.renew)
    return report_claims(EXTRACTION, done, now=now, batch=batch)


@job(every=time(hour=4, minute=45), batch_size=20)
def link_replacements(*, now: datetime, batch: Batch) -> BatchReport:
    """Find the turns that replace earlier ones in conversations that former versions stored.

    Each account has its share of a batch. What was compared is not found again.
    """
    if batch.dry_run:
        waiting = count_due_rows(former_conversations(), account_id=batch.account_id)
        return BatchReport(examined=waiting, changed=waiting)
    done = link_former_conversations(limit=batch.size, account_id=batch.account_id, renew=batch.renew)
    more = done.conversations and has_due_rows(former_conversations(), account_id=batch.account_id)
    return BatchReport(
        examined=done.conversations,
        changed=done.conversations,
        cursor=str(int(batch.cursor or 0) + 1) if more else "",
        figures={"links_made": done.links},
    )


@job(every=timedelta(hours=1), batch_size=200)
def patterns(*, now: datetime, batch: Batch) -> BatchReport:
    """Learn strategies from completed goals, from conversations that ended in success, and from repeated failures.

    One batch of one stage, goals first (the documented detect_patterns). What was looked at is marked, and not found
    again.
    """
    sources = {"goals": next_goal_sources, "conversations": next_conversation_sources}
    stages = {name: partial(run_sources, read) for name, read in sources.items()}
    return run_stages(stages, now=now, batch=batch)


def run_sources(read: Callable[..., AccountPage[WorkSource]], *, now: datetime, batch: Batch) -> BatchReport:
    page = read(batch, now=now)
    examined = len(page.rows)
    if batch.dry_run:
        changed = sum(not source.waits_for_goals for source in page.rows)
        return BatchReport(examined=examined, changed=changed, cursor=page.cursor)
    done = extract_patterns(page.rows, now=now, renew=batch.renew)
    return BatchReport(
        examined=examined, changed=done.marked, failed=done.failed, cursor=page.cursor, figures=done.figures
    )


ARCHIVE = "archive"
COMPRESSION_STAGES: Mapping[str, Callable[..., BatchReport]] = {
    "slots": compress_slots,
    "merge": merge_records,
    ARCHIVE: archive_episodes,
}
"""The stages in order: what a run shortened may be merged in the same run."""


@job(every=time(hour=4, minute=30), batch_size=20)
def compress(*, now: datetime, batch: Batch) -> BatchReport:
    """Shorten old structured turns, merge them into work episodes, and archive old episodes.

    One batch of one stage (E5); the cursor says which, and how far it is. Where the language model is down,
    what it is needed for waits, and episodes are archived all the same.
    """
    stage, _, after = (batch.cursor or f"{next(iter(COMPRESSION_STAGES))}:").partition(":")
    done = COMPRESSION_STAGES[stage](replace(batch, cursor=after), now=now)
    return replace(done, cursor=next_stage_cursor(stage, done))


def next_stage_cursor(stage: str, done: BatchReport) -> str:
    """Return the cursor of the rest of the stage, or of the next stage; empty after the last one."""
    if done.cursor and not done.stopped:
        return f"{stage}:{done.cursor}"
    following = list(COMPRESSION_STAGES)[list(COMPRESSION_STAGES).index(stage) + 1 :]
    if done.stopped:
        following = [ARCHIVE] if ARCHIVE in following else []
    return f"{following[0]}:" if following else ""
