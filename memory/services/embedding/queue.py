"""The rows that wait for their vector. The row is the queue: `embed_after` says when it is due, empty once it is done.

Claiming moves `embed_after` behind a lease, so a killed worker's rows come back by themselves. A failing embedder
pushes rows back, twice as far each time, and the reason stays on the row for staff to see.

A claim is embedded portion by portion, and each is stored as soon as it is: as long as the embedder does anything in
its time, the queue moves. A portion for which the time was too short is halved, down to single texts; the next ones are
no larger, and those of the next claim begin as small (`Effort`). Who failed before, and who is long, comes last, so
that no text keeps the others waiting; one that fails alone has its own wait.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate, takewhile
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memory import conf
from memory.models import Memory
from memory.models.writer import insert_vectors
from memory.providers.deadlines import Deadline
from memory.services.embedding.embed import Embedded, embed_texts
from memory.tokens import estimate_tokens

MOST_REFUSALS = 16
"""As many as two bad texts in a claim can cause: with more of them, it is the provider."""
PORTION_TOKENS = 8_192
"""Estimated, of texts that are embedded at once: some seconds of the local model on one core."""
LEAST_TOKENS = 128
"""A short text counts as so many: 64 of them are a portion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A row under lease, as it was when it was claimed."""

    id: UUID
    account_id: UUID
    text: str
    content_hash: str
    attempts: int
    leased_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedBatch:
    """What became of a claim. `left` are rows that the time did not reach: due again, as if they were not claimed.

    `stopped` says that the embedder is down and asking for more is of no use; `room` how much it took at once at last.
    """

    claimed: int
    stored: int
    failed: int
    stopped: bool
    left: int = 0
    room: int = field(default=PORTION_TOKENS, compare=False)


@dataclass(slots=True, kw_only=True)
class Effort:
    """A claim while it is embedded: what waits, how much is tried at once (tokens), and until when."""

    waiting: list[Claimed]
    room: int
    deadline: Deadline
    ceiling: int = PORTION_TOKENS
    failed: list[Claimed] = field(default_factory=list)
    done: int = 0
    refusals: int = 0
    error: str = ""
    is_over: bool = False
    """The embedder is down, or refuses whatever it is asked."""

    @classmethod
    def begin(cls, rows: Sequence[Claimed], *, room: int | None) -> "Effort":
        """Without a room that is known to do, the smaller the oftener all of them have failed."""
        fewest = min(row.attempts for row in rows)
        return cls(
            waiting=sorted(rows, key=lambda row: (row.attempts, cost_of(row))),
            room=room or max(PORTION_TOKENS >> (fewest - 1), LEAST_TOKENS),
            deadline=Deadline.after(conf.EMBED_LEASE_SECONDS * 3 / 4),
        )

    def goes_on(self) -> bool:
        return bool(self.waiting) and not self.is_over and self.deadline.left_seconds() > 0

    def portion(self) -> list[Claimed]:
        """The first ones that fit, at least one."""
        sizes = accumulate(map(cost_of, self.waiting))
        fitting = sum(1 for _ in takewhile(lambda size: size <= self.room, sizes))
        return self.waiting[: max(fitting, 1)]

    def seconds_for(self, portion: Sequence[Claimed]) -> float:
        """A quarter of the lease, so that smaller ones can be tried; for a single one, all that is left."""
        left = self.deadline.left_seconds()
        return left if len(portion) == 1 else min(left, conf.EMBED_LEASE_SECONDS / 4)

    def take(self, portion: Sequence[Claimed], embedded: Embedded) -> None:
        """Learn from what became of the portion."""
        left = [row for row in portion if row.text not in embedded.vectors]
        self.done += len(portion) - len(left)
        rest = self.waiting[len(portion) :]
        if not embedded.error:
            self.failed += left
            self.waiting, self.room = rest, min(self.room * 2, self.ceiling)
            return
        self.error = embedded.error
        self.refusals += not embedded.is_slow
        self.is_over = not (embedded.is_slow or embedded.is_divisible) or self.refusals > MOST_REFUSALS
        if len({row.text for row in left}) == 1:
            self.failed += left
            self.waiting = rest
        else:
            self.waiting = [*left, *rest]
        self.room = max(sum(map(cost_of, left)) // 2, 1)
        self.ceiling = self.room if embedded.is_slow else self.ceiling

    def untried(self) -> list[Claimed]:
        """What waits because of others; none where nothing was done at all: then nobody can tell who was too much."""
        return self.waiting if (self.done or self.failed) and not self.is_over else []


def cost_of(row: Claimed) -> int:
    return max(estimate_tokens(row.text), LEAST_TOKENS)


def embed_pending(
    *,
    now: datetime,
    limit: int,
    account_id: UUID | None = None,
    room: int | None = None,
    renew: Callable[[], None] = lambda: None,
) -> EmbeddedBatch:
    """Embed the rows that are due, at most `limit`, oldest first. Safe to be killed anywhere, and to run twice.

    `room` is that of the batch before; `renew` is called after each portion.
    """
    rows = claim_due(now=now, limit=limit, account_id=account_id)
    if not rows:
        return EmbeddedBatch(claimed=0, stored=0, failed=0, stopped=False)
    effort, stored = Effort.begin(rows, room=room), 0
    while effort.goes_on():
        portion = effort.portion()
        embedded = embed_texts([row.text for row in portion], deadline_seconds=effort.seconds_for(portion))
        stored += store_vectors([row for row in portion if row.text in embedded.vectors], embedded)
        effort.take(portion, embedded)
        renew()
    left = effort.untried()
    failed = [*effort.failed, *(() if left else effort.waiting)]
    push_back(failed, error=effort.error, now=now)
    put_back(left, now=now)
    return EmbeddedBatch(
        claimed=len(rows),
        stored=stored,
        failed=len(failed),
        stopped=bool(effort.error) and not effort.done,
        left=len(left),
        room=effort.room,
    )


def claim_due(*, now: datetime, limit: int, account_id: UUID | None) -> list[Claimed]:
    """Put due rows under a lease and count the attempt. Rows that another worker is claiming are passed over."""
    due = Memory.objects.filter(embed_after__lte=now)
    if account_id is not None:
        due = due.filter(account_id=account_id)
    with transaction.atomic():
        rows = list(
            due.order_by("embed_after", "id")
            .select_for_update(skip_locked=True)
            .values_list("id", "account_id", "text", "content_hash", "embed_attempts")[:limit]
        )
        leased_until = now + timedelta(seconds=conf.EMBED_LEASE_SECONDS)
        Memory.objects.filter(id__in=[row[0] for row in rows]).update(
            embed_after=leased_until, embed_attempts=F("embed_attempts") + 1
        )
    return [
        Claimed(
            id=id_,
            account_id=account,
            text=text,
            content_hash=digest,
            attempts=attempts + 1,
            leased_until=leased_until,
        )
        for id_, account, text, digest, attempts in rows
    ]


def store_vectors(rows: Sequence[Claimed], embedded: Embedded) -> int:
    """Store vectors of rows whose text is still what was embedded; they leave the queue in the same transaction."""
    by_account: dict[UUID, list[Claimed]] = {}
    for row in rows:
        by_account.setdefault(row.account_id, []).append(row)
    stored = 0
    for account_id, claimed in by_account.items():
        with transaction.atomic():
            current = dict(
                Memory.objects.filter(account_id=account_id, id__in=[row.id for row in claimed])
                .order_by("id")
                .select_for_update()
                .values_list("id", "content_hash")
            )
            same = [row for row in claimed if current.get(row.id) == row.content_hash]
            vectors = [(row.id, embedded.vectors[row.text]) for row in same]
            stored += insert_vectors(account_id, model=embedded.model, vectors=vectors)
            Memory.objects.filter(id__in=[row.id for row in same]).update(
                embed_after=None, embed_attempts=0, embed_error=""
            )
    return stored


def push_back(rows: Sequence[Claimed], *, error: str, now: datetime) -> None:
    """Try again later: the base, doubled with each attempt, up to the limit. Leaves alone what others took up since."""
    by_attempts: dict[int, list[UUID]] = {}
    for row in rows:
        by_attempts.setdefault(row.attempts, []).append(row.id)
    for attempts, ids in by_attempts.items():
        wait = min(conf.EMBED_BACKOFF_SECONDS * 2 ** min(attempts - 1, 20), conf.EMBED_BACKOFF_LIMIT_SECONDS)
        leased = Memory.objects.filter(id__in=ids, embed_after=rows[0].leased_until, embed_attempts=attempts)
        with transaction.atomic():
            # in the order of everybody who locks memories, or two of them would wait for each other
            locked = list(leased.order_by("id").select_for_update(no_key=True).values_list("id", flat=True))
            Memory.objects.filter(id__in=locked).update(
                embed_after=now + timedelta(seconds=wait), embed_error=error or "not_embeddable"
            )


def put_back(rows: Sequence[Claimed], *, now: datetime) -> None:
    """Due again at once, the attempt not counted. Leaves alone what others took up since."""
    if not rows:
        return
    leased = Memory.objects.filter(id__in=[row.id for row in rows], embed_after=rows[0].leased_until)
    with transaction.atomic():
        # in the order of everybody who locks memories
        locked = list(leased.order_by("id").select_for_update(no_key=True).values_list("id", flat=True))
        Memory.objects.filter(id__in=locked).update(embed_after=now, embed_attempts=F("embed_attempts") - 1)
