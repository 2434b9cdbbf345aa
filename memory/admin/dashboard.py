"""The first page: the state of what a member of staff sees, with a link from each figure to the rows behind it.

Who is not limited to accounts and has chosen none sees the whole installation, with its alerts, its recent history and
its jobs; everybody else sees bounded counts of the accounts in question. The charts are SVG (`charts`) and need no
script. No account's contents are shown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.cache import never_cache

from memory.admin.base import staff_name
from memory.admin.charts import format_seconds
from memory.admin.columns import list_url
from memory.admin.dashboard_charts import DAY, DAYS, SLOT, SLOTS, chart_sections
from memory.admin.text import excerpt_of
from memory.admin.tiles import account_tiles, installation_tiles
from memory.maintenance import JOBS, Job
from memory.models import Account, JobRun
from memory.services.operations.account_figures import read_account_figures
from memory.services.operations.alerts import LARGE_BACKLOG, find_alerts, format_age
from memory.services.operations.backlogs import LATE_AFTER, QueueBacklog
from memory.services.operations.samples import (
    BY_KIND,
    BY_TIER,
    COUNTERS,
    RECENT,
    SIZES,
    read_increases,
    read_last_runs,
    read_samples,
)
from memory_project.staff import is_limited, visible_accounts

PERMISSIONS = ("memory.view_memory", "memory.view_jobrun")
"""Permissions of which any one opens the figures of the whole installation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A job's row on the page. Texts are empty if there is nothing to say."""

    name: str
    description: str
    status: str
    ran: str
    duration: str
    counts: str
    due: str


@never_cache
def show_home(request: HttpRequest) -> HttpResponse:
    """Show the figures that the user may see, with a fixed number of statements and one command to Redis."""
    now, accounts = timezone.now(), visible_accounts(request)
    sees_alerts = not is_limited(request) and any(map(request.user.has_perm, PERMISSIONS))
    context: dict[str, Any] = {"alerts": find_alerts(now, jobs=JOBS.values())} if sees_alerts else {}
    if accounts is not None:
        figures = read_account_figures(now, accounts=accounts)
        context |= {"scope": name_accounts(accounts), "groups": account_tiles(figures, accounts)}
    elif sees_alerts:
        context |= describe_installation(now)
    context["groups"] = [each for group in context.get("groups", ()) if (each := group.seen_by(request.user)).tiles]
    shared = {**admin.site.each_context(request), "title": "Home", "now": now, "sees_alerts": sees_alerts}
    if request.user.has_perm("memory.view_auditentry"):
        shared["own_changes_url"] = list_url("auditentry", q=staff_name(request))
    return TemplateResponse(request, "admin/index.html", {**shared, **context})


def name_accounts(accounts: frozenset[UUID]) -> str:
    """Return whose figures the page shows."""
    if len(accounts) != 1:
        return f"Figures of your {len(accounts)} accounts." if accounts else "You see no account yet."
    names = Account.objects.filter(pk__in=accounts).values_list("name", flat=True)
    return f"Figures of the account {excerpt_of(''.join(names))}."


def describe_installation(now: datetime) -> dict[str, Any]:
    recent = read_samples([*RECENT, *BY_KIND, *BY_TIER, *SIZES], step=SLOT, slots=SLOTS, now=now)
    month = read_samples([*BY_KIND, *SIZES], step=DAY, slots=DAYS, now=now)
    figures = read_account_figures(now, accounts=None)
    rates = read_increases(COUNTERS, since=now - DAY, now=now)
    return {
        "scope": "Figures of the whole installation.",
        "waiting": describe_backlog(figures.embeddings, now),
        "groups": installation_tiles(figures, recent, rates),
        "has_samples": any(value is not None for values in recent.values() for value in values),
        "sections": list(chart_sections(recent, month, now)),
        "jobs": list(job_lines(read_last_runs(list(JOBS)), now)),
    }


def describe_backlog(waiting: QueueBacklog, now: datetime) -> str:
    """Return a sentence on memories that wait for a vector, and on when that becomes an alert. "" if none waits."""
    if not waiting.count:
        return ""
    verb = "waits" if waiting.count == 1 else "wait"
    noun = "memory" if waiting.count == 1 else "memories"
    return (
        f"{waiting.count_text} {noun} {verb} for a vector, the first for {format_age(waiting.since, now)}. It is an "
        f"alert above {LARGE_BACKLOG:,} memories, or after {format_age(now - LATE_AFTER, now)}."
    )


def job_lines(runs: Mapping[str, JobRun], now: datetime) -> Iterator[JobLine]:
    for job in JOBS.values():
        run = runs.get(job.name)
        yield JobLine(
            name=job.name,
            description=job.description,
            status=run.status if run else "",
            ran=f"{format_age(run.created_at, now)} ago" if run else "never",
            duration="" if run is None or run.duration_seconds is None else format_seconds(run.duration_seconds),
            counts=f"{run.examined:,} / {run.changed:,} / {run.failed:,}" if run else "",
            due=format_due(job, run, now),
        )


def format_due(job: Job, run: JobRun | None, now: datetime) -> str:
    """Format the time when the next run is due."""
    last_due = job.last_due(now)
    if last_due is None:
        return "off"
    if not isinstance(job.every, timedelta):
        due = last_due + DAY
        return f"{due:%H:%M} UTC" if due.date() == now.date() else f"tomorrow, {due:%H:%M} UTC"
    due = run.created_at + job.every if run else now
    return f"in {format_age(now, due)}" if due > now else "now"


app_name = "dashboard"
urlpatterns = [path("", admin.site.admin_view(show_home), name="page")]
