"""Measuring ways of doing the same, turn by turn: on a noisy machine all of them meet the same noise."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

WARM_UP_ROUNDS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkVariant:
    """One way of doing it. `run` takes the number of the round, for those that must not repeat themselves."""

    name: str
    run: Callable[[int], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Something the service does. The first way is the bare one, which the others are compared to."""

    name: str
    ways: Sequence[BenchmarkVariant]
    most_rounds: int | None = None
    """Rounds at most, for what takes seconds. None: as many as are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """Milliseconds of one way, and how many times the bare way's they are."""

    case: str
    way: str
    p50_ms: float
    p95_ms: float
    p50_ratio: float
    p95_ratio: float


def measure(case: Case, *, rounds: int) -> Iterator[Measurement]:
    """Run every way once per round, in rotating order, so that none always follows the same other."""
    rounds = min(rounds, case.most_rounds or rounds)
    spent = np.zeros((len(case.ways), rounds))
    for number in range(-WARM_UP_ROUNDS if case.most_rounds is None else -1, rounds):
        for turn in range(len(case.ways)):
            index = (number + turn) % len(case.ways)
            started = time.perf_counter()
            case.ways[index].run(number)
            if number >= 0:
                spent[index, number] = time.perf_counter() - started
    yield from summarize_times(case, spent * 1_000)


def summarize_times(case: Case, milliseconds: "np.typing.NDArray[np.float64]") -> Iterator[Measurement]:
    """Yield the percentiles of each way. `milliseconds` has a row for each way."""
    bare_p50, bare_p95 = np.percentile(milliseconds[0], (50, 95))
    for way, row in zip(case.ways, milliseconds, strict=True):
        p50, p95 = np.percentile(row, (50, 95))
        yield Measurement(
            case=case.name,
            way=way.name,
            p50_ms=float(p50),
            p95_ms=float(p95),
            p50_ratio=float(p50 / bare_p50),
            p95_ratio=float(p95 / bare_p95),
        )
