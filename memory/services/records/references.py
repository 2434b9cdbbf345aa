"""What a structured turn names: goal, artifacts, memories that it went by, uses of tools; linked, and read again."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.errors import Unprocessable
from memory.models import Artifact, Kind, Link, Memory, ToolInvocation, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.services.memories.links import PRODUCED, USED, WORKS_ON, NewLink, insert_links

MOST_NAMED = 200
"""Of the uses of tools, artifacts, and memories that a request names, each."""
MOST_TOLD = 1_000
"""Of what a record names, when it is read."""
Slot = TurnSlot.Slot
DOING = (Slot.ACTION, Slot.OUTCOME)
"""The slots that something is produced in; the first that there is has the link."""
SEEING = (Slot.OBSERVATION, Slot.REASONING, *DOING)
"""The slots that something is used in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """What a turn names, by id. `produced` and `used` are artifacts, `evidence` memories that it went by."""

    goal_id: UUID | None = None
    invocations: Sequence[UUID] = ()
    produced: Sequence[UUID] = ()
    used: Sequence[UUID] = ()
    evidence: Sequence[UUID] = ()

    @property
    def memories(self) -> set[UUID]:
        named = {*self.produced, *self.used, *self.evidence}
        return named if self.goal_id is None else named | {self.goal_id}

    @property
    def are_of_slots(self) -> bool:
        """Whether there are such as slots are linked with."""
        return bool(self.produced or self.used or self.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedArtifact:
    """An artifact that a turn produced or used."""

    id: UUID
    uri: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """What a record names that its reader may see. `truncated`: there is more of it than MOST_TOLD."""

    produced: Sequence[NamedArtifact]
    used: Sequence[NamedArtifact]
    evidence: Sequence[UUID]
    invocations: Sequence[UUID]
    truncated: bool


def check_references(references: References) -> None:
    """Raises Unprocessable."""
    lists = (references.invocations, references.produced, references.used, references.evidence)
    if any(len(named) > MOST_NAMED for named in lists):
        raise Unprocessable(f"a record names at most {MOST_NAMED} of a kind")


def lock_named(owner: Owner, references: References, *, now: datetime) -> None:
    """See that what is named is there and seen by the owner, and keep it there. Raises Unprocessable."""
    wanted = references.memories
    if not wanted:
        return
    rows = Memory.objects.visible_to(owner).live(now).filter(id__in=wanted).order_by("id")
    kinds = dict(rows.select_for_update(no_key=True, of=("self",)).values_list("id", "kind"))
    if wanted - kinds.keys():
        raise Unprocessable("the record names a goal, an artifact or a memory that there is not")
    artifacts = {*references.produced, *references.used}
    is_wrong = any(kinds[each] != Kind.ARTIFACT for each in artifacts)
    if is_wrong or (references.goal_id is not None and kinds[references.goal_id] != Kind.GOAL):
        raise Unprocessable("what is produced or used is an artifact, and what is worked on is a goal")


def join(
    owner: Owner,
    record: TurnRecord,
    slots: Sequence[TurnSlot],
    references: References,
    *,
    fresh: Sequence[TurnSlot],
) -> None:
    """Link what the record names with its slots; those that are `fresh` have no link to its goal yet.

    Raises Unprocessable.
    Evidence of a record that has no slot, since its reasoning is not kept, is not linked.
    """
    by_slot = {slot.slot: slot.id for slot in slots}
    doing, seeing = first_of(by_slot, DOING), first_of(by_slot, SEEING)
    if references.produced and doing is None:
        raise Unprocessable("what is produced comes of an action: tell the action first, or with it")
    if set(by_slot.values()) & set(references.evidence):
        raise Unprocessable("a record is no evidence of itself")
    links = goal_links(fresh, record.goal_id)
    if doing is not None:
        links += [NewLink(source_id=doing, type=PRODUCED, target_id=each) for each in set(references.produced)]
    if seeing is not None:
        used = {*references.used, *references.evidence}
        links += [NewLink(source_id=seeing, type=USED, target_id=each) for each in used]
    insert_links(record.account_id, links)
    claim_artifacts(record, references.produced)
    claim_invocations(owner, record, references.invocations)


def goal_links(slots: Iterable[TurnSlot], goal_id: UUID | None) -> list[NewLink]:
    return [] if goal_id is None else [NewLink(source_id=slot.id, type=WORKS_ON, target_id=goal_id) for slot in slots]


def first_of(by_slot: Mapping[str, UUID], order: Sequence[str]) -> UUID | None:
    return next((by_slot[slot] for slot in order if slot in by_slot), None)


def claim_artifacts(record: TurnRecord, artifact_ids: Collection[UUID]) -> None:
    """Artifacts that came of no turn yet came of this one."""
    if artifact_ids:
        rows: Any = Artifact.objects.filter(account_id=record.account_id, id__in=artifact_ids, record=None)
        rows.update(record=record)


def claim_invocations(owner: Owner, record: TurnRecord, invocation_ids: Collection[UUID]) -> None:
    """Raises Unprocessable for uses that are not there, of another conversation, or of another record."""
    if not invocation_ids:
        return
    rows = ToolInvocation.objects.visible_to(owner).filter(
        Q(record=None) | Q(record=record), conversation_id=record.conversation_id, id__in=invocation_ids
    )
    if rows.update(record=record) != len(set(invocation_ids)):
        raise Unprocessable("the record names uses of tools that are not of this conversation, or of another record")


def read_named(owner: Owner, record: TurnRecord, *, now: datetime) -> Named:
    """What the record names. Three statements."""
    # of slots of every level: what was shortened has the links of what it was made of, or leaves them there
    of_slots = Link.objects.filter(account_id=record.account_id, source__turnslot__record=record)
    links = of_slots.filter(type__in=(PRODUCED, USED)).order_by("id").values_list("type", "target_id")
    told = list(links[: MOST_TOLD + 1])
    invocations = ToolInvocation.objects.visible_to(owner).filter(record=record).order_by("timestamp", "id")
    called = list(invocations.values_list("id", flat=True)[: MOST_TOLD + 1])
    by_type: dict[str, dict[UUID, None]] = {PRODUCED: {}, USED: {}}
    for link_type, target_id in told[:MOST_TOLD]:
        by_type[link_type][target_id] = None
    seen = seen_of(owner, {*by_type[PRODUCED], *by_type[USED]}, now=now)
    return Named(
        produced=artifacts_among(by_type[PRODUCED], seen),
        used=artifacts_among(by_type[USED], seen),
        evidence=[each for each in by_type[USED] if each in seen and seen[each] is None],
        invocations=called[:MOST_TOLD],
        truncated=len(told) > MOST_TOLD or len(called) > MOST_TOLD,
    )


def seen_of(owner: Owner, memory_ids: Collection[UUID], *, now: datetime) -> dict[UUID, NamedArtifact | None]:
    """Those of the memories that the owner may see; None for what is no artifact."""
    rows = Memory.objects.visible_to(owner).live(now).filter(id__in=memory_ids)
    columns = rows.values_list("id", "kind", "artifact__uri", "artifact__title")
    return {
        row_id: NamedArtifact(id=row_id, uri=uri, title=title) if kind == Kind.ARTIFACT else None
        for row_id, kind, uri, title in columns
    }


def artifacts_among(named: Iterable[UUID], seen: Mapping[UUID, NamedArtifact | None]) -> list[NamedArtifact]:
    return [artifact for each in named if (artifact := seen.get(each)) is not None]
