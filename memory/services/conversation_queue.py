"""The queues that conversations' rows are: due at a time, claimed by a lease. One for summaries, one for extraction.

A killed worker's claim runs out, and its stretch is claimed again; what fails pushes its conversation back, twice as
far each time, and the reason stays on the row for staff to see. The claims of a batch are worked on side by side
(`work_off`): each is read, thought about in a thread (no database in threads), and settled as soon as it is done.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, Protocol, Self, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Least

from memory import conf
from memory.models import Conversation

MOST_ATTEMPTS = 32_767
"""As many as the columns count."""
LONGEST_ERROR = 100


class Outcome(Enum):
    """What became of a claim."""

    STORED = "stored"
    UNANSWERED = "unanswered"
    """The model gave no usable answer."""
    FAILED = "failed"
    """Anything else went wrong; the next one may do well."""
    OUTDATED = "outdated"
    """Another worker has it now, or it is due again: something changed while it was thought about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue by its columns: when due, held until when, attempts, the last error, and up to which turn it is done.

    `knobs` is what the names of its settings begin with.
    """

    due: str
    lease: str
    attempts: str
    error: str
    done: str
    knobs: str

    @property
    def lease_time(self) -> timedelta:
        return timedelta(seconds=self.knob("LEASE_SECONDS"))

    def knob(self, name: str) -> int:
        return int(getattr(conf, f"{self.knobs}_{name}"))

    def wait_after(self, attempts: int) -> timedelta:
        """The base, doubled with each attempt, up to the limit."""
        wait_seconds = self.knob("BACKOFF_SECONDS") * 2 ** min(attempts - 1, 20)
        return timedelta(seconds=min(wait_seconds, self.knob("BACKOFF_LIMIT_SECONDS")))

    def due_rows(self, now: datetime, *, account_id: UUID | None = None) -> QuerySet[Conversation]:
        """Due, and no worker holds them; of one account, or of all."""
        free = Q(**{self.lease: None}) | Q(**{f"{self.lease}__lte": now})
        rows = Conversation.objects.filter(free, **{f"{self.due}__lte": now})
        return rows if account_id is None else rows.filter(account_id=account_id)


SUMMARIES = Queue(
    due="summarize_after",
    lease="summary_lease_until",
    attempts="summary_attempts",
    error="summary_error",
    done="summarized_count",
    knobs="SUMMARY",
)
EXTRACTION = Queue(
    due="extract_after",
    lease="extract_lease_until",
    attempts="extract_attempts",
    error="extract_error",
    done="extracted_count",
    knobs="EXTRACTION",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A conversation under lease, as it was when it was claimed; it is to be worked on up to the turn `target`."""

    queue: Queue
    conversation: Conversation
    target: int
    attempts: int
    claimed_at: datetime
    leased_until: datetime
    began: float = field(default_factory=time.monotonic)

    @property
    def now(self) -> datetime:
        """The time of the claim, and what has passed since."""
        return self.claimed_at + timedelta(seconds=time.monotonic() - self.began)


def claim_rows(
    queue: Queue, *, now: datetime, limit: int, account_id: UUID | None, target_of: Callable[[Conversation], int]
) -> list[Claimed]:
    """Put due conversations under a lease and count the attempt. What another worker is claiming is passed over."""
    due = queue.due_rows(now, account_id=account_id)
    leased_until = now + queue.lease_time
    with transaction.atomic():
        in_order = due.order_by(queue.due, "id").defer("saved_session")
        rows = list(in_order.select_for_update(skip_locked=True, no_key=True)[:limit])
        attempted = Least(F(queue.attempts), MOST_ATTEMPTS - 1) + 1
        Conversation.objects.filter(id__in=[row.id for row in rows]).update(
            **{queue.lease: leased_until, queue.attempts: attempted}
        )
    return [
        Claimed(
            queue=queue,
            conversation=row,
            target=target_of(row),
            attempts=getattr(row, queue.attempts) + 1,
            claimed_at=now,
            leased_until=leased_until,
        )
        for row in rows
    ]


