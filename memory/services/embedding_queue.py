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

TRANSIENT = "provider_unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A row under lease, as it was when it was claimed."""

    id: UUID
    account_id: UUID
    text: str
    content_hash: str
    attempts: int


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
    stopped = not done and embedded.error == TRANSIENT
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
        Memory.objects.filter(id__in=[row[0] for row in rows]).update(
            embed_after=now + timedelta(seconds=conf.EMBED_LEASE_SECONDS), embed_attempts=F("embed_attempts") + 1
        )
    return [
        Claimed(id=id_, account_id=account, text=text, content_hash=digest, attempts=attempts + 1)
        for id_, account, text, digest, attempts in rows
    ]


def embed_apart(texts: Sequence[str]) -> Embedded:
    """Embed all; where the provider refuses a batch, halve it, so that one bad text does not hold up the others."""
    whole = embed_texts(texts, deadline_seconds=conf.EMBED_LEASE_SECONDS / 4)
    left = [text for text in dict.fromkeys(texts) if text not in whole.vectors]
    if not whole.error or whole.error == TRANSIENT or len(left) < 2:
        return whole
    halves = [embed_apart(half) for half in (left[: len(left) // 2], left[len(left) // 2 :])]
    vectors: dict[str, Embedding] = whole.vectors | halves[0].vectors | halves[1].vectors
    error = halves[0].error or halves[1].error
    return Embedded(model=whole.model, width=whole.width, vectors=vectors, error=error)


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
    """Try again later: the base, doubled with each attempt, up to the limit."""
    by_attempts: dict[int, list[UUID]] = {}
    for row in rows:
        by_attempts.setdefault(row.attempts, []).append(row.id)
    for attempts, ids in by_attempts.items():
        wait = min(conf.EMBED_BACKOFF_SECONDS * 2 ** min(attempts - 1, 20), conf.EMBED_BACKOFF_LIMIT_SECONDS)
        Memory.objects.filter(id__in=ids).update(
            embed_after=now + timedelta(seconds=wait), embed_error=error or "not_embeddable"
        )
