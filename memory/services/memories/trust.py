"""The trust of what is derived from turns without links to them: the minimum over its sources.

Memories with links DERIVED_FROM or PROMOTED_FROM get it by triggers (migration 0034).
"""

from collections.abc import Collection, Iterable
from uuid import UUID

from django.db.models import Min

from memory.models import Turn

FULL_TRUST = 1.0


def least_trust(trusts: Iterable[float]) -> float:
    return min(trusts, default=FULL_TRUST)


def least_trust_of_conversations(account_id: UUID, conversation_ids: Collection[str]) -> float:
    """Return the trust of the least trusted turn of these conversations. One statement."""
    turns = Turn.objects.filter(account_id=account_id, conversation_id__in=[each for each in conversation_ids if each])
    least = turns.aggregate(least=Min("trust"))["least"]
    return FULL_TRUST if least is None else float(least)
