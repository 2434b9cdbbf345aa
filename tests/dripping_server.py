"""A server that begins to answer and never comes to an end: a line of headers now and then, on every connection."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from threading import Event, Thread

import pytest


class DrippingServer:
    """A listener whose `connections` counts the connections that it has accepted."""

    def __init__(self) -> None:
        self.connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._released = Event()
        self._threads = [Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while not self._released.is_set():
            connection, _ = self._listener.accept()
            self.connections += 1
            drip = Thread(target=self._drip, args=(connection,))
            self._threads.append(drip)
            drip.start()

    def _drip(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not self._released.wait(0.05):
                connection.sendall(b"X-More: yes\r\n")

    def release(self) -> None:
        self._released.set()
        # a last connection ends the wait in accept()
        socket.create_connection(self._listener.getsockname()).close()
        for thread in self._threads:
            thread.join()
        self._listener.close()


@pytest.fixture
def dripping_server() -> Iterator[DrippingServer]:
    server = DrippingServer()
    yield server
    server.release()
