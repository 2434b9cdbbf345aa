"""gunicorn's configuration, wherever it serves: `gunicorn --config python:memory_project.serving --bind HOST:PORT`.

gunicorn reads the lower-case names of this module as its options, and calls the hooks.
"""

import logging
import threading
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

logger = logging.getLogger(__name__)

wsgi_app = "memory_project.wsgi:application"
worker_class = "memory_project.web_worker.DeadlineWorker"
workers = settings.WEB_WORKERS
threads = settings.WEB_THREADS
keepalive = 65
graceful_timeout = 10
# ids of 100 characters of any script, several in one address
limit_request_line = 8190
control_socket_disable = True
# no header of a client's may set SCRIPT_NAME or PATH_INFO; the scheme is believed of proxies that we know
forwarder_headers = ""
forwarded_allow_ips = settings.TRUSTED_PROXIES


def post_worker_init(worker: Any) -> None:
    """Get ready beside the first requests, so that none of them waits for all of it."""
    threading.Thread(target=get_ready, name="get-ready", daemon=True).start()


def get_ready() -> None:
    """Call what the settings name. What fails here fails again, and is answered, where it is needed."""
    for name in settings.AT_WEB_START:
        try:
            import_string(name)()
        except Exception:
            logger.exception("%s failed", name)
