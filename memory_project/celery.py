"""The Celery application. Tasks carry a job's name only: the work itself is in rows, so a lost broker loses nothing."""

import os
import sys
from typing import Any

from celery import Celery
from celery.signals import beat_init, import_modules, worker_init, worker_process_init
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from memory_project.counters import reserve_files, share_worker_counters
from memory_project.encryption import check_database_keys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")


@worker_process_init.connect  # type: ignore[untyped-decorator]
def reserve_counters(**_options: Any) -> None:
    """Give the files that a process of the worker counts in their space on disk."""
    reserve_files(os.environ)


# connected before the application is made, which has Django load its apps, and what counts with them
@import_modules.connect  # type: ignore[untyped-decorator]
def count_together(**_options: Any) -> None:
    """Have a worker count in a folder that web servers read; beat counts nothing."""
    if "worker" in sys.argv:
        share_worker_counters(settings.DATA_DIR, os.environ)
        reserve_files(os.environ)


@worker_init.connect  # type: ignore[untyped-decorator]
@beat_init.connect  # type: ignore[untyped-decorator]
def refuse_wrong_keys(**_options: Any) -> None:
    """Stop a worker or beat whose encryption keys are missing, malformed or not those of the database."""
    try:
        check_database_keys()
    except ImproperlyConfigured as error:
        raise SystemExit(f"Celery does not start: {error}.") from None


app = Celery("memory_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory"])
