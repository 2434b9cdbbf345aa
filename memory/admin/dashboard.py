"""The dashboard: how the installation is, how it went lately, and what is to be done, on one page.

Pictures are SVG made here (`charts`), without a script. Figures are those of the whole installation; of an account's
contents nothing is shown.
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
    Series,
    Unit,
    Value,
    draw_bars,
    draw_columns,
    draw_lines,
    shortly,
    tell_count,
    tell_seconds,
)
from memory.maintenance import JOBS, Job
from memory.services.operations.alerts import ago, find_alerts
from memory.services.operations.trends import (
    BACKLOG,
    BY_KIND,
    BY_TIER,
    COUNTED,
    DATABASE_BYTES,
    EMBEDDING_CACHE,
    EMBEDDING_REQUESTS,
    LAG,
    LATELY,
    QUEUES,
    RECALL,
    REDIS_BYTES,
    SESSION_BUFFERS,
    SIZES,
    DayOfJob,
    DayOfModels,
    Figure,
    LastRun,
    days_until,
    read_days_of_jobs,
    read_days_of_models,
    read_increases,
    read_last_runs,
    read_samples,
)
from memory_project.measures import ANSWERED, FAILED, HIT, MISS, QUANTILES

PERMISSIONS = ("memory.view_memory", "memory.view_jobrun")
"""Any of them lets staff look."""

SLOT, SLOTS = timedelta(minutes=10), 144
DAY, DAYS = timedelta(days=1), 30
DAYS_OF_WORK = 7

DEEDS: Mapping[str, Sequence[str]] = {
    "faded": ["decay"],
    "merged": ["deduplicate"],
    "promoted": ["promote", "graduate"],
}
"""What time does to memories, and the jobs that do it; what is archived, several jobs count."""

WAITING = {"embedding": "embeddings", "extraction": "extractions", "summary": "summaries"}

CACHES = {"vectors from the cache": EMBEDDING_CACHE, "sessions read from Redis": SESSION_BUFFERS}

Samples = Mapping[Figure, Sequence[Value]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobLine:
    """A job as the page has it; texts are empty where there is nothing to tell."""

    name: str
    description: str
    status: str
    ran: str
    took: str
    counted: str
    due: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A figure to see at first sight."""

    name: str
    figure: str


def may_look(request: HttpRequest) -> bool:
    return any(map(request.user.has_perm, PERMISSIONS))


def dashboard(request: HttpRequest) -> HttpResponse:
    """Of the whole installation. A fixed number of statements; Redis is asked once. 403 without a permission."""
    if not may_look(request):
        raise PermissionDenied
    now = timezone.now()
    lately = read_samples([*LATELY, *BY_KIND, *BY_TIER, *SIZES], step=SLOT, slots=SLOTS, now=now)
    month = read_samples([*BY_KIND, *SIZES], step=DAY, slots=DAYS, now=now)
    context = {
        **admin.site.each_context(request),
        "title": "Dashboard",
        "now": now,
        "alerts": find_alerts(now, jobs=JOBS.values()),
        "tiles": [*make_tiles(lately), *tell_counted(read_increases(COUNTED, since=now - DAY, now=now))],
        "sections": list(make_sections(lately, month, now)),
        "jobs": list(tell_jobs(read_last_runs(list(JOBS)), now)),
    }
    return TemplateResponse(request, "admin/memory/dashboard.html", context)


def make_tiles(lately: Samples) -> Iterator[Tile]:
    kinds = latest_of_kinds(lately)
    if kinds:
        yield Tile(name="memories", figure=tell_count(sum(kinds.values())))
    told: Sequence[tuple[str, Figure, Unit]] = (
        ("recall, 95 of 100 within", (RECALL, "0.95"), SECONDS),
        ("wait for a vector", (BACKLOG, "embedding"), COUNT),
        ("behind with learning", (LAG, ""), SECONDS),
        ("database", (DATABASE_BYTES, ""), BYTES),
        ("Redis", (REDIS_BYTES, ""), BYTES),
    )
    for name, figure, unit in told:
        latest = latest_of(lately[figure])
        if latest is not None:
            yield Tile(name=name, figure=unit.tell(latest))


