"""Encryption at rest: Fernet (AES-128-CBC with HMAC-SHA256) under MEMORY_ENCRYPTION_KEYS.

The first key encrypts, all of them decrypt. To change the key, put a new one in front, re-encrypt what is stored
(`manage.py rotate_encryption_keys`), and remove the old one. Keys that are stored next to the data, because the
environment gives none, are read again whenever their file changes, so that no process works with outdated ones.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils.module_loading import import_string

from memory_project.files import scratch_file

Stamp = tuple[int, int, int]
"""A state of a file: its inode, its size, and when it was written."""


class SealBroken(Exception):  # noqa: N818 - the name says what happened
    """An encrypted value that no configured key decrypts: it was encrypted under another one, or is damaged."""


def seal(plain: bytes) -> bytes:
    """Encrypt under the first key. Raises ImproperlyConfigured without a key."""
    return make_fernets(current_keys())[1].encrypt(plain)


def unseal(sealed: bytes) -> bytes:
    """Decrypt under any of the keys. Raises SealBroken, and ImproperlyConfigured without a key."""
    try:
        return make_fernets(current_keys())[1].decrypt(sealed)
    except InvalidToken as err:
        raise SealBroken("none of MEMORY_ENCRYPTION_KEYS opens it") from err


def is_current(sealed: bytes) -> bool:
    """Return whether the first key decrypts it. Raises ImproperlyConfigured without a key."""
    try:
        make_fernets(current_keys())[0].decrypt(sealed)
    except InvalidToken:
        return False
    return True


def seal_anew(sealed: bytes) -> bytes:
    """Re-encrypt under the first key and keep the time of the first encryption. Raises as `unseal` does."""
    try:
        return make_fernets(current_keys())[1].rotate(sealed)
    except InvalidToken as err:
        raise SealBroken("none of MEMORY_ENCRYPTION_KEYS opens it") from err


def check_encryption_keys() -> None:
    """Check that keys are configured and well-formed. Raises ImproperlyConfigured."""
    make_fernets(current_keys())


def check_database_keys() -> None:
    """Check at the start of a process that the keys are those of its database, too. Raises ImproperlyConfigured."""
    try:
        import_string(settings.KEY_CHECK)()
    finally:
        connection: Any = connections["default"]
        connection.close()
        # processes that are forked later must not share its connections
        connection.close_pool()


def name_key_source() -> str:
    """Return where the keys come from, for people: the variable or the file."""
    return "MEMORY_ENCRYPTION_KEYS" if settings.ENCRYPTION_KEYS else str(settings.ENCRYPTION_KEYS_FILE)


def current_keys() -> tuple[str, ...]:
    """Return the keys of the environment, or else those in the file next to the data, as it is now."""
    if settings.ENCRYPTION_KEYS:
        return tuple(settings.ENCRYPTION_KEYS)
    return kept_keys(settings.ENCRYPTION_KEYS_FILE)


def kept_keys(file: Path) -> tuple[str, ...]:
    """Return the keys in a file; none if it does not exist."""
    try:
        state = file.stat()
    except FileNotFoundError:
        return ()
    return read_keys(file, (state.st_ino, state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=4)
def read_keys(file: Path, _stamp: Stamp) -> tuple[str, ...]:
    return tuple(split_keys(file.read_text()))


def split_keys(text: str) -> list[str]:
    """Return the keys of a text that separates them by commas."""
    return [key for key in map(str.strip, text.split(",")) if key]


def add_encryption_key() -> Path:
    """Generate a key and put it in front of those next to the data; all processes encrypt under it from then on.

    The file is replaced whole, and only its owner may read it. Returns its path. Raises ImproperlyConfigured if the
    environment gives the keys: nothing here could change that.
    """
    if settings.ENCRYPTION_KEYS:
        raise ImproperlyConfigured("MEMORY_ENCRYPTION_KEYS gives the keys: put the new one in front there")
    file: Path = settings.ENCRYPTION_KEYS_FILE
    with locked_folder(file.parent) as folder:
        keys = (Fernet.generate_key().decode(), *kept_keys(file))
        # an invalid key is reported before anything is encrypted with it
        make_fernets(keys)
        with scratch_file(file, ",".join(keys).encode()) as scratch:
            scratch.replace(file)
        os.fsync(folder)
    return file


@contextmanager
def locked_folder(folder: Path) -> Iterator[int]:
    """Lock the folder, so that two processes that add a key do not lose one of them with all that it encrypted."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@lru_cache(maxsize=4)
def make_fernets(keys: tuple[str, ...]) -> tuple[Fernet, MultiFernet]:
    """Return the cipher of the first key, and that of all of them: the first encrypts, all decrypt.

    Raises ImproperlyConfigured if there are none or one is malformed; the message quotes none of them.
    """
    if not keys:
        raise ImproperlyConfigured(
            "MEMORY_ENCRYPTION_KEYS is empty: give one or more Fernet keys, by commas, or let `make up` make one"
        )
    try:
        made = [Fernet(key) for key in keys]
    except ValueError:
        # not chained: what it quotes may be of a key
        raise ImproperlyConfigured("MEMORY_ENCRYPTION_KEYS holds what is no Fernet key") from None
    return made[0], MultiFernet(made)
