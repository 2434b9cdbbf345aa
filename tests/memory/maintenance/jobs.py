"""A job for the tests: it adds an x to each agent's description, so that what was done, twice or by halves, shows."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta

from django.db import transaction
from django.db.models import Value
from django.db.models.functions import Concat, Now

from memory.maintenance import Batch, BatchReport, Job, RunBatch
from memory.models import Account, Agent, JobRun

NOW = datetime(2030, 1, 2, 3, 4, tzinfo=UTC)


def clock() -> datetime:
    """It has stopped."""
    return NOW


def make_agents(account: Account, names: str) -> None:
    """One agent a letter."""
    Agent.objects.bulk_create([Agent(account=account, agent_id=name) for name in names])


def descriptions() -> dict[str, str]:
    return dict(Agent.objects.values_list("agent_id", "description"))


def describing(before_commit: Callable[[Batch], object] = lambda batch: None) -> RunBatch:
    """The job's `run`; `before_commit` is called in the transaction of each batch, once its rows are changed."""

    def run(*, now: datetime, batch: Batch) -> BatchReport:
        agents = Agent.objects.filter(agent_id__gt=batch.cursor).order_by("agent_id")
        if batch.account_id is not None:
            agents = agents.in_account(batch.account_id)
        names = list(agents.values_list("agent_id", flat=True)[: batch.size])
        if not batch.dry_run:
            with transaction.atomic():
                agents.filter(agent_id__in=names).update(description=Concat("description", Value("x")))
                before_commit(batch)
        more = len(names) == batch.size
        return BatchReport(examined=len(names), changed=len(names), cursor=names[-1] if more else "")

    return run


def describe_job(run: RunBatch | None = None, *, every: timedelta | time = timedelta(minutes=1)) -> Job:
    """Two agents a batch."""
    return Job(name="describe", description="", run=run or describing(), every=every, batch_size=2)


def queue_run(account: Account | None = None, *, dry_run: bool = False) -> JobRun:
    return JobRun.objects.create(job="describe", account=account, dry_run=dry_run)


def running_run(*, lease: timedelta, cursor: str = "", attempts: int = 1) -> JobRun:
    """A run that some other worker claimed; a negative lease has run out."""
    run = JobRun.objects.create(job="describe", cursor=cursor, attempts=attempts - 1)
    return run.begin(leased_by="another worker", lease=lease)


def steal(run: JobRun) -> None:
    """Do what another worker does with a run whose lease has run out."""
    JobRun.objects.filter(id=run.id).update(lease_until=Now() - timedelta(seconds=1))
    JobRun.objects.filter(id=run.id).claim(leased_by="a thief", lease=timedelta(minutes=1))
