"""gunicorn's configuration, wherever it serves: `gunicorn --config python:memory_project.serving --bind HOST:PORT`.

gunicorn reads the lower-case names of this module as its options, and calls the hooks.
"""

import logging
import threading
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string
from gunicorn.errors import AppImportError

from memory_project.encryption import check_database_keys, check_encryption_keys

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


def on_starting(_server: Any) -> None:
    """Stop before anything listens where encryption keys are missing or malformed: requests would answer 500."""
    try:
        check_encryption_keys()
    except ImproperlyConfigured as error:
        raise SystemExit(f"The web server does not start: {error}.") from None


def post_worker_init(worker: Any) -> None:
    """Stop a server that starts with other keys than the database's, which only a worker can ask.

    A worker that replaces another one reports it and serves what needs no key. Then warm up in parallel to the first
    requests, so that none of them waits for all of it.
    """
    try:
        check_database_keys()
    except ImproperlyConfigured as error:
        if worker.age <= worker.cfg.workers:
            # the one error of a worker that gunicorn prints without a traceback and does not restart it after
            raise AppImportError(f"The web server does not start: {error}.") from None
        logger.error("the encryption keys are not those of the database any more: %s", error)
    threading.Thread(target=get_ready, name="get-ready", daemon=True).start()


def get_ready() -> None:
    """Call what the settings name. What fails here fails again, and is reported, where it is needed."""
    for name in settings.AT_WEB_START:
        try:
            import_string(name)()
        except Exception:
            logger.exception("%s failed", name)
