"""One readable log: every line says which part it came from."""

import os
import sys
from collections.abc import Mapping

WIDTH = 9
COLOURS = {"web": 36, "worker": 32, "beat": 35, "postgres": 34, "valkey": 33}
# a part that writes without line ends may not fill our memory
MAX_LINE_BYTES = 65_536


class Log:
    """Prefixed lines on standard output, coloured on a terminal (unless NO_COLOR is set)."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._is_coloured = sys.stdout.isatty() and not environ.get("NO_COLOR")

    def write(self, part: str, line: str) -> None:
        """Write one line of one part."""
        prefix = f"{part:<{WIDTH}}|"
        if self._is_coloured:
            prefix = f"\x1b[{COLOURS.get(part, 1)}m{prefix}\x1b[0m"
        self.print(f"{prefix} {line}")

    def print(self, text: str) -> None:
        """Print text without a prefix. If nobody reads any more, the parts run on in silence."""
        try:
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()
        except BrokenPipeError:
            # from here on, and at exit, write to nowhere
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError:
            # a full disk, which is waited out: the line is lost, or comes later
            return


class LineBuffer:
    """Whole lines out of a stream of bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """Return the lines that `data` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def flush(self) -> list[str]:
        """Return the rest when the stream ends."""
        rest, self._rest = self._rest, b""
        return [rest.decode(errors="replace")] if rest else []
