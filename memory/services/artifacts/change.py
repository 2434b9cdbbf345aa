"""Changing and deleting revisions of artifacts, and closing the gap that a deleted one leaves in its chain."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from memory.errors import Unprocessable
from memory.masking import masks_secrets
from memory.models import Artifact, Kind, Link, Memory, writer
from memory.owner import Owner
from memory.services.accounts.access import ExpectedVersions
from memory.services.artifacts.read import (
    artifact_description,
    chain_of_artifact,
    changed_text,
    lock_artifact,
    lock_chain,
    lock_visible_memories,
)
from memory.services.artifacts.store import (
    ArtifactDraft,
    audit_artifact,
    check_artifact_draft,
    save_artifact,
    update_artifact,
)
from memory.services.audit import write_waiting_reads
from memory.services.custody.traces import erase_traces_of_deleted
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.lifecycle import Lifecycle, Operation
from memory.services.memories.links import SUPERSEDES, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import ClientVector, TextUpdate
from memory.services.work_episodes.propagate import lock_mentioning_episodes, remove_mentions
from memory.tiers.json_documents import column_differs

CHANGEABLE_COLUMNS = {"title": "title", "type": "artifact_type", "metadata": "metadata", "goal": "for_goal_id"}
"""Columns of the fields that may be changed. The description may be changed too; it is a part of the text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionGaps:
    """Changes to the remaining revisions of chains from which some are erased.

    `latest` are the revisions that become the latest, by chain. `links` are new SUPERSEDES links of remaining
    revisions.
    """

    latest: Mapping[str, UUID]
    links: Sequence[NewLink]

    @property
    def around(self) -> set[UUID]:
        """The revisions that remain."""
        ends = {end for link in self.links for end in (link.source_id, link.target_id)}
        return ends | set(self.latest.values())


def find_revision_gaps(owner: Owner, gone: Sequence[Artifact]) -> RevisionGaps:
    """Return the gaps that revisions of locked chains will leave. One statement, none for no revisions."""
    ids = {each.id for each in gone}
    links = Link.objects.filter(Q(source_id__in=ids) | Q(target_id__in=ids), account_id=owner.account_id)
    pairs = links.filter(type=SUPERSEDES).values_list("source_id", "target_id") if ids else []
    before = dict(pairs)
    latest = {chain_of_artifact(each): nearest_kept_revision(each.id, ids, before) for each in gone if each.is_latest}
    kept = {newer: nearest_kept_revision(older, ids, before) for newer, older in before.items() if newer not in ids}
    return RevisionGaps(
        latest={chain: former for chain, former in latest.items() if former is not None},
        links=[
            NewLink(source_id=newer, type=SUPERSEDES, target_id=former)
            for newer, former in kept.items()
            if former is not None
        ],
    )


def nearest_kept_revision(artifact_id: UUID, gone: Collection[UUID], before: Mapping[UUID, UUID]) -> UUID | None:
    """Return the nearest revision, from this one back, that is kept."""
    found: UUID | None = artifact_id
    for _ in gone:
        if found not in gone:
            break
        found = before.get(found) if found else None
    return None if found in gone else found


def close_revision_gaps(owner: Owner, gaps: RevisionGaps, *, now: datetime) -> None:
    """Close gaps after the revisions were erased."""
    if not gaps.around:
        return
    rows = Artifact.objects.filter(account_id=owner.account_id, pk__in=gaps.around).order_by("pk")
    kept = {each.id: each for each in rows.select_for_update()}
    for chain, former in gaps.latest.items():
        if former in kept:
            save_artifact(kept[former], now=now, is_latest=True, identity=chain)
    links = [link for link in gaps.links if {link.source_id, link.target_id} <= kept.keys()]
    insert_links(owner.account_id, links)


