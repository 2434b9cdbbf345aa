"""Passages of memories that were stored before passages had vectors. Later ones get them with their own vector."""

from collections.abc import Callable, Sequence

from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery

from memory import conf
from memory.models import Memory, Vector
from memory.models.writer import insert_passages
from memory.providers.passages import MAX_PASSAGE_TOKENS
from memory.services.account_walk import BatchReport
from memory.services.embedding.embed import EmbeddedTexts, embed_texts
from memory.services.embedding.serving import serving_model

DEADLINE_SHARE = 0.25
"""Share of the lease that one text may take."""


def long_memories() -> QuerySet[Memory]:
    """Return the memories that are too long for one passage and wait for no vector."""
    return Memory.objects.filter(token_count__gt=MAX_PASSAGE_TOKENS, embed_after=None)


def without_passages(rows: Sequence[Memory]) -> QuerySet[Memory]:
    """Return those of an account's memories whose vector the service made, without passages."""
    vectors = Vector.objects.filter(
        account_id=OuterRef("account_id"), memory_id=OuterRef("id"), model=serving_model().name
    )
    # not as Exists, which becomes a join of all partitions: this looks into that of the memory's account
    made = Subquery(vectors.whole().filter(is_given=False).values("id")[:1])
    passage = Subquery(vectors.filter(passage__gt=0).values("id")[:1])
    found = Memory.objects.alias(made=made, passage=passage).filter(made__isnull=False, passage=None)
    return found.filter(account_id=rows[0].account_id, id__in=[row.id for row in rows], embed_after=None)


def add_passages(rows: Sequence[Memory], *, renew: Callable[[], None]) -> BatchReport:
    """Embed and store the passages of memories, one after the other, and stop when the embedder is down.

    The vectors of whole texts stay as they are.
    """
    stored = failed = 0
    for row in rows:
        embedded = embed_texts([row.text], deadline_seconds=conf.EMBED_LEASE_SECONDS * DEADLINE_SHARE)
        renew()
        if embedded.error and not (embedded.is_slow or embedded.is_divisible):
            return BatchReport(examined=len(rows), changed=stored, failed=failed + 1, stopped=True)
        is_stored = row.text in embedded.passages and store_passages(row, embedded)
        stored += is_stored
        failed += not is_stored
    return BatchReport(examined=len(rows), changed=stored, failed=failed)


def store_passages(row: Memory, embedded: EmbeddedTexts) -> bool:
    """Store the passages of a memory, unless its text has changed in the meantime. Returns False in that case."""
    with transaction.atomic():
        current = Memory.objects.filter(account_id=row.account_id, id=row.id, content_hash=row.content_hash)
        if not current.select_for_update(no_key=True).exists():
            return False
        insert_passages(row.account_id, model=embedded.model, passages={row.id: embedded.passages[row.text]})
    return True
