"""Included by the workers of the fault tests (`celery worker --include`): the describing job, held up at a gate.

It says that it came to the batch after a cursor by the file `begun-CURSOR`, and stays there while `gate-CURSOR` exists.
"""

import os
import time
from pathlib import Path

from memory.maintenance import JOBS, Batch
from tests.memory.maintenance.jobs import describe_job, describing

FOLDER = Path(os.environ["SLOW_WORKER_FOLDER"])
LONGEST_STAY_SECONDS = 60


def stay_at_gate(batch: Batch) -> None:
    with (FOLDER / f"begun-{batch.cursor}").open("a") as begun:
        begun.write("x")
    deadline = time.monotonic() + LONGEST_STAY_SECONDS
    while (FOLDER / f"gate-{batch.cursor}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)


JOBS["describe"] = describe_job(describing(stay_at_gate))
