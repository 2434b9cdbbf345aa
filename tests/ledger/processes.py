"""Real processes of the service's code, to be killed or to lose their stores."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from memory_project.redis import client


def start_python(source: str, *args: str, **environment: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "memory_project.settings", **environment}
    command = [sys.executable, "-c", source, *args]
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@contextmanager
def redis_that_hangs_at(command: bytes) -> Iterator[str]:
    """Yield the URL of a proxy for this worker's Redis that swallows everything once a client sends `command`."""
    kwargs = client().connection_pool.connection_kwargs
    with socket.create_server(("127.0.0.1", 0)) as door:
        Thread(target=serve_door, args=(door, kwargs["path"], command), daemon=True).start()
        yield f"redis://127.0.0.1:{door.getsockname()[1]}/{kwargs['db']}"
        # wakes the thread, which would otherwise wait in accept() forever
        door.shutdown(socket.SHUT_RDWR)


def serve_door(door: socket.socket, redis_path: str, command: bytes) -> None:
    with suppress(OSError):
        while True:
            guest, _ = door.accept()
            server = socket.socket(socket.AF_UNIX)
            server.connect(redis_path)
            Thread(target=pass_on, args=(guest, server, command), daemon=True).start()
            Thread(target=pass_on, args=(server, guest, None), daemon=True).start()


def pass_on(source: socket.socket, target: socket.socket, command: bytes | None) -> None:
    """Forward bytes until `source` is closed or sends `command`; that and everything after it is swallowed."""
    with suppress(OSError), target:
        hangs = False
        while data := source.recv(65_536):
            hangs = hangs or (command is not None and command in data)
            if not hangs:
                target.sendall(data)
