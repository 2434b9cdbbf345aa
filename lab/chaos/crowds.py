"""A crowd of connections that keep a web server busy without asking for much: `python -m lab.chaos.crowds PORT`.

Connections that the server ends are opened again, so that the crowd stays as large as it was asked to be. Each kind
comes from an address of its own on the loopback network.
"""

import argparse
import math
import random
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

DRIP_SECONDS = 1.0
TICK_SECONDS = 0.1
OPENED_PER_TICK = 100
READ_SECONDS = 20.0
"""Seconds after which a reader that read nothing is replaced: that the server gave it up cannot be seen from here."""
HEAD = (
    b"POST /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Content-Length: 60000\r\n\r\n"
)
QUESTION = b"GET /api/schema?format=json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@dataclass(slots=True, kw_only=True)
class Crowd:
    """Connections of one kind. `first` is sent when one opens, and a byte a second afterwards if it `drips`."""

    source: str
    count: int
    first: bytes
    drips: bool = False
    max_seconds: float = math.inf
    wires: dict[socket.socket, float] = field(default_factory=dict)
    """The connections, and when each was opened."""

    def tend(self, port: int) -> None:
        """Drop connections that have ended, send a byte on the others, and open those that are missing."""
        now = time.monotonic()
        for wire, opened_at in [*self.wires.items()]:
            if now > opened_at + self.max_seconds or self.has_ended(wire):
                del self.wires[wire]
                wire.close()
        for _ in range(min(self.count - len(self.wires), OPENED_PER_TICK)):
            with suppress(OSError):
                self.wires[self.open(port)] = now

    def open(self, port: int) -> socket.socket:
        wire = socket.socket()
        # a small window, or the answer would be in our buffers
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        wire.settimeout(1)
        wire.bind((self.source, 0))
        wire.connect(("127.0.0.1", port))
        if self.first:
            wire.sendall(self.first)
        wire.setblocking(False)
        return wire

    def has_ended(self, wire: socket.socket) -> bool:
        """Return whether the server has ended the connection. Those that drip send a byte now and then."""
        try:
            if self.drips and random.random() < TICK_SECONDS / DRIP_SECONDS:  # noqa: S311  when matters little
                wire.send(b" ")
            if self.max_seconds == math.inf:
                # whatever arrives is the end, or a refusal
                wire.recv(1)
                return True
        except BlockingIOError:
            return False
        except OSError:
            return True
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    for kind in ("idle", "writers", "readers"):
        parser.add_argument(f"--{kind}", type=int, default=0)
    options = parser.parse_args()
    crowds = [
        Crowd(source="127.0.0.2", count=options.idle, first=b""),
        Crowd(source="127.0.0.3", count=options.writers, first=HEAD, drips=True),
        Crowd(source="127.0.0.4", count=options.readers, first=QUESTION, max_seconds=READ_SECONDS),
    ]
    keep_open(crowds, options.port, say=lambda text: sys.stdout.write(f"{text}\n") and sys.stdout.flush())


def keep_open(crowds: list[Crowd], port: int, *, say: Callable[[str], object]) -> None:
    """Keep the connections of the crowds open until killed; say "held" once all are there."""
    is_held = False
    while True:
        for crowd in crowds:
            crowd.tend(port)
        if not is_held and all(len(crowd.wires) == crowd.count for crowd in crowds):
            is_held = True
            say("held")
        time.sleep(TICK_SECONDS)


if __name__ == "__main__":
    main()
