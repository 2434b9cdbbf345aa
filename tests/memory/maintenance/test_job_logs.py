"""The log of a run: each line says which run it is of, as text and as JSON."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.config import DictConfigurator
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.utils import timezone

from memory.maintenance import runner
from memory.models import Account, JobRun
from memory_project.logs import current_request_id
from tests.memory.maintenance.jobs import describe_job, describing, make_agents

pytestmark = pytest.mark.django_db
logger = logging.getLogger(__name__)


@contextmanager
def logged(log_format: str) -> Iterator[io.StringIO]:
    """Capture log records, formatted as the settings say for that format."""
    wanted: dict[str, Any] = settings.LOGGING
    configurator: Any = DictConfigurator(wanted)
    handler = logging.StreamHandler(io.StringIO())
    handler.setFormatter(configurator.configure_formatter(wanted["formatters"][log_format]))
    for name in wanted["handlers"]["console"]["filters"]:
        handler.addFilter(configurator.configure_filter(wanted["filters"][name]))
    logging.getLogger().addHandler(handler)
    try:
        yield handler.stream
    finally:
        logging.getLogger().removeHandler(handler)


def run_and_log(account: Account) -> UUID:
    """A run of two batches, each of which logs a line, and fails in the end."""
    make_agents(account, "abc")

    def log_and_fail(batch: object) -> None:
        logger.warning("a batch")
        if getattr(batch, "cursor", ""):
            raise ZeroDivisionError

    run = JobRun(job="describe")
    runner.run_at_once(describe_job(describing(log_and_fail)), run, clock=timezone.now)
    logger.warning("afterwards")
    return run.id


def test_each_line_of_a_run_has_its_id_as_text(account: Account) -> None:
    with logged("text") as log:
        job_id = run_and_log(account)

    lines = [line for line in log.getvalue().splitlines() if "WARNING" in line or "ERROR" in line]
    assert [f"[request - job {job_id}]" in line for line in lines] == [True, True, True, False]
    assert "[request - job -]: afterwards" in lines[-1]


def test_each_line_of_a_run_has_its_id_as_json(account: Account) -> None:
    token = current_request_id.set("trace-7")
    try:
        with logged("json") as log:
            job_id = run_and_log(account)
    finally:
        current_request_id.reset(token)

    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    ids = [(line["request_id"], line["job_id"]) for line in lines if line["level"] in ("WARNING", "ERROR")]
    assert ids == [*[("trace-7", str(job_id))] * 3, ("trace-7", "-")]
