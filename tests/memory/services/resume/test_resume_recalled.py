"""Tests for what a packet shows of old records: what was asked for, and what is still open."""

from datetime import timedelta

import pytest

from memory.extraction.turn_slots import Action, Outcome, Point, Rationale, Reasoning, Slots
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval import resume as reading
from memory.services.resume.resume import ResumePacket, ResumeRequest, resume_work
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.records import add_record

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]
RECORDS = 13
ROOMS = ("kitchen", "cellar")


def reasoning_slots(outcome: Outcome, **points: str) -> Slots:
    rationale = Rationale(**{name: [Point(what=what)] for name, what in points.items()})
    reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale)
    return Slots(reasoning=reasoning, action=Action(text="Went on."), outcome=outcome)


@pytest.fixture
def house(owner: Owner) -> Owner:
    """Return the owner of a record with a decision and a blocker, and of many that paint one wall each."""
    goal = aim(owner, "Renovate the summer house.")
    first = reasoning_slots(
        Outcome(status="open", text="Permit HP-88 is not granted yet."),
        decisions="Keep the tiled stove of 1912",
        blockers="The heritage office has not answered request HP-88",
    )
    add_record(owner, slots=first, goal_id=goal.id, now=NOW)
    for number in range(1, RECORDS):
        painted = Outcome(status="succeeded", text=f"Order {number * 31} of colour RAL {1000 + number} is placed.")
        wall = f"Paint wall {number} of the {ROOMS[number % 2]} with colour RAL {1000 + number}"
        slots = reasoning_slots(painted, decisions=wall)
        add_record(owner, slots=slots, goal_id=goal.id, now=NOW + timedelta(hours=number))
    return owner


def resume_packet(owner: Owner, **asked: object) -> ResumePacket:
    return resume_work(owner, ResumeRequest(**asked), now=NOW + timedelta(days=3))  # type: ignore[arg-type]


def test_open_records_are_shown_however_old_they_are(house: Owner) -> None:
    text = resume_packet(house, max_tokens=400).text

    assert "blocked by: The heritage office has not answered request HP-88" in text
    assert "Permit HP-88 is not granted yet." in text


def test_repeats_with_other_numbers_make_way_for_other_snippets(house: Owner) -> None:
    text = resume_packet(house, max_tokens=400).text

    assert "Keep the tiled stove of 1912" in text
    assert f"Paint wall {RECORDS - 1} of" in text


def test_recall_adds_records_that_answer_the_query(house: Owner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_RECORDS", 3)
    monkeypatch.setattr(reading, "MAX_OPEN_RECORDS", 0)

    found = resume_packet(house, query="May we start with the stove?", max_tokens=400)

    by_text = {item.text: item for item in found.items}
    assert by_text["Keep the tiled stove of 1912"].item_type == "decision"
    assert by_text["Keep the tiled stove of 1912"].is_recorded
