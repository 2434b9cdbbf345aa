"""The action that makes memories as salient as they can be, so that recalls prefer them. Pinning shows them always."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from memory.models import Memory
from memory.owner import Owner
from memory.services.bulk.actions import BulkAction, BulkResult, change_each
from memory.services.memories.correct import correct_memory

BOOSTED_SALIENCE = 1.0


def boost_rows(owner: Owner, row_ids: Sequence[UUID], now: datetime) -> BulkResult:
    rows = Memory.objects.visible_to(owner).filter(id__in=row_ids, salience__lt=BOOSTED_SALIENCE)
    changes = {"salience": BOOSTED_SALIENCE}
    return change_each(
        rows.only("id", "account_id", "version").order_by("-pk"),
        lambda row: correct_memory(owner, row.pk, changes=changes, version=row.version, now=now),
    )


BOOST = BulkAction(
    name="boost",
    label="Boost selected %(verbose_name_plural)s",
    done="Boosted",
    apply=boost_rows,
    explanation="Their salience becomes 1, the greatest there is. It decays again if nobody reads them.",
)
