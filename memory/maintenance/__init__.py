"""Maintenance in the background: work that no request waits for, done in batches by whichever worker is free.

Every job has the same shape, so that the same code runs from beat, `manage.py run_job`, the admin and the API, and
reports the same figures: a function `(*, now, batch) -> BatchReport` does one batch in a transaction of its own. The
runner calls it until its cursor is empty, under a lease in the run's row (`JobRun`). So a killed worker leaves nothing
half done, the next worker goes on at the cursor, and the row, not the broker, is the queue.

To add a job, add a function with the decorator `@job(every=…, batch_size=…)` to the module of its subject
(`memory_jobs`, `conversation_jobs`, `embedding_jobs`, `retention_jobs`, `ledger_jobs`, `log_jobs`, `bulk_jobs`), or
to a new module.
The function's name is the job's name; the first line of its docstring describes it to operators. A batch must be
idempotent (it may run again), keep to the batch's account where its rows belong to accounts, and change nothing on a
dry run but move its cursor all the same. Beat, the command, the admin and the API then know it.
"""

import pkgutil
from importlib import import_module

from memory import conf
from memory.errors import UnknownName
from memory.maintenance.base import REGISTERED_JOBS, Batch, BatchReport, Clock, Job, Progress, RunBatch
from memory.maintenance.schedule import current_names, rescheduled

__all__ = ["CURRENT_NAMES", "JOBS", "Batch", "BatchReport", "Clock", "Job", "Progress", "RunBatch", "find_job"]

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")

JOBS = rescheduled([REGISTERED_JOBS[name] for name in sorted(REGISTERED_JOBS)], conf.JOB_TIMES)
"""The jobs by name, at the times that MEMORY_JOB_TIMES gives."""
CURRENT_NAMES = current_names(JOBS.values())
"""The names of the jobs by each name that is accepted for them: their own, and former ones."""


def find_job(name: str) -> Job:
    """Return the job with this name or former name. Raises UnknownName."""
    job = JOBS.get(CURRENT_NAMES.get(name, name))
    if job is None:
        raise UnknownName(f"there is no job {name!r}; jobs: {', '.join(JOBS)}")
    return job
