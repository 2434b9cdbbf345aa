"""The scheduler of jobs goes on when the broker is back."""

import time
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta

import pytest
from celery import Celery

from memory_project.beat import ReconnectingScheduler
from memory_project.settings import CELERY_BEAT_SCHEDULER, CELERY_TASK_PUBLISH_RETRY
from tests.amqp_server import AmqpServer

PATIENCE_SECONDS = 30


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[AmqpServer]:
    with closing(AmqpServer()) as server:
        # Celery prefers the environment's broker to its own
        monkeypatch.setenv("CELERY_BROKER_URL", server.url)
        yield server


def publish_until(scheduler: ReconnectingScheduler, broker: AmqpServer, *, messages: int) -> None:
    entry = scheduler.Entry(name="look", task="tasks.look", schedule=timedelta(seconds=1), app=scheduler.app)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while broker.messages < messages:
        assert time.monotonic() < deadline
        scheduler.apply_entry(entry, producer=scheduler.producer)
        time.sleep(0.05)


def test_jobs_are_scheduled_again_after_the_broker_dropped_its_connections(broker: AmqpServer) -> None:
    app = Celery(set_as_current=False)
    app.conf.task_publish_retry = CELERY_TASK_PUBLISH_RETRY
    with closing(ReconnectingScheduler(app, lazy=True)) as scheduler:
        publish_until(scheduler, broker, messages=1)

        broker.drop_connections()

        publish_until(scheduler, broker, messages=broker.messages + 2)


def test_it_is_the_scheduler_of_the_service() -> None:
    assert f"{ReconnectingScheduler.__module__}:{ReconnectingScheduler.__qualname__}" == CELERY_BEAT_SCHEDULER
