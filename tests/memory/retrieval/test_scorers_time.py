"""Scorers by time: what is current, what is recent, and what is from the times that the question mentions."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.models import Kind
from memory.retrieval.queries import TimeWindow
from memory.retrieval.scorers import SCORERS
from tests.memory.candidates import asking, factor_of, found
from tests.memory.episodes import NOW
from tests.memory.facts import day
from tests.properties import examples

TENTH_TO_TWENTIETH = TimeWindow(since=day(-10), until=day(-2))


@pytest.mark.parametrize(("temporal", "factor"), [("current", 1.2), ("past", 0.7), ("future", 1.0), ("", 1.0)])
def test_current_facts_are_weighted_above_past_ones(temporal: str, factor: float) -> None:
    assert factor_of("temporal_context", asking(), kind=Kind.FACT, temporal=temporal) == factor


@pytest.mark.parametrize(
    ("asked", "factor"),
    [
        pytest.param({"as_of": day(-100)}, 1.0, id="as of then"),
        pytest.param({"windows": [TimeWindow(since=day(-9), until=day(-2))]}, 1.0, id="a time that is over"),
        pytest.param({"windows": [TimeWindow(since=day(-9), until=NOW)]}, 1.0, id="a time that is just over"),
        pytest.param({"windows": [TimeWindow(since=day(-9), until=day(1))]}, 0.7, id="a time that lasts"),
        pytest.param({"windows": [TimeWindow(since=day(-9), until=None)]}, 0.7, id="a time without end"),
        pytest.param(
            {"windows": [TimeWindow(since=day(-9), until=day(-8)), TimeWindow(since=day(-1), until=day(1))]},
            0.7,
            id="one each",
        ),
    ],
)
def test_questions_about_another_time_do_not_prefer_current_facts(asked: dict[str, Any], factor: float) -> None:
    assert factor_of("temporal_context", asking(**asked), kind=Kind.FACT, temporal="past") == factor


@pytest.mark.parametrize(
    ("happened", "accessed", "factor"),
    [
        pytest.param(NOW, None, 1.1, id="now"),
        pytest.param(day(3), None, 1.1, id="of later"),
        pytest.param(day(-1), None, 1.095, id="yesterday"),
        pytest.param(day(-1), day(-30), 1.095, id="read before it happened"),
        pytest.param(day(-300), day(-1), 1.095, id="read yesterday"),
        pytest.param(day(-300), None, 1.0, id="long ago"),
    ],
)
def test_recent_events_and_reads_are_boosted_by_up_to_a_tenth(
    happened: datetime, accessed: datetime | None, factor: float
) -> None:
    found = factor_of("recency", asking(), event_time=happened, last_accessed=accessed)

    assert found == pytest.approx(factor, abs=1e-6)


@pytest.mark.parametrize(
    ("happened", "factor"),
    [
        # eight days, which fade over a quarter of that: 2 days
        pytest.param(-10, 1.3, id="as it begins"),
        pytest.param(-5, 1.3, id="amidst"),
        pytest.param(-2, 1.3, id="as it ends"),
        pytest.param(-12, 1.15, id="two days before"),
        pytest.param(0, 1.15, id="two days after"),
        pytest.param(-14, 1.075, id="four days before"),
        pytest.param(-200, 1.0, id="long before"),
    ],
)
def test_candidates_in_the_window_are_boosted_and_those_near_it_less(happened: float, factor: float) -> None:
    assert factor_of("window", asking(windows=[TENTH_TO_TWENTIETH]), event_time=day(happened)) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("happened", "reasons"),
    [
        pytest.param(-10, ["of the time asked about"], id="as it begins"),
        pytest.param(-2, [], id="as it ends"),
        pytest.param(-12, [], id="before"),
    ],
)
def test_windows_are_half_open(happened: float, reasons: list[str]) -> None:
    candidate = found(1, event_time=day(happened))

    SCORERS["window"]([candidate], asking(windows=[TENTH_TO_TWENTIETH]))

    assert candidate.reasons == reasons


@pytest.mark.parametrize(
    ("begins", "ends", "factor"),
    [
        pytest.param(day(-300), None, 1.3, id="since before"),
        pytest.param(None, day(-9), 1.3, id="until amidst"),
        pytest.param(day(-6), day(-5), 1.3, id="within"),
        pytest.param(day(0), None, 1.15, id="from two days after"),
        pytest.param(day(-300), day(-12), 1.15, id="until two days before"),
        pytest.param(None, None, 1.0, id="not known"),
    ],
)
def test_a_fact_is_of_the_time_in_which_it_was_true(
    begins: datetime | None, ends: datetime | None, factor: float
) -> None:
    fact = {"kind": Kind.FACT, "event_time": day(300), "valid_from": begins, "valid_to": ends}

    assert factor_of("window", asking(windows=[TENTH_TO_TWENTIETH]), **fact) == pytest.approx(factor)


@pytest.mark.parametrize(
    ("windows", "factor"),
    [
        pytest.param([], 1.0, id="none"),
        pytest.param([TimeWindow(since=None, until=None)], 1.3, id="all of time"),
        pytest.param([TimeWindow(since=day(1), until=None)], 1.15, id="from a day later on"),
        pytest.param([TimeWindow(since=None, until=day(-2))], 1.075, id="until two days before"),
        pytest.param([TENTH_TO_TWENTIETH, TimeWindow(since=day(-1), until=day(1))], 1.3, id="the nearest of two"),
    ],
)
def test_windows_may_be_open_or_many(windows: list[TimeWindow], factor: float) -> None:
    assert factor_of("window", asking(windows=windows), event_time=NOW) == pytest.approx(factor)


@examples(50)
@given(st.floats(0, 500), st.floats(0, 500))
def test_candidates_nearer_to_the_window_never_count_less(days: float, other: float) -> None:
    nearer, farther = sorted((days, other))
    factors = [
        factor_of("window", asking(windows=[TENTH_TO_TWENTIETH]), event_time=day(-2 + distance))
        for distance in (farther, nearer)
    ]

    assert factors == sorted(factors)
