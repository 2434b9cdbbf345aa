"""Encryption at rest: Fernet (AES-128-CBC with HMAC-SHA256) under MEMORY_ENCRYPTION_KEYS.

The first key encrypts, all of them decrypt. To change the key, put a new one in front, re-encrypt what is stored
(`manage.py rotate_encryption_keys`), and remove the old one. Keys that are stored next to the data, because the
environment gives none, are read again whenever their file changes, so that no process works with outdated ones.
"""

import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

Stamp = tuple[int, int, int]
"""A state of a file: its inode, its size, and when it was written."""


class SealBroken(Exception):  # noqa: N818 - the name says what happened
    """An encrypted value that no configured key decrypts: it was encrypted under another one, or is damaged."""


def seal(plain: bytes) -> bytes:
    """Encrypt under the first key. Raises ImproperlyConfigured without a key."""
    return fernets(current_keys()).all.encrypt(plain)


def unseal(sealed: bytes) -> bytes:
    """Decrypt under any of the keys. Raises SealBroken, and ImproperlyConfigured without a key."""
    try:
        return fernets(current_keys()).all.decrypt(sealed)
    except InvalidToken as err:
        raise SealBroken("none of MEMORY_ENCRYPTION_KEYS opens it") from err


def is_current(sealed: bytes) -> bool:
    """Return whether the first key decrypts it. Raises ImproperlyConfigured without a key."""
    try:
        fernets(current_keys()).first.decrypt(sealed)
    except InvalidToken:
        return False
    return True


def seal_anew(sealed: bytes) -> bytes:
    """Re-encrypt under the first key and keep the time of the first encryption. Raises as `unseal` does."""
    try:
        return fernets(current_keys()).all.rotate(sealed)
    except InvalidToken as err:
        raise SealBroken("none of MEMORY_ENCRYPTION_KEYS opens it") from err


def check_encryption_keys() -> None:
    """Check that keys are configured and well-formed. Raises ImproperlyConfigured."""
    fernets(current_keys())


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
    """Keys by commas."""
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
        # what is none is told before anything is sealed beside it
        fernets(keys)
        write_privately(file, ",".join(keys))
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


def write_privately(file: Path, text: str) -> None:
    """Replace a file whole or not at all, readable for its owner only; it is on disk before it takes its place."""
    scratch = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(descriptor, "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        keep_owner(scratch, file)
        scratch.replace(file)
    finally:
        scratch.unlink(missing_ok=True)


def keep_owner(scratch: Path, file: Path) -> None:
    """Give the new file the former one's owner: root may rotate the keys of a service that runs as another user."""
    if os.geteuid() == 0 and file.exists():
        was = file.stat()
        os.chown(scratch, was.st_uid, was.st_gid)


class Fernets:
    """The keys ready for use: `first` seals, `all` open."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        made = [Fernet(key) for key in keys]
        self.first, self.all = made[0], MultiFernet(made)


@lru_cache(maxsize=4)
def fernets(keys: tuple[str, ...]) -> Fernets:
    """Return the ciphers of these keys.

    Raises ImproperlyConfigured if there are none or one is malformed; the message quotes none of them.
    """
    if not keys:
        raise ImproperlyConfigured(
            "MEMORY_ENCRYPTION_KEYS is empty: give one or more Fernet keys, by commas, or let `make up` make one"
        )
    try:
        return Fernets(keys)
    except ValueError:
        # not chained: what it quotes may be of a key
        raise ImproperlyConfigured("MEMORY_ENCRYPTION_KEYS holds what is no Fernet key") from None
