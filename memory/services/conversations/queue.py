"""The queues that conversations' rows are: due at a time, claimed by a lease. One for summaries, one for extraction.

A killed worker's claim runs out, and its stretch is claimed again; what fails pushes its conversation back, twice as
far each time, and the reason stays on the row for staff to see. The claims of a batch are worked on side by side
(`work_off`): each is read, thought about in a thread (no database in threads), and settled as soon as it is done.

What fails by its own fault as often in a row as the setting says (EXTRACTION_ATTEMPTS, SUMMARY_ATTEMPTS) is parked: it
is due no more, and all that is said later waits behind it, until somebody asks for it again (`unpark`). A new turn is
no such asking. What fails elsewhere (a model that is down, a key that is refused, a database that is away) stays
queued however often it does.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum
from itertools import accumulate, takewhile
from typing import Any, Generic, Protocol, Self, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Least

from memory import conf
from memory.errors import ProviderError, ProviderRefused
from memory.models import Conversation, Turn
from memory.owner import Owner
from memory.services.embedding.embed import may_lie_in_a_text
from memory.services.turns.store import visible_turns
from memory_project.tracing import carried

logger = logging.getLogger(__name__)

MOST_ATTEMPTS = 32_767
"""As many as the columns count."""
LONGEST_ERROR = 100
REQUEST_REFUSED = "request_refused"
"""The model takes others' turns, but not these."""
PARKED = "conversations_parked"
"""The figure of a run."""
FAULTS_ELSEWHERE = frozenset({"provider_unavailable", "provider_refused", "OperationalError", "InterfaceError"})
"""Errors that say nothing of the conversation in whose row they stand."""


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
class Settled:
    """What became of a claim, and what it came to."""

    outcome: Outcome
    figures: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue by its columns: when due, held until when, attempts, the last error, parked since when, and up to which
    turn it is done.

    `noun` is what fails, for the log; `knobs` is what the names of its settings begin with.
    """

    noun: str
    due: str
    lease: str
    attempts: str
    error: str
    parked: str
    done: str
    knobs: str
    asked: str = ""
    """What somebody asked for, where there is such a column: empty while it is parked, and asked for anew."""

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
    noun="summary of",
    due="summarize_after",
    lease="summary_lease_until",
    attempts="summary_attempts",
    error="summary_error",
    parked="summary_parked_at",
    done="summarized_count",
    knobs="SUMMARY",
    asked="summarize_to",
)
EXTRACTION = Queue(
    noun="extraction from",
    due="extract_after",
    lease="extract_lease_until",
    attempts="extract_attempts",
    error="extract_error",
    parked="extract_parked_at",
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

    @property
    def failures(self) -> int:
        """How often in a row it would have failed by its own fault, if it did now."""
        before = getattr(self.conversation, self.queue.error)
        return 1 if not before or before in FAULTS_ELSEWHERE else self.attempts


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


def push_back_or_park(claim: Claimed, *, error: str, now: datetime) -> dict[str, int]:
    """Try again later, unless it failed by its own fault too often in a row: then it is parked. Figures of a run."""
    queue, row, failures = claim.queue, claim.conversation, claim.failures
    is_parked = failures >= queue.knob("ATTEMPTS")
    failed = {queue.error: error[:LONGEST_ERROR], queue.lease: None, queue.attempts: min(failures, MOST_ATTEMPTS)}
    if not is_parked:
        held(claim).update(**failed, **{queue.due: now + queue.wait_after(failures)})
        return {}
    logger.error("%s conversation %s is parked: it failed %d times in a row", queue.noun, row.id, failures)
    asked = {queue.asked: None} if queue.asked else {}
    return {PARKED: held(claim).update(**failed, **asked, **{queue.due: None, queue.parked: now})}


def give_up(claim: Claimed, error: Exception, *, now: datetime) -> Settled:
    """Try again later what failed, or park it. Only the error's name is told: its words may be the conversation's."""
    name, told = name_of(error), (claim.queue.noun, claim.conversation.id)
    if isinstance(error, ProviderError):
        logger.warning("%s conversation %s failed: %s", *told, error)
        outcome = Outcome.UNANSWERED
    else:
        logger.error("%s conversation %s failed: %s", *told, name)
        outcome = Outcome.FAILED
    if name in FAULTS_ELSEWHERE:
        push_back(claim, error=name, now=now)
        return Settled(outcome=outcome)
    return Settled(outcome=outcome, figures=push_back_or_park(claim, error=name, now=now))


def name_of(error: Exception) -> str:
    """As it stands in a row: the code of a provider's error, the class of another."""
    if isinstance(error, ProviderRefused) and may_lie_in_a_text(error):
        return REQUEST_REFUSED
    return error.code if isinstance(error, ProviderError) else type(error).__name__


