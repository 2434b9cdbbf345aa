"""The lines of the log: each says of which request and which job run it is, as text or as a JSON object.

Ids only: never contents, embeddings or keys.
"""

import json
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any
from uuid import UUID

NOBODY = "-"
"""Stands for an id outside of requests and runs."""

QUIET_SECONDS = 10.0
"""Seconds in which a pool of connections complains of the same once."""

META_KEY = "memory_project.request_id"
"""The key under which a request's `META` keeps its id, for lines that are logged after its answer."""

current_request_id: ContextVar[str] = ContextVar("current_request_id", default="")
"""The id of the request that this thread answers; empty outside of one."""
current_job_id: ContextVar[str] = ContextVar("current_job_id", default="")
"""The id of the run (`JobRun`) that this thread is at; empty outside of one."""


@contextmanager
def logged_as_job(run_id: UUID) -> Iterator[None]:
    """Label the lines logged within the block with the id of this run."""
    token = current_job_id.set(str(run_id))
    try:
        yield
    finally:
        current_job_id.reset(token)


class IdFilter(logging.Filter):
    """Gives every log record the `request_id` and the `job_id` that it belongs to; a dash outside of those."""

    def filter(self, record: logging.LogRecord) -> bool:
        # Django logs a failed answer, with its request, after all middleware has returned
        logged = getattr(getattr(record, "request", None), "META", {}).get(META_KEY)
        record.request_id = current_request_id.get() or logged or NOBODY
        record.job_id = current_job_id.get() or NOBODY
        return True


class RepeatFilter(logging.Filter):
    """Lets each pool complain of each kind once in QUIET_SECONDS, in one line: its connections fail all at once."""

    def __init__(self) -> None:
        super().__init__()
        self._quiet_until: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        first = record.args[0] if isinstance(record.args, tuple) and record.args else ""
        # some complaints name a connection rather than the pool
        complaint = record.msg, first if isinstance(first, str) else ""
        if record.created < self._quiet_until.get(complaint, 0.0):
            return False
        self._quiet_until[complaint] = record.created + QUIET_SECONDS
        # the driver's reason has lines of advice
        record.msg, record.args = " ".join(record.getMessage().split()), None
        return True


class JsonFormatter(logging.Formatter):
    """Time, level, logger, message, and the traceback without local variables (they may hold memory texts)."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": getattr(record, "request_id", NOBODY),
            "job_id": getattr(record, "job_id", NOBODY),
        }
        line |= getattr(record, "access", {})
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    """Log the error that ends the process."""
    logging.getLogger("memory_project").critical("ended by an error", exc_info=(kind, error, traceback))


def say_last(text: str) -> int:
    """Say why the process does not start, in the format of the log, before that may be configured; return 1."""
    if os.environ.get("MEMORY_LOG_FORMAT", "").strip() == "json":
        record = logging.LogRecord("memory_project", logging.ERROR, "", 0, text, None, None)
        text = JsonFormatter().format(record)
    sys.stderr.write(f"{text}\n")
    return 1


def configure_logging(format_: str, *, level: str, task_level: str) -> dict[str, Any]:
    """Return Django's LOGGING for a format, `text` or `json`, and the levels of most lines and of Celery's tasks.

    With `json`, errors that end the process and warnings of Python are lines of the log as well.
    """
    if format_ == "json":
        sys.excepthook = log_uncaught
        logging.captureWarnings(True)
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "text": {
                "format": "%(asctime)s %(levelname)s %(name)s [request %(request_id)s job %(job_id)s]: %(message)s"
            },
            "json": {"()": "memory_project.logs.JsonFormatter"},
        },
        "filters": {
            "ids": {"()": "memory_project.logs.IdFilter"},
            "pool": {"()": "memory_project.logs.RepeatFilter"},
        },
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": format_,
                "filters": ["ids"],
            }
        },
        "root": {"handlers": ["console"], "level": level},
        # a 4xx is the client's affair and in the access log already
        "loggers": {
            "django.request": {"level": "ERROR"},
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            # a job says itself what it did; that a message came and went is for debugging
            "celery.app.trace": {"level": task_level},
            "celery.worker.strategy": {"level": task_level},
            "celery.beat": {"level": task_level},
            "httpx2": {"level": "WARNING"},
            "waitress": {"level": "ERROR"},
            "openai": {"level": "WARNING"},
            "psycopg.pool": {"filters": ["pool"]},
            # it has a manager for each way in, which all start and stop together
            "mcp.server.streamable_http_manager": {"level": "WARNING"},
            # a line for each request is for machines
            "memory_project.access": {"level": "INFO" if format_ == "json" else "WARNING"},
        },
    }
