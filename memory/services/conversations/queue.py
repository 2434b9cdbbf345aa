"""Work queues backed by rows of `conversations`, one for summaries and one for extraction.

A row becomes due at a time and is claimed under a lease. The claim of a killed worker runs out and is taken again. A
failure reschedules the row, twice as far each time, and its reason stays in the row for staff. The claims of a batch
are processed side by side (`ClaimWorker`): each is read, computed in a thread without database access, and stored as
soon as the result is there.

A conversation that fails by its own fault too often in a row (EXTRACTION_ATTEMPTS, SUMMARY_ATTEMPTS) is parked: it is
no longer due, and later turns wait, until someone requests the work again (`unpark`). New turns do not unpark it.
External failures (a model that is down, a refused key, a database that is away) never park a conversation.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from itertools import accumulate, takewhile
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Least

from memory import conf
from memory.errors import ProviderError, ProviderRefused
from memory.models import Conversation, Turn
from memory.owner import Owner
from memory.providers.summaries import Message
from memory.services.account_walk import BatchReport
from memory.services.claims import backoff, lock_due_rows
from memory.services.embedding.embed import may_be_about_a_text
from memory.services.operations.usage import TokenBudget, accounts_over_budget
from memory.services.turns import visible_turns
from memory_project.tracing import carried

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 32_767
"""The largest value of the columns that count attempts."""
MAX_ERROR_CHARACTERS = 100
TURN_OVERHEAD_TOKENS = 15
"""Minimum of tokens that a turn takes beyond its text, for role and time, when a model is shown it."""
REQUEST_REFUSED = "request_refused"
"""Error name of a conversation whose turns the model refuses, while it accepts others."""
PARKED = "conversations_parked"
"""Name of a figure in a job's report."""
EXTERNAL_ERRORS = frozenset({"provider_unavailable", "provider_refused", "OperationalError", "InterfaceError"})
"""Errors that are not the fault of the conversation in whose row they are recorded."""


class ClaimOutcome(Enum):
    """The outcome of a claim."""

    STORED = "stored"
    UNANSWERED = "unanswered"
    """The model gave no usable answer."""
    FAILED = "failed"
    """Another error; the next claim may succeed."""
    POSTPONED = "postponed"
    """There is nothing to store yet; the row waits."""
    OUTDATED = "outdated"
    """Another worker has the claim, or the row is due again because something changed meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimResult:
    """The outcome of a claim with the figures for the job's report."""

    outcome: ClaimOutcome
    figures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationQueue:
    """A queue, described by the names of its columns.

    `due`, `lease` and `parked` are times; `attempts` and `error` describe failures; `done` counts the turns processed.
    `noun` names the work in log lines, and `settings_prefix` starts the names of the queue's settings.
    """

    noun: str
    due: str
    lease: str
    attempts: str
    error: str
    parked: str
    done: str
    settings_prefix: str
    requested: str = ""
    """Column with the turn up to which someone requested the work, if the queue has one. Empty while parked."""

    @property
    def lease_time(self) -> timedelta:
        return timedelta(seconds=self.setting("LEASE_SECONDS"))

    def setting(self, name: str) -> int:
        return int(getattr(conf, f"{self.settings_prefix}_{name}"))

    def backoff(self, attempts: int) -> timedelta:
        return backoff(self.settings_prefix, attempts)

    def due_rows(self, now: datetime) -> QuerySet[Conversation]:
        """Return the rows of all accounts that are due and not under lease."""
        free = Q(**{self.lease: None}) | Q(**{f"{self.lease}__lte": now})
        return Conversation.objects.filter(free, **{f"{self.due}__lte": now})


