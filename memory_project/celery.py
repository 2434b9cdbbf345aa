"""The Celery application. Tasks carry a job's name only: the work itself is in rows, so a lost broker loses nothing."""

import gc
import logging
import os
import sys
from typing import Any

from celery import Celery
from celery.apps import worker as celery_worker
from celery.signals import (
    beat_init,
    import_modules,
    worker_init,
    worker_process_init,
    worker_ready,
    worker_shutting_down,
)
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from memory_project.counters import reserve_files, share_worker_counters
from memory_project.encryption import check_database_keys
from memory_project.logs import say_last
from memory_project.redis import refuse_cluster_node
from memory_project.role_health import ADDRESS_VARIABLE, note_stopping, serve_role_health

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
logger = logging.getLogger(__name__)


@worker_process_init.connect  # type: ignore[untyped-decorator]
def reserve_counters(**_options: Any) -> None:
    """Give the files that a process of the worker counts in their space on disk."""
    reserve_files(os.environ)


# connected before the application is made, which has Django load its apps, and what counts with them
@import_modules.connect  # type: ignore[untyped-decorator]
def count_together(**_options: Any) -> None:
    """Have a worker count in a folder that web servers read; beat counts nothing."""
    if "worker" in sys.argv:
        share_worker_counters(settings.DATA_DIR, os.environ, is_scraped=ADDRESS_VARIABLE in os.environ)
        reserve_files(os.environ)


@worker_init.connect  # type: ignore[untyped-decorator]
@beat_init.connect  # type: ignore[untyped-decorator]
def refuse_wrong_keys(**_options: Any) -> None:
    """Stop a worker or beat that has other keys than the database, or none, or a cluster's node as its Redis."""
    try:
        check_database_keys()
        refuse_cluster_node()
    except ImproperlyConfigured as error:
        raise SystemExit(say_last(f"Celery does not start: {error}.")) from None


@worker_init.connect  # type: ignore[untyped-decorator]
def load_before_forking(**_options: Any) -> None:
    """Load what the processes of the worker share: they are forked from this one."""
    for name in settings.AT_WORKER_START:
        try:
            import_string(name)()
        except Exception:
            # what fails here fails again, and is reported, where it is needed
            logger.exception("%s failed", name)
    # what is shared stays shared: a collection would write to all of it
    gc.collect()
    gc.freeze()


@worker_ready.connect  # type: ignore[untyped-decorator]
def answer_health_checks(**_options: Any) -> None:
    """Answer probes and scrapes, where the worker or beat is a role of its own."""
    serve_role_health()


@beat_init.connect  # type: ignore[untyped-decorator]
def answer_health_checks_of_beat(**_options: Any) -> None:
    """Answer them for a beat of its own; the worker answers for the one that it forks."""
    if "worker" not in sys.argv:
        serve_role_health()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def refuse_readiness(**_options: Any) -> None:
    """Say by `/health/ready` that the worker finishes what it has begun, and takes nothing more."""
    note_stopping()


@worker_init.connect  # type: ignore[untyped-decorator]
def say_in_the_log(**_options: Any) -> None:
    """Log what Celery would write past the log: that it stops."""
    celery_worker.safe_say = lambda text, *_files: logger.info(text.strip())


app = Celery("memory_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory"])
