"""Jobs whose work is several pieces, one after the other: a cursor is a stage, a colon, and the stage's own cursor."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from memory.maintenance.base import Batch, BatchReport, RunBatch


def run_stages(stages: Mapping[str, RunBatch], *, now: datetime, batch: Batch) -> BatchReport:
    """One batch of the stage that the cursor names, the first one's to begin with. What changed counts by stage."""
    names = list(stages)
    name, _, after = (batch.cursor or f"{names[0]}:").partition(":")
    report = stages[name](now=now, batch=replace(batch, cursor=after))
    figures = {**report.figures, **({name: report.changed} if report.changed else {})}
    if report.cursor:
        return replace(report, cursor=f"{name}:{report.cursor}", figures=figures)
    rest = names[names.index(name) + 1 :]
    return replace(report, cursor=f"{rest[0]}:" if rest else "", figures=figures)