SUMMARIES = ConversationQueue(
    noun="summary of",
    due="summarize_after",
    lease="summary_lease_until",
    attempts="summary_attempts",
    error="summary_error",
    parked="summary_parked_at",
    done="summarized_count",
    settings_prefix="SUMMARY",
    requested="summarize_to",
)
EXTRACTION = ConversationQueue(
    noun="extraction from",
    due="extract_after",
    lease="extract_lease_until",
    attempts="extract_attempts",
    error="extract_error",
    parked="extract_parked_at",
    done="extracted_count",
    settings_prefix="EXTRACTION",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A conversation under lease, as it was when claimed, to be processed up to the turn `target`."""

    queue: ConversationQueue
    conversation: Conversation
    target: int
    attempts: int
    claimed_at: datetime
    leased_until: datetime
    started: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> datetime:
        """The time of the claim plus the time that has passed since."""
        return self.claimed_at + timedelta(seconds=time.monotonic() - self.started)

    @property
    def failures(self) -> int:
        """The number of failures in a row by the conversation's own fault, if this claim fails too."""
        before = getattr(self.conversation, self.queue.error)
        return 1 if not before or before in EXTERNAL_ERRORS else self.attempts


def claim_conversations(
    queue: ConversationQueue,
    *,
    now: datetime,
    limit: int,
    account_id: UUID | None,
    target_of: Callable[[Conversation], int],
) -> list[Claim]:
    """Put due conversations under lease and count the attempt, skipping those that another worker is claiming.

    Without an account, those of all accounts, each with its share (`services.claims`), but for accounts that have spent
    their tokens of the day.
    """
    due = queue.due_rows(now).exclude(account_id__in=accounts_over_budget(TokenBudget.LANGUAGE, now=now))
    leased_until = now + queue.lease_time
    with transaction.atomic():
        rows = lock_due_rows(due.defer("saved_session"), order_by=queue.due, limit=limit, account_id=account_id)
        attempted = Least(F(queue.attempts), MAX_ATTEMPTS - 1) + 1
        accounts = {row.account_id for row in rows}
        Conversation.objects.filter(account_id__in=accounts, id__in=[row.id for row in rows]).update(
            **{queue.lease: leased_until, queue.attempts: attempted}
        )
    return [
        Claim(
            queue=queue,
            conversation=row,
            target=target_of(row),
            attempts=getattr(row, queue.attempts) + 1,
            claimed_at=now,
            leased_until=leased_until,
        )
        for row in rows
    ]


def held_rows(claim: Claim) -> QuerySet[Conversation]:
    """Return the conversation's row if the claim still holds."""
    queue, row = claim.queue, claim.conversation
    same = {queue.lease: claim.leased_until, queue.done: getattr(row, queue.done)}
    return Conversation.objects.filter(account_id=row.account_id, id=row.id, **same).defer("saved_session")


def renew_claim(claim: Claim) -> Claim:
    """Renew the lease once a third of it has passed. A claim that was lost meanwhile stays lost."""
    now, lease = claim.now, claim.queue.lease_time
    if claim.leased_until - now > lease * 2 / 3:
        return claim
    held_rows(claim).update(**{claim.queue.lease: now + lease})
    return replace(claim, leased_until=now + lease)


def reschedule_or_park(claim: Claim, *, error: str, now: datetime) -> dict[str, int]:
    """Retry the claim later, or park it if it failed by its own fault too often in a row. Return report figures."""
    queue, row, failures = claim.queue, claim.conversation, claim.failures
    is_parked = failures >= queue.setting("ATTEMPTS")
    failed = {queue.error: error[:MAX_ERROR_CHARACTERS], queue.lease: None, queue.attempts: min(failures, MAX_ATTEMPTS)}
    if not is_parked:
        held_rows(claim).update(**failed, **{queue.due: now + queue.backoff(failures)})
        return {}
    logger.error("%s conversation %s is parked: it failed %d times in a row", queue.noun, row.id, failures)
    request = {queue.requested: None} if queue.requested else {}
    return {PARKED: held_rows(claim).update(**failed, **request, **{queue.due: None, queue.parked: now})}


def record_failure(claim: Claim, error: Exception, *, now: datetime) -> ClaimResult:
    """Reschedule or park a failed claim. Only the error's name is kept: its message may quote the conversation."""
    queue, name, conversation_id = claim.queue, error_name(error), claim.conversation.id
    if isinstance(error, ProviderError):
        logger.warning("%s conversation %s failed: %s", queue.noun, conversation_id, error)
        outcome = ClaimOutcome.UNANSWERED
    else:
        logger.error("%s conversation %s failed: %s", queue.noun, conversation_id, name)
        outcome = ClaimOutcome.FAILED
    if name in EXTERNAL_ERRORS:
        held_rows(claim).update(
            **{queue.due: now + queue.backoff(claim.attempts), queue.error: name, queue.lease: None}
        )
        return ClaimResult(outcome=outcome)
    return ClaimResult(outcome=outcome, figures=reschedule_or_park(claim, error=name, now=now))


def error_name(error: Exception) -> str:
    """Return how an error is recorded in a row: a provider error by its code, others by their class."""
    if isinstance(error, ProviderRefused) and may_be_about_a_text(error):
        return REQUEST_REFUSED
    return error.code if isinstance(error, ProviderError) else type(error).__name__


def unpark(conversation: Conversation, queue: ConversationQueue) -> None:
    """Let a conversation be tried again. The caller saves it with the queue's columns, and sets when it is due."""
    if getattr(conversation, queue.parked) is not None:
        setattr(conversation, queue.parked, None)
        reset_claim_columns(conversation, queue)


def make_due_now(claim: Claim, *, now: datetime) -> None:
    """Release a claim and make its conversation due immediately."""
    held_rows(claim).update(**{claim.queue.due: now, claim.queue.lease: None})


def reset_claim_columns(conversation: Conversation, queue: ConversationQueue) -> None:
    """Clear lease and failed attempts of a finished claim. The caller saves the queue's columns."""
    setattr(conversation, queue.lease, None)
    setattr(conversation, queue.attempts, 0)
    setattr(conversation, queue.error, "")


class ClaimWork(Protocol):
    """A claim with what was read for it; a frozen dataclass."""

    @property
    def claim(self) -> Claim: ...


W = TypeVar("W", bound=ClaimWork)
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimWorker(Generic[W, R]):
    """The steps of processing claims. `compute` must not use the database, and `store` must not raise."""

    read: Callable[[Claim], W]
    compute: Callable[[W], R]
    store: "Callable[[W, Future[R]], ClaimResult]"
    now: datetime
    renew: Callable[[], None] = lambda: None
    """Renews the job's lease. Raises if another worker has taken the job over."""

    def process_claims(self, claims: Sequence[Claim], *, threads: int) -> BatchReport:
        """Store the work of each claim as soon as it is computed, renewing the leases of the outstanding ones."""
        results: list[ClaimResult] = []
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            outstanding: dict[Future[R], W] = {}
            for claim in claims:
                try:
                    work = self.read(claim)
                except Exception as err:  # noqa: BLE001 - the job's outermost loop
                    results.append(record_failure(claim, err, now=self.now))
                else:
                    outstanding[pool.submit(carried(self.compute), work)] = work
            lease = min((claim.queue.lease_time for claim in claims), default=timedelta(seconds=1))
            while outstanding:
                done, _ = wait(outstanding, timeout=lease.total_seconds() / 3, return_when=FIRST_COMPLETED)
                for computation in done:
                    results.append(self.store(outstanding.pop(computation), computation))
                    renew_claims(outstanding)
                renew_claims(outstanding)
                self.renew()
        return report_of(results)


def renew_claims(outstanding: "dict[Future[R], W]") -> None:
    works: dict[Any, Any] = outstanding
    for computation, work in works.items():
        works[computation] = replace(work, claim=renew_claim(work.claim))


def report_of(results: Sequence[ClaimResult], *, cursor: str = "") -> BatchReport:
    """Return the report of a batch of claims. It stopped if the model gave no answer and nothing was stored."""
    outcomes = [each.outcome for each in results]
    stored, unanswered = outcomes.count(ClaimOutcome.STORED), outcomes.count(ClaimOutcome.UNANSWERED)
    return BatchReport(
        examined=len(results),
        changed=stored,
        failed=unanswered + outcomes.count(ClaimOutcome.FAILED),
        stopped=bool(unanswered) and not stored,
        cursor=cursor,
        figures=sum((Counter(each.figures) for each in results), Counter()),
    )


def turns_between(claim: Claim, start: int, stop: int) -> QuerySet[Turn]:
    rows = visible_turns(Owner(account_id=claim.conversation.account_id))
    rows = rows.filter(log=claim.conversation, quarantined=False, buried=False)
    return rows.filter(index__gte=start, index__lt=stop).order_by("index")


def read_turns_within(rows: QuerySet[Turn], *, max_tokens: int) -> list[Turn]:
    """Return the first turns that fit `max_tokens`, or a few more; at least one.

    Token counts are read before the texts, which are large.
    """
    counts = rows.values_list("token_count", flat=True)[: max_tokens // TURN_OVERHEAD_TOKENS]
    sizes = accumulate(count + TURN_OVERHEAD_TOKENS for count in counts)
    fitting = sum(1 for _ in takewhile(lambda size: size <= max_tokens, sizes))
    return list(rows[: max(fitting, 1)])


def message_of_turn(turn: Turn) -> Message:
    return Message(role=turn.role, name=turn.name, content=turn.text, timestamp=turn.event_time)


def is_same_as_read(rows: QuerySet[Turn], turns: Sequence[Turn]) -> bool:
    """Return whether the rows are exactly the turns that were read, each at the version that was read."""
    return list(rows.values_list("id", "version")) == [(turn.id, turn.version) for turn in turns]
