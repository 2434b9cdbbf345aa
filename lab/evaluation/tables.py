"""An evaluation as people read it: shares in hundredths, with the interval of each below it."""

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from lab.evaluation.ablation import Ablation, AblationRow
from lab.evaluation.budgets import BUDGETS, Spent
from lab.evaluation.figures import MEASURES, UPDATE_MEASURES, EvaluationReport, Group, Mean, Pace
from lab.evaluation.ranker import PLACES, LearnedWeights, LearningSet
from memory.retrieval.ranking.signals import SIGNALS

WIDTH = 120
"""Columns of the text that tables are rendered as."""
FOUND = "Answers found, %, with 95 % bootstrap intervals"
UPDATES = "New answers and the old ones that they replaced, %"
LEFT_OUT = "The same by weights that were learned on the other samples"
FITTED = "The same by weights that were fitted on these very samples"


def render_report(report: EvaluationReport, title: str = FOUND) -> Iterator[RenderableType]:
    table = open_table(title, "questions", "n", *MEASURES)
    everything = [report.all] if report.all else []
    apart = [report.apart] if report.apart else []
    for section in (everything, report.types, report.samples, apart):
        for group in section:
            table.add_row(*report_row(group))
        table.add_section()
    yield table
    if report.updates:
        updates = open_table(UPDATES, "questions", "n", *UPDATE_MEASURES)
        for group in report.updates:
            updates.add_row(*report_row(group))
        yield updates
    yield Text(format_pace(report.pace))
    for code, recalls in sorted(report.degraded.items()):
        yield Text(f"{code}: {recalls} recalls were degraded by it")


def render_ablation(ablation: Ablation) -> Iterator[RenderableType]:
    """Render the tables. Differences are to the first row of the first table, for techniques of the last one."""
    held_out = f"recall@{PLACES} on questions that were not learned from, before selectors"
    everything = ablation.signals[0]
    yield render_rows(f"Signals: {held_out}", ablation.signals, everything)
    yield render_rows("Each signal alone", ablation.alone, everything)
    yield render_rows("All signals but one", ablation.without, everything)
    yield from format_untaught(ablation.untaught)
    yield render_rows(f"Techniques left out: recall@{PLACES}", ablation.techniques, ablation.techniques[0])


def format_untaught(count: int) -> Iterator[Text]:
    if count:
        yield Text(
            f"Questions that were not learned from, with candidates whose weights nothing else taught: {count}. "
            "These weights were zero there."
        )


def render_rows(title: str, rows: Sequence[AblationRow], reference: AblationRow) -> Table:
    """Render a row per plan, with the difference to the reference, in points."""
    table = open_table(title, "", "all", "±", *reference.types)
    for row in rows:
        shares = [f"{share * 100:.1f}" for share in row.types.values()]
        table.add_row(row.name, f"{row.all * 100:.1f}", f"{points(row.all - reference.all):+.1f}", *shares)
    return table


def points(difference: float) -> float:
    """Format a share in hundredths; a zero has no sign."""
    return round(difference * 100, 1) + 0.0


def render_columns(title: str, columns: Sequence[AblationRow]) -> Table:
    """Render the same figures with a row per type."""
    table = open_table(title, "", *(column.name for column in columns))
    table.add_row("all", *(f"{column.all * 100:.1f}" for column in columns), end_section=True)
    for type_ in columns[0].types:
        table.add_row(type_, *(f"{column.types[type_] * 100:.1f}" for column in columns))
    return table


def render_budgets(spent: Sequence[Spent]) -> Table:
    table = open_table("Answers within so many tokens, %", "form", "by", *(f"{tokens:,}" for tokens in BUDGETS))
    for each in spent:
        table.add_row(each.form, each.plan, *(f"{each.found[tokens] * 100:.1f}" for tokens in BUDGETS))
    return table


def render_weights(learned: LearnedWeights) -> Table:
    sets = learned.sets
    table = open_table("Weights", "signal", *sets)
    for name in SIGNALS:
        table.add_row(name, *(cell_of_weight(each, name) for each in sets.values()))
    table.add_section()
    table.add_row("questions", *(str(each.questions) for each in sets.values()))
    nlls = ("" if each.nll is None else f"{each.nll:.3f}" for each in sets.values())
    table.add_row("cross entropy, nats", *nlls)
    return table


def cell_of_weight(lesson: LearningSet, name: str) -> str:
    weight = f"{lesson.weights.get(name, 0.0):.3f}"
    return f"{weight}\n[dim]as it was[/dim]" if name in lesson.kept else weight


def open_table(title: str, first: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    return table


def report_row(group: Group) -> list[str]:
    return [group.name, str(group.questions), *map(cell, group.figures.values())]


def cell(figure: Mean) -> str:
    return f"{figure.mean * 100:.1f}\n[dim]{figure.low * 100:.0f}-{figure.high * 100:.0f}[/dim]"


def format_pace(pace: Pace) -> str:
    return (
        f"A recall took {pace.p50_ms:.1f} ms (median; p95 {pace.p95_ms:.1f}) with embedding its question, "
        f"{pace.search_p50_ms:.1f} ms (p95 {pace.search_p95_ms:.1f}) without."
    )
