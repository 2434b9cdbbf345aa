"""The dashboard: the state of the installation, its recent history and its jobs, on one page.

The charts are SVG (`charts`) and need no script. All figures are of the whole installation, so nobody sees them who is
limited to some accounts; no account's contents are shown.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import path
from django.utils import timezone

from memory.admin.charts import (
    BYTES,
    COUNT,
    SECONDS,
    Chart,
    ChartSeries,
    ChartUnit,
    Value,
    format_count_short,
    format_digits,
    format_seconds,
    render_bar_chart,
    render_column_chart,
    render_line_chart,
)
from memory.admin.columns import list_url
from memory.maintenance import JOBS, Job
from memory.models import JobRun
from memory.services.operations.alerts import (
    LARGE_BACKLOG,
    LATE_AFTER,
    QueueBacklog,
    count_embedding_backlog,
    find_alerts,
    format_age,
)
from memory.services.operations.samples import (
    BACKLOG,
    BY_KIND,
    BY_TIER,
    COUNTERS,
    DATABASE_BYTES,
    EMBEDDING_CACHE,
    EMBEDDING_REQUESTS,
    LAG,
    QUEUES,
    RECALL,
    RECENT,
    REDIS_BYTES,
    SESSION_BUFFERS,
    SIZES,
    JobDay,
    ModelDay,
    SampleKey,
    last_days,
    read_increases,
    read_job_days,
    read_last_runs,
    read_model_days,
    read_samples,
)
from memory_project.measures import ANSWERED, FAILED, HIT, MISS, QUANTILES
from memory_project.staff import is_limited

PERMISSIONS = ("memory.view_memory", "memory.view_jobrun")
"""Permissions of which any one opens the dashboard."""

SLOT, SLOTS = timedelta(minutes=10), 144
DAY, DAYS = timedelta(days=1), 30
WORK_DAYS = 7

CHANGING_JOBS: Mapping[str, Sequence[str]] = {
    "decayed": ["decay"],
    "merged": ["deduplicate"],
    "promoted": ["globalize_facts", "promote_short_term"],
}
"""Changes of memories and the jobs that make them. Archiving is missing, since several jobs count it."""

WAITING = {"embedding": "embeddings", "extraction": "extractions", "summary": "summaries"}

CACHES = {"vectors from the cache": EMBEDDING_CACHE, "sessions read from Redis": SESSION_BUFFERS}

Samples = Mapping[SampleKey, Sequence[Value]]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A figure at the top of the page."""

    name: str
    figure: str
    url: str = ""
    """The list behind the figure, if there is one."""


def show_dashboard(request: HttpRequest) -> HttpResponse:
    """Show the dashboard, with a fixed number of statements and one command to Redis."""
    if is_limited(request) or not any(map(request.user.has_perm, PERMISSIONS)):
        raise PermissionDenied
    now = timezone.now()
    recent = read_samples([*RECENT, *BY_KIND, *BY_TIER, *SIZES], step=SLOT, slots=SLOTS, now=now)
    month = read_samples([*BY_KIND, *SIZES], step=DAY, slots=DAYS, now=now)
    waiting = count_embedding_backlog(now)
    context = {
        **admin.site.each_context(request),
        "title": "Dashboard",
        "now": now,
        "waiting": describe_backlog(waiting, now),
        "alerts": find_alerts(now, jobs=JOBS.values()),
        "tiles": [*state_tiles(recent, waiting), *rate_tiles(read_increases(COUNTERS, since=now - DAY, now=now))],
        "sections": list(chart_sections(recent, month, now)),
        "jobs": list(job_lines(read_last_runs(list(JOBS)), now)),
    }
    return TemplateResponse(request, "admin/memory/dashboard.html", context)


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


