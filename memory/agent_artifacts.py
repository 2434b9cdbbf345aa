"""Artifacts and work episodes of the in-process API (`agent_memory`): each method one service call, by its clock."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.agent_tiers import AgentPart
from memory.models import Artifact
from memory.services.accounts.access import ExpectedVersions
from memory.services.artifacts.change import change_artifact, changed_artifact_text, delete_artifact
from memory.services.artifacts.read import (
    ArtifactLineage,
    ArtifactView,
    artifacts_in_channels,
    find_artifact,
    read_artifact_lineage,
    view_artifact,
)
from memory.services.artifacts.store import ArtifactDraft, StoredRevision, complete_draft, store_artifact
from memory.services.embedding.embed import embed_texts
from memory.services.records.reasoning import read_policy
from memory.services.work_episodes.read import (
    ExpandedEpisode,
    WorkEpisodeView,
    expand_work_episode,
    redacted_view,
    view_work_episode,
    visible_work_episodes,
)


class AgentArtifacts(AgentPart):
    """The artifacts that work produces or uses, revision by revision.

    >>> plan = memory.artifacts.keep(ArtifactDraft(uri="docs/plan.md", title="Plan", digest="sha256:1")).artifact
    >>> memory.artifacts.keep(ArtifactDraft(uri="docs/plan.md", digest="sha256:2")).artifact.revision
    2
    >>> [(artifact.title, artifact.revision) for artifact in memory.artifacts.latest()]
    [('Plan', 2)]
    >>> [step for step, _ in memory.artifacts.lineage(plan.id).artifacts]
    [0, 1]
    """

    def keep(self, draft: ArtifactDraft, *, now: datetime | None = None) -> StoredRevision:
        """Store it, its next revision, or what the latest lacked. Raises Unprocessable, Conflict."""
        completed = complete_draft(self._owner, draft)
        embedded = embed_texts([] if completed.own else [completed.text])
        return store_artifact(self._owner, completed, embedded=embedded, now=self._clock(now))

    def get(self, artifact_id: UUID, *, now: datetime | None = None) -> ArtifactView:
        """Return an artifact with what produced it, its goal, links and revisions. Raises NotFound."""
        return view_artifact(self._owner, artifact_id, now=self._clock(now))

    def latest(self, *, goal_id: UUID | None = None, now: datetime | None = None) -> list[Artifact]:
        """Return the latest revision of each artifact, or of those for a goal, newest first."""
        rows = artifacts_in_channels(self._owner, now=self._clock(now)).filter(is_latest=True).order_by("-id")
        return list(rows if goal_id is None else rows.filter(for_goal_id=goal_id))

    def change(
        self,
        artifact_id: UUID,
        changes: Mapping[str, Any],
        *,
        expected: ExpectedVersions = None,
        now: datetime | None = None,
    ) -> Artifact:
        """Another `title`, `description`, `type`, `metadata`, `goal` (an id, or None).

        Raises NotFound, Forbidden, StaleVersion, Unprocessable.
        """
        moment = self._clock(now)
        text = changed_artifact_text(find_artifact(self._owner, artifact_id, now=moment), changes)
        embedded = embed_texts([text] if {"title", "description"} & set(changes) else [])
        return change_artifact(
            self._owner, artifact_id, changes=changes, embedded=embedded, expected=expected, now=moment
        )

    def delete(self, artifact_id: UUID, *, expected: ExpectedVersions = None, now: datetime | None = None) -> None:
        """Delete this revision for good. Raises NotFound, Forbidden, StaleVersion."""
        delete_artifact(self._owner, artifact_id, expected=expected, now=self._clock(now))

    def lineage(self, artifact_id: UUID, *, now: datetime | None = None) -> ArtifactLineage:
        """Return what it came from, and what was made from it. Raises NotFound."""
        return read_artifact_lineage(self._owner, artifact_id, now=self._clock(now))


class AgentWorkEpisodes(AgentPart):
    """Work episodes: merged structured turns of one goal, in the conversations in which the agent takes part."""

    def listed(self, *, goal_id: UUID | None = None, now: datetime | None = None) -> list[WorkEpisodeView]:
        """Each on the level that it is at now, newest first."""
        rows = visible_work_episodes(self._owner, now=self._clock(now)).order_by("-id")
        allowed = read_policy(self._owner.account_id).tier
        return [redacted_view(row, allowed) for row in (rows if goal_id is None else rows.filter(for_goal_id=goal_id))]

    def get(self, episode_id: UUID, *, now: datetime | None = None) -> ExpandedEpisode:
        """Return an episode without its records. Raises NotFound."""
        return view_work_episode(self._owner, episode_id, now=self._clock(now))

    def expand(self, episode_id: UUID, *, level: int, now: datetime | None = None) -> ExpandedEpisode:
        """Return an episode with its records, and their slots at that level (0 or 1). Raises NotFound."""
        return expand_work_episode(self._owner, episode_id, level=level, now=self._clock(now))