def held(claim: Claimed) -> QuerySet[Conversation]:
    """The row, if the claim still holds."""
    queue, row = claim.queue, claim.conversation
    same = {queue.lease: claim.leased_until, queue.done: getattr(row, queue.done)}
    return Conversation.objects.filter(id=row.id, **same).defer("saved_session")


def renew_lease(claim: Claimed) -> Claimed:
    """A whole lease from now on, once a third of it has passed; a claim that was lost meanwhile stays lost."""
    now, lease = claim.now, claim.queue.lease_time
    if claim.leased_until - now > lease * 2 / 3:
        return claim
    held(claim).update(**{claim.queue.lease: now + lease})
    return replace(claim, leased_until=now + lease)


def push_back(claim: Claimed, *, error: str, now: datetime) -> None:
    """Try again later. Leaves alone what others took up since."""
    queue = claim.queue
    due = now + queue.wait_after(claim.attempts)
    held(claim).update(**{queue.due: due, queue.error: error[:LONGEST_ERROR], queue.lease: None})


def put_back(claim: Claimed, *, now: datetime) -> None:
    """Due again at once."""
    held(claim).update(**{claim.queue.due: now, claim.queue.lease: None})


def settle_row(conversation: Conversation, queue: Queue) -> None:
    """The claim is done with: no lease, no failed attempts. To be saved with the columns of the queue."""
    setattr(conversation, queue.lease, None)
    setattr(conversation, queue.attempts, 0)
    setattr(conversation, queue.error, "")


class Workable(Protocol):
    """What a claim comes down to; a frozen dataclass."""

    @property
    def claim(self) -> Claimed: ...


W = TypeVar("W", bound=Workable)
R = TypeVar("R")


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps(Generic[W, R]):
    """How the claims of a queue are worked off. `think` asks no database; `settle` and `give_up` raise nothing."""

    read: Callable[[Claimed], W]
    think: Callable[[W], R]
    settle: Callable[[W, "Future[R]"], Outcome]
    give_up: Callable[[Claimed, Exception], Outcome]

    def work_off(self, claims: Sequence[Claimed], *, threads: int) -> Iterator[Outcome]:
        """What became of each claim, as it is settled. The leases of those outstanding are renewed meanwhile."""
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            outstanding: dict[Future[R], W] = {}
            for claim in claims:
                try:
                    work = self.read(claim)
                except Exception as err:  # noqa: BLE001 - the outermost loop of the works
                    yield self.give_up(claim, err)
                else:
                    outstanding[pool.submit(self.think, work)] = work
            lease = min((claim.queue.lease_time for claim in claims), default=timedelta(seconds=1))
            while outstanding:
                done, _ = wait(outstanding, timeout=lease.total_seconds() / 3, return_when=FIRST_COMPLETED)
                for thinking in done:
                    yield self.settle(outstanding.pop(thinking), thinking)
                    renew_leases(outstanding)
                renew_leases(outstanding)


def renew_leases(outstanding: "dict[Future[R], W]") -> None:
    works: dict[Any, Any] = outstanding
    for thinking, work in works.items():
        works[thinking] = replace(work, claim=renew_lease(work.claim))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkedBatch:
    """What became of a batch of claims. `stopped` says that the model is down and asking for more is of no use."""

    claimed: int
    stored: int
    failed: int
    stopped: bool

    @classmethod
    def of(cls, outcomes: Sequence[Outcome]) -> Self:
        stored, unanswered = outcomes.count(Outcome.STORED), outcomes.count(Outcome.UNANSWERED)
        failed = unanswered + outcomes.count(Outcome.FAILED)
        return cls(claimed=len(outcomes), stored=stored, failed=failed, stopped=bool(unanswered) and not stored)