def state_tiles(recent: Samples, waiting: QueueBacklog) -> Iterator[Tile]:
    """Yield figures of the latest samples, but the backlog as it is now, so that it agrees with the alerts."""
    kinds = latest_counts(recent)
    if kinds:
        yield Tile(name="memories", figure=format_count_short(sum(kinds.values())))
    figures: Sequence[tuple[str, SampleKey, ChartUnit]] = (
        ("recall, 95th percentile", (RECALL, "0.95"), SECONDS),
        ("extraction lag", (LAG, ""), SECONDS),
        ("database", (DATABASE_BYTES, ""), BYTES),
        ("Redis", (REDIS_BYTES, ""), BYTES),
    )
    for name, key, unit in figures:
        latest = latest_value(recent[key])
        if latest is not None:
            yield Tile(name=name, figure=unit.format(latest))
    if waiting.count:
        url = list_url("memory", vector="waiting")
        yield Tile(name="waiting for embedding, now", figure=waiting.count_text, url=url)


def rate_tiles(counted: Mapping[SampleKey, float]) -> Iterator[Tile]:
    """Yield the hit rates of caches and the failures of the embedder in the last 24 hours, if there were requests."""
    for name, cache in CACHES.items():
        hits, lookups = counted[cache, HIT], counted[cache, HIT] + counted[cache, MISS]
        if lookups:
            figure = f"{format_digits(100 * hits / lookups)}% of {format_count_short(lookups)}"
            yield Tile(name=f"{name}, 24 h", figure=figure)
    failed = counted[EMBEDDING_REQUESTS, FAILED]
    requests = failed + counted[EMBEDDING_REQUESTS, ANSWERED]
    if requests:
        figure = f"{format_count_short(failed)} of {format_count_short(requests)}"
        yield Tile(name="failed requests to the embedder, 24 h", figure=figure)


def chart_sections(recent: Samples, month: Samples, now: datetime) -> Iterator[tuple[str, Sequence[Chart]]]:
    """Yield headings, each with its charts."""
    days = last_days(now, WORK_DAYS)
    since = datetime.combine(days[0], datetime.min.time(), tzinfo=now.tzinfo)
    jobs, models = read_job_days(since=since), read_model_days(since=days[0])
    stored = [render_kinds(recent), render_tiers(recent), render_growth(month, now), *render_sizes(month, now)]
    yield "Stored data", stored
    yield "The last 24 hours", list(render_recent(recent, now))
    yield "The last seven days, by day (UTC)", [*render_job_charts(jobs, days), *render_model_charts(models, days)]


def render_kinds(recent: Samples) -> Chart:
    kinds = sorted(latest_counts(recent).items(), key=lambda each: (-each[1], each[0]))
    return render_bar_chart("kinds", "Memories by kind", kinds, unit=COUNT)


def render_tiers(recent: Samples) -> Chart:
    """Render the items of each tier; the last known number if a tier could not be counted, such as without Redis."""
    found = [(tier.replace("_", "-"), latest_value(recent[name, tier])) for name, tier in BY_TIER]
    known = [(tier, value) for tier, value in found if value is not None]
    return render_bar_chart("tiers", "Items by tier: keys (working), rows (others)", known, unit=COUNT)


def render_growth(month: Samples, now: datetime) -> Chart:
    by_day = zip(*(month[key] for key in BY_KIND), strict=True)
    totals = [sum(value or 0.0 for value in day) if any(value is not None for value in day) else None for day in by_day]
    series = [ChartSeries(name="memories", values=totals)]
    moments = day_labels(last_days(now, DAYS))
    return render_line_chart("growth", f"Memories, {DAYS} days", series, moments=moments, unit=COUNT)


