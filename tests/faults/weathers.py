"""One month in calm weather and in a storm, and what is different at their ends."""

import argparse
import json
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from django.utils import timezone

from lab.simulation.digests import describe_state, differences, digest_of
from lab.simulation.month import Doer, Month, MonthStep, do_at_once, first_day_of
from lab.simulation.script import ScriptSize
from memory.models import Account
from tests.faults.servers import Servers
from tests.faults.storms import storm_raised

MAX_DIFFERENCES = 40
"""The number of differences that a report lists."""

State = dict[str, list[str]]


def compare(options: argparse.Namespace, servers: Servers) -> dict[str, Any]:
    """Both months end before the same day."""
    now, draw = timezone.now(), random.Random(options.seed)
    steps, calm = live_calmly(options, now)
    log(f"calm: {len(steps)} steps, {sum(step.seconds for step in steps):.0f} s of jobs")
    plan, seconds = plan_strikes(options, steps, draw), [step.seconds for step in steps]
    began = time.monotonic()
    with storm_raised(servers, plan=plan, seconds=seconds, draw=draw) as storm:
        stormy = live_in_storm(options, now, storm, plan=plan)
    different = list(differences(calm, stormy))
    if options.states:
        write_states(options.states, calm=calm, storm=stormy)
    return {
        "calm": digest_of(calm),
        "storm": digest_of(stormy),
        "is_same": digest_of(calm) == digest_of(stormy),
        "rows": sum(map(len, calm.values())),
        "steps": len(steps),
        "unexplained": sum(each.count for step in steps for each in step.unexplained),
        "strikes": dict(sorted(storm.met.items())),
        "storm_seconds": round(time.monotonic() - began),
        "differences": len(different),
        "first_differences": different[:MAX_DIFFERENCES],
    }


def write_states(folder: Path, **states: State) -> None:
    """Write the states as JSON files, for anyone who investigates a difference."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, state in states.items():
        (folder / f"{name}.json").write_text(json.dumps(state, indent=1))


def live_calmly(options: argparse.Namespace, now: datetime) -> tuple[list[MonthStep], State]:
    month = month_of(options, "calm", now, do_at_once, is_counted=True)
    steps = list(log_by_day(month.live(), "calm"))
    return steps, describe_state(month.account)


def live_in_storm(options: argparse.Namespace, now: datetime, storm: Doer, *, plan: Mapping[int, str]) -> State:
    """A report that was lost with its worker explains nothing, so nothing is counted here."""
    month = month_of(options, "storm", now, storm, is_counted=False)
    for number, step in enumerate(log_by_day(month.live(), "storm")):
        if number in plan:
            log(f"{plan[number]} struck in {step.job} as of {step.at}")
    return describe_state(month.account)


def month_of(options: argparse.Namespace, name: str, now: datetime, do: Doer, *, is_counted: bool) -> Month:
    """Build the month of an account. Rows that the database itself dates count from its beginning."""
    extent = ScriptSize(
        conversations=options.conversations, agents=options.agents, days=options.days, seed=options.seed
    )
    return Month(
        extent=extent,
        account=Account.objects.create(name=name),
        first_day=first_day_of(extent, now),
        since=timezone.now(),
        do=do,
        is_counted=is_counted,
    )


def plan_strikes(options: argparse.Namespace, steps: Sequence[MonthStep], draw: random.Random) -> dict[int, str]:
    """Choose random steps to strike. Only steps that had something to do, and did not repeat another, are chosen."""
    worth = [number for number, step in enumerate(steps) if step.done.examined and not step.is_once_more]
    strikes = ["worker"] * options.kills + ["postgres", "valkey"] * options.stops
    draw.shuffle(strikes)
    return dict(zip(draw.sample(worth, len(strikes)), strikes, strict=True))


def log_by_day(steps: Iterable[MonthStep], name: str) -> Iterator[MonthStep]:
    """Yield the steps, and log what nothing explains as soon as it is seen."""
    for day, of_day in groupby(steps, key=lambda step: step.at.date()):
        for step in of_day:
            for each in step.unexplained:
                log(f"{name}: {step.job} as of {step.at} leaves {each.count} of {each.what} unexplained")
            yield step
        log(f"{name}: {day} is over")


def log(text: str) -> None:
    """Print the progress of the proof."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201
