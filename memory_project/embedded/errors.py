"""What can go wrong before the service runs, each said in one sentence to the person at the terminal.

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
    """A full disk or a missing permission is the reader's to mend: the path and the reason, no traceback."""
    try:
        yield
    except OSError as err:
        where = f"{err.filename}: " if err.filename else ""
        raise EmbeddedServerError(f"{where}{err.strerror or err}.") from err
