"""One readable log: every line says which part it came from."""

import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

WIDTH = 9
COLOURS = {"node": 36, "mcp": 35, "postgres": 34, "valkey": 33}
# a part that writes without line ends may not fill our memory
MAX_LINE_BYTES = 65_536


class Log:
    """Prefixed lines on standard output, coloured on a terminal (unless NO_COLOR is set)."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._is_json = environ.get("MEMORY_LOG_FORMAT", "").strip() == "json"
        self._is_coloured = sys.stdout.isatty() and not environ.get("NO_COLOR")

    def write(self, part: str, line: str) -> None:
        """Write one line of one part. With MEMORY_LOG_FORMAT=json, each is an object that names the part."""
        if self._is_json:
            self.print(format_as_json(part, line))
            return
        prefix = f"{part:<{WIDTH}}|"
        if self._is_coloured:
            prefix = f"\x1b[{COLOURS.get(part, 1)}m{prefix}\x1b[0m"
        self.print(f"{prefix} {line}")

    def say(self, part: str, text: str, *, level: str = "INFO") -> None:
        """Write a line of the supervisor's own about a part, with its time and level, as those of parts have."""
        now = datetime.now(UTC)
        if self._is_json:
            self.print(format_as_json(part, text, level=level))
        else:
            self.write(part, f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1_000:03} {level} {text}")

    def announce(self, facts: Mapping[str, str | None], text: str) -> None:
        """Print a text for people; for machines, the facts in it."""
        if self._is_json:
            line = {"message": "the addresses, and secrets that are shown this once", **facts}
            self.write("up", json.dumps(line))
        else:
            self.print(text)

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


def format_as_json(part: str, line: str, *, level: str = "INFO") -> str:
    """Return the part's JSON object with its name, or an object of that level around a line that is none."""
    try:
        found = json.loads(line)
    except ValueError:
        found = line
    if not isinstance(found, dict):
        found = {"time": datetime.now(UTC).isoformat(), "level": level, "logger": part, "message": line}
    return json.dumps({"part": part, **found}, ensure_ascii=False)


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
