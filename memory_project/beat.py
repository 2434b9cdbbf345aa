"""The scheduler of jobs: Celery's own, which goes on after the broker was away."""

from typing import Any

from celery.beat import ScheduleEntry, Scheduler, SchedulingError


class ReconnectingScheduler(Scheduler):  # type: ignore[misc]
    """A scheduler that opens another connection after the broker has accepted no message.

    Messages are published without retries (CELERY_TASK_PUBLISH_RETRY), which also renews no connection: over AMQP,
    Celery's scheduler would go on for ever with the one that the broker closed, and no job would be scheduled.
    """

    def apply_async(self, entry: ScheduleEntry, producer: Any = None, advance: bool = True, **options: Any) -> Any:
        """Publish the message of a job that is due. Raises SchedulingError."""
        try:
            return super().apply_async(entry, producer=producer, advance=advance, **options)
        except SchedulingError:
            # the next message waits until there is a connection
            self.close()
            raise
