"""The charts of the first page: figures of the whole installation over time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta

from memory.admin.charts import (
    BYTES,
    COUNT,
    SECONDS,
    Chart,
    ChartSeries,
    Value,
    render_amounts,
    render_column_chart,
    render_line_chart,
)
from memory.services.operations.samples import (
    BACKLOG,
    BY_KIND,
    BY_TIER,
    DATABASE_BYTES,
    LAG,
    QUEUES,
    RECALL,
    REDIS_BYTES,
    JobDay,
    ModelDay,
    SampleKey,
    last_days,
    read_job_days,
    read_model_days,
)
from memory_project.measures import QUANTILES

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

Samples = Mapping[SampleKey, Sequence[Value]]


def chart_sections(recent: Samples, month: Samples, now: datetime) -> Iterator[tuple[str, Sequence[Chart]]]:
    """Yield headings, each with its charts."""
    days = last_days(now, WORK_DAYS)
    since = datetime.combine(days[0], datetime.min.time(), tzinfo=now.tzinfo)
    jobs, models = read_job_days(since=since), read_model_days(since=days[0])
    stored = [render_tiers(recent), render_growth(month, now), *render_sizes(month, now)]
    yield "Stored data", stored
    yield "The last 24 hours", list(render_recent(recent, now))
    yield "The last seven days, by day (UTC)", [*render_job_charts(jobs, days), *render_model_charts(models, days)]


def render_tiers(recent: Samples) -> Chart:
    """Render the items of each tier; the last known number if a tier could not be counted, such as without Redis."""
    found = [(tier.replace("_", "-"), latest_value(recent[name, tier])) for name, tier in BY_TIER]
    known = [(tier, value) for tier, value in found if value is not None]
    return render_amounts("tiers", "Items by tier: keys (working), rows (others)", known, unit=COUNT)


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
