"""Rejected facts stay rejected (B4): what is left of one is keyed hashes, which nothing of its text can be read from.

HMAC-SHA256 under MEMORY_TOMBSTONE_KEY. A tombstone is its holder's (`identity.holder`), in whatever channel the claim
is met: it matches an equal claim (`normalize_claim`) about an entity of the same name, or about none, where either
side has none.
"""

import hashlib
import hmac
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.db.models import F

from memory.audit import record
from memory.errors import NotFound
from memory.identity import digest_of, holder, normalize_claim, normalize_name
from memory.models import FactTombstone
from memory.owner import Owner

Rejectable = tuple[str, Sequence[str]]
"""A claim, and the names of what it is about: as they were said, and all that the entities go by. Any one will do."""


def keyed_digest(*parts: str) -> str:
    """64 hexadecimal digits. Raises ImproperlyConfigured without a key."""
    key: str = settings.TOMBSTONE_KEY
    if not key:
        raise ImproperlyConfigured(
            "MEMORY_TOMBSTONE_KEY is empty: give a long random text, or let `make up` make one; facts that were "
            "rejected could come back without it"
        )
    return hmac.new(key.encode(), digest_of(*parts).encode(), hashlib.sha256).hexdigest()


def digest_claim(owner: Owner, claim: str) -> str:
    return keyed_digest("claim", holder(owner), normalize_claim(claim))


def digest_names(names: Collection[str]) -> list[str]:
    """In order, each once."""
    return sorted({keyed_digest("entity", normalize_name(name)) for name in names})


def rejected_among(owner: Owner, claims: Sequence[Rejectable]) -> list[FactTombstone | None]:
    """For each claim the tombstone that it lies under, if any. One statement, none for no claims."""
    if not claims:
        return []
    digests = [digest_claim(owner, claim) for claim, _names in claims]
    rows = FactTombstone.objects.filter(account_id=owner.account_id, claim_digest__in=digests).order_by("id")
    by_claim: dict[str, list[FactTombstone]] = {}
    for tombstone in rows:
        by_claim.setdefault(tombstone.claim_digest, []).append(tombstone)
    return [
        next((each for each in by_claim.get(digest, ()) if is_about(each, names)), None)
        for digest, (_claim, names) in zip(digests, claims, strict=True)
    ]


def is_about(tombstone: FactTombstone, names: Sequence[str]) -> bool:
    """Whether something of one of these names was spoken of, or either side names nothing."""
    told: list[str] = tombstone.entity_digests
    return not told or not names or not set(told).isdisjoint(digest_names(names))


def count_met(tombstones: Collection[FactTombstone], *, now: datetime) -> None:
    """Extraction met these claims again, and left them where they are: once more each time that one is named."""
    times: dict[int, list[UUID]] = {}
    met = [tombstone.id for tombstone in tombstones]
    for tombstone_id in dict.fromkeys(met):
        times.setdefault(met.count(tombstone_id), []).append(tombstone_id)
    for count, ids in times.items():
        FactTombstone.objects.filter(id__in=ids).update(met_count=F("met_count") + count, last_met_at=now)


def bury(owner: Owner, claim: str, names: Collection[str], *, now: datetime) -> FactTombstone:
    """Leave a tombstone, in the caller's transaction; the one that is there already stays as it is."""
    claim_digest, entity_digests = digest_claim(owner, claim), digest_names(names)
    fact_digest = digest_of(claim_digest, *entity_digests)
    tombstone = FactTombstone(
        account_id=owner.account_id,
        claim_digest=claim_digest,
        entity_digests=entity_digests,
        fact_digest=fact_digest,
        rejected_by=owner.actor,
        rejected_at=now,
    )
    FactTombstone.objects.bulk_create([tombstone], ignore_conflicts=True)
    return FactTombstone.objects.get(account_id=owner.account_id, fact_digest=fact_digest)


def lift_tombstone(owner: Owner, tombstone_id: UUID) -> None:
    """Let the claim be learnt again; the fact itself stays rejected. For staff. Raises NotFound."""
    with transaction.atomic():
        rows = FactTombstone.objects.filter(account_id=owner.account_id, id=tombstone_id)
        deleted, _of_models = rows.delete()
        if not deleted:
            raise NotFound("no such tombstone")
        record(owner, operation="lift", memory_type="semantic", affected_ids=[tombstone_id])