def tell_counted(counted: Mapping[Figure, float]) -> Iterator[Tile]:
    """Of the last 24 hours: how often caches had what was looked for, and the embedder failed; none if never asked."""
    for name, cache in CACHES.items():
        hits, lookups = counted[cache, HIT], counted[cache, HIT] + counted[cache, MISS]
        if lookups:
            yield Tile(name=f"{name}, 24 h", figure=f"{shortly(100 * hits / lookups)}% of {tell_count(lookups)}")
    failed = counted[EMBEDDING_REQUESTS, FAILED]
    requests = failed + counted[EMBEDDING_REQUESTS, ANSWERED]
    if requests:
        told = f"{tell_count(failed)} of {tell_count(requests)}"
        yield Tile(name="requests to the embedder that failed, 24 h", figure=told)


def make_sections(lately: Samples, month: Samples, now: datetime) -> Iterator[tuple[str, Sequence[Chart]]]:
    """Headings, and the charts below each."""
    days = days_until(now, DAYS_OF_WORK)
    since = datetime.combine(days[0], datetime.min.time(), tzinfo=now.tzinfo)
    jobs, models = read_days_of_jobs(since=since), read_days_of_models(since=days[0])
    yield "What is kept", [draw_kinds(lately), draw_tiers(lately), draw_growth(month, now), *draw_sizes(month, now)]
    yield "The last 24 hours", list(draw_lately(lately, now))
    yield "The last seven days, by day (UTC)", [*draw_jobs(jobs, days), *draw_models(models, days)]


def draw_kinds(lately: Samples) -> Chart:
    kinds = sorted(latest_of_kinds(lately).items(), key=lambda each: (-each[1], each[0]))
    return draw_bars("kinds", "Memories by kind", kinds, unit=COUNT)


def draw_tiers(lately: Samples) -> Chart:
    """Of a tier that was not to be counted, as working memory with Redis down, the last that is known."""
    found = [(tier.replace("_", "-"), latest_of(lately[name, tier])) for name, tier in BY_TIER]
    known = [(tier, value) for tier, value in found if value is not None]
    return draw_bars("tiers", "Items by tier: keys (working), rows", known, unit=COUNT)


def draw_growth(month: Samples, now: datetime) -> Chart:
    by_day = zip(*(month[figure] for figure in BY_KIND), strict=True)
    totals = [sum(value or 0.0 for value in day) if any(value is not None for value in day) else None for day in by_day]
    return draw_lines(
        "growth",
        f"Memories, {DAYS} days",
        [Series(name="memories", values=totals)],
        moments=day_labels(days_until(now, DAYS)),
        unit=COUNT,
    )


def draw_lately(lately: Samples, now: datetime) -> Iterator[Chart]:
    moments = [f"{now - SLOT * ago_slots:%H:%M}" for ago_slots in reversed(range(SLOTS))]
    recall = [Series(name=f"p{share * 100:g}", values=lately[RECALL, str(share)]) for share in QUANTILES]
    backlog = [Series(name=WAITING[queue], values=lately[BACKLOG, queue]) for queue in QUEUES]
    lag = [Series(name="lag", values=lately[LAG, ""])]
    yield draw_lines("recall", "Recall: how long", recall, moments=moments, unit=SECONDS)
    yield draw_lines("backlog", "What waits to be worked on", backlog, moments=moments, unit=COUNT)
    yield draw_lines("lag", "Consolidation: how far behind", lag, moments=moments, unit=SECONDS)


def draw_sizes(month: Samples, now: datetime) -> Iterator[Chart]:
    moments = day_labels(days_until(now, DAYS))
    for key, name in (("Database", DATABASE_BYTES), ("Redis", REDIS_BYTES)):
        series = [Series(name=key, values=month[name, ""])]
        yield draw_lines(key.lower(), f"{key}, {DAYS} days", series, moments=moments, unit=BYTES)


