"""Staff's hand in votes on learnings: one is taken away, and the learning is scored by those that are left."""

from typing import Any
from uuid import UUID

from django.db import transaction

from memory.audit import record
from memory.errors import NotFound
from memory.models import Learning, LearningVote
from memory.owner import Owner
from memory.services.learnings.publish import count_votes


def delete_vote(owner: Owner, vote_id: UUID) -> None:
    """Also on a learning that was removed. Raises NotFound."""
    with transaction.atomic():
        votes = LearningVote.objects.filter(account_id=owner.account_id, id=vote_id)
        rows: Any = Learning.objects.filter(account_id=owner.account_id, pk__in=votes.values("learning_id"))
        # as who votes does: counts are kept one by one
        learning = rows.select_for_update(of=("self", "memory_ptr")).first()
        if learning is None or not votes.delete()[0]:
            raise NotFound("no such vote")
        count_votes(learning)
        record(owner, operation="delete_vote", memory_type="semantic", affected_ids=[learning.id, vote_id])
