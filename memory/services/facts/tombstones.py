"""Rejected facts: finding equal claims, which are rejected together, and the tombstones (B4) that they leave.

Tombstones are keyed hashes that keep rejected facts from being learned again, and reveal nothing of their texts: they
are HMAC-SHA256 under MEMORY_TOMBSTONE_KEY. A tombstone belongs to a holder (`identity.holder_key`) and applies in every
channel. It matches an equal claim (`normalize_claim`), and one that says the same value of the same subject and
attribute in other words, about an entity of the same name; where either side names no entity, the claim alone decides.
"""

import hashlib
import hmac
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction
from django.db.models import F, Q

from memory.audit import record_audit
from memory.errors import Conflict, NotFound
from memory.extraction.rules.attributes import is_same_meaning, meaning_of, read_meaning
from memory.identity import digest_parts, holder_key, normalize_claim, normalize_name
from memory.models import Fact, FactTombstone, Link
from memory.owner import Owner
from memory.services.entities.resolve import filter_by_holder
from memory.services.facts.store import entity_names_by_fact
from memory.services.memories.links import PROMOTED_FROM

NamedClaim = tuple[str, Sequence[str]]
"""A claim and the names of what it is about, as written or as known for the entities. One matching name is enough."""


def tombstone_key() -> str:
    """Return the key of the digests. Raises ImproperlyConfigured without one."""
    key: str = settings.TOMBSTONE_KEY
    if not key:
        raise ImproperlyConfigured(
            "MEMORY_TOMBSTONE_KEY is empty: set it to a long random text, or let `make up` generate one. Without it, "
            "rejected facts could be learned again"
        )
    return key


def keyed_digest(*parts: str) -> str:
    """Return 64 hexadecimal digits. Raises ImproperlyConfigured without a key."""
    return hmac.new(tombstone_key().encode(), digest_parts(*parts).encode(), hashlib.sha256).hexdigest()


def digest_claim(owner: Owner, claim: str) -> str:
    return keyed_digest("claim", holder_key(owner), normalize_claim(claim))


def digest_meaning(owner: Owner, claim: str) -> str:
    """Return the digest that paraphrases of a claim share; empty if the claim is not understood."""
    meaning = meaning_of(read_meaning(claim))
    return keyed_digest("meaning", holder_key(owner), *meaning) if meaning else ""


def digest_names(names: Collection[str]) -> list[str]:
    """Return the sorted digests of the distinct names."""
    return sorted({keyed_digest("entity", normalize_name(name)) for name in names})


def find_tombstones(owner: Owner, claims: Sequence[NamedClaim]) -> list[FactTombstone | None]:
    """Return for each claim the tombstone that matches it, or None. One statement; none for no claims."""
    if not claims:
        return []
    digests = [(digest_claim(owner, claim), digest_meaning(owner, claim)) for claim, _names in claims]
    sought = {digest for pair in digests for digest in pair} - {""}
    is_sought = Q(claim_digest__in=sought) | Q(meaning_digest__gt="", meaning_digest__in=sought)
    rows = FactTombstone.objects.filter(is_sought, account_id=owner.account_id).order_by("id")
    by_digest: dict[str, list[FactTombstone]] = defaultdict(list)
    for tombstone in rows:
        by_digest[tombstone.claim_digest].append(tombstone)
        by_digest[tombstone.meaning_digest].append(tombstone)
    return [
        next((each for digest in pair if digest for each in by_digest[digest] if names_match(each, names)), None)
        for pair, (_claim, names) in zip(digests, claims, strict=True)
    ]


def names_match(tombstone: FactTombstone, names: Sequence[str]) -> bool:
    """Return True if one of the names is the tombstone's, or either side has no names."""
    buried: list[str] = tombstone.entity_digests
    return not buried or not names or not set(buried).isdisjoint(digest_names(names))


def refuse_rejected_claims(owner: Owner, claims: Sequence[NamedClaim]) -> None:
    """Raise Conflict if one of the claims lies under a tombstone."""
    if any(find_tombstones(owner, claims)):
        raise Conflict("this claim was rejected; staff can lift its tombstone to allow it again")


