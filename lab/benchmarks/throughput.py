"""Recall over HTTP by many connections at once: requests per second, and how long the slowest wait."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from django.core.management.base import CommandError

from lab.benchmarks.recall import RECALL
from lab.benchmarks.scratch import Scratch
from lab.benchmarks.web import KeepAliveClient
from memory_project.supervisor.parts import Address

CONNECTIONS = (8, 32)
SECONDS = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Figures of a number of connections. Refused requests are in none of the others."""

    request: str
    connections: int
    requests_per_second: float
    p50_ms: float
    p99_ms: float
    refused: int


def measure_throughput(
    scratch: Scratch, address: Address, *, request: str, bodies: Sequence[bytes], connections: int
) -> Throughput:
    """Ask over as many connections at once, each question as soon as the one before is answered."""
    started = time.monotonic()
    with ThreadPoolExecutor(connections) as pool:
        each = [pool.submit(ask_until_late, scratch, address, bodies, number) for number in range(connections)]
        results = [future.result() for future in each]
    times = np.array([spent for answered, _ in results for spent in answered]) * 1_000
    if not times.size:
        raise CommandError(f"No request was answered over {connections} connections.")
    p50, p99 = np.percentile(times, (50, 99))
    return Throughput(
        request=request,
        connections=connections,
        requests_per_second=times.size / (time.monotonic() - started),
        p50_ms=float(p50),
        p99_ms=float(p99),
        refused=sum(refused for _, refused in results),
    )


def ask_until_late(
    scratch: Scratch, address: Address, bodies: Sequence[bytes], first: int
) -> tuple[Sequence[float], int]:
    """Return the seconds of each answered request of one connection, and the number of refused ones."""
    answered: list[float] = []
    refused = 0
    late = time.monotonic() + SECONDS
    with closing(KeepAliveClient(address, scratch.secret)) as client:
        number = first
        while (began := time.monotonic()) < late:
            try:
                client.request("POST", RECALL, bodies[number % len(bodies)])
            except CommandError:
                refused += 1
            else:
                answered.append(time.monotonic() - began)
            number += 1
    return answered, refused
