"""Requests that are broken on purpose, byte by byte, over raw sockets."""

import random
import socket
import time
from collections.abc import Callable
from contextlib import suppress

READ_SECONDS = 2.0
MAX_READ_BYTES = 256 * 1024
MAX_MUTATIONS = 4
JUNK = (
    *(
        b"\0",
        b"\r\n",
        b"\n",
        b"\r",
        b" ",
        b"\t",
        b":",
        b"%",
        b"%2F",
        b"%00",
        b"..",
        b"\xff\xfe",
        b"\xf0\x9f\x92\xa9",
        b"{" * 500,
    ),
    *(b"-1", b"0x10", b"1e9", b"99999999999999999999", b"Transfer-Encoding: chunked\r\n", b"Content-Length: 5\r\n"),
    *(b"Expect: 100-continue\r\n", b"Upgrade: websocket\r\n", b"HTTP/9.9", b"A" * 10_000, b'"\\ud800"'),
)


class MalformedSender:
    """A client each of whose requests is a valid one that was broken at random, on a connection of its own."""

    def __init__(self, port: int, *, key: str, seed: int) -> None:
        self._port, self._random = port, random.Random(seed)  # noqa: S311  no secret
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n".encode()
        body = b'{"agent_id": "fuzz", "text": "The keel broke.", "metadata": {"a": [1, 2.5, null]}}'
        sized = head + b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        chunked = head + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        self._requests = (
            b"GET /api/v1/agents?limit=5 HTTP/1.1\r\n" + head + b"\r\n",
            b"GET /api/v1/conversations/a%2Fb HTTP/1.1\r\n" + head + b"\r\n",
            b"POST /api/v1/memories HTTP/1.1\r\n" + sized + body,
            b"POST /api/v1/memories HTTP/1.1\r\n" + chunked + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body),
        )

    def ask(self) -> int:
        """Return the status of the answer to a broken request, 0 for a connection that was ended without one."""
        data = bytearray(self._random.choice(self._requests))
        for _ in range(self._random.randint(1, MAX_MUTATIONS)):
            self._random.choice(MUTATIONS)(self._random, data)
        with socket.create_connection(("127.0.0.1", self._port), timeout=READ_SECONDS) as wire:
            # the server may end it while it is written to or read
            with suppress(OSError):
                wire.sendall(data)
                wire.shutdown(socket.SHUT_WR)
            return status_of(read_answer(wire))

    def close(self) -> None:
        """Do nothing: each request has closed its connection."""


def read_answer(wire: socket.socket) -> bytes:
    """Return what arrives until the end, or until READ_SECONDS have passed."""
    found, ends_at = b"", time.monotonic() + READ_SECONDS
    with suppress(OSError):
        while len(found) < MAX_READ_BYTES and time.monotonic() < ends_at and (data := wire.recv(65_536)):
            found += data
    return found


def status_of(answer: bytes) -> int:
    """Return the highest status of the answers: a broken request may count as several."""
    starts = [line for line in answer.split(b"\n") if line.startswith(b"HTTP/1.")]
    return max((int(line[9:12]) for line in starts if line[9:12].isdigit()), default=0)


def insert_junk(source: random.Random, data: bytearray) -> None:
    place = source.randint(0, len(data))
    data[place:place] = source.choice(JUNK)


def flip_bytes(source: random.Random, data: bytearray) -> None:
    for _ in range(min(3, len(data))):
        data[source.randrange(len(data))] = source.randrange(256)


def cut_off(source: random.Random, data: bytearray) -> None:
    del data[source.randint(0, len(data)) :]


def repeat_part(source: random.Random, data: bytearray) -> None:
    first, last = sorted(source.randint(0, len(data)) for _ in range(2))
    data[first:first] = data[first:last] * source.randint(1, 5)


def drop_part(source: random.Random, data: bytearray) -> None:
    first = source.randint(0, len(data))
    del data[first : first + source.randint(1, 40)]


MUTATIONS: tuple[Callable[[random.Random, bytearray], None], ...] = (
    insert_junk,
    flip_bytes,
    cut_off,
    repeat_part,
    drop_part,
)
