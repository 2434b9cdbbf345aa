"""Composition and infrastructure: settings, URLs, Celery, Redis clients, embedded servers.

Imports no app; names apps by string. Whatever both apps need (identifiers, Redis keys) lives here.
"""

from memory_project.celery import app as celery_app

__all__ = ["celery_app"]
