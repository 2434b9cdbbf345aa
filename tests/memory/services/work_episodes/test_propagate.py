"""Goals and artifacts that are corrected, hidden or erased: work episodes no longer repeat what they were."""

from collections.abc import Callable
from typing import Any

import pytest

from memory import conf
from memory.models import Artifact, AuditEntry, Goal, MemoryRow, Vector
from memory.owner import Owner
from memory.services.artifacts.change import delete_artifact
from memory.services.goals.plan import delete_goal, erase_goal
from memory.services.memories.correct import correct_memory, delete_memories, mark_memories
from memory.services.memories.store import store_memories
from tests.memory.compressed import LATER, MUCH_LATER, compress, episodes, work
from tests.memory.episodes import NOTHING, NOW
from tests.memory.goals import aim
from tests.memory.works import ids_where

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_redis", "embedding_server")]

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def _none_is_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conf, "COMPRESS_KEEP_RECORDS", 0)


@pytest.fixture
def goal(owner: Owner) -> Goal:
    return aim(owner, f"Log in as {SECRET}.")


def make_artifact(owner: Owner, uri: str, title: str = "", **fields: Any) -> Artifact:
    row = Artifact(kind="artifact", text=f"{title}\n{uri}", uri=uri, title=title, event_time=NOW, **fields)
    store_memories(owner, [row], embedded=NOTHING, own={}, now=NOW)
    return row


def repeated_text() -> str:
    """Return all texts and data of episodes of both levels."""
    rows = episodes()
    assert {row.level for row in rows} == {2, 3}
    return str([(row.text, row.data) for row in rows])


def compress_twice() -> None:
    compress(LATER)
    compress(MUCH_LATER)


ERASE_GOAL = [
    pytest.param(lambda staff, owner, goal: erase_goal(staff, goal.id, now=MUCH_LATER), id="list_of_goals"),
    pytest.param(lambda staff, owner, goal: delete_memories(staff, [goal.id], now=MUCH_LATER), id="list_of_memories"),
    pytest.param(lambda staff, owner, goal: delete_goal(owner, goal.id, now=MUCH_LATER), id="agent"),
]
ERASE_ARTIFACT = [
    pytest.param(lambda staff, owner, row: delete_memories(staff, [row.id], now=MUCH_LATER), id="list_of_memories"),
    pytest.param(lambda staff, owner, row: delete_artifact(owner, row.id, now=MUCH_LATER), id="agent"),
]


@pytest.mark.parametrize("erase", ERASE_GOAL)
def test_no_episode_names_an_erased_goal(
    staff: Owner, owner: Owner, goal: Goal, erase: Callable[[Owner, Owner, Goal], None]
) -> None:
    work(owner, 2, goal_id=goal.id)
    compress_twice()
    assert SECRET in repeated_text()

    erase(staff, owner, goal)

    assert SECRET not in repeated_text()
    assert "Decided: retry table t_1" in repeated_text()


@pytest.mark.parametrize("erase", ERASE_ARTIFACT)
def test_no_episode_names_an_erased_artifact(
    staff: Owner, owner: Owner, erase: Callable[[Owner, Owner, Artifact], None]
) -> None:
    gone, left = make_artifact(owner, f"/srv/{SECRET}.csv", "The keys"), make_artifact(owner, "/srv/plan.md", "Plan")
    work(owner, 3, produced=[gone.id, left.id])
    compress_twice()

    erase(staff, owner, gone)

    assert SECRET not in repeated_text()
    assert [row.data["produced"] for row in episodes()] == [["Plan (/srv/plan.md)"]] * 2


def test_no_episode_names_an_erased_artifact_that_is_linked_to_a_record_only(staff: Owner, owner: Owner) -> None:
    recorded = work(owner, 3)[0]
    gone = make_artifact(owner, f"/srv/{SECRET}.csv", source_record=recorded.record)
    compress_twice()
    assert SECRET in repeated_text()

    delete_memories(staff, [gone.id], now=MUCH_LATER)

    assert SECRET not in repeated_text()


def test_another_revision_of_an_erased_artifact_is_still_named(staff: Owner, owner: Owner) -> None:
    first, second = make_artifact(owner, "/srv/plan.md", SECRET), make_artifact(owner, "/srv/plan.md", "Plan")
    work(owner, 3, produced=[first.id, second.id])
    compress_twice()

    delete_memories(staff, [first.id], now=MUCH_LATER)

    assert [row.data["produced"] for row in episodes()] == [["Plan (/srv/plan.md)"]] * 2


def test_episodes_follow_the_correction_of_a_goal(staff: Owner, owner: Owner, goal: Goal) -> None:
    work(owner, 2, goal_id=goal.id)
    compress_twice()

    correct_memory(staff, goal.id, changes={"text": "Log in."}, version=1, now=MUCH_LATER)

    assert SECRET not in repeated_text()
    assert all(row.text.startswith("Goal: Log in.\n") and row.data["goal"] == "Log in." for row in episodes())


def test_episodes_follow_the_correction_of_an_artifact(staff: Owner, owner: Owner) -> None:
    plan = make_artifact(owner, "/srv/plan.md", f"Plan of {SECRET}")
    work(owner, 3, produced=[plan.id])
    compress_twice()

    correct_memory(staff, plan.id, changes={"title": "The plan"}, version=1, now=MUCH_LATER)

    assert SECRET not in repeated_text()
    assert all("Produced: The plan (/srv/plan.md)" in row.text for row in episodes())


def test_an_updated_episode_gets_a_version_and_waits_for_its_vector(staff: Owner, owner: Owner, goal: Goal) -> None:
    work(owner, 2, goal_id=goal.id)
    compress(LATER)
    [before] = episodes()

    erase_goal(staff, goal.id, now=MUCH_LATER)

    [after] = episodes()
    assert (after.version, after.embed_after) == (before.version + 1, MUCH_LATER)
    assert after.token_count < before.token_count
    assert not Vector.objects.filter(memory_id=after.id).exists()
    assert AuditEntry.objects.get(operation="update").affected_ids == [str(after.id)]


def test_episodes_that_name_nothing_erased_stay_unchanged(staff: Owner, owner: Owner, goal: Goal) -> None:
    other = aim(owner, "Prune the roses.")
    work(owner, 2, goal_id=other.id)
    compress(LATER)
    [before] = episodes()

    erase_goal(staff, goal.id, now=MUCH_LATER)

    [after] = episodes()
    assert (after.version, after.text) == (before.version, before.text)


@pytest.mark.parametrize("named", ["goal", "artifact"])
def test_episodes_that_name_a_quarantined_memory_are_hidden_and_stay_hidden(
    staff: Owner, owner: Owner, goal: Goal, named: str
) -> None:
    plan = make_artifact(owner, "/srv/plan.md")
    work(owner, 2, goal_id=goal.id, produced=[plan.id])
    compress_twice()
    row: MemoryRow = goal if named == "goal" else plan
    both = {episode.id for episode in episodes()}

    assert mark_memories(staff, [row.id], mark="quarantine", now=MUCH_LATER) == 3
    assert ids_where(quarantined=True) == {row.id, *both}

    mark_memories(staff, [row.id], mark="release", now=MUCH_LATER)
    assert ids_where(quarantined=True) == both
