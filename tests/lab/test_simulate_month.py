"""`manage.py simulate_month`: a month's counts are explained, and killed jobs come to the same."""

from datetime import time
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from lab.simulation.digests import describe_state, differences
from lab.simulation.equations import Done, Equation, equal, figures, find_unexplained, nothing
from lab.simulation.month import Doer, Month, do_at_once, first_day_of
from lab.simulation.script import ScriptSize, talks_of_day
from memory.models import Account, ApiKey
from tests.lab.interruptions import Interrupting

EXTENT = ScriptSize(conversations=11, agents=5, days=2, seed=7)
NOW = timezone.now()
LINKS = {"links ABOUT": 1, "links MENTIONS": 1}
DONE = Done(runs=1, examined=2, changed=2, failed=0, figures={"facts_made": 2})


def month_of(name: str, do: Doer, *, is_counted: bool) -> Month:
    return Month(
        extent=EXTENT,
        account=Account.objects.create(name=name),
        first_day=first_day_of(EXTENT, NOW),
        since=timezone.now(),
        do=do,
        is_counted=is_counted,
        hours=[time(12)],
    )


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("tiny_embedder", "empty_redis")
def test_every_count_is_explained_and_killed_jobs_reach_the_same_state() -> None:
    calm = month_of("calm", do_at_once, is_counted=True)
    unexplained = [(step.job, each) for step in calm.live() for each in step.unexplained]

    doer = Interrupting()
    interrupted = month_of("interrupted", doer, is_counted=False)
    steps = list(interrupted.live())

    assert unexplained == []
    assert doer.kills > len(steps) // 3
    assert list(differences(describe_state(calm.account), describe_state(interrupted.account))) == []


def test_the_same_seed_produces_the_same_script() -> None:
    assert talks_of_day(EXTENT, 1) == talks_of_day(EXTENT, 1)
    assert talks_of_day(EXTENT, 1) != talks_of_day(ScriptSize(conversations=11, agents=5, days=2, seed=8), 1)


@pytest.mark.parametrize(
    ("changed", "unexplained"),
    [
        ({"facts active": 2, "links ABOUT": 1, "links MENTIONS": -1}, []),
        ({"facts active": 3}, [("facts *", 1)]),
        ({}, [("facts *", 2)]),
        ({"facts active": 2, "links ABOUT": 1}, [("links ABOUT, links MENTIONS", 1)]),
        ({"facts active": 2, "pools": -4}, [("pools", 4)]),
    ],
)
def test_changes_that_no_equation_explains_are_reported_with_their_amount(
    changed: dict[str, int], unexplained: list[tuple[str, int]]
) -> None:
    equations = [equal(figures("facts_made"), "facts *"), Equation(counts=LINKS, total=nothing)]

    found = find_unexplained(equations, changed, DONE)

    assert [(each.what, each.count) for each in found] == unexplained


@pytest.mark.django_db
def test_an_account_that_is_not_empty_is_refused(account: Account) -> None:
    ApiKey.objects.create(account=account, secret_hash="x")

    with pytest.raises(CommandError, match="holds something already"):
        call_command("simulate_month", account=account.name, stdout=StringIO())