@masks_secrets
def change_artifact(
    owner: Owner,
    artifact_id: UUID,
    *,
    changes: Mapping[str, Any],
    embedded: EmbeddedTexts,
    own: ClientVector | None = None,
    expected: ExpectedVersions = None,
    now: datetime,
) -> Artifact:
    """Change title, description, type, metadata or `goal` (an id, or None) of a revision, if anything differs.

    Embed the text first (`changed_artifact_text`). Raises NotFound, Forbidden, StaleVersion, Unprocessable.
    """
    if refused := set(changes) - {*CHANGEABLE_COLUMNS, "description"}:
        allowed = ", ".join(sorted({*CHANGEABLE_COLUMNS, "description"}))
        raise Unprocessable(f"{', '.join(sorted(refused))} of an artifact cannot be changed; allowed: {allowed}")
    with transaction.atomic():
        artifact = lock_artifact(owner, artifact_id, expected=expected, now=now)
        given = {CHANGEABLE_COLUMNS[name]: value for name, value in changes.items() if name in CHANGEABLE_COLUMNS}
        columns = {name: value for name, value in given.items() if column_differs(artifact, name, value)}
        update = TextUpdate(row=artifact, text=changed_artifact_text(artifact, changes), own=own)
        if "for_goal_id" in columns:
            goal_id = columns["for_goal_id"]
            if goal_id and lock_visible_memories(owner, [goal_id], None, now=now).get(goal_id) != Kind.GOAL:
                raise Unprocessable("there is no such goal")
            Link.objects.filter(account_id=owner.account_id, source_id=artifact.id, type=WORKS_ON).delete()
            links = [NewLink(source_id=artifact.id, type=WORKS_ON, target_id=goal_id)] if goal_id else []
            insert_links(owner.account_id, links)
        update_artifact(owner, artifact, columns, update, embedded=embedded, now=now)
    return artifact


def changed_artifact_text(artifact: Artifact, changes: Mapping[str, Any]) -> str:
    """Return the text to embed for these changes. Raises Unprocessable."""
    title, artifact_type = changes.get("title", artifact.title), changes.get("type", artifact.artifact_type)
    description = changes.get("description", artifact_description(artifact))
    check_artifact_draft(ArtifactDraft(uri=artifact.uri, title=title, description=description, type=artifact_type))
    return changed_text(artifact, title=title, description=description)


def delete_artifact(owner: Owner, artifact_id: UUID, *, expected: ExpectedVersions = None, now: datetime) -> None:
    """Delete a revision for good. The one before takes its place in the chain, and work episodes no longer name it.

    Raises NotFound, Forbidden, StaleVersion.
    """
    write_waiting_reads(owner.account_id)
    with transaction.atomic():
        mentions = lock_mentioning_episodes(owner, [artifact_id])
        artifact = lock_artifact(owner, artifact_id, others=mentions, expected=expected, now=now)
        remove_mentions(owner, [artifact_id], now=now)
        gaps = find_revision_gaps(owner, [artifact])
        erase_traces_of_deleted(owner, [artifact.id])
        writer.delete_memory_rows(owner.account_id, [artifact.id])
        audit_artifact(owner, "delete", artifact)
        close_revision_gaps(owner, gaps, now=now)


class ArtifactLifecycle(Lifecycle):
    """Artifacts, each a revision in a chain."""

    def __init__(self, operation: Operation, memory_ids: Sequence[UUID]) -> None:
        super().__init__(operation, memory_ids)
        self.gaps = RevisionGaps(latest={}, links=())

    def prepare(self) -> None:
        if self.operation.is_erasure:
            rows = Artifact.objects.visible_to(self.owner, Kind.ARTIFACT).filter(id__in=self.memory_ids).order_by("id")
            # an artifact never changes its chain
            chains = sorted({identity.partition(":")[0] for identity in rows.values_list("identity", flat=True)})
            for chain in chains:
                lock_chain(self.owner, chain)
            gone = list(rows.only("id", "identity", "is_latest")) if chains else []
            self.gaps = find_revision_gaps(self.owner, gone)

    def find_rewritten(self) -> Collection[UUID]:
        return self.gaps.around

    def propagate(self, rows: Sequence[Memory]) -> None:
        close_revision_gaps(self.owner, self.gaps, now=self.now)