def count_tombstone_matches(owner: Owner, tombstones: Collection[FactTombstone], *, now: datetime) -> None:
    """Count that extraction met these rejected claims again, once for each occurrence in `tombstones`."""
    times: dict[int, list[UUID]] = defaultdict(list)
    for tombstone_id, count in Counter(tombstone.id for tombstone in tombstones).items():
        times[count].append(tombstone_id)
    for count, ids in times.items():
        rows = FactTombstone.objects.filter(account_id=owner.account_id, id__in=ids)
        rows.update(met_count=F("met_count") + count, last_met_at=now)


def add_tombstone(owner: Owner, claim: str, names: Collection[str], *, now: datetime) -> FactTombstone:
    """Return the tombstone of the claim, created in the caller's transaction unless it exists."""
    claim_digest, entity_digests = digest_claim(owner, claim), digest_names(names)
    fact_digest = digest_parts(claim_digest, *entity_digests)
    tombstone = FactTombstone(
        account_id=owner.account_id,
        claim_digest=claim_digest,
        entity_digests=entity_digests,
        meaning_digest=digest_meaning(owner, claim),
        fact_digest=fact_digest,
        rejected_by=owner.actor,
        rejected_at=now,
    )
    FactTombstone.objects.bulk_create([tombstone], ignore_conflicts=True)
    return FactTombstone.objects.get(account_id=owner.account_id, fact_digest=fact_digest)


def lift_tombstone(owner: Owner, tombstone_id: UUID) -> None:
    """Allow the claim to be learned again, for staff; the fact itself stays rejected. Raises NotFound."""
    with transaction.atomic():
        rows = FactTombstone.objects.filter(account_id=owner.account_id, id=tombstone_id)
        deleted, _of_models = rows.delete()
        if not deleted:
            raise NotFound("no such tombstone")
        record_audit(owner, operation="lift", memory_type="semantic", affected_ids=[tombstone_id])


BELIEVED_OR_PENDING = Q(recorded_at__isnull=False, retracted_at=None) | Q(status=Fact.Status.PENDING)
"""Facts that are believed, or wait for staff to decide whether they are."""


def find_equal_claims(holder: Owner, fact: Fact) -> list[UUID]:
    """Return the ids of the holder's other believed or pending facts with an equal claim or meaning, ordered.

    They may be in any channel, and must be about an entity of the same name; where either is about nothing, the claim
    alone decides. Copies made by globalizing count whatever they are about. Reads all facts of the holder, as no index
    holds normalized claims.
    """
    rows = Fact.objects.filter(filter_by_holder(holder), BELIEVED_OR_PENDING, account_id=holder.account_id)
    texts = rows.exclude(pk=fact.pk).order_by("id").values_list("id", "text", "attribute").iterator()
    same = [fact_id for fact_id, text, attribute in texts if says_the_same(fact, text, attribute)]
    if not same:
        return []
    names = entity_names_by_fact(holder.account_id, [fact.id, *same])
    links = Link.objects.filter(Q(source_id=fact.id) | Q(target_id=fact.id), account_id=fact.account_id)
    copied = links.filter(type=PROMOTED_FROM).values_list("source_id", "target_id")
    copies = {end for pair in copied for end in pair}
    return [each for each in same if each in copies or shares_a_name(names.get(fact.id, ()), names.get(each, ()))]


def shares_a_name(ours: Collection[str], theirs: Collection[str]) -> bool:
    """Return True if the two lists have a normalized name in common, or one of them is empty."""
    if not ours or not theirs:
        return True
    return not {normalize_name(name) for name in ours}.isdisjoint(normalize_name(name) for name in theirs)


def filter_equal_claims(fact: Fact, fact_ids: Collection[UUID]) -> list[Fact]:
    """Return those of the locked facts that are still believed or pending, and still have an equal claim."""
    if not fact_ids:
        return []
    rows = Fact.objects.filter(BELIEVED_OR_PENDING, account_id=fact.account_id, id__in=fact_ids)
    return [each for each in rows.order_by("id") if says_the_same(fact, each.text, each.attribute)]


def says_the_same(fact: Fact, claim: str, attribute: str | None) -> bool:
    """Return True if a claim about this attribute equals that of the fact, or means the same."""
    if normalize_claim(fact.text) == normalize_claim(claim):
        return True
    may_mean_it = bool(fact.attribute) and fact.attribute == attribute
    return may_mean_it and is_same_meaning(read_meaning(fact.text), read_meaning(claim))
