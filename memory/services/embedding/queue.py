"""The queue of rows without a vector. The row is the queue: `embed_after` is when it is due, and null when it is done.

Claiming a row moves `embed_after` to the end of a lease, so rows of a killed worker become due again. A failing
embedder postpones rows, for twice as long each time, with the reason on the row for staff.

A claim is embedded in portions, each stored immediately, so the queue moves as long as the embedder gets anything done
in its time. A portion that takes too long is halved, down to single texts; the following portions are no larger, and
the next claim starts with that size (`ClaimProgress`). Rows that failed before and long rows come last, so that no text
delays the others; a text that fails alone is postponed alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import accumulate, takewhile
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, QuerySet

from memory import conf
from memory.models import Memory
from memory.models.writer import insert_passages, insert_vectors
from memory.providers.connections import Deadline
from memory.providers.language_models import Usage
from memory.services.account_walk import group_by_account
from memory.services.claims import backoff, has_due_rows, lock_due_rows
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.embedding.serving import EmbeddingModel
from memory.services.operations.usage import TokenBudget, accounts_over_budget, keep_usage
from memory.services.replacements import relink_replaced_statements
from memory.tokens import estimate_tokens

MAX_REFUSALS = 16
"""Two bad texts in a claim can cause this many refusals; more of them are the provider's fault."""
MAX_PORTION_TOKENS = 8_192
"""Estimated tokens embedded in one call: some seconds of the local model on one core."""
MAX_CLAIM_TOKENS = MAX_PORTION_TOKENS
"""Estimated tokens of an account's rows in one claim, so that those of the next account wait for seconds only."""
MIN_ROW_TOKENS = 128
"""A shorter text counts as this many tokens, so a portion has 64 of them at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedBatch:
    """The result of a claim. `left` rows were not reached in time: they are due again as if never claimed.

    `stopped`: the embedder is down and further claims are useless. `portion_tokens`: the last portion size that worked.
    """

    claimed: int
    stored: int
    failed: int
    stopped: bool
    left: int = 0
    has_more: bool = field(default=False, compare=False)
    """True if more rows are due."""
    portion_tokens: int = field(default=MAX_PORTION_TOKENS, compare=False)


@dataclass(slots=True, kw_only=True)
class ClaimProgress:
    """The state of a claim while it is embedded: rows left, portion size in tokens, deadline."""

    waiting: list[Memory]
    portion_tokens: int
    deadline: Deadline
    max_portion_tokens: int = MAX_PORTION_TOKENS
    failed: list[Memory] = field(default_factory=list)
    done: int = 0
    refusals: int = 0
    error: str = ""
    is_over: bool = False
    """True if the embedder is down, or refuses every request."""

    @classmethod
    def start(cls, rows: Sequence[Memory], *, portion_tokens: int | None) -> "ClaimProgress":
        """Start a claim. Without a known portion size, it gets smaller the more often all of its rows have failed."""
        min_attempts = min(row.embed_attempts for row in rows)
        return cls(
            waiting=sorted(rows, key=lambda row: (row.embed_attempts, count_row_tokens(row))),
            portion_tokens=portion_tokens or max(MAX_PORTION_TOKENS >> (min_attempts - 1), MIN_ROW_TOKENS),
            deadline=Deadline.after(conf.EMBED_LEASE_SECONDS * 3 / 4),
        )

    def is_unfinished(self) -> bool:
        return bool(self.waiting) and not self.is_over and self.deadline.left_seconds() > 0

    def next_portion(self) -> list[Memory]:
        """Return the first rows that fit the portion size, at least one."""
        sizes = accumulate(map(count_row_tokens, self.waiting))
        fitting = sum(1 for _ in takewhile(lambda size: size <= self.portion_tokens, sizes))
        return self.waiting[: max(fitting, 1)]

    def timeout_seconds(self, portion: Sequence[Memory]) -> float:
        """Return a quarter of the lease, so that smaller portions can follow; for a single row, all the time left."""
        left = self.deadline.left_seconds()
        return left if len(portion) == 1 else min(left, conf.EMBED_LEASE_SECONDS / 4)

    def record_result(self, portion: Sequence[Memory], embedded: EmbeddedTexts) -> None:
        """Update the state after a portion."""
        left = [row for row in portion if row.text not in embedded.vectors]
        self.done += len(portion) - len(left)
        rest = self.waiting[len(portion) :]
        if not embedded.error:
            self.failed += left
            self.waiting, self.portion_tokens = rest, min(self.portion_tokens * 2, self.max_portion_tokens)
            return
        self.error = embedded.error
        self.refusals += not embedded.is_slow
        self.is_over = not (embedded.is_slow or embedded.is_divisible) or self.refusals > MAX_REFUSALS
        if len({row.text for row in left}) == 1:
            self.failed += left
            self.waiting = rest
        else:
            self.waiting = [*left, *rest]
        self.portion_tokens = max(sum(map(count_row_tokens, left)) // 2, 1)
        self.max_portion_tokens = self.portion_tokens if embedded.is_slow else self.max_portion_tokens

    def untried_rows(self) -> list[Memory]:
        """Return rows that were not reached. Empty if nothing succeeded or failed at all: the cause is unknown then."""
        return self.waiting if (self.done or self.failed) and not self.is_over else []


def count_row_tokens(row: Memory) -> int:
    return max(estimate_tokens(row.text), MIN_ROW_TOKENS)


def embed_pending(
    *,
    now: datetime,
    limit: int,
    account_id: UUID | None = None,
    portion_tokens: int | None = None,
    renew: Callable[[], None] = lambda: None,
) -> EmbeddedBatch:
    """Embed due rows, at most `limit`, oldest first. Safe to kill at any point and to run concurrently.

    `portion_tokens` is the size from the batch before; `renew` is called after each portion.
    """
    rows = claim_due_rows(now=now, limit=limit, account_id=account_id)
    if not rows:
        return EmbeddedBatch(claimed=0, stored=0, failed=0, stopped=False)
    progress = ClaimProgress.start(rows, portion_tokens=portion_tokens)

    def store(done: Sequence[Memory], embedded: EmbeddedTexts) -> int:
        stored = store_vectors(done, embedded)
        spend_tokens(done, embedded.model, now=now)
        return stored

    stored = embed_portions(progress, store=store, renew=renew)
    left = progress.untried_rows()
    failed = [*progress.failed, *(() if left else progress.waiting)]
    postpone_failed_rows(failed, error=progress.error, now=now)
    update_leased_rows(left, {"embed_after": now, "embed_attempts": F("embed_attempts") - 1})
    return EmbeddedBatch(
        claimed=len(rows),
        stored=stored,
        failed=len(failed),
        stopped=bool(progress.error) and not progress.done,
        left=len(left),
        has_more=len(rows) == limit or has_due_rows(due_rows(now), account_id=account_id),
        portion_tokens=progress.portion_tokens,
    )


def embed_portions(
    progress: ClaimProgress,
    *,
    store: Callable[[Sequence[Memory], EmbeddedTexts], int],
    renew: Callable[[], None],
    model: EmbeddingModel | None = None,
) -> int:
    """Embed the rows of a claim portion by portion, by the serving model or this one, and return what `store` stored.

    `renew` is called after each portion.
    """
    stored = 0
    while progress.is_unfinished():
        portion = progress.next_portion()
        texts, seconds = [row.text for row in portion], progress.timeout_seconds(portion)
        embedded = embed_texts(texts, deadline_seconds=seconds, model=model)
        stored += store([row for row in portion if row.text in embedded.vectors], embedded)
        progress.record_result(portion, embedded)
        renew()
    return stored


def claim_due_rows(*, now: datetime, limit: int, account_id: UUID | None) -> list[Memory]:
    """Lease due rows and count the attempt. Rows that another worker is claiming are skipped.

    Without an account, rows of all accounts, each with its share (`services.claims`) of at most MAX_CLAIM_TOKENS.
    Accounts that have spent their tokens of the day are left out.

    The rows returned have the columns that embedding needs, as they are after the claim.
    """
    due = due_rows(now).only("account", "kind", "text", "content_hash", "embed_attempts")
    due = due.exclude(account_id__in=accounts_over_budget(TokenBudget.EMBEDDING, now=now))
    leased_until = now + timedelta(seconds=conf.EMBED_LEASE_SECONDS)
    with transaction.atomic():
        found = lock_due_rows(due, order_by="embed_after", limit=limit, account_id=account_id)
        rows = [row for of_account in group_by_account(found).values() for row in fit_claim(of_account)]
        update_rows(rows, {"embed_after": leased_until, "embed_attempts": F("embed_attempts") + 1})
    for row in rows:
        row.embed_after, row.embed_attempts = leased_until, row.embed_attempts + 1
    return rows


def due_rows(now: datetime) -> QuerySet[Memory]:
    return Memory.objects.filter(embed_after__lte=now)


def fit_claim(rows: Sequence[Memory]) -> Sequence[Memory]:
    """Return the first of an account's rows that fit into MAX_CLAIM_TOKENS, at least one."""
    sizes = accumulate(map(count_row_tokens, rows))
    return rows[: max(sum(1 for _ in takewhile(lambda size: size <= MAX_CLAIM_TOKENS, sizes)), 1)]


