"""API keys after they were issued (`accounts.issue_key`): taken back."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction

from memory.audit import record
from memory.models import ApiKey
from memory.owner import Owner


def revoke_keys(owner: Owner, key_ids: Sequence[UUID], *, now: datetime) -> int:
    """Shut out those of the account's keys that are not revoked yet, from the next request on; how many there were."""
    with transaction.atomic():
        keys = ApiKey.objects.filter(account_id=owner.account_id, id__in=key_ids, revoked_at=None)
        revoked = list(keys.order_by("id").select_for_update().values_list("id", flat=True))
        ApiKey.objects.filter(id__in=revoked).update(revoked_at=now)
        if revoked:
            record(owner, operation="revoke", memory_type="api_key", affected_ids=revoked)
    return len(revoked)
