"""Growth of each job's time with its rows: ten times as many rows may take twelve times as long.

The database makes the rows, in an account of its own that is emptied after each job. For jobs that process one row per
transaction, only a share of the rows needs work; all rows are examined.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.core.management.base import CommandError
from django.db import connection, transaction
from django.utils import timezone

from lab.benchmarks.bulk import id_of, insert_rows
from lab.benchmarks.scratch import Scratch, scratch_account
from lab.benchmarks.spoken_facts import fill_spoken_facts
from ledger import store as ledger
from ledger.journal import has_every_ledger
from ledger.models import Injection
from memory.extraction.messages import read_message
from memory.maintenance import JOBS
from memory.maintenance.runner import run_at_once
from memory.models import (
    AgentShortTermMemory,
    ContextAccessLog,
    Conversation,
    JobRun,
    Kind,
    Link,
    TermCount,
    TurnRecord,
    Vector,
)
from memory.models.memory import model_of
from memory.services.audit import record_read
from memory.services.contexts.access_log import Action, log_reads
from memory.services.contexts.manage import ensure_own_context
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.summaries.summarize import request_summary
from memory.services.turns import TurnDraft, store_turns
from memory_project.redis import ConversationRef

MAX_GROWTH = 12.0
"""Limit of the growth of a job's time when its rows grow tenfold."""
SHARE = 100
"""One row in so many needs work, for jobs that use a transaction per row."""
AT_ONCE = 500
DAY = timedelta(days=1)
EMPTIED = ("memory_links", "memory_vectors", "turn_records", "context_access_logs", "agent_short_term_memories")

