"""Artifacts changed and deleted, a revision at a time, by who may (see `artifacts`)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory.errors import Unprocessable
from memory.models import Artifact, Kind, Link, writer
from memory.owner import Owner
from memory.services.accounts.access import Versions
from memory.services.artifacts.rows import (
    chain_of,
    change_columns,
    description_of,
    lock_artifact,
    lock_memories,
    record_artifacts,
    reworded,
    save_artifact,
    take_turn,
)
from memory.services.artifacts.store import ArtifactDraft, check_draft
from memory.services.embedding.embed import Embedded
from memory.services.memories.links import SUPERSEDES, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import OwnVector, Rewording
from memory.services.work_episodes.mentions import hold_mentions, retell_without
from memory.tiers.json_documents import comparable_json

artifact_rows: Any = Artifact._default_manager


@dataclass(frozen=True, slots=True, kw_only=True)
class Gaps:
    """Around revisions that are about to be erased: those that become the `latest`, by their chain, and the links of
    the later ones that stay to what they supersede then."""

    latest: Mapping[str, UUID]
    links: Sequence[NewLink]

    @property
    def around(self) -> set[UUID]:
        """The revisions that stay."""
        ends = {end for link in self.links for end in (link.source_id, link.target_id)}
        return ends | set(self.latest.values())


def hold_chains(owner: Owner, memory_ids: Collection[UUID]) -> Gaps:
    """The gaps that the artifacts among these leave, in the turns of their chains; nobody waits for none."""
    rows = artifact_rows.visible_to(owner, Kind.ARTIFACT).filter(id__in=memory_ids).order_by("id")
    # the chain never changes
    chains = sorted({identity.partition(":")[0] for identity in rows.values_list("identity", flat=True)})
    for chain in chains:
        take_turn(owner, chain)
    return find_gaps(owner, list(rows.only("id", "identity", "is_latest")) if chains else [])


def find_gaps(owner: Owner, gone: Sequence[Artifact]) -> Gaps:
    """Of these revisions, whose chains nobody else changes. One statement, none for nothing."""
    ids = {each.id for each in gone}
    links = Link.objects.filter(Q(source_id__in=ids) | Q(target_id__in=ids), account_id=owner.account_id)
    pairs = links.filter(type=SUPERSEDES).values_list("source_id", "target_id") if ids else []
    before = dict(pairs)
    latest = {chain_of(each): former_left(each.id, ids, before) for each in gone if each.is_latest}
    left = {newer: former_left(older, ids, before) for newer, older in before.items() if newer not in ids}
    return Gaps(
        latest={chain: former for chain, former in latest.items() if former is not None},
        links=[
            NewLink(source_id=newer, type=SUPERSEDES, target_id=former)
            for newer, former in left.items()
            if former is not None
        ],
    )


def former_left(artifact_id: UUID, gone: Collection[UUID], before: Mapping[UUID, UUID]) -> UUID | None:
    """The next one before it that stays."""
    found: UUID | None = artifact_id
    for _ in gone:
        if found not in gone:
            break
        found = before.get(found) if found else None
    return None if found in gone else found


def close_gaps(owner: Owner, gaps: Gaps, *, now: datetime) -> None:
    """After they were erased."""
    if not gaps.around:
        return
    rows = artifact_rows.filter(account_id=owner.account_id, pk__in=gaps.around).order_by("pk")
    there = {each.id: each for each in rows.select_for_update(of=("memory_ptr", "self"))}
    for chain, former in gaps.latest.items():
        if former in there:
            save_artifact(there[former], now=now, is_latest=True, identity=chain)
    links = [link for link in gaps.links if {link.source_id, link.target_id} <= there.keys()]
    insert_links(owner.account_id, links)


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