def render_recent(recent: Samples, now: datetime) -> Iterator[Chart]:
    moments = [f"{now - SLOT * slots_ago:%H:%M}" for slots_ago in reversed(range(SLOTS))]
    recall = [ChartSeries(name=f"p{share * 100:g}", values=recent[RECALL, str(share)]) for share in QUANTILES]
    backlog = [ChartSeries(name=WAITING[queue], values=recent[BACKLOG, queue]) for queue in QUEUES]
    lag = [ChartSeries(name="lag", values=recent[LAG, ""])]
    yield render_line_chart("recall", "Duration of recall", recall, moments=moments, unit=SECONDS)
    yield render_line_chart("backlog", "Waiting work", backlog, moments=moments, unit=COUNT)
    yield render_line_chart("lag", "Lag of extraction", lag, moments=moments, unit=SECONDS)


def render_sizes(month: Samples, now: datetime) -> Iterator[Chart]:
    moments = day_labels(last_days(now, DAYS))
    for name, key in (("Database", DATABASE_BYTES), ("Redis", REDIS_BYTES)):
        series = [ChartSeries(name=name, values=month[key, ""])]
        yield render_line_chart(name.lower(), f"{name}, {DAYS} days", series, moments=moments, unit=BYTES)


def render_job_charts(found: Sequence[JobDay], days: Sequence[date]) -> Iterator[Chart]:
    def add_up(name: str, count: Callable[[JobDay], int]) -> ChartSeries:
        values = [sum(count(each) for each in found if each.day == day) for day in days]
        return ChartSeries(name=name, values=values)

    def changed_by(jobs: Sequence[str]) -> Callable[[JobDay], int]:
        return lambda each: each.changed if each.job in jobs else 0

    memories = [add_up(name, changed_by(jobs)) for name, jobs in CHANGING_JOBS.items()]
    memories.append(add_up("archived", lambda each: each.archived))
    rows = [add_up("examined", lambda each: each.examined), add_up("changed", lambda each: each.changed)]
    failed = [add_up("failed", lambda each: each.failed)]
    groups = column_labels(days)
    title = "Memories decayed, merged, promoted and archived"
    yield render_column_chart("changes", title, memories, groups=groups, unit=COUNT)
    yield render_column_chart("examined", "Rows examined and changed by jobs", rows, groups=groups, unit=COUNT)
    yield render_column_chart("failed", "Rows on which jobs failed", failed, groups=groups, unit=COUNT)


def render_model_charts(found: Mapping[date, ModelDay], days: Sequence[date]) -> Iterator[Chart]:
    def by_day(name: str, attribute: str) -> ChartSeries:
        values = [getattr(found[day], attribute) if day in found else 0 for day in days]
        return ChartSeries(name=name, values=values)

    calls = [by_day("calls", "calls"), by_day("failed", "failed_calls")]
    tokens = [by_day("sent", "prompt_tokens"), by_day("received", "completion_tokens")]
    groups = column_labels(days)
    yield render_column_chart("calls", "Calls of language models", calls, groups=groups, unit=COUNT)
    yield render_column_chart("tokens", "Tokens of language models", tokens, groups=groups, unit=COUNT)


def latest_value(values: Sequence[Value]) -> Value:
    return next((value for value in reversed(values) if value is not None), None)


def latest_counts(recent: Samples) -> Mapping[str, float]:
    """Return the number of memories by kind, as of the latest slot in which they were counted."""
    for slot in reversed(range(SLOTS)):
        counted = {kind: recent[name, kind][slot] for name, kind in BY_KIND}
        known = {kind: value for kind, value in counted.items() if value is not None}
        if known:
            return known
    return {}


def day_labels(days: Sequence[date]) -> Sequence[str]:
    return [f"{day.day} {day:%b}" for day in days]


def column_labels(days: Sequence[date]) -> Sequence[str]:
    """Label the days, but name the month only where it begins, since there is no room for it below each column."""
    return [f"{day.day} {day:%b}" if day in (days[0], day.replace(day=1)) else str(day.day) for day in days]


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
        return f"{last_due + DAY:%H:%M} UTC"
    due = run.created_at + job.every if run else now
    return f"in {format_age(now, due)}" if due > now else "now"


app_name = "dashboard"
urlpatterns = [path("", admin.site.admin_view(show_dashboard), name="page")]
