"""The figures at the top of the first page, each with the address of the rows or the chart behind it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from memory.admin.charts import BYTES, SECONDS, ChartUnit, format_count_short, format_digits
from memory.admin.columns import list_url
from memory.admin.dashboard_charts import Samples, latest_counts, latest_value
from memory.kinds import all_specs
from memory.models import JobRun
from memory.services.operations.account_figures import (
    USAGE_DAYS,
    AccountFigures,
    count_memories_by_kind,
    count_vectors,
)
from memory.services.operations.backlogs import MAX_COUNTED
from memory.services.operations.samples import (
    DATABASE_BYTES,
    EMBEDDING_CACHE,
    EMBEDDING_REQUESTS,
    LAG,
    RECALL,
    REDIS_BYTES,
    SESSION_BUFFERS,
    SampleKey,
)
from memory_project.measures import ANSWERED, FAILED, HIT, MISS, QUANTILES

CACHES = {"vectors from the cache, 24 h": EMBEDDING_CACHE, "sessions read from Redis, 24 h": SESSION_BUFFERS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A figure and the address of what is behind it. Only who may view the `model` sees it."""

    name: str
    figure: str
    url: str
    model: str
    is_bad: bool = False
    """True if somebody should look at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TileGroup:
    name: str
    tiles: Sequence[Tile]

    def seen_by(self, user: Any) -> "TileGroup":
        """Return the group without the tiles that the user may not see."""
        return replace(self, tiles=[each for each in self.tiles if user.has_perm(f"memory.view_{each.model}")])


def format_bounded(count: int) -> str:
    return f"{count:,} or more" if count >= MAX_COUNTED else f"{count:,}"


def installation_tiles(
    figures: AccountFigures, recent: Samples, rates: Mapping[SampleKey, float]
) -> Iterator[TileGroup]:
    """Yield the figures of the whole installation: sizes as of the latest samples, work as it is now."""
    kinds = {kind: format_count_short(count) for kind, count in latest_counts(recent).items()}
    total = [format_count_short(sum(latest_counts(recent).values()))] if kinds else []
    yield TileGroup(name="Memories", tiles=[*total_tiles(total), *kind_tiles(kinds)])
    yield TileGroup(name="Duration of recall", tiles=list(recall_tiles(recent)))
    yield TileGroup(name="Waiting work", tiles=[*waiting_tiles(figures), *lag_tiles(recent)])
    yield TileGroup(name="Storage", tiles=list(size_tiles(recent)))
    yield TileGroup(name="Jobs, 24 hours", tiles=list(run_tiles(figures)))
    yield TileGroup(name="Models", tiles=[*usage_tiles(figures), *rate_tiles(rates)])


def account_tiles(figures: AccountFigures, accounts: Collection[UUID]) -> Iterator[TileGroup]:
    """Yield the figures of some accounts, counted now, each up to a limit."""
    counts = count_memories_by_kind(accounts)
    vectors = format_bounded(count_vectors(accounts))
    stored = [Tile(name="vectors", figure=vectors, url=list_url("vector"), model="vector")]
    kinds = {kind: format_bounded(count) for kind, count in counts.items()}
    yield TileGroup(name="Memories", tiles=[*total_tiles([format_bounded(sum(counts.values()))]), *kind_tiles(kinds)])
    yield TileGroup(name="Waiting work", tiles=list(waiting_tiles(figures)))
    yield TileGroup(name="Storage", tiles=stored)
    yield TileGroup(name="Jobs, 24 hours", tiles=list(run_tiles(figures)))
    yield TileGroup(name="Models", tiles=list(usage_tiles(figures)))


def total_tiles(total: Sequence[str]) -> Iterator[Tile]:
    for figure in total:
        yield Tile(name="all memories", figure=figure, url=list_url("memory"), model="memory")


def kind_tiles(counts: Mapping[str, str]) -> Iterator[Tile]:
    """Yield the kinds of which there are memories."""
    for spec in all_specs():
        if counts.get(spec.name, "0") != "0":
            model = spec.admin_page
            url = list_url("memory", kind__exact=spec.name) if model == "memory" else list_url(model)
            yield Tile(name=spec.plural, figure=counts[spec.name], url=url, model=model)


def recall_tiles(recent: Samples) -> Iterator[Tile]:
    for share in QUANTILES:
        latest = latest_value(recent[RECALL, str(share)])
        if latest is not None:
            name = f"{share * 100:g}th percentile"
            yield Tile(name=name, figure=SECONDS.format(latest), url="#chart-recall", model="memory")


def waiting_tiles(figures: AccountFigures) -> Iterator[Tile]:
    """Yield the backlogs, what staff have to decide, and what they have to repair, if there is any."""
    queues = (
        ("waiting for embedding", figures.embeddings, list_url("memory", vector="waiting"), "memory"),
        ("waiting for extraction", figures.extractions, list_url("conversation", extraction="waiting"), "conversation"),
        ("waiting for a summary", figures.summaries, list_url("conversation", summary="queued"), "conversation"),
    )
    for name, backlog, url, model in queues:
        yield Tile(name=name, figure=backlog.count_text, url=url, model=model)
    parked = (
        ("extractions parked", figures.parked_extractions, list_url("conversation", extraction="parked")),
        ("summaries parked", figures.parked_summaries, list_url("conversation", summary="parked")),
    )
    for name, count, url in parked:
        if count:
            yield Tile(name=name, figure=format_bounded(count), url=url, model="conversation", is_bad=True)
    # without a filter: the list has the open ones, and leads to the decided ones
    figure = format_bounded(figures.reviews)
    yield Tile(name="contradictions to decide", figure=figure, url=list_url("factreview"), model="factreview")


def lag_tiles(recent: Samples) -> Iterator[Tile]:
    latest = latest_value(recent[LAG, ""])
    if latest is not None:
        yield Tile(name="extraction lag", figure=SECONDS.format(latest), url="#chart-lag", model="conversation")


def run_tiles(figures: AccountFigures) -> Iterator[Tile]:
    status = JobRun.Status
    for each in (status.RUNNING, status.QUEUED, status.FAILED, status.INCOMPLETE):
        count = figures.runs.get(each, 0)
        url = list_url("jobrun", status__exact=each.value, created_at__gte=figures.runs_since.isoformat())
        is_bad = bool(count) and each in (status.FAILED, status.INCOMPLETE)
        yield Tile(name=each.value, figure=format_bounded(count), url=url, model="jobrun", is_bad=is_bad)


def usage_tiles(figures: AccountFigures) -> Iterator[Tile]:
    """Yield the use of language models in the days that its list shows by default."""
    usage, page = figures.usage, "modelusage"
    failed_url = list_url(page, failed="some")
    calls = f"model calls, {USAGE_DAYS} days"
    yield Tile(name=calls, figure=format_count_short(usage.calls), url=list_url(page), model=page)
    failed = format_count_short(usage.failed_calls)
    yield Tile(name="failed calls", figure=failed, url=failed_url, model=page, is_bad=bool(usage.failed_calls))
    yield Tile(name=f"spent, {USAGE_DAYS} days", figure=f"{usage.cost:.2f}", url=list_url(page), model=page)


def rate_tiles(counted: Mapping[SampleKey, float]) -> Iterator[Tile]:
    """Yield the hit rates of caches and the failures of the embedder in the last 24 hours, if there were requests."""
    failed = counted[EMBEDDING_REQUESTS, FAILED]
    requests = failed + counted[EMBEDDING_REQUESTS, ANSWERED]
    if requests:
        figure = f"{format_count_short(failed)} of {format_count_short(requests)}"
        url = list_url("jobrun", q="embed")
        yield Tile(name="failed embeddings, 24 h", figure=figure, url=url, model="jobrun", is_bad=failed > 0)
    pages = {EMBEDDING_CACHE: "vector", SESSION_BUFFERS: "conversation"}
    for name, cache in CACHES.items():
        hits, lookups = counted[cache, HIT], counted[cache, HIT] + counted[cache, MISS]
        if lookups:
            figure = f"{format_digits(100 * hits / lookups)}% of {format_count_short(lookups)}"
            yield Tile(name=name, figure=figure, url=list_url(pages[cache]), model=pages[cache])


def size_tiles(recent: Samples) -> Iterator[Tile]:
    figures: Sequence[tuple[str, str, ChartUnit]] = (
        ("database", DATABASE_BYTES, BYTES),
        ("Redis", REDIS_BYTES, BYTES),
    )
    for name, key, unit in figures:
        latest = latest_value(recent[key, ""])
        if latest is not None:
            yield Tile(name=name, figure=unit.format(latest), url=f"#chart-{name.lower()}", model="memory")
