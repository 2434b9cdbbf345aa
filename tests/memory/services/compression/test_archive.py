"""Old work episodes are reduced to goal, decisions, products, outcome, corrections; the merged ones stay to be read."""

from datetime import datetime, timedelta

import pytest

from memory import conf
from memory.extraction.work_stories import ARCHIVED
from memory.models import Memory, TurnRecord
from memory.owner import Owner
from memory.services.memories.links import DERIVED_FROM, WORKS_ON
from tests.memory.compressed import LATER, MUCH_LATER, compress, episodes, levels, targets, work
from tests.memory.episodes import NOW
from tests.memory.goals import aim, finish

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

LONG = timedelta(days=conf.ARCHIVE_WORK_AFTER_DAYS)


@pytest.fixture(autouse=True)
def _none_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)


def test_an_old_episode_becomes_a_shorter_one_and_is_archived(owner: Owner) -> None:
    goal = aim(owner)
    work(owner, 2, goal_id=goal.id)
    compress()

    run = compress(MUCH_LATER)

    merged, archived = episodes()
    assert (merged.level, merged.archived, archived.level, archived.archived) == (2, True, 3, False)
    assert {line.split(":")[0] for line in archived.text.splitlines()} == {"Goal", "Decided", "Outcome (succeeded)"}
    assert sorted(archived.data) == sorted(["outcomes", *ARCHIVED])
    assert targets(archived.id, DERIVED_FROM) == [merged.id]
    assert targets(archived.id, WORKS_ON) == [goal.id]
    assert (run.figures["archived"], archived.raw_tokens) == (1, merged.raw_tokens)


def test_records_refer_to_the_current_episode(owner: Owner) -> None:
    work(owner, 2)

    compress(MUCH_LATER)

    _, archived = episodes()
    assert set(TurnRecord.objects.values_list("episode_id", "level")) == {(archived.id, 3)}


@pytest.mark.parametrize(
    ("now", "level"), [(NOW + LONG - timedelta(hours=1), 2), (NOW + LONG + timedelta(hours=1), 3)], ids=["no", "yes"]
)
def test_an_episode_waits_from_the_time_its_goal_was_closed(owner: Owner, now: datetime, level: int) -> None:
    goal = aim(owner)
    work(owner, 1, goal_id=goal.id, now=NOW - timedelta(days=300))
    finish(owner, goal)

    compress(now)

    assert levels() == [level]


@pytest.mark.parametrize("mark", ["pinned", "quarantined"])
def test_pinned_and_quarantined_work_episodes_are_not_archived(owner: Owner, mark: str) -> None:
    work(owner, 1)
    compress()
    Memory.objects.filter(kind="work_episode").update(**{mark: True})

    compress(MUCH_LATER)

    assert [episode.level for episode in episodes()] == [2]


def test_a_corrected_text_takes_precedence_over_the_data(owner: Owner) -> None:
    work(owner, 1)
    compress()
    Memory.objects.filter(kind="work_episode").update(text="Goal: something\nDecided: nothing of note", version=2)

    compress(MUCH_LATER)

    _, archived = episodes()
    assert archived.text == "Goal: something\nDecided: nothing of note"
    assert archived.data["decisions"] == []


def test_all_levels_are_reached_in_one_run_and_a_second_one_changes_nothing(owner: Owner) -> None:
    work(owner, 3)

    compress(MUCH_LATER)
    run = compress(MUCH_LATER)

    assert (levels(), run.examined) == ([3, 3, 3], 0)


def test_a_dry_run_counts_and_changes_nothing(owner: Owner) -> None:
    work(owner, 1)
    compress(LATER)

    run = compress(MUCH_LATER, dry_run=True)

    assert (run.examined, run.changed, levels()) == (1, 1, [2])