def unpark(conversation: Conversation, queue: Queue) -> None:
    """Let it be tried again, as often as anything. To be saved with the columns of the queue, and when it is due."""
    if getattr(conversation, queue.parked) is not None:
        setattr(conversation, queue.parked, None)
        settle_row(conversation, queue)


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
    settle: Callable[[W, "Future[R]"], Settled]
    give_up: Callable[[Claimed, Exception], Settled]
    renew: Callable[[], None] = lambda: None
    """Keeps the run's lease. Raises where another worker has taken over."""

    def work_off(self, claims: Sequence[Claimed], *, threads: int) -> Iterator[Settled]:
        """What became of each claim, as it is settled. The leases of those outstanding are renewed meanwhile."""
        with ThreadPoolExecutor(max(threads, 1)) as pool:
            outstanding: dict[Future[R], W] = {}
            for claim in claims:
                try:
                    work = self.read(claim)
                except Exception as err:  # noqa: BLE001 - the outermost loop of the works
                    yield self.give_up(claim, err)
                else:
                    outstanding[pool.submit(carried(self.think), work)] = work
            lease = min((claim.queue.lease_time for claim in claims), default=timedelta(seconds=1))
            while outstanding:
                done, _ = wait(outstanding, timeout=lease.total_seconds() / 3, return_when=FIRST_COMPLETED)
                for thinking in done:
                    yield self.settle(outstanding.pop(thinking), thinking)
                    renew_leases(outstanding)
                renew_leases(outstanding)
                self.renew()


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
    figures: Mapping[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, settled: Sequence[Settled]) -> Self:
        outcomes = [each.outcome for each in settled]
        stored, unanswered = outcomes.count(Outcome.STORED), outcomes.count(Outcome.UNANSWERED)
        return cls(
            claimed=len(settled),
            stored=stored,
            failed=unanswered + outcomes.count(Outcome.FAILED),
            stopped=bool(unanswered) and not stored,
            figures=sum((Counter(each.figures) for each in settled), Counter()),
        )


TOKENS_AROUND_A_TURN = 15
"""At least, for its role and time, when a model is shown it."""


def turns_between(claim: Claimed, start: int, stop: int) -> QuerySet[Turn]:
    rows = visible_turns(Owner(account_id=claim.conversation.account_id))
    return rows.filter(log=claim.conversation, quarantined=False, index__gte=start, index__lt=stop).order_by("index")


def read_turns(rows: QuerySet[Turn], *, max_tokens: int) -> list[Turn]:
    """The first of the rows: all that fit, perhaps some more; by their counts first, since texts are large."""
    counts = rows.values_list("token_count", flat=True)[: max_tokens // TOKENS_AROUND_A_TURN]
    sizes = accumulate(count + TOKENS_AROUND_A_TURN for count in counts)
    fitting = sum(1 for _ in takewhile(lambda size: size <= max_tokens, sizes))
    return list(rows[: max(fitting, 1)])


def is_same_as_read(rows: QuerySet[Turn], turns: Sequence[Turn]) -> bool:
    """Whether the turns that were read are still all of the rows, each at the version that was read."""
    return list(rows.values_list("id", "version")) == [(turn.id, turn.version) for turn in turns]
