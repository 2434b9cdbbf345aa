"""Linking a structured turn with what it names: goal, artifacts, evidence and tool invocations."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q

from memory.errors import Unprocessable
from memory.models import Artifact, Kind, Memory, ToolInvocation, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.services.memories.links import PRODUCED, USED, WORKS_ON, NewLink, insert_links

MAX_REFERENCES = 200
"""Maximum length of each list of references in a draft."""
Slot = TurnSlot.Slot
PRODUCING_SLOTS = (Slot.ACTION, Slot.OUTCOME)
"""Slots that link to produced artifacts. The first one that the record has gets the links."""
USING_SLOTS = (Slot.OBSERVATION, Slot.REASONING, *PRODUCING_SLOTS)
"""Slots that link to used artifacts and evidence. The first one that the record has gets the links."""


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """The ids that a turn names: goal, tool invocations, artifacts (`produced`, `used`) and memories (`evidence`)."""

    goal_id: UUID | None = None
    invocations: Sequence[UUID] = ()
    produced: Sequence[UUID] = ()
    used: Sequence[UUID] = ()
    evidence: Sequence[UUID] = ()

    @property
    def memory_ids(self) -> set[UUID]:
        named = {*self.produced, *self.used, *self.evidence}
        return named if self.goal_id is None else named | {self.goal_id}

    @property
    def need_slot(self) -> bool:
        """Return whether there are references that only a slot can link to."""
        return bool(self.produced or self.used or self.evidence)

    @property
    def are_too_many(self) -> bool:
        lists = (self.invocations, self.produced, self.used, self.evidence)
        return any(len(named) > MAX_REFERENCES for named in lists)


def lock_referenced_memories(owner: Owner, references: References, *, now: datetime) -> None:
    """Lock the referenced memories. Raises Unprocessable if one is missing, invisible or of the wrong kind."""
    wanted = references.memory_ids
    if not wanted:
        return
    rows = Memory.objects.visible_to(owner).live(now).filter(id__in=wanted).order_by("id")
    kinds = dict(rows.select_for_update(no_key=True, of=("self",)).values_list("id", "kind"))
    if wanted - kinds.keys():
        raise Unprocessable("the record names a goal, an artifact or a memory that does not exist")
    artifacts = {*references.produced, *references.used}
    is_wrong = any(kinds[each] != Kind.ARTIFACT for each in artifacts)
    if is_wrong or (references.goal_id is not None and kinds[references.goal_id] != Kind.GOAL):
        raise Unprocessable("produced and used must name artifacts, and goal_id must name a goal")


def link_references(
    owner: Owner,
    record: TurnRecord,
    slots: Sequence[TurnSlot],
    references: References,
    *,
    fresh: Sequence[TurnSlot],
) -> None:
    """Link the slots of a record with its references. `fresh` slots have no link to the record's goal yet.

    Evidence of a record without a slot (its reasoning is not kept) is not linked. Raises Unprocessable for artifacts
    that are produced without an action, for evidence from the record itself, and as `attribute_invocations`.
    """
    by_slot = {slot.slot: slot.id for slot in slots}
    producer, user = first_slot_id(by_slot, PRODUCING_SLOTS), first_slot_id(by_slot, USING_SLOTS)
    if references.produced and producer is None:
        raise Unprocessable("produced artifacts need an action: send the action first, or with them")
    if set(by_slot.values()) & set(references.evidence):
        raise Unprocessable("a record cannot be evidence of itself")
    goal_id, links = record.goal_id, list[NewLink]()
    if goal_id is not None:
        links += [NewLink(source_id=slot.id, type=WORKS_ON, target_id=goal_id) for slot in fresh]
    if producer is not None:
        links += [NewLink(source_id=producer, type=PRODUCED, target_id=each) for each in set(references.produced)]
    if user is not None:
        used = {*references.used, *references.evidence}
        links += [NewLink(source_id=user, type=USED, target_id=each) for each in used]
    insert_links(record.account_id, links)
    attribute_artifacts(record, references.produced)
    attribute_invocations(owner, record, references.invocations)


def first_slot_id(by_slot: Mapping[str, UUID], order: Sequence[str]) -> UUID | None:
    return next((by_slot[slot] for slot in order if slot in by_slot), None)


def attribute_artifacts(record: TurnRecord, artifact_ids: Collection[UUID]) -> None:
    """Set the record as the origin of artifacts that have none yet."""
    if artifact_ids:
        rows: Any = Artifact.objects.filter(account_id=record.account_id, id__in=artifact_ids, record=None)
        rows.update(record=record)


def attribute_invocations(owner: Owner, record: TurnRecord, invocation_ids: Collection[UUID]) -> None:
    """Set the record as the origin of tool invocations.

    Raises Unprocessable for invocations that are missing, of another conversation, or of another record.
    """
    if not invocation_ids:
        return
    rows = ToolInvocation.objects.visible_to(owner).filter(
        Q(record=None) | Q(record=record), conversation_id=record.conversation_id, id__in=invocation_ids
    )
    if rows.update(record=record) != len(set(invocation_ids)):
        raise Unprocessable("the record names tool invocations of another conversation or another record")
