"""What is encrypted at rest: Fernet (AES-128-CBC with HMAC-SHA256) under MEMORY_ENCRYPTION_KEYS.

The first key seals, all of them open, so that a new key is put in front, what is stored is sealed anew
(`manage.py rotate_encryption_keys`), and the old key is taken away.
"""

from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class SealBroken(Exception):  # noqa: N818 - the name says what happened
    """None of the keys opens it: it was sealed under another, or is damaged."""


def seal(plain: bytes) -> bytes:
    """Raises ImproperlyConfigured without a key."""
    return fernet(tuple(settings.ENCRYPTION_KEYS)).encrypt(plain)


def unseal(sealed: bytes) -> bytes:
    """Raises SealBroken, ImproperlyConfigured without a key."""
    try:
        return fernet(tuple(settings.ENCRYPTION_KEYS)).decrypt(sealed)
    except InvalidToken as err:
        raise SealBroken("none of MEMORY_ENCRYPTION_KEYS opens it") from err


@lru_cache(maxsize=4)
def fernet(keys: tuple[str, ...]) -> MultiFernet:
    if not keys:
        raise ImproperlyConfigured(
            "MEMORY_ENCRYPTION_KEYS is empty: give one or more Fernet keys, by commas, or let `make up` make one"
        )
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as err:
        # its own words quote nothing, but say nothing of the setting either
        raise ImproperlyConfigured("MEMORY_ENCRYPTION_KEYS holds what is no Fernet key") from err
