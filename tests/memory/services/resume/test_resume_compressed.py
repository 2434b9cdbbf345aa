"""Tests for packets of compressed work: shortened slots and work episodes contain the checklist too."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.db.models import Max

from memory import conf
from memory.extraction.turn_slots import Action, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, TurnRecord
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.resume.resume import ResumeRequest, resume_work
from tests.memory.compressed import LATER, MUCH_LATER, compress
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim
from tests.memory.records import add_record
from tests.memory.scenarios.living import live_through, resume_story
from tests.memory.scenarios.stories import read_story

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

MAX_TOKENS = 1_500
NEVER_HOURS = 1_000_000
WALK = " ".join(f"The lamp in hall {hall} was lit and is number {hall}." for hall in range(20))


@pytest.fixture(autouse=True)
def _keep_no_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)


def without_vectors(texts: Sequence[str]) -> EmbeddedTexts:
    return NOTHING


@pytest.mark.parametrize(
    ("name", "level", "most_missing"),
    [
        ("migration", 2, 1),
        pytest.param("migration", 1, 0, marks=pytest.mark.slow),
        pytest.param("research", 1, 0, marks=pytest.mark.slow),
        pytest.param("research", 2, 1, marks=pytest.mark.slow),
    ],
)
def test_the_checklist_survives_compression(
    owner: Owner, name: str, level: int, most_missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = read_story(name)
    monkeypatch.setattr(conf, "MERGE_AFTER_HOURS", conf.MERGE_AFTER_HOURS if level == 2 else NEVER_HOURS)
    successor = live_through(owner, story, embed=without_vectors)
    compress(story.resumed_at + timedelta(days=30))

    packet = resume_story(successor, story, max_tokens=MAX_TOKENS)

    assert len(story.missing(packet.text)) <= most_missing
    assert story.still_in_force(packet.text) == []
    assert TurnRecord.objects.aggregate(Max("level"))["level__max"] == level


@pytest.mark.parametrize(
    ("now", "shown"),
    [
        (LATER, ("14 books short", "cracked rung R-7", "stopped at shelf 12", "order 5521", "shelves 13 to 40")),
        (MUCH_LATER, ("stopped at shelf 12", "order 5521", "shelves 13 to 40")),
    ],
    ids=["merged", "archived"],
)
@pytest.mark.parametrize("tier", ["structured_rationale", "none"])
def test_episodes_alone_show_outcomes_and_findings_of_steps(
    owner: Owner, account: Account, now: datetime, shown: Sequence[str], tier: str
) -> None:
    record_book_count(owner)
    compress(now)
    Account.objects.filter(id=account.id).update(reasoning_tier=tier)

    text = resume_work(owner, ResumeRequest(conversation_id="chat-1"), now=now).text

    assert [each for each in shown if each not in text] == []
    assert ("count by shelf" in text) == (tier != "none")
    assert not TurnRecord.objects.exclude(episode__level__in=(2, 3)).exists()


def record_book_count(owner: Owner) -> None:
    """Record three turns: one failed, one stays open, one succeeded."""
    goal = aim(owner, "Have the books counted.")
    steps = (
        ("The nightly count was 14 books short on 3 May.", "failed", "It stopped at shelf 12."),
        ("The ladder failed because of the cracked rung R-7.", "open", "A new ladder comes from Tarn, order 5521."),
        ("Hall B is open.", "succeeded", "The books of shelves 13 to 40 are counted."),
    )
    rationale = Rationale(decisions=[Point(what="count by shelf and not by room")])
    for number, (seen, status, came) in enumerate(steps):
        slots = Slots(
            observation=Observation(text=seen),
            reasoning=Reasoning(tier=ReasoningTier.STRUCTURED_RATIONALE, rationale=rationale),
            action=Action(text=WALK),
            outcome=Outcome(status=status, text=came),
        )
        add_record(owner, slots=slots, goal_id=goal.id, now=NOW + timedelta(minutes=number))