def draw_jobs(found: Sequence[DayOfJob], days: Sequence[date]) -> Iterator[Chart]:
    def add_up(figure: Callable[[DayOfJob], int]) -> Sequence[Value]:
        return [sum(figure(each) for each in found if each.day == day) for day in days]

    deeds = [Series(name=name, values=add_up(changed_by(jobs))) for name, jobs in DEEDS.items()]
    deeds.append(Series(name="archived", values=add_up(lambda each: each.archived)))
    rows = [
        Series(name="examined", values=add_up(lambda each: each.examined)),
        Series(name="changed", values=add_up(lambda each: each.changed)),
    ]
    failed = [Series(name="failed", values=add_up(lambda each: each.failed))]
    groups = column_labels(days)
    yield draw_columns("deeds", "Memories faded, merged, promoted, archived", deeds, groups=groups, unit=COUNT)
    yield draw_columns("examined", "Rows that jobs examined and changed", rows, groups=groups, unit=COUNT)
    yield draw_columns("failed", "Rows on which jobs failed", failed, groups=groups, unit=COUNT)


def changed_by(jobs: Sequence[str]) -> Callable[[DayOfJob], int]:
    return lambda each: each.changed if each.job in jobs else 0


def draw_models(found: Mapping[date, DayOfModels], days: Sequence[date]) -> Iterator[Chart]:
    def by_day(figure: str) -> Sequence[Value]:
        return [getattr(found[day], figure) if day in found else 0 for day in days]

    calls = [Series(name="calls", values=by_day("calls")), Series(name="failed", values=by_day("failed_calls"))]
    tokens = [
        Series(name="sent", values=by_day("prompt_tokens")),
        Series(name="answered", values=by_day("completion_tokens")),
    ]
    groups = column_labels(days)
    yield draw_columns("calls", "Calls of language models", calls, groups=groups, unit=COUNT)
    yield draw_columns("tokens", "Tokens of language models", tokens, groups=groups, unit=COUNT)


def latest_of(values: Sequence[Value]) -> Value:
    return next((value for value in reversed(values) if value is not None), None)


def latest_of_kinds(lately: Samples) -> Mapping[str, float]:
    """Of the latest slot in which kinds were counted, by kind; empty where they never were."""
    for slot in reversed(range(SLOTS)):
        counted = {kind: lately[name, kind][slot] for name, kind in BY_KIND}
        known = {kind: value for kind, value in counted.items() if value is not None}
        if known:
            return known
    return {}


def day_labels(days: Sequence[date]) -> Sequence[str]:
    return [f"{day.day} {day:%b}" for day in days]


def column_labels(days: Sequence[date]) -> Sequence[str]:
    """There is no room for the month below each column."""
    return [f"{day.day} {day:%b}" if day in (days[0], day.replace(day=1)) else str(day.day) for day in days]


def tell_jobs(runs: Mapping[str, LastRun], now: datetime) -> Iterator[JobLine]:
    for job in JOBS.values():
        run = runs.get(job.name)
        yield JobLine(
            name=job.name,
            description=job.description,
            status=run.status if run else "",
            ran=f"{ago(run.created_at, now)} ago" if run else "never",
            took="" if run is None or run.seconds is None else tell_seconds(run.seconds),
            counted=f"{run.examined:,} / {run.changed:,} / {run.failed:,}" if run else "",
            due=tell_due(job, run, now),
        )


def tell_due(job: Job, run: LastRun | None, now: datetime) -> str:
    """When the next run is due."""
    last_due = job.last_due(now)
    if last_due is None:
        return "off"
    if not isinstance(job.every, timedelta):
        return f"{last_due + DAY:%H:%M} UTC"
    due = run.created_at + job.every if run else now
    return f"in {ago(now, due)}" if due > now else "now"


app_name = "dashboard"
urlpatterns = [path("", admin.site.admin_view(dashboard), name="page")]