Fill = Callable[[Scratch, int, datetime], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Seconds of a job over fewer and over more rows."""

    job: str
    rows: str
    sizes: Sequence[int]
    seconds: Sequence[float]
    changed: Sequence[int]

    @property
    def times(self) -> float:
        """Return how many times as long ten times as many rows took."""
        return self.seconds[-1] / self.seconds[0]


def measure_growth(jobs: Iterable[str], sizes: Sequence[int]) -> Iterator[Growth]:
    """Measure each of the jobs for which there is a filling."""
    for job in jobs:
        rows, fill = FILLINGS[job]
        if job == "restore_ledgers" and has_every_ledger():
            continue  # whose ledgers they are, they stay
        measured = [run_over(job, fill, size) for size in sizes]
        yield Growth(
            job=job,
            rows=rows,
            sizes=sizes,
            seconds=[seconds for seconds, _ in measured],
            changed=[changed for _, changed in measured],
        )


def run_over(job: str, fill: Fill, size: int) -> tuple[float, int]:
    """Run the job once and return the seconds and the rows changed. Raises CommandError if the run failed."""
    now = timezone.now()
    with scratch_account("growth") as scratch:
        try:
            fill(scratch, size, now)
            with connection.cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
            began = time.perf_counter()
            run = JobRun(job=job, account=scratch.account, requested_by="bench", at=now)
            run = run_at_once(JOBS[job], run, clock=timezone.now)
            seconds = time.perf_counter() - began
            if run.status != JobRun.Status.COMPLETED:
                raise CommandError(f"{job} is {run.status}: {run.error or run.failed}")
            return seconds, run.changed
        finally:
            empty(scratch)


def empty(scratch: Scratch) -> None:
    """Delete what Django would collect row by row."""
    with connection.cursor() as cursor:
        for table in (*EMPTIED, "memories", "conversations", "injections", "memory_terms"):
            cursor.execute(f"DELETE FROM {table} WHERE account_id = %s", [scratch.account.id])  # noqa: S608


def literal(moment: datetime) -> str:
    return f"'{moment.isoformat()}'::timestamptz"


def insert_memories(scratch: Scratch, kind: Kind, count: int, *, now: datetime, **columns: str) -> None:
    """Insert memories of one agent, in turn with many texts."""
    given = {
        "id": id_of(scratch, kind),
        "kind": f"'{kind.value}'",
        "identity": "'bench:' || n",
        "agent_id": f"'{scratch.owner().agent_id}'",
        "text": "'The pump number ' || n || ' in field ' || n % 97 || ' was serviced.'",
        "content_hash": "md5(n::text)",
        "event_time": literal(now),
        "created_at": literal(now),
        "updated_at": literal(now),
    }
    insert_rows(scratch, model_of(kind), count, **given | columns)


def insert_facts(scratch: Scratch, count: int, now: datetime, *, age: timedelta = DAY * 30, **columns: str) -> None:
    """Insert inferred facts that nobody has read."""
    written = literal(now - age)
    given = {"updated_at": written, "created_at": written, "recorded_at": written, "certainty": "'inferred'"}
    insert_memories(scratch, Kind.FACT, count, now=now, **given | columns)


def fill_facts_with_vectors(scratch: Scratch, count: int, now: datetime) -> None:
    """Insert facts of which a share repeats another one."""
    with transaction.atomic():
        fill_spoken_facts(count, again_each=SHARE)
        insert_facts(scratch, count, now, text="(SELECT text FROM spoken_facts WHERE number = n)")
        insert_rows(
            scratch,
            Vector,
            count,
            memory_id=id_of(scratch, Kind.FACT),
            kind="'fact'",
            agent_id=f"'{scratch.owner().agent_id}'",
            channel="'_global'",
            model=f"'{scratch.model}'",
            width=str(scratch.width),
            vector="(SELECT vector FROM spoken_facts WHERE number = n)",
        )


def fill_facts_with_index(scratch: Scratch, count: int, now: datetime) -> None:
    fill_facts_with_vectors(scratch, count, now)
    run_at_once(JOBS["vector_indexes"], JobRun(job="vector_indexes", account=scratch.account), clock=timezone.now)


def fill_pending(scratch: Scratch, count: int, now: datetime) -> None:
    insert_facts(scratch, count, now, embed_after=literal(now - DAY))


def fill_prominent(scratch: Scratch, count: int, now: datetime) -> None:
    """Insert often read facts of a project, of which a share was learned in two conversations."""
    sure: dict[str, Any] = {"confidence": "0.95", "certainty": "'explicit'"}
    insert_facts(scratch, count, now, channel="'atlas'", access_count="6", conversation_id="'one'", **sure)
    insert_conversations(scratch, 1, now)
    of_log = {"log_id": id_of(scratch, "conversation", "1"), "index": "n", "role": "'user'"}
    insert_memories(scratch, Kind.TURN, count // SHARE, now=now, conversation_id="'other'", **of_log)
    insert_rows(
        scratch,
        Link,
        count // SHARE,
        source_id=id_of(scratch, Kind.FACT, "n * 100"),
        target_id=id_of(scratch, Kind.TURN),
        type="'DERIVED_FROM'",
    )


def fill_entries(scratch: Scratch, count: int, now: datetime) -> None:
    """Insert context entries of which a share is stale."""
    context = ensure_own_context(scratch.owner(), now=now)
    written = f"{literal(now)} - CASE WHEN n % {SHARE} = 0 THEN interval '100 days' ELSE interval '20 days' END"
    insert_memories(
        scratch,
        Kind.CONTEXT_ENTRY,
        count,
        now=now,
        context_id=f"'{context.id}'::uuid",
        updated_at=written,
        created_at=written,
    )


def insert_short_term(scratch: Scratch, count: int, now: datetime, **columns: str) -> None:
    given = {
        "agent_id": f"'{scratch.owner().agent_id}'",
        "session_id": "'s' || n % 10",
        "memory_key": "'key ' || n",
        "memory_value": "to_json(n::text)",
        "ttl_seconds": "3600",
        "expires_at": literal(now - DAY),
    }
    insert_rows(scratch, AgentShortTermMemory, count, **given | columns)


def fill_waiting_entries(scratch: Scratch, count: int, now: datetime) -> None:
    """Insert short-term entries of which a share waits for promotion."""
    insert_short_term(scratch, count, now, access_count=f"CASE WHEN n % {SHARE} = 0 THEN 3 ELSE 1 END")


def fill_old_lines(scratch: Scratch, count: int, now: datetime) -> None:
    insert_rows(scratch, ContextAccessLog, count, action="'read'", accessed_at=literal(now - DAY * 4_000))


def insert_conversations(scratch: Scratch, count: int, now: datetime, **columns: str) -> None:
    """Insert conversations that are ended, cleared and extracted."""
    given = {
        "id": id_of(scratch, "conversation"),
        "conversation_id": "'c' || n",
        "agent_id": f"'{scratch.owner().agent_id}'",
        "started_at": literal(now - DAY),
        "ended_at": literal(now - DAY),
        "cleared_at": literal(now - DAY),
        "patterns_extracted_at": literal(now - DAY),
    }
    insert_rows(scratch, Conversation, count, **given | columns)


def share(due: str, otherwise: str) -> str:
    return f"CASE WHEN n % {SHARE} = 0 THEN {due} ELSE {otherwise} END"


def fill_uncleared(scratch: Scratch, count: int, now: datetime) -> None:
    insert_conversations(scratch, count, now, cleared_at=share("NULL", literal(now - DAY)))


def fill_successes(scratch: Scratch, count: int, now: datetime) -> None:
    looked_at = share("NULL", literal(now - DAY))
    insert_conversations(scratch, count, now, outcome="'success'", patterns_extracted_at=looked_at)


def fill_unread(scratch: Scratch, count: int, now: datetime) -> None:
    """Insert conversations of which a share has two turns without extraction."""
    insert_conversations(scratch, count, now)
    insert_long_talks(scratch, count // SHARE, now)


def fill_unsummarized(scratch: Scratch, count: int, now: datetime) -> None:
    """Insert conversations, and request summaries of a share."""
    fill_unread(scratch, count, now)
    for number in range(count // SHARE):
        request_summary(scratch.owner(), f"talk-{number}", now=now - DAY)


def insert_long_talks(scratch: Scratch, count: int, now: datetime) -> None:
    nothing = EmbeddedTexts(model=scratch.model, width=scratch.width, vectors={})
    texts = ("I live in Rome and work for Acme.", "Noted.")
    for number in range(count):
        drafts = [TurnDraft(message=read_message({"role": "user", "content": text})) for text in texts]
        store_turns(scratch.owner(), f"talk-{number}", drafts=drafts, embedded=nothing, now=now - DAY)


def fill_records(scratch: Scratch, count: int, now: datetime) -> None:
    """Insert old turn records that may be compressed, ten for each conversation."""
    insert_conversations(scratch, count // 10, now)
    insert_rows(
        scratch,
        TurnRecord,
        count,
        log_id=id_of(scratch, "conversation", "(1 + (n - 1) / 10)"),
        conversation_id="'c' || 1 + (n - 1) / 10",
        number="(n - 1) % 10",
        event_time=literal(now - DAY * 30),
    )


def fill_terms(scratch: Scratch, count: int, now: datetime) -> None:
    insert_rows(scratch, TermCount, count, term="CASE WHEN n % 10 = 0 THEN '' ELSE 'word' || n % 5003 END", docs="1")


def insert_marks(scratch: Scratch, count: int, now: datetime) -> None:
    """Mark items in one ledger: a new Redis restores each ledger at its first mark, which empties the journal."""
    place = ConversationRef(account_id=scratch.account.id, conversation_id="talk")
    for start in range(0, count, AT_ONCE):
        ledger.mark_many(place, {f"skill:{start + number}": "injected" for number in range(AT_ONCE)})


def fill_injections(scratch: Scratch, count: int, now: datetime) -> None:
    insert_rows(
        scratch,
        Injection,
        count,
        conversation_id="'c' || n / 20",
        item_key="'skill:' || n",
        value="'injected'",
        event="'marked'",
        at=literal(now),
        stream_id="lpad(n::text, 20, '0') || '-' || lpad('0', 20, '0')",
    )


def insert_reads(scratch: Scratch, count: int, now: datetime) -> None:
    context = ensure_own_context(scratch.owner(), now=now)
    for _start in range(0, count, AT_ONCE):
        read = [(context.id, uuid4()) for _ in range(AT_ONCE)]
        log_reads(scratch.owner(), read, action=Action.READ, now=now)


def insert_audited_reads(scratch: Scratch, count: int, now: datetime) -> None:
    owner = replace(scratch.owner(), audit_level="reads")
    for _read in range(count):
        record_read(owner, memory_type="semantic", affected_ids=[scratch.account.id], result_count=1)


FILLINGS: Mapping[str, tuple[str, Fill]] = {
    "cleanup": ("old lines of the access log", fill_old_lines),
    "clear_ended": ("ended conversations, 1 % not cleared", fill_uncleared),
    "compress": ("old structured turns", fill_records),
    "extract_knowledge": ("conversations, 1 % with unread turns", fill_unread),
    "context_rot": ("entries, 1 % stale", fill_entries),
    "decay": ("inferred facts, all unread", insert_facts),
    "deduplicate": ("facts with vectors, 1 % repeated", fill_facts_with_index),
    "embed": ("facts without a vector", fill_pending),
    "expire": ("expired short-term entries", insert_short_term),
    "promote_short_term": ("expired short-term entries, 1 % to promote", fill_waiting_entries),
    "journal_injections": ("marks in the ledger", insert_marks),
    "measure": ("facts", insert_facts),
    "patterns": ("ended conversations, 1 % not looked at", fill_successes),
    "globalize_facts": ("read facts of a project, 1 % prominent", fill_prominent),
    "queue_unembedded": ("facts that lack a vector", insert_facts),
    "recall_statistics": ("rows of counts", fill_terms),
    "restore_ledgers": ("injections", fill_injections),
    "summarize": ("conversations, 1 % to summarize", fill_unsummarized),
    "vector_indexes": ("vectors", fill_facts_with_vectors),
    "write_access_log": ("reads of entries", insert_reads),
    "write_audit_reads": ("audited reads", insert_audited_reads),
}
