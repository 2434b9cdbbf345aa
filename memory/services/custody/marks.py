"""Marks of erased users: keyed hashes by which what names such a user is refused, and the signatures of receipts.

Both are HMAC-SHA256 under MEMORY_TOMBSTONE_KEY, as the tombstones of facts are. A mark does not reveal the user id.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory.errors import Conflict
from memory.identity import digest_parts
from memory.models import Erasure


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


def refuse_erased_user(account_id: UUID, user_id: str) -> None:
    """Raise Conflict if the user was or is being erased, unless that mark was lifted. One statement; none for no user.

    It cannot be known whether something that names the user is new or comes from before the erasure.
    """
    if user_id and Erasure.objects.refusing(account_id, digest_subject(account_id, user_id)).exists():
        raise Conflict(
            "this user was erased, or is being erased: nothing may name it. If the user has come back, lift the mark "
            "with POST /subjects/{user_id}/readmit or `manage.py erase_subject --readmit`"
        )
