"""The Celery application. Tasks carry a job's name only: the work itself is in rows, so a lost broker loses nothing."""

import os
import sys
from typing import Any

from celery import Celery
from celery.signals import import_modules
from django.conf import settings

from memory_project.counters import share_worker_counters

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")


# connected before the application is made, which has Django load its apps, and what counts with them
@import_modules.connect  # type: ignore[untyped-decorator]
def count_together(**_options: Any) -> None:
    """Have a worker count in a folder that web servers read; beat counts nothing."""
    if "worker" in sys.argv:
        share_worker_counters(settings.DATA_DIR, os.environ)


app = Celery("memory_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["memory"])
