"""Marks of erased users: keyed hashes by which what names such a user is refused, and the signatures of receipts.

Both are HMAC-SHA256 under MEMORY_TOMBSTONE_KEY, as the tombstones of facts are. A mark does not reveal the user id.
"""

import hashlib
import hmac
import json
from collections.abc import Collection, Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.errors import Conflict
from memory.identity import digest_parts
from memory.models import Account, Erasure


def sign(*parts: str) -> str:
    """Return the HMAC of the parts as 64 hexadecimal digits. Raises ImproperlyConfigured without a key."""
    key: str = settings.TOMBSTONE_KEY
    if not key:
        raise ImproperlyConfigured(
            "MEMORY_TOMBSTONE_KEY is empty: set it to a long random text, or let `make up` generate one. Without it, "
            "erased users could come back, and receipts could not be signed"
        )
    return hmac.new(key.encode(), digest_parts(*parts).encode(), hashlib.sha256).hexdigest()


def digest_subject(account_id: UUID, user_id: str) -> str:
    return sign("subject", str(account_id), user_id)


def sign_receipt(receipt: Mapping[str, Any]) -> str:
    """Return the signature of a receipt, whatever the order of its members."""
    return sign("receipt", json.dumps(receipt, sort_keys=True, ensure_ascii=False, separators=(",", ":")))


def is_signed(receipt: Mapping[str, Any], signature: str) -> bool:
    """Return True if this installation signed exactly this receipt."""
    return hmac.compare_digest(sign_receipt(receipt).encode(), signature.encode("utf-8", "replace"))


def has_erased_user(account_id: UUID, user_ids: Collection[str]) -> bool:
    """Return whether one of the users was or is being erased, and its mark not lifted. One statement, two if so."""
    if not Account.objects.filter(id=account_id, has_erasures=True).exists():
        return False
    digests = [digest_subject(account_id, user_id) for user_id in user_ids]
    return Erasure.objects.in_account(account_id).filter(subject_digest__in=digests, lifted_at=None).exists()


def refuse_erased_user(account_id: UUID, user_id: str) -> None:
    """Raise Conflict if the user was or is being erased, unless that mark was lifted. One statement; none for no user.

    It cannot be known whether something that names the user is new or comes from before the erasure.
    """
    if user_id and Erasure.objects.refusing(account_id, digest_subject(account_id, user_id)).exists():
        raise Conflict(
            "this user was erased, or is being erased: nothing may name it. If the user has come back, lift the mark "
            "with POST /subjects/{user_id}/readmit or `manage.py erase_subject --readmit`"
        )
