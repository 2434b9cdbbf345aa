"""Servers that are made to hang: PostgreSQL by signals or a lock, an embedder that takes requests and answers none."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

import psutil
from django.core.management.base import CommandError
from django.db import connection, connections, transaction

from memory.models import Agent

DIMENSIONS = 8
HANG_SECONDS = 600


@contextmanager
def stopped_postgresql() -> Iterator[None]:
    """Stop PostgreSQL's processes until the end of the block. Raises CommandError unless it runs on this machine."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = cursor.fetchone()
    # ours would be stopped in their midst as well
    connections.close_all()
    try:
        main = psutil.Process(backend[0] if backend else 0).parent()
    except psutil.NoSuchProcess as err:
        raise CommandError("PostgreSQL does not run on this machine.") from err
    if main is None or "postgres" not in main.name():
        raise CommandError("PostgreSQL does not run on this machine.")
    with suspended(main):
        yield


@contextmanager
def suspended(main: psutil.Process) -> Iterator[None]:
    """Stop a server's process and those that it started, until the end of the block; some may end meanwhile."""
    main.suspend()
    processes = [main]
    try:
        for process in main.children(recursive=True):
            processes.append(process)
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        yield
    finally:
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.resume()


@contextmanager
def locked_row(agent_id: str) -> Iterator[None]:
    """Hold the lock of an agent's row until the end of the block."""
    with transaction.atomic():
        list(Agent.objects.filter(agent_id=agent_id).select_for_update())
        yield


class HangingEmbedder:
    """An endpoint that speaks the embedding protocol, until `hangs` is set."""

    def __init__(self) -> None:
        self.hangs = False
        self._ended = threading.Event()
        embedder = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                texts = json.loads(self.rfile.read(length))["input"]
                if embedder.hangs:
                    embedder._ended.wait(HANG_SECONDS)
                    return
                vector = [1.0] * DIMENSIONS
                data = [{"index": number, "embedding": vector} for number in range(len(texts))]
                body = json.dumps({"data": data}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    def variables(self) -> dict[str, str]:
        """Return the settings of a web server that embeds here."""
        return {
            "EMBEDDING_PROVIDER": "openai",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{self._server.server_address[1]}/v1",
            "OPENAI_API_KEY": "chaos",
            "SUMMARY_MODEL": "none",
            "EMBEDDING_DIMENSIONS": str(DIMENSIONS),
        }

    def __enter__(self) -> "HangingEmbedder":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._server.shutdown()
        self._server.server_close()
