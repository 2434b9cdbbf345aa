"""gunicorn's configuration: what each web process does once it is up. Its options are the supervisor's."""

import logging
import threading
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

logger = logging.getLogger(__name__)


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
