"""A server that answers each request by the next line of a script, to show a client failures."""

import socket
from threading import Event, Thread
from typing import Any, NamedTuple

from tests.concurrency import PATIENCE_SECONDS

DROP = b""
"""Close the connection instead of an answer."""
HANG = b"hang"
"""Keep the connection open and answer nothing until the server stops."""


class ReceivedRequest(NamedTuple):
    """A request as it came over the wire."""

    line: str
    headers: dict[str, str]
    body: bytes


def answer(status: int, body: bytes = b"{}", **headers: str) -> bytes:
    """Return an answer with a JSON body; underscores in names of headers stand for hyphens."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "Connection: close"]
    return f"HTTP/1.1 {status} X\r\n".encode() + "\r\n".join([*lines, "", ""]).encode() + body


class ScriptedServer:
    """A listener whose `received` are the requests so far. Use it in a `with` block."""

    def __init__(self, *script: bytes) -> None:
        self.received: list[ReceivedRequest] = []
        self._script = script
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._released = Event()
        self._thread = Thread(target=self._serve, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> "ScriptedServer":
        self._thread.start()
        return self

    def __exit__(self, *_error: Any) -> None:
        self._released.set()
        # a last connection ends a wait in accept(), if the script is not at its end
        socket.create_connection(self._listener.getsockname()).close()
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        for answer_ in self._script:
            connection, _ = self._listener.accept()
            with connection:
                if self._released.is_set():
                    return
                self.received.append(read_request(connection))
                if answer_ == HANG:
                    self._released.wait(PATIENCE_SECONDS)
                else:
                    connection.sendall(answer_)


def read_request(connection: socket.socket) -> ReceivedRequest:
    """Read one request, its body by Content-Length or in chunks."""
    with connection.makefile("rb") as wire:
        line = wire.readline().decode().strip()
        headers = {}
        while field := wire.readline().strip().decode():
            name, _, value = field.partition(":")
            headers[name.lower()] = value.strip()
        body = wire.read(int(headers.get("content-length", "0")))
        if headers.get("transfer-encoding") == "chunked":
            while size := int(wire.readline(), 16):
                body += wire.read(size)
                wire.readline()
            wire.readline()
    return ReceivedRequest(line, headers, body)
