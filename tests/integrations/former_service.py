"""The service as version 0.2 answered: its items have no versions, and it refuses expected ones as unknown fields."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import httpx2

EXPECTED, UNKNOWN = b"expected_version", b"expected_vfield"


@contextmanager
def serve_former(url: str) -> Iterator[str]:
    """Yield the address of a server that passes requests on to the service, and its answers back."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name: self.headers[name] for name in ("Authorization", "Content-Type") if name in self.headers}
            found = httpx2.request(
                self.command, url + self.path, content=body.replace(EXPECTED, UNKNOWN), headers=headers, timeout=30
            )
            answer = found.content.replace(UNKNOWN, EXPECTED)
            if self.path.endswith("/items/query"):
                answer = json.dumps(json.loads(answer, object_hook=drop_version)).encode()
            self.send_response(found.status_code)
            self.send_header("Content-Type", found.headers["Content-Type"])
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_arguments: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def drop_version(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "version"}
