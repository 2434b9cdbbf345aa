"""Errors before the service runs, each a sentence for the person at the terminal.

EmbeddedServerError
  LockHeldError    another process holds a lock for longer than we wait
"""

from collections.abc import Iterator
from contextlib import contextmanager


class EmbeddedServerError(Exception):
    """The text is a whole sentence: what is wrong and what to do about it."""


class LockHeldError(EmbeddedServerError):
    """Another process has the lock."""


@contextmanager
def os_errors_as_sentences() -> Iterator[None]:
    """Turn an OSError (a full disk, a missing permission) into a sentence with the path and the reason."""
    try:
        yield
    except OSError as err:
        where = f"{err.filename}: " if err.filename else ""
        raise EmbeddedServerError(f"{where}{err.strerror or err}.") from err
