"""The WSGI application that the web server serves."""

import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from memory_project.http.paths import keep_encoded_slashes
from memory_project.http.proxies import believe_proxies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")

application = believe_proxies(
    keep_encoded_slashes(get_wsgi_application()),
    settings.TRUSTED_PROXIES,
    secure_inside=settings.OWN_HOSTS if settings.SECURE_SSL_REDIRECT else (),
)