def release_lost_claims(*, now: datetime, limit: int, account_id: UUID | None) -> None:
    """Make rows due now that a dead worker had claimed and nobody failed on, at most one claim of them."""
    leased_until = now + timedelta(seconds=conf.EMBED_LEASE_SECONDS)
    claimed = Memory.objects.filter(embed_after__gt=now, embed_after__lte=leased_until, embed_error="")
    lost = claimed.filter(embed_attempts__gt=0).only("account")
    with transaction.atomic():
        update_rows(
            lock_due_rows(lost, order_by="embed_after", limit=limit, account_id=account_id), {"embed_after": now}
        )


def spend_tokens(rows: Sequence[Memory], model: str, *, now: datetime) -> None:
    """Count the embedded tokens of each account, where they are limited."""
    if not conf.EMBEDDED_TOKENS_PER_DAY:
        return
    for account_id in sorted({row.account_id for row in rows}):
        tokens = sum(estimate_tokens(row.text) for row in rows if row.account_id == account_id)
        spent = Usage(model=model, calls=1, prompt_tokens=tokens)
        keep_usage(account_id, use=TokenBudget.EMBEDDING, usages=[spent], now=now)


def store_vectors(rows: Sequence[Memory], embedded: EmbeddedTexts) -> int:
    """Store vectors of rows whose text has not changed, and dequeue those rows in the same transaction."""
    stored = 0
    for account_id, claimed in group_by_account(rows).items():
        with transaction.atomic():
            same = lock_unchanged(account_id, claimed)
            # first, since the database queues rows again whose vector is of a model that serves no longer
            done = Memory.objects.filter(account_id=account_id, id__in=[row.id for row in same])
            done.update(embed_after=None, embed_attempts=0, embed_error="")
            stored += insert_embedded(account_id, same, embedded)
            for row in same:
                row.embed_after = None
            relink_replaced_statements(account_id, same, model=embedded.model)
    return stored


