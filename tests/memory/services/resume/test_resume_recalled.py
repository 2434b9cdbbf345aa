"""What a packet tells of what was recorded long ago: what was asked for, and what is open still."""

from datetime import timedelta

import pytest

from memory.extraction.turn_slots import Action, Outcome, Point, Rationale, Reasoning, Slots
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.retrieval import resume as reading
from memory.services.resume.resume import ResumePacket, ResumeRequest, resume_work
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.records import put_record

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]
RECORDS = 13
ROOMS = ("kitchen", "cellar")


def reasoned(outcome: Outcome, **points: str) -> Slots:
    rationale = Rationale(**{name: [Point(what=what)] for name, what in points.items()})
    reasoning = Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale)
    return Slots(reasoning=reasoning, action=Action(text="Went on."), outcome=outcome)


@pytest.fixture
def house(owner: Owner) -> Owner:
    """A first record with a decision and a blocker, and many that paint one wall each."""
    goal = aim(owner, "Renovate the summer house.")
    first = reasoned(
        Outcome(status="open", text="Permit HP-88 is not granted yet."),
        decisions="Keep the tiled stove of 1912",
        blockers="The heritage office has not answered request HP-88",
    )
    put_record(owner, slots=first, goal_id=goal.id, now=NOW)
    for number in range(1, RECORDS):
        painted = Outcome(status="succeeded", text=f"Order {number * 31} of colour RAL {1000 + number} is placed.")
        wall = f"Paint wall {number} of the {ROOMS[number % 2]} with colour RAL {1000 + number}"
        slots = reasoned(painted, decisions=wall)
        put_record(owner, slots=slots, goal_id=goal.id, now=NOW + timedelta(hours=number))
    return owner


def packet(owner: Owner, **asked: object) -> ResumePacket:
    return resume_work(owner, ResumeRequest(**asked), now=NOW + timedelta(days=3))  # type: ignore[arg-type]


def test_what_is_open_is_told_however_long_ago_it_was_recorded(house: Owner) -> None:
    text = packet(house, max_tokens=400).text

    assert "blocked by: The heritage office has not answered request HP-88" in text
    assert "Permit HP-88 is not granted yet." in text


def test_what_repeats_with_other_numbers_makes_way_for_what_does_not(house: Owner) -> None:
    text = packet(house, max_tokens=400).text

    assert "Keep the tiled stove of 1912" in text
    assert f"Paint wall {RECORDS - 1} of" in text


def test_what_answers_the_question_is_told_though_it_was_not_read(
    house: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_RECORDS", 3)
    monkeypatch.setattr(reading, "MOST_APART", 0)

    found = packet(house, query="May we start with the stove?", max_tokens=400)

    told = {piece.text: piece for piece in found.pieces}
    assert told["Keep the tiled stove of 1912"].says == "decision"
    assert told["Keep the tiled stove of 1912"].is_recorded
