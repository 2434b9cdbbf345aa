"""The server as `make up` runs it, on a free port and for as long as it is measured."""

import http.client
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from lab.ports import find_port
from memory_project.embedded.daemons import signal_on_parent_death
from memory_project.embedded.paths import PROJECT
from memory_project.encryption import current_keys
from memory_project.supervisor.parts import Address, web_part

START_SECONDS = 120.0
REQUEST_SECONDS = 90.0
STOP_SECONDS = 15.0
POLL_SECONDS = 0.05
UNLIMITED = "100000000"


class KeepAliveClient:
    """One connection, one key; what a request sends is made before it is measured."""

    def __init__(self, address: Address, secret: str) -> None:
        self._connection = http.client.HTTPConnection(address.host, address.port, timeout=REQUEST_SECONDS)
        self._headers = {"Authorization": f"Bearer {secret}"}

    def request(
        self, method: str, path: str, body: bytes | None = None, *, content_type: str = "application/json"
    ) -> bytes:
        """Send a request and return its answer. Raises CommandError for any answer but success."""
        headers = {**self._headers, "Content-Type": content_type}
        self._connection.request(method, path, body=body, headers=headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise CommandError(f"{method} {path} answered {response.status}: {answer[:300].decode(errors='replace')}")
        return answer

    def close(self) -> None:
        self._connection.close()


def encode(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body).encode()


@contextmanager
def web_server(variables: Mapping[str, str] = MappingProxyType({})) -> Iterator[Address]:
    """Run the web server as `make up` does, without rate limits, over the servers of this process."""
    address = Address(host="127.0.0.1", port=find_port(), health_port=find_port())
    with tempfile.TemporaryDirectory(prefix="agent-memory-bench-") as folder, tempfile.TemporaryFile() as log:
        part = web_part(address)
        process = subprocess.Popen(  # noqa: S603  our own command line
            part.command,
            cwd=PROJECT,
            env={**os.environ, **server_variables(folder), **variables},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            # a terminal's Ctrl-C is for us alone, and if we are killed it goes too
            start_new_session=True,
            preexec_fn=signal_on_parent_death(signal.SIGTERM),
        )
        try:
            wait_until_up(process, address)
            yield address
        finally:
            stop(process)


def server_variables(folder: str) -> dict[str, str]:
    """Return the variables of a server with a data folder of its own, or its counters would be a running service's.

    It has the secrets of this process, all of them: those of a running service may lie in that one's folder.
    """
    return {
        "MEMORY_SECRET_KEY": settings.SECRET_KEY,
        "MEMORY_ENCRYPTION_KEYS": ",".join(current_keys()),
        "MEMORY_TOMBSTONE_KEY": settings.TOMBSTONE_KEY,
        "MEMORY_DATA_DIR": folder,
        "MEMORY_RATE_LIMIT_PER_MINUTE": UNLIMITED,
        "MEMORY_RETRIEVAL_RATE_LIMIT_PER_MINUTE": UNLIMITED,
        "MEMORY_LOG_LEVEL": "WARNING",
    }


def wait_until_up(process: "subprocess.Popen[bytes]", address: Address) -> None:
    """Wait until the server answers. Raises CommandError if it ends instead, or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection((address.host, address.port), timeout=POLL_SECONDS).close()
        except OSError:
            time.sleep(POLL_SECONDS)
        else:
            return
    raise CommandError("The web server did not come up.")


def stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        # its workers, too, or they go on answering
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
