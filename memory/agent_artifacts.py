"""Artifacts and work episodes of the in-process API (`agent_memory`): each method one service call, by its clock."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.agent_tiers import AgentPart
from memory.models import Artifact
from memory.services.accounts.access import Versions
from memory.services.artifacts.change import change_artifact, changed_text, delete_artifact
from memory.services.artifacts.rows import find_artifact
from memory.services.artifacts.store import ArtifactDraft, Kept, complete_draft, keep_artifact, listed_artifacts
from memory.services.artifacts.view import ArtifactLineage, ArtifactView, artifact_lineage, view_artifact
from memory.services.embedding.embed import embed_texts
from memory.services.records.reasoning import read_policy
from memory.services.work_episodes.read import (
    EpisodeView,
    ExpandedEpisode,
    expand_work_episode,
    listed_work_episodes,
    tell_episode,
    view_work_episode,
)


class AgentArtifacts(AgentPart):
    """What work produces or goes by, revision by revision.

    >>> plan = memory.artifacts.keep(ArtifactDraft(uri="docs/plan.md", title="Plan", digest="sha256:1")).artifact
    >>> memory.artifacts.keep(ArtifactDraft(uri="docs/plan.md", digest="sha256:2")).artifact.revision
    2
    >>> [(artifact.title, artifact.revision) for artifact in memory.artifacts.latest()]
    [('Plan', 2)]
    >>> [step for step, _ in memory.artifacts.lineage(plan.id).artifacts]
    [0, 1]
    """

    def keep(self, draft: ArtifactDraft, *, now: datetime | None = None) -> Kept:
        """Store it, its next revision, or what the latest lacked. Raises Unprocessable, Conflict."""
        completed = complete_draft(self._owner, draft)
        embedded = embed_texts([] if completed.own else [completed.text])
        return keep_artifact(self._owner, completed, embedded=embedded, now=self._clock(now))

    def get(self, artifact_id: UUID, *, now: datetime | None = None) -> ArtifactView:
        """With what produced it, its goal, links and revisions. Raises NotFound."""
        return view_artifact(self._owner, artifact_id, now=self._clock(now))

    def latest(self, *, goal_id: UUID | None = None, now: datetime | None = None) -> list[Artifact]:
        """The latest revision of each, or of those for a goal, newest first."""
        rows = listed_artifacts(self._owner, now=self._clock(now)).filter(is_latest=True).order_by("-id")
        return list(rows if goal_id is None else rows.filter(for_goal_id=goal_id))

    def change(
        self, artifact_id: UUID, changes: Mapping[str, Any], *, expected: Versions = None, now: datetime | None = None
    ) -> Artifact:
        """Another `title`, `description`, `type`, `metadata`, `goal` (an id, or None).

        Raises NotFound, Forbidden, StaleVersion, Unprocessable.
        """
        moment = self._clock(now)
        text = changed_text(find_artifact(self._owner, artifact_id, now=moment), changes)
        embedded = embed_texts([text] if {"title", "description"} & set(changes) else [])
        return change_artifact(
            self._owner, artifact_id, changes=changes, embedded=embedded, expected=expected, now=moment
        )

    def delete(self, artifact_id: UUID, *, expected: Versions = None, now: datetime | None = None) -> None:
        """This revision, for good. Raises NotFound, Forbidden, StaleVersion."""
        delete_artifact(self._owner, artifact_id, expected=expected, now=self._clock(now))

    def lineage(self, artifact_id: UUID, *, now: datetime | None = None) -> ArtifactLineage:
        """What it came from, and what came of it. Raises NotFound."""
        return artifact_lineage(self._owner, artifact_id, now=self._clock(now))


class AgentWorkEpisodes(AgentPart):
    """What adjacent structured turns of one goal came to, in the conversations in which the agent takes part."""

    def listed(self, *, goal_id: UUID | None = None, now: datetime | None = None) -> list[EpisodeView]:
        """Each on the level that it is at now, newest first."""
        rows = listed_work_episodes(self._owner, now=self._clock(now)).order_by("-id")
        allowed = read_policy(self._owner.account_id).tier
        return [tell_episode(row, allowed) for row in (rows if goal_id is None else rows.filter(for_goal_id=goal_id))]

    def get(self, episode_id: UUID, *, now: datetime | None = None) -> ExpandedEpisode:
        """Without its records. Raises NotFound."""
        return view_work_episode(self._owner, episode_id, now=self._clock(now))

    def expand(self, episode_id: UUID, *, level: int, now: datetime | None = None) -> ExpandedEpisode:
        """With its records, their slots as they were at that level (0 or 1). Raises NotFound."""
        return expand_work_episode(self._owner, episode_id, level=level, now=self._clock(now))
