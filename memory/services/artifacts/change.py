"""Artifacts changed and deleted, a revision at a time, by who may (see `artifacts`)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.errors import Unprocessable
from memory.json_documents import comparable_json
from memory.models import Artifact, Kind, Link, writer
from memory.owner import Owner
from memory.services.accounts.access import Versions
from memory.services.artifacts.revisions import close_gaps, find_gaps
from memory.services.artifacts.rows import (
    change_columns,
    description_of,
    lock_artifact,
    lock_memories,
    record_artifacts,
    reworded,
)
from memory.services.artifacts.store import ArtifactDraft, check_draft
from memory.services.embedding.embed import Embedded
from memory.services.memories.links import WORKS_ON, NewLink, insert_links
from memory.services.memories.store import OwnVector, Rewording
from memory.services.work_episodes.mentions import hold_mentions, retell_without

COLUMNS = {"title": "title", "type": "artifact_type", "metadata": "metadata", "goal": "for_goal_id"}
"""What may be changed, and in which columns. The description is a part of the text."""


def change_artifact(
    owner: Owner,
    artifact_id: UUID,
    *,
    changes: Mapping[str, Any],
    embedded: Embedded,
    own: OwnVector | None = None,
    expected: Versions = None,
    now: datetime,
) -> Artifact:
    """Give a revision another title, description, type, other metadata, or another `goal` (an id, or None). What says
    the same, changes nothing.

    Embed another text (`changed_text`) first. Raises NotFound, Forbidden, StaleVersion, Unprocessable.
    """
    if refused := set(changes) - {*COLUMNS, "description"}:
        raise Unprocessable(f"cannot be changed: {', '.join(sorted(refused))}")
    with transaction.atomic():
        artifact = lock_artifact(owner, artifact_id, expected=expected, now=now)
        wanted = {COLUMNS[name]: value for name, value in changes.items() if name in COLUMNS}
        columns = {name: value for name, value in wanted.items() if is_other(artifact, name, value)}
        rewording = Rewording(row=artifact, text=changed_text(artifact, changes), own=own)
        if "for_goal_id" in columns:
            move(owner, artifact, columns["for_goal_id"], now=now)
        change_columns(owner, artifact, columns, rewording, embedded=embedded, now=now)
    return artifact


def changed_text(artifact: Artifact, changes: Mapping[str, Any]) -> str:
    """The text with these changes, to be embedded. Raises Unprocessable."""
    title, description = changes.get("title", artifact.title), changes.get("description", description_of(artifact))
    artifact_type = changes.get("type", artifact.artifact_type)
    check_draft(ArtifactDraft(uri=artifact.uri, title=title, description=description, type=artifact_type))
    return reworded(artifact, title=title, description=description)


def is_other(artifact: Artifact, name: str, value: Any) -> bool:
    """Whether the artifact has something else in this column."""
    stored = getattr(artifact, name)
    if name == "metadata":
        return comparable_json(stored) != comparable_json(value)
    return bool(stored != value)


def move(owner: Owner, artifact: Artifact, goal_id: UUID | None, *, now: datetime) -> None:
    """Have a locked artifact be for another goal, or none. Raises Unprocessable."""
    if goal_id is not None and lock_memories(owner, [goal_id], None, now=now).get(goal_id) != Kind.GOAL:
        raise Unprocessable("there is no such goal")
    Link.objects.filter(account_id=owner.account_id, source_id=artifact.id, type=WORKS_ON).delete()
    if goal_id is not None:
        insert_links(owner.account_id, [NewLink(source_id=artifact.id, type=WORKS_ON, target_id=goal_id)])


def delete_artifact(owner: Owner, artifact_id: UUID, *, expected: Versions = None, now: datetime) -> None:
    """Delete a revision for good. The one before it takes its place in the chain, as the latest where it was that, and
    work episodes name it no more.

    Raises NotFound, Forbidden, StaleVersion.
    """
    with transaction.atomic():
        mentions = hold_mentions(owner, [artifact_id])
        artifact = lock_artifact(owner, artifact_id, along=mentions, expected=expected, now=now)
        retell_without(owner, [artifact_id], now=now)
        gaps = find_gaps(owner, [artifact])
        writer.delete_memories([artifact.id])
        record_artifacts(owner, "delete", artifact)
        close_gaps(owner, gaps, now=now)
