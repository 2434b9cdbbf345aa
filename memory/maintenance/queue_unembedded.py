"""Queues memories that have no vector of the current embedding model: after a change of model, all of them.

Until the `embed` job has reached them their words find them, and searches say so. Archived levels of structured turns
are left out: another level stands for them, and no search finds them again.
"""

from datetime import datetime, time
from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from memory.maintenance.base import Batch, BatchReport, job
from memory.models import Memory, Vector
from memory.providers.embeddings import embedding_provider
from memory.services.work_episodes.propagate import WORK_KINDS

IS_STOOD_FOR = Q(kind__in=sorted(WORK_KINDS), archived=True)


@job(every=time(hour=3, minute=30), batch_size=5_000)
def run(*, now: datetime, batch: Batch) -> BatchReport:
    """Queue memories without a vector of the current embedding model; run it after changing the model.

    Look at the next memories by id; those that lack the vector, and are not queued yet, become due.
    """
    rows = Memory.objects.order_by("id")
    if batch.account_id is not None:
        rows = rows.filter(account_id=batch.account_id)
    if batch.cursor:
        rows = rows.filter(id__gt=UUID(batch.cursor))
    ids = list(rows.values_list("id", flat=True)[: batch.size])
    has_vector = Exists(Vector.objects.filter(memory_id=OuterRef("id"), model=embedding_provider().model))
    lacking = Memory.objects.filter(~has_vector, id__in=ids, embed_after=None).exclude(IS_STOOD_FOR)
    changed = lacking.count() if batch.dry_run else lacking.update(embed_after=now, embed_attempts=0, embed_error="")
    return BatchReport(examined=len(ids), changed=changed, cursor=str(ids[-1]) if len(ids) == batch.size else "")
