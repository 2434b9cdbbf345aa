"""A broker that speaks as much AMQP 0.9.1 as a publisher needs. It counts messages and can drop its connections."""

import socket
import struct
from contextlib import suppress
from threading import Thread

FRAME_END = b"\xce"
METHOD = 1
START = struct.pack(">HHBBI", 10, 10, 0, 9, 0) + struct.pack(">I", 5) + b"PLAIN" + struct.pack(">I", 5) + b"en_US"
TUNE = struct.pack(">HHHIH", 10, 30, 0, 131_072, 0)
ANSWERS = {
    (10, 11): TUNE,
    (10, 40): struct.pack(">HHB", 10, 41, 0),
    (10, 50): struct.pack(">HH", 10, 51),
    (20, 10): struct.pack(">HHI", 20, 11, 0),
    (20, 40): struct.pack(">HH", 20, 41),
    (40, 10): struct.pack(">HH", 40, 11),
    (50, 10): struct.pack(">HHBII", 50, 11, 0, 0, 0),
    (50, 20): struct.pack(">HH", 50, 21),
}
"""Answers by class and method: to connections, channels, exchanges and queues that are opened, declared and closed."""
PUBLISH = (60, 40)


class AmqpServer:
    """Listens on a port of its own until it is closed."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self.messages = 0
        host, port = self._listening.getsockname()
        self.url = f"amqp://guest:guest@{host}:{port}//"
        Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()
        self.drop_connections()

    def drop_connections(self) -> None:
        """Close all connections, as a broker that is killed does."""
        for connection in self._connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        self._connections.clear()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _address = self._listening.accept()
                self._connections.append(connection)
                Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError, ValueError), connection.makefile("rb") as stream:
            stream.read(8)
            send_method(connection, 0, START)
            while head := stream.read(7):
                kind, channel, size = struct.unpack(">BHI", head)
                body = stream.read(size + 1)
                method = struct.unpack(">HH", body[:4]) if kind == METHOD else None
                self.messages += method == PUBLISH
                if method in ANSWERS:
                    send_method(connection, channel, ANSWERS[method])


def send_method(connection: socket.socket, channel: int, body: bytes) -> None:
    connection.sendall(struct.pack(">BHI", METHOD, channel, len(body)) + body + FRAME_END)
