"""Figures that the service's processes count as they work, and how to read the figures of all of them.

Web and worker processes write their figures into files of shared folders (`counters`); a scrape reads all of them. A
process that shares no folder (a command, a test) counts for itself alone, and its figures end with it. To add a figure:
one line below, and its name in MEASURES.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from math import isinf
from pathlib import Path
from typing import Any

from prometheus_client import Counter, Histogram, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from memory_project.counters import VARIABLE, all_counted_files, counted_files

HIT, MISS = "hit", "miss"
ANSWERED, FAILED = "answered", "failed"

RECALL_SECONDS = Histogram(
    "memory_recall_seconds",
    "Seconds from a question to the memories that answer it.",
    buckets=(0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1, 2, 5),
    registry=None,
)
EMBEDDING_CACHE = Counter(
    "memory_embedding_cache_lookups", "Texts looked for in the cache of embeddings.", ["outcome"], registry=None
)
SESSION_BUFFERS = Counter(
    "memory_session_buffer_reads",
    "Reads of a session's latest messages: from Redis (hit), or from the log, since Redis had not all of them (miss).",
    ["outcome"],
    registry=None,
)
KEPT_ANSWERS = Counter(
    "memory_idempotent_requests",
    "Requests with an Idempotency-Key: answered as before (hit), or for the first time (miss).",
    ["outcome"],
    registry=None,
)
EMBEDDING_REQUESTS = Counter(
    "memory_embedding_requests", "Requests to the embedder that were answered, or failed.", ["outcome"], registry=None
)
EMBEDDED_TEXTS = Counter("memory_embedded_texts", "Texts that the embedder made vectors of.", registry=None)
MASKED_SECRETS = Counter(
    "memory_masked_secrets", "Secrets that were masked in what clients wrote, before it was stored.", registry=None
)
REPLICA_READS = Counter(
    "memory_replica_reads",
    "Requests that a replica may answer, by the one that did; `primary` where none had everything or answered.",
    ["server"],
    registry=None,
)

MEASURES = (
    RECALL_SECONDS,
    EMBEDDING_CACHE,
    SESSION_BUFFERS,
    KEPT_ANSWERS,
    EMBEDDING_REQUESTS,
    EMBEDDED_TEXTS,
    MASKED_SECRETS,
    REPLICA_READS,
)

QUANTILES = (0.5, 0.95, 0.99)
"""Quantiles of recall latency, wherever they are shown; labelled by their digits."""

OUTCOMES: Mapping[str, Sequence[str]] = {
    "memory_embedding_cache_lookups_total": (HIT, MISS),
    "memory_session_buffer_reads_total": (HIT, MISS),
    "memory_embedding_requests_total": (ANSWERED, FAILED),
}
"""The counters of which samples are taken, as `/metrics` names them, and what they are counted by."""

TRIES = 3

Buckets = Mapping[float, float]
"""A histogram: how many observations were at most each bound; the last bound is infinity."""


class CountedTogether(Collector):
    """The figures of this web server's processes and of the workers on the same data, added up."""

    def collect(self) -> Iterable[Metric]:
        return merged(lambda: counted_files(os.environ[VARIABLE]))


def merged(find: Callable[[], Sequence[Path]]) -> Sequence[Metric]:
    """Merge the files that are found, searching again if one disappears meanwhile: a starting server clears some."""
    for _ in range(TRIES - 1):
        with suppress(FileNotFoundError):
            return merged_files(find())
    return merged_files(find())


def merged_files(files: Sequence[Path]) -> Sequence[Metric]:
    read: Any = MultiProcessCollector
    # one that was only just made is empty
    return list(read.merge([str(file) for file in files if file.stat().st_size]))


def recall_buckets(data_dir: Path) -> Buckets:
    """Return the buckets of RECALL_SECONDS, over all servers and workers on this data that share a folder."""
    return buckets_of(merged(lambda: all_counted_files(data_dir, "histogram")) or RECALL_SECONDS.collect())


def buckets_of(metrics: Iterable[Metric]) -> Buckets:
    found = [sample for metric in metrics for sample in metric.samples if sample.name == "memory_recall_seconds_bucket"]
    return dict(sorted((float(sample.labels["le"]), sample.value) for sample in found))


def outcome_counts(data_dir: Path) -> Mapping[tuple[str, str], float]:
    """Return the counts of OUTCOMES by counter and outcome, over the same processes; 0 for those that did not occur."""
    own = (metric for measure in MEASURES for metric in measure.collect())
    metrics = merged(lambda: all_counted_files(data_dir, "counter")) or own
    found = {
        (sample.name, sample.labels.get("outcome")): sample.value for metric in metrics for sample in metric.samples
    }
    asked = [(name, outcome) for name, outcomes in OUTCOMES.items() for outcome in outcomes]
    return {each: found.get(each, 0.0) for each in asked}


def since(now: Buckets, before: Buckets) -> Buckets:
    """Return the increase since then; everything if the count is lower than before, since the processes restarted."""
    counted = {bound: count - before.get(bound, 0.0) for bound, count in now.items()}
    return dict(now) if min(counted.values(), default=0.0) < 0 else counted


def quantile(buckets: Buckets, share: float) -> float | None:
    """Return the value that this share of the observations does not exceed; None without observations.

    Observations are spread evenly within a bucket. As in Prometheus's `histogram_quantile`, the open last bucket counts
    with its lower bound.
    """
    bounds = sorted(buckets)
    total = buckets[bounds[-1]] if bounds else 0.0
    if total <= 0:
        return None
    rank, lower = share * total, (0.0, 0.0)
    for (below, counted), (bound, count) in pairwise([lower, *((bound, buckets[bound]) for bound in bounds)]):
        if count >= rank and count > counted:
            return below if isinf(bound) else below + (bound - below) * (rank - counted) / (count - counted)
    return bounds[-2]
