"""Ports of this machine for servers that benchmarks and tests start."""

from contextlib import suppress
from random import SystemRandom
from socket import create_server

PORTS = range(20_000, 32_768)
"""Below the ports that Linux gives to outgoing connections, one of which could take a port before its server does."""

_given: set[int] = set()


def find_port() -> int:
    """Return a port on which nothing listens, never the same one twice in a process."""
    while True:
        port = SystemRandom().choice(PORTS)
        with suppress(OSError):
            if port not in _given:
                create_server(("", port)).close()
                _given.add(port)
                return port
