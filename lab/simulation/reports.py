"""The result of a month, job by job: as a table, and as JSON."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.table import Table

from lab.simulation.month import MonthStep
from memory.management.base import render_text

WIDTH = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sum of all runs of a job."""

    job: str
    runs: int = 0
    examined: int = 0
    changed: int = 0
    failed: int = 0
    unexplained: int = 0
    seconds: float = 0.0

    def plus(self, step: MonthStep) -> "Total":
        done = step.done
        return Total(
            job=self.job,
            runs=self.runs + done.runs,
            examined=self.examined + done.examined,
            changed=self.changed + done.changed,
            failed=self.failed + done.failed,
            unexplained=self.unexplained + sum(each.count for each in step.unexplained),
            seconds=self.seconds + step.seconds,
        )


def total_by_job(steps: Iterable[MonthStep]) -> list[Total]:
    """Add up the steps by job, in the order of their names."""
    totals: dict[str, Total] = {}
    for step in steps:
        totals[step.job] = totals.get(step.job, Total(job=step.job)).plus(step)
    return [totals[job] for job in sorted(totals)]


def serialize_month(totals: Sequence[Total], digest: str) -> dict[str, Any]:
    jobs = [asdict(total) | {"seconds": round(total.seconds, 3)} for total in totals]
    return {"jobs": jobs, "unexplained": sum(total.unexplained for total in totals), "digest": digest}


def render_month(totals: Sequence[Total], digest: str) -> str:
    table = Table(title="A month", title_justify="left")
    table.add_column("job")
    for column in ("runs", "examined", "changed", "failed", "unexplained", "seconds"):
        table.add_column(column, justify="right")
    for total in totals:
        numbers = (total.runs, total.examined, total.changed, total.failed, total.unexplained)
        table.add_row(total.job, *(f"{number:,}" for number in numbers), f"{total.seconds:.1f}")
    return render_text([table, f"end state {digest}"], width=WIDTH)
