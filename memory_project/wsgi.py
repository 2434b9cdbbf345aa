"""The WSGI application that granian serves."""

import os

from django.core.wsgi import get_wsgi_application

from memory_project.chunked import accept_chunked_bodies

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")

application = accept_chunked_bodies(get_wsgi_application())
