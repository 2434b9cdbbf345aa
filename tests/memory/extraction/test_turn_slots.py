"""Slots are formatted as texts, and survive a round trip through JSON."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.turn_slots import Action, Call, Outcome, Point, Rationale
from tests.properties import examples

POINTS = st.lists(st.builds(Point, what=st.text(min_size=1), why=st.text()), max_size=3)
RATIONALES = st.builds(Rationale, decisions=POINTS, rejected=POINTS, blockers=POINTS)


@examples(50)
@given(RATIONALES)
def test_a_rationale_comes_back_from_its_json(rationale: Rationale) -> None:
    stored = json.loads(json.dumps(rationale.as_json()))

    again = Rationale.of_json(stored)

    assert (again, again.format(), again.summarize()) == (rationale, rationale.format(), rationale.summarize())
    assert rationale.is_empty == (rationale.format() == "")


def test_a_rationale_is_formatted_with_one_line_per_point() -> None:
    rationale = Rationale(
        decisions=[Point(what="water at dawn", why="the sun burns"), Point(what="mulch")],
        rejected=[Point(what="water at noon")],
        blockers=[Point(what="the hose leaks")],
    )

    assert rationale.format().splitlines() == [
        "Decided: water at dawn (because the sun burns)",
        "Decided: mulch",
        "Rejected: water at noon",
        "Blocked by: the hose leaks",
    ]
    assert rationale.summarize() == "Decided: water at dawn (because the sun burns); mulch"


@pytest.mark.parametrize(
    ("rationale", "summary"),
    [
        (Rationale(), ""),
        (Rationale(rejected=[Point(what="noon")]), ""),
        (Rationale(blockers=[Point(what="no hose")]), "Blocked by: no hose"),
    ],
    ids=["nothing", "rejected alone", "blocked"],
)
def test_a_rationale_without_a_decision_is_summarized_by_its_blockers(rationale: Rationale, summary: str) -> None:
    assert rationale.summarize() == summary


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (Call(tool="look"), "look()"),
        (Call(tool="look", arguments={"at": "mät"}), 'look({"at": "mät"})'),
        (Call(tool="look", arguments="mat", result="a key"), "look(mat) -> a key"),
        (Call(tool="look", result=0), "look() -> 0"),
        (Call(tool="look", result=False), "look() -> false"),
        (Call(tool="look", error="E42: dark"), "look() !! E42: dark"),
        (Call(tool="look", result=["dust"], error="timeout"), 'look() !! timeout -> ["dust"]'),
    ],
    ids=lambda expected: expected if isinstance(expected, str) else "",
)
def test_a_call_is_formatted_with_arguments_result_and_error(call: Call, expected: str) -> None:
    assert call.format() == expected
    assert Call(**call.as_json()) == call


def test_an_action_is_formatted_as_its_text_and_its_calls() -> None:
    assert Action(text="I look.", calls=[Call(tool="look"), Call(tool="dig")]).format() == "I look.\nlook()\ndig()"
    assert Action(calls=[Call(tool="look")]).format() == "look()"


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        (Outcome(status="open"), "Still open."),
        (Outcome(status="failed"), "The turn failed."),
        (Outcome(status="succeeded"), "The turn succeeded."),
        (Outcome(status="open", text="It dries."), "It dries."),
    ],
    ids=lambda expected: expected if isinstance(expected, str) else "",
)
def test_an_outcome_without_a_text_is_formatted_as_its_status(outcome: Outcome, expected: str) -> None:
    assert outcome.format() == expected
