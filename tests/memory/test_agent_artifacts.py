"""Artifacts and work episodes of the in-process API."""

import doctest
from types import SimpleNamespace

import pytest

from memory import agent_artifacts
from memory.agent_artifacts import AgentArtifacts, AgentWorkEpisodes
from memory.agent_memory import AgentMemory
from memory.errors import NotFound, StaleVersion
from memory.owner import Owner
from memory.services.artifacts.store import ArtifactDraft
from tests.memory.episodes import NOW
from tests.memory.goals import aim
from tests.memory.records import add_record
from tests.memory.work_episodes import merged

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("embedding_server")]


@pytest.fixture
def memory(owner: Owner) -> AgentMemory:
    return AgentMemory(owner, clock=lambda: NOW)


def test_the_examples_of_the_module_run(memory: AgentMemory) -> None:
    ran = doctest.testmod(agent_artifacts, extraglobs={"memory": SimpleNamespace(artifacts=memory.artifacts)})

    assert (ran.failed, ran.attempted > 0) == (0, True)


def test_an_artifact_is_changed_and_deleted(memory: AgentMemory, owner: Owner) -> None:
    artifacts: AgentArtifacts = memory.artifacts
    goal = aim(owner)
    made = artifacts.keep(ArtifactDraft(uri="docs/plan.md", goal_id=goal.id)).artifact

    changed = artifacts.change(made.id, {"title": "Plan"}, expected=frozenset({1}))

    assert (changed.text, changed.embed_after, changed.version) == ("Plan\ndocs/plan.md", None, 2)
    assert [each.id for each in artifacts.latest(goal_id=goal.id)] == [artifacts.get(made.id).artifact.id]
    with pytest.raises(StaleVersion):
        artifacts.delete(made.id, expected=frozenset({1}))
    artifacts.delete(made.id)
    with pytest.raises(NotFound):
        artifacts.get(made.id)


def test_work_episodes_are_listed_and_expanded(memory: AgentMemory, owner: Owner) -> None:
    goal, episodes = aim(owner), memory.work_episodes
    episode = merged(owner, [add_record(owner, goal_id=goal.id).record])

    assert isinstance(episodes, AgentWorkEpisodes)
    assert [view.episode.id for view in episodes.listed(goal_id=goal.id)] == [episode.id]
    assert episodes.get(episode.id).records == []
    assert len(episodes.expand(episode.id, level=0).records) == 1
