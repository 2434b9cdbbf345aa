"""Composition and infrastructure: settings, URLs, Celery, Redis clients, embedded servers.

Imports no app; names apps by string. Whatever both apps need (identifiers, Redis keys) lives here.
"""

import os

# before numpy is imported: its threads wait busily for each other, and take processors from other requests. A product
# of 2,000 vectors with one costs 0.12 ms of processor time on one thread, 0.5 to 2.5 ms on two
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# whoever imports a part of the service uses its settings
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_project.settings")
