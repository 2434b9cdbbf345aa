"""Artifacts read with what is around them: the turn that produced them, the goal, links, revisions, lineage."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.db.models.functions import Left

from memory.models import Artifact, Goal, Kind, Link, Memory, TurnRecord
from memory.owner import Owner
from memory.retrieval.artifact_lineage import LINEAGE_TYPES, walk_lineage
from memory.services.artifacts.rows import MOST_REVISIONS, find_artifact, revisions_of, visible_artifacts

MOST_LINKS = 200
"""That come along with an artifact that is read."""

LABEL_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """A memory that an artifact is linked with. `is_out`: the link leads from the artifact to it.

    `label` is how its text begins; empty for a structured turn's slot, which its record tells, as far as it may.
    """

    type: str
    is_out: bool
    memory: Memory
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactView:
    """An artifact with those around it, as far as the owner sees them. `revisions` are of the same path or URI, the
    newest first; `truncated` where there are more of them, or of the links, than come along."""

    artifact: Artifact
    record: TurnRecord | None
    goal: Goal | None
    links: Sequence[Linked]
    revisions: Sequence[Artifact]
    truncated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactLineage:
    """Artifacts with how many steps they lie from the one asked for (below zero: what it came from), the earliest
    first, and the links among them."""

    artifacts: Sequence[tuple[int, Artifact]]
    links: Sequence[Link]
    truncated: bool


def view_artifact(owner: Owner, artifact_id: UUID, *, now: datetime) -> ArtifactView:
    """Seven statements at most, however much is around it. Raises NotFound."""
    artifact = find_artifact(owner, artifact_id, now=now)
    around = Link.objects.filter(Q(source_id=artifact.id) | Q(target_id=artifact.id), account_id=owner.account_id)
    links = list(around.order_by("-id")[: MOST_LINKS + 1])
    revisions = revisions_of(owner, artifact, now=now)
    return ArtifactView(
        artifact=artifact,
        record=find_seen_record(owner, artifact),
        goal=find_seen_goal(owner, artifact, now=now),
        links=read_ends(owner, artifact, links[:MOST_LINKS], now=now),
        revisions=revisions[:MOST_REVISIONS],
        truncated=len(links) > MOST_LINKS or len(revisions) > MOST_REVISIONS,
    )


def find_seen_record(owner: Owner, artifact: Artifact) -> TurnRecord | None:
    if artifact.record_id is None:
        return None
    return TurnRecord.objects.visible_to(owner).filter(id=artifact.record_id).first()


def find_seen_goal(owner: Owner, artifact: Artifact, *, now: datetime) -> Goal | None:
    if artifact.for_goal_id is None:
        return None
    rows: Any = Goal.objects
    goal: Goal | None = rows.visible_to(owner, Kind.GOAL).live(now).filter(id=artifact.for_goal_id).first()
    return goal


def read_ends(owner: Owner, artifact: Artifact, links: Sequence[Link], *, now: datetime) -> list[Linked]:
    """The links whose other end the owner sees, newest first."""
    others = {link.target_id if link.source_id == artifact.id else link.source_id for link in links}
    rows = Memory.objects.visible_to(owner).live(now).filter(id__in=others) if others else Memory.objects.none()
    known = {row.id: row for row in rows.defer("text").annotate(beginning=Left("text", LABEL_CHARACTERS))}
    linked = []
    for link in links:
        is_out = link.source_id == artifact.id
        row = known.get(link.target_id if is_out else link.source_id)
        if row is not None:
            # what a reasoning says may be deeper than may be told now
            label = "" if row.kind == Kind.TURN_SLOT else row.beginning  # type: ignore[attr-defined]  # annotated
            linked.append(Linked(type=link.type, is_out=is_out, memory=row, label=label))
    return linked


def artifact_lineage(owner: Owner, artifact_id: UUID, *, now: datetime) -> ArtifactLineage:
    """The revisions and the artifacts that it came from, and those that came of it. Four statements. Raises
    NotFound."""
    start = find_artifact(owner, artifact_id, now=now)
    walked = walk_lineage(owner, start.id, now=now)
    rows = visible_artifacts(owner, now=now).filter(id__in=list(walked.steps))
    found = [(walked.steps[row.id], row) for row in rows]
    ids = [row.id for _, row in found]
    links = Link.objects.filter(
        account_id=owner.account_id, type__in=LINEAGE_TYPES, source_id__in=ids, target_id__in=ids
    )
    return ArtifactLineage(
        artifacts=sorted(found, key=lambda pair: (pair[0], pair[1].id)),
        links=list(links.order_by("id")),
        truncated=walked.truncated,
    )
