"""The outputs of exports: a file that is replaced when it is complete, or standard output."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from django.core.management.base import CommandError, OutputWrapper

from memory.services.conversations.export import Write

READER_LEFT = 141
"""Exit status after the reader of standard output has gone, as a shell reports it for SIGPIPE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The target of an export. `empty` takes back what was written, from a file that is not complete yet."""

    write: Write
    is_file: bool = False
    empty: Callable[[], object] = lambda: None


def refuse_to_replace(file: str) -> None:
    """Raise CommandError for a file that holds something: an older export may have what was erased since."""
    path = Path(file)
    if path.is_file() and path.stat().st_size:
        raise CommandError(f"{path} exists: name another file, or give --replace.")


@contextmanager
def open_output(file: str, stdout: OutputWrapper) -> Iterator[Output]:
    """Open the output. A regular file is written next to its path and renamed when it is complete."""
    if file == "-":
        with written_to(stdout) as write:
            yield Output(write=write)
        return
    path = Path(file)
    is_replaced = path.is_file() or not path.exists()
    temporary = path.with_name(f".{path.name}.{os.getpid()}") if is_replaced else path
    try:
        with temporary.open("wb") as stream:
            yield Output(write=stream.write, is_file=is_replaced, empty=lambda: stream.truncate(stream.seek(0)))
        if is_replaced:
            temporary.replace(path)
    except OSError as err:
        raise CommandError(f"{path} cannot be written: {err.strerror}") from err
    finally:
        if is_replaced:
            temporary.unlink(missing_ok=True)


@contextmanager
def written_to(stdout: OutputWrapper) -> Iterator[Write]:
    """Write bytes to standard output, whatever encoding the terminal has; a reader that leaves ends the export."""
    raw = getattr(stdout, "buffer", None)
    try:
        yield raw.write if raw else lambda piece: stdout.write(piece.decode(), ending="")
        stdout.flush()
    except BrokenPipeError:
        # nobody reads: Python must not try again when it exits
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(READER_LEFT)
