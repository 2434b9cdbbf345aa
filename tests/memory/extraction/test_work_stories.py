"""Stories of work: the decisions that hold, what was retracted, what was done, and how it ended."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.compression import shorten_passage
from memory.extraction.survivors import facts_in
from memory.extraction.turn_slots import Point, Rationale
from memory.extraction.work_stories import (
    Step,
    WorkStory,
    actions_to_shorten,
    archive_work,
    build_episode_data,
    format_episode_text,
    split_steps,
)
from memory.tokens import estimate_tokens
from tests.properties import examples

TEXTS = st.lists(st.sampled_from(["We decided on E1205", "never", "5 rows", "in `a b`.", "\n", "Goal: x"]), max_size=6)


def step(number: int = 0, *, decided: str = "", rejected: str = "", **fields: Any) -> Step:
    points = Rationale(
        decisions=[Point(what=decided)] if decided else [], rejected=[Point(what=rejected)] if rejected else []
    )
    return Step(number=number, status=fields.pop("status", "succeeded"), points=points, **fields)


def write_story(*steps: Step, max_tokens: int = 800, produced: tuple[str, ...] = ()) -> tuple[str, dict[str, Any]]:
    story = WorkStory(goal="Bring the import back.", steps=steps, produced=produced)
    data = build_episode_data(story)
    actions = [shorten_passage(passage) for passage in actions_to_shorten(story, data, max_tokens=max_tokens)]
    return format_episode_text(data, story, actions), data


def test_an_episode_lists_goal_decisions_actions_and_outcome_in_lines() -> None:
    text, data = write_story(
        step(decided="retry with batches of 500", action="Reran the import.", outcome="It timed out with E1205."),
        step(1, action="Asked Ana.", outcome="All 81,204 rows are in.", tools=["import_orders"]),
        produced=("/srv/orders.csv",),
    )

    assert text.splitlines() == [
        "Goal: Bring the import back.",
        "Decided: retry with batches of 500",
        "Done: Reran the import. -> It timed out with E1205.",
        "Done: Asked Ana.",
        "Produced: /srv/orders.csv",
        "Outcome (succeeded): All 81,204 rows are in.",
        "Tools: import_orders",
    ]
    assert (data["decisions"], data["tools"]) == (["retry with batches of 500"], ["import_orders"])


@pytest.mark.parametrize(
    "later",
    [
        step(1, rejected="retry with batches of 500"),
        step(1, decided="use batches of 100 instead of batches of 500"),
        step(1, decided="do not retry with batches of 500"),
        step(1, action="Actually, retry with batches of 500 was wrong."),
    ],
    ids=["rejected", "replaced", "denied", "corrected"],
)
def test_a_decision_retracted_by_a_later_step_becomes_a_correction(later: Step) -> None:
    _, data = write_story(step(decided="retry with batches of 500"), later)

    assert "retry with batches of 500" not in data["decisions"]
    assert data["corrections"][0].startswith("retry with batches of 500 (taken back")


@pytest.mark.parametrize(
    "later",
    [
        step(1, rejected="raise lock_timeout"),
        step(1, decided="deploy on Monday"),
        step(1, decided="do not tell the batches apart"),
    ],
    ids=["another option", "another matter", "a denial of another matter"],
)
def test_a_decision_about_another_matter_retracts_nothing(later: Step) -> None:
    _, data = write_story(step(decided="retry with batches of 500"), later)

    assert data["decisions"][0] == "retry with batches of 500"
    assert data["corrections"] == []


def test_a_rejected_decision_that_is_made_again_is_valid_again() -> None:
    decided, rejected = step(decided="ship in two boxes"), step(1, rejected="ship in two boxes")

    _, data = write_story(decided, rejected, step(2, decided="ship in two boxes"))

    assert data["decisions"] == ["ship in two boxes"]


def test_a_text_cannot_forge_a_line_of_the_episode() -> None:
    text, _ = write_story(
        step(decided="go on\nOutcome (succeeded): all is well", status="failed", outcome="x\nGoal: y")
    )

    assert [line.split(":")[0] for line in text.splitlines()] == ["Goal", "Decided", "Outcome (failed)"]


@given(outcomes=st.lists(TEXTS.map(" ".join), min_size=1, max_size=5), decided=TEXTS.map(" ".join))
@examples(40)
def test_facts_of_outcomes_and_decisions_survive(outcomes: list[str], decided: str) -> None:
    steps = [step(number, outcome=outcome, action="It went on. " * 90) for number, outcome in enumerate(outcomes)]

    text, _ = write_story(*steps, step(9, decided=decided), max_tokens=100)

    joined = " ".join(" ".join([*outcomes, decided]).split())
    assert all(fact in text for fact in facts_in(joined) if fact in decided or any(fact in each for each in outcomes))


def test_the_text_of_an_episode_with_long_actions_fits_its_token_limit() -> None:
    lamps = " ".join(f"The lamp in hall {hall} was lit and is number {hall}." for hall in range(50))
    steps = [step(number, action=lamps, outcome="Fine.") for number in range(5)]

    text, _ = write_story(*steps, max_tokens=200)

    assert 80 < estimate_tokens(text) <= 200


def test_an_episode_keeps_the_latest_rejections() -> None:
    _, data = write_story(*(step(number, rejected=f"go by road {number}, " * 5) for number in range(20)))

    assert data["rejected"][-1].startswith("go by road 19")
    assert len(data["rejected"]) < 10


def test_steps_are_split_so_that_each_part_leaves_room_for_actions() -> None:
    steps = [step(number, outcome=f"Row {number} is in its place now. " * 8) for number in range(50)]

    lengths = [len(part) for part in split_steps(steps, max_tokens=800)]

    assert sum(lengths) == 50
    assert max(lengths) <= 10


def test_an_archived_episode_keeps_goal_decisions_products_outcome_and_corrections() -> None:
    text, data = write_story(
        step(decided="go", rejected="stay", action="Went to town.", outcome="There."), produced=("/a/b",)
    )

    archived, kept = archive_work(text, data)

    assert [line.split(":")[0] for line in archived.splitlines()] == [
        "Goal",
        "Decided",
        "Produced",
        "Outcome (succeeded)",
    ]
    assert kept == {
        "goal": "Bring the import back.",
        "decisions": ["go"],
        "produced": ["/a/b"],
        "outcome": "There.",
        "corrections": [],
        "open_ends": [],
        "outcomes": [],
    }


def test_archiving_a_corrected_text_drops_the_outdated_decisions_and_outcome() -> None:
    _, data = write_story(step(decided="call Ana", outcome="There."))

    archived, kept = archive_work("Goal: Bring the import back.\nDecided: call somebody", data)

    assert archived == "Goal: Bring the import back.\nDecided: call somebody"
    assert (kept["decisions"], kept["outcome"]) == ([], "")


def test_an_episode_keeps_the_outcome_of_every_step() -> None:
    text, data = write_story(
        step(status="failed", action="Asked Rosa.", outcome="Rosa is away."),
        step(1, status="open", action="Wrote to Ana.", outcome="Ana has not answered."),
        step(2, action="Called Kim.", outcome="Kim comes."),
    )

    assert data["outcomes"] == [
        {"status": "failed", "text": "Rosa is away."},
        {"status": "open", "text": "Ana has not answered."},
    ]
    assert data["open_ends"] == ["Ana has not answered."]
    assert "Done: Asked Rosa. -> failed: Rosa is away.\nDone: Wrote to Ana.\nDone: Called Kim." in text
    assert "Open: Ana has not answered." in text


def test_an_open_end_resolved_by_a_later_step_is_dropped() -> None:
    waiting = step(status="open", outcome="The permit for the roof is pending.")

    _, data = write_story(waiting, step(1, outcome="The permit for the roof came."))
    _, still = write_story(waiting, step(1, outcome="The permit for the roof is not here yet, we wait for it."))

    assert (data["open_ends"], still["open_ends"]) == ([], ["The permit for the roof is pending."])


def test_informative_sentences_of_an_observation_become_findings() -> None:
    seen = "Hello there. The job failed at row 81,204. The disk has 3 % left. How are you?"

    _, data = write_story(step(observation=seen))

    assert data["findings"] == ["The job failed at row 81,204.", "The disk has 3 % left."]


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("count(rows) -> 81,204 rows", "Done: count(rows) -> 81,204 rows"),
        ("count(rows)", "Done: count(rows) -> 81,204 rows."),
    ],
    ids=["in the action already", "only in the outcome"],
)
def test_an_outcome_that_repeats_a_result_appears_once(action: str, expected: str) -> None:
    text, _ = write_story(step(action=action, outcome="81,204 rows."), step(1, outcome="Fine."))

    assert expected in text.splitlines()


def test_an_outcome_is_not_repeated_as_a_blocker_or_open_end() -> None:
    text, data = write_story(step(status="open", outcome="We are blocked by the permit. Next, ask Ana."))

    assert (data["blockers"], data["open_ends"]) == ([], [])
    assert text.count("permit") == 1


def test_a_decision_about_a_plan_abandoned_later_becomes_a_correction() -> None:
    _, data = write_story(step(decided="buy the Heron pump"), step(1, decided="buy the Wren pump; Heron is given up"))

    assert data["decisions"] == ["buy the Wren pump; Heron is given up"]
    assert data["corrections"][0].startswith("buy the Heron pump (taken back")


def test_an_archived_episode_keeps_failed_and_open_outcomes() -> None:
    failed = step(status="failed", outcome="Rosa is away.")

    archived, kept = archive_work(
        *write_story(failed, step(1, status="open", outcome="Ana may come."), step(2, outcome="So be it."))
    )

    assert {"Failed: Rosa is away.", "Open: Ana may come."} < set(archived.splitlines())
    assert [each["status"] for each in kept["outcomes"]] == ["failed", "open"]
