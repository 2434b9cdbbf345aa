"""An evaluation as people read it: shares in hundredths, with the interval of each below it."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from memory.management.evaluation.figures import MEASURES, Group, Mean, Pace, Report


def draw(report: Report) -> Iterator[RenderableType]:
    table = Table(title="Answers found, %, with 95 % bootstrap intervals", title_justify="left")
    table.add_column("questions", overflow="fold")
    table.add_column("n", justify="right")
    for measure in MEASURES:
        table.add_column(measure, justify="right")
    everything = [report.all] if report.all else []
    apart = [report.apart] if report.apart else []
    for section in (everything, report.types, report.samples, apart):
        for group in section:
            table.add_row(*row_of(group))
        table.add_section()
    yield table
    yield Text(tell_pace(report.pace))
    for code, recalls in sorted(report.degraded.items()):
        yield Text(f"{code}: {recalls} recalls were degraded by it")


def row_of(group: Group) -> list[str]:
    return [group.name, str(group.questions), *(cell(group.figures[measure]) for measure in MEASURES)]


def cell(figure: Mean) -> str:
    return f"{figure.mean * 100:.1f}\n[dim]{figure.low * 100:.0f}-{figure.high * 100:.0f}[/dim]"


def tell_pace(pace: Pace) -> str:
    return (
        f"A recall took {pace.p50_ms:.1f} ms (median; p95 {pace.p95_ms:.1f}) with embedding its question, "
        f"{pace.search_p50_ms:.1f} ms (p95 {pace.search_p95_ms:.1f}) without."
    )
