"""The packet after compression: what a successor must know is told from shortened slots and from work episodes too."""

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.db.models import Max

from memory import conf
from memory.extraction.turn_slots import Action, Observation, Outcome, Point, Rationale, Reasoning, Slots
from memory.models import Account, TurnRecord
from memory.owner import Owner
from memory.reasoning import ReasoningTier
from memory.services.embedding.embed import Embedded
from memory.services.resume.resume import ResumeRequest, resume_work
from tests.memory.compressed import LATER, MUCH_LATER, compress
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim
from tests.memory.records import put_record
from tests.memory.scenarios.living import live_through, resume
from tests.memory.scenarios.stories import Story, read_story

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

MAX_TOKENS = 1_500
NEVER_HOURS = 1_000_000
WALK = " ".join(f"The lamp in hall {hall} was lit and is number {hall}." for hall in range(20))


@pytest.fixture(autouse=True)
def _none_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)


def without_vectors(texts: Sequence[str]) -> Embedded:
    return NOTHING


@pytest.mark.parametrize(("level", "most_missing"), [(1, 0), (2, 1)])
@pytest.mark.parametrize("story", [pytest.param(read_story(name), id=name) for name in ("migration", "research")])
def test_what_a_successor_must_know_outlives_compression(
    owner: Owner, story: Story, level: int, most_missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "MERGE_AFTER_HOURS", conf.MERGE_AFTER_HOURS if level == 2 else NEVER_HOURS)
    successor = live_through(owner, story, embed=without_vectors)
    compress(story.resumed_at + timedelta(days=30))

    packet = resume(successor, story, max_tokens=MAX_TOKENS)

    assert len(story.missing(packet.text)) <= most_missing
    assert story.still_in_force(packet.text) == []
    assert TurnRecord.objects.aggregate(Max("level"))["level__max"] == level


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (LATER, ("14 books short", "cracked rung R-7", "stopped at shelf 12", "order 5521", "shelves 13 to 40")),
        (MUCH_LATER, ("stopped at shelf 12", "order 5521", "shelves 13 to 40")),
    ],
    ids=["merged", "archived"],
)
@pytest.mark.parametrize("tier", ["structured_rationale", "none"])
def test_how_steps_ended_and_what_was_found_is_told_from_episodes_alone(
    owner: Owner, account: Account, now: datetime, told: Sequence[str], tier: str
) -> None:
    count_books(owner)
    compress(now)
    Account.objects.filter(id=account.id).update(reasoning_tier=tier)

    text = resume_work(owner, ResumeRequest(conversation_id="chat-1"), now=now).text

    assert [each for each in told if each not in text] == []
    assert ("count by shelf" in text) == (tier != "none")
    assert not TurnRecord.objects.exclude(episode__level__in=(2, 3)).exists()


def count_books(owner: Owner) -> None:
    """Three records: one failed, one stays open, one succeeded."""
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
        put_record(owner, slots=slots, goal_id=goal.id, now=NOW + timedelta(minutes=number))
