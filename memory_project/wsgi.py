"""The WSGI application that gunicorn serves."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from memory_project.counters import share_counters
from memory_project.http.bodies import normalize_bodies
from memory_project.http.paths import keep_encoded_slashes

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")

share_counters(settings.DATA_DIR, os.environ)

application = keep_encoded_slashes(
    normalize_bodies(get_wsgi_application(), limit_bytes=settings.BODY_LIMIT_BYTES),
)
