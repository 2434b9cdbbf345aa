"""`/health/live`, `/health/ready` and `/metrics` of a worker or a beat, from a thread of its main process.

`memory_project.serve` names their address. `make up` watches its parts itself, and names none.
"""

import logging
import os
import socket
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.module_loading import import_string

from memory_project.stopping import STOPPING

logger = logging.getLogger(__name__)

ADDRESS_VARIABLE = "MEMORY_ROLE_HEALTH"
"""Variable with the address, `HOST:PORT`."""


class HealthServer6(ThreadingHTTPServer):
    """A server at an address of IPv6."""

    address_family = socket.AF_INET6


def serve_role_health() -> None:
    """Answer at the address in the environment, if there is one, until the process ends."""
    address = os.environ.get(ADDRESS_VARIABLE, "")
    if not address:
        return
    host, _, port = address.rpartition(":")
    try:
        server = (HealthServer6 if ":" in host else ThreadingHTTPServer)((host.strip("[]"), int(port)), RoleHealth)
    except OSError as err:
        # the work goes on; whoever asks finds nobody
        logger.error("no health checks at %s: %s", address, err.strerror)
        return
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
    logger.info("Health at: http://%s:%s (%s)", host, server.server_address[1], os.getpid())


def note_stopping() -> None:
    """Have `/health/ready` answer 503 from now on."""
    STOPPING.set()


class RoleHealth(BaseHTTPRequestHandler):
    """Answers the three paths by their views. A connection that sends nothing is closed."""

    timeout = 10

    def do_GET(self) -> None:
        """Answer one request."""
        name = settings.ROLE_HEALTH_VIEWS.get(self.path.partition("?")[0])
        if name is None:
            self.send_error(404)
            return
        view: Callable[[HttpRequest], HttpResponse] = import_string(name)
        request = HttpRequest()
        request.method = "GET"
        answer = view(request)
        self.send_response(answer.status_code)
        self.send_header("Content-Type", answer["Content-Type"])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  as in the base class
        """Log no probes."""
