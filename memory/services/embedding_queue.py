"""The rows that wait for their vector. The row is the queue: `embed_after` says when it is due, empty once it is done.

Claiming moves `embed_after` behind a lease, so a killed worker's rows come back by themselves. A failing embedder
pushes rows back, twice as far each time, and the reason stays on the row for staff to see.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memory import conf
from memory.models import Memory
from memory.models.binary import Embedding
from memory.models.writer import insert_vectors
from memory.services.embedding import Embedded, embed_texts

MOST_REFUSALS = 16


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
    """What became of a claim. `stopped` says that the embedder is down and asking for more is of no use."""

    claimed: int
    stored: int
    failed: int
    stopped: bool


def embed_pending(*, now: datetime, limit: int, account_id: UUID | None = None) -> EmbeddedBatch:
    """Embed the rows that are due, at most `limit`, oldest first. Safe to be killed anywhere, and to run twice."""
    rows = claim_due(now=now, limit=limit, account_id=account_id)
    if not rows:
        return EmbeddedBatch(claimed=0, stored=0, failed=0, stopped=False)
    embedded = embed_apart([row.text for row in rows])
    done = [row for row in rows if row.text in embedded.vectors]
    stored = store_vectors(done, embedded)
    failed = [row for row in rows if row.text not in embedded.vectors]
    push_back(failed, error=embedded.error, now=now)
    stopped = not done and bool(embedded.error)
    return EmbeddedBatch(claimed=len(rows), stored=stored, failed=len(failed), stopped=stopped)


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


def embed_apart(texts: Sequence[str]) -> Embedded:
    """Embed all; where the provider refuses a batch for one of its texts, halve it, so that the others have theirs.

    Gives up after so many refusals as two bad texts can cause: then it is the provider.
    """
    parts, vectors, refusals = [list(dict.fromkeys(texts))], dict[str, Embedding](), 0
    error = ""
    while parts:
        part = parts.pop()
        done = embed_texts(part, deadline_seconds=conf.EMBED_LEASE_SECONDS / 4)
        vectors |= done.vectors
        left = [text for text in part if text not in done.vectors]
        if not done.error:
            continue
        error, refusals = done.error, refusals + 1
        if not done.is_divisible or refusals > MOST_REFUSALS:
            break
        if len(left) > 1:
            parts += [left[: len(left) // 2], left[len(left) // 2 :]]
    return Embedded(model=done.model, width=done.width, vectors=vectors, error=error, is_divisible=done.is_divisible)


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