def lock_unchanged(account_id: UUID, claimed: Sequence[Memory]) -> list[Memory]:
    """Lock rows of an account, and return those whose text has not changed since they were claimed."""
    kept = Memory.objects.filter(account_id=account_id, id__in=[row.id for row in claimed]).order_by("id")
    current = dict(kept.select_for_update(no_key=True).values_list("id", "content_hash"))
    return [row for row in claimed if current.get(row.id) == row.content_hash]


def insert_embedded(account_id: UUID, rows: Sequence[Memory], embedded: EmbeddedTexts) -> int:
    """Insert the vectors of rows of an account, and of their passages; return how many rows got one."""
    vectors = [(row.id, embedded.vectors[row.text]) for row in rows]
    passages = {row.id: embedded.passages[row.text] for row in rows if row.text in embedded.passages}
    stored = insert_vectors(account_id, model=embedded.model, vectors=vectors)
    insert_passages(account_id, model=embedded.model, passages=passages)
    return stored


def postpone_failed_rows(rows: Sequence[Memory], *, error: str, now: datetime) -> None:
    """Make rows due later (`backoff`). Rows claimed by others stay."""
    by_attempts: dict[int, list[Memory]] = {}
    for row in rows:
        by_attempts.setdefault(row.embed_attempts, []).append(row)
    for attempts, failed in by_attempts.items():
        due_at = now + backoff("EMBED", attempts)
        update_leased_rows(failed, {"embed_after": due_at, "embed_error": error or "not_embeddable"})


def update_leased_rows(rows: Sequence[Memory], columns: Mapping[str, Any]) -> None:
    """Update those of the rows, all of one claim, that are still leased by it."""
    if not rows:
        return
    leased = rows_by_account_and_id(rows).filter(embed_after=rows[0].embed_after)
    with transaction.atomic():
        # in the order that all transactions lock memories in, to avoid deadlocks
        locked = list(leased.order_by("id").select_for_update(no_key=True).only("account"))
        update_rows(locked, columns)


def rows_by_account_and_id(rows: Sequence[Memory]) -> QuerySet[Memory]:
    return Memory.objects.filter(account_id__in={row.account_id for row in rows}, id__in=[row.id for row in rows])


def update_rows(rows: Sequence[Memory], columns: Mapping[str, Any]) -> None:
    rows_by_account_and_id(rows).update(**columns)
