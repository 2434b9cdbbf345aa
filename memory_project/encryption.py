"""What is encrypted at rest: Fernet (AES-128-CBC with HMAC-SHA256) under MEMORY_ENCRYPTION_KEYS.

The first key seals, all of them open, so that a new key is put in front, what is stored is sealed anew
(`manage.py rotate_encryption_keys`), and the old key is taken away. Keys that are kept beside the data, since the
environment gives none, are read again whenever their file changes: no process goes on with those of yesterday.
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
"""What tells one state of a file from another: its inode, its size, when it was written."""


class SealBroken(Exception):  # noqa: N818 - the name says what happened
    """None of the keys opens it: it was sealed under another, or is damaged."""


def seal(plain: bytes) -> bytes:
    """Raises ImproperlyConfigured without a key."""
    return fernets(current_keys()).all.encrypt(plain)


def unseal(sealed: bytes) -> bytes:
    """Raises SealBroken, ImproperlyConfigured without a key."""
    try:
        return fernets(current_keys()).all.decrypt(sealed)
    except InvalidToken as err:
        raise SealBroken("none of MEMORY_ENCRYPTION_KEYS opens it") from err


def is_current(sealed: bytes) -> bool:
    """Whether the first key opens it. Raises ImproperlyConfigured without a key."""
    try:
        fernets(current_keys()).first.decrypt(sealed)
    except InvalidToken:
        return False
    return True


def seal_anew(sealed: bytes) -> bytes:
    """The same under the first key; when it was sealed stays as it was. Raises as `unseal` does."""
    try:
        return fernets(current_keys()).all.rotate(sealed)
    except InvalidToken as err:
        raise SealBroken("none of MEMORY_ENCRYPTION_KEYS opens it") from err


def check_keys() -> None:
    """Raises ImproperlyConfigured without a key, and for what is none."""
    fernets(current_keys())


def current_keys() -> tuple[str, ...]:
    """Those of the environment, else those in the file beside the data, as it is now; the first one seals."""
    if settings.ENCRYPTION_KEYS:
        return tuple(settings.ENCRYPTION_KEYS)
    return kept_keys(settings.ENCRYPTION_KEYS_FILE)


def kept_keys(file: Path) -> tuple[str, ...]:
    """The keys in a file; none where there is no file."""
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


def put_key_in_front() -> Path:
    """Make a key and put it in front of those beside the data, which all processes seal under from then on.

    The file is replaced whole, and only its owner may read it. Returns where it is. Raises ImproperlyConfigured where
    the environment gives the keys: nothing here could change that.
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
    """Nobody else puts a key in front meanwhile, or one of two would be lost with all that is sealed under it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


def write_privately(file: Path, text: str) -> None:
    """Replace a file whole or not at all, for its owner's eyes only: on the disk before it is in its place."""
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
    """Give it to whose the file was: root may rotate the keys of a service that runs as somebody else."""
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
    """Raises ImproperlyConfigured for none, and for what is no key; the message quotes none."""
    if not keys:
        raise ImproperlyConfigured(
            "MEMORY_ENCRYPTION_KEYS is empty: give one or more Fernet keys, by commas, or let `make up` make one"
        )
    try:
        return Fernets(keys)
    except ValueError:
        # not chained: what it quotes may be of a key
        raise ImproperlyConfigured("MEMORY_ENCRYPTION_KEYS holds what is no Fernet key") from None
