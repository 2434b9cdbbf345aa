"""What is left of a chain of revisions once some of them are erased: the one before takes the place of what is gone."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.models import Artifact, Kind, Link
from memory.owner import Owner
from memory.services.artifacts.rows import chain_of, save_artifact, take_turn
from memory.services.memories.links import SUPERSEDES, NewLink, insert_links

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
