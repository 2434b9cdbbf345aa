"""Artifacts (E9): what work produces or goes by outside of the conversation, revision by revision.

The same path or URI of one holder and channel is the same artifact. Another digest or label is its next revision, which
SUPERSEDES the former. That stays: it is read and found like others, since one may ask what an older plan said, and
recall puts the newer one before it, as with facts (`retrieval.selectors.lineage`). Who sees an artifact may read it; it
is changed for the user that it is held for, by the agent that stored it, and by the account.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from memory.errors import Conflict, Unprocessable
from memory.models import Artifact, Kind, TurnRecord, TurnSlot
from memory.owner import Owner
from memory.services.artifacts.rows import (
    artifact_text,
    chain_of_uri,
    change_columns,
    description_of,
    former_identity,
    lock_memories,
    of_identity,
    refusal_of,
    reworded,
    save_artifact,
    take_turn,
    visible_artifacts,
)
from memory.services.embedding.embed import Embedded
from memory.services.goals.links import REACHES
from memory.services.memories.links import ABOUT, DERIVED_FROM, PRODUCED, SUPERSEDES, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import OwnVector, Rewording, store_memories
from memory_project.ids import uuid7

MOST_NAMED = 100
"""Of the memories that an artifact is about, and of the artifacts that it is made from, each."""

LONGEST_TITLE = 500
LONGEST_TYPE = 50
LONGEST_DIGEST = 200
LONGEST_LABEL = 100

# what says best that it was done
PRODUCING = ("action", "outcome", "reasoning", "observation")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactDraft:
    """An artifact before it is stored: its path or URI, what kind of thing it is, what it says.

    `digest` is the hash of its content, `label` the client's own name of the revision. `record_id` is the structured
    turn that produced it, `goal_id` what it is for (the record's goal by default). `about` are memories, `derived_from`
    artifacts. `own` is a vector that the client brought.
    """

    uri: str
    type: str = ""
    title: str = ""
    description: str = ""
    digest: str = ""
    label: str = ""
    record_id: UUID | None = None
    goal_id: UUID | None = None
    about: Sequence[UUID] = ()
    derived_from: Sequence[UUID] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    event_time: datetime | None = None
    source: str = "agent"
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)

    @property
    def text(self) -> str:
        """What is to be embedded."""
        return artifact_text(self.title, self.uri, self.description)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The revision, and whether it came to be with this call."""

    artifact: Artifact
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """What an artifact is to be linked with, all there and locked: the goal, the record and the slot that tells it."""

    goal_id: UUID | None
    record: TurnRecord | None
    slot_id: UUID | None


def complete_draft(owner: Owner, draft: ArtifactDraft) -> ArtifactDraft:
    """With what is known of the artifact where the draft is silent, so that its text can be embedded before it is
    stored. One statement. Raises Unprocessable."""
    check_draft(draft)
    return completed(draft, of_identity(owner, chain_of_uri(owner, draft.uri)).first())


def check_draft(draft: ArtifactDraft) -> None:
    """Raises Unprocessable."""
    wrong = refusal_of(draft.uri)
    bounds = {"type": LONGEST_TYPE, "title": LONGEST_TITLE, "digest": LONGEST_DIGEST, "label": LONGEST_LABEL}
    for name, most in bounds.items():
        text = getattr(draft, name)
        if len(text) > most or len(text.splitlines()) > 1 or "\x00" in text:
            wrong = wrong or f"{name} is one line of at most {most} characters"
    if "\x00" in draft.description:
        wrong = wrong or "a description holds no NUL"
    if max(len(draft.about), len(draft.derived_from)) > MOST_NAMED:
        wrong = wrong or f"an artifact names at most {MOST_NAMED} of a kind"
    if wrong:
        raise Unprocessable(wrong)


def completed(draft: ArtifactDraft, latest: Artifact | None) -> ArtifactDraft:
    """Of the same revision, what is stored stays; the next one takes over what the draft does not say."""
    if latest is None:
        return draft
    known = replace(draft, title=latest.title, type=latest.artifact_type, description=description_of(latest))
    first, second = (known, draft) if is_same_revision(latest, draft) else (draft, known)
    return replace(
        draft,
        title=first.title or second.title,
        type=first.type or second.type,
        description=first.description or second.description,
    )


def is_same_revision(latest: Artifact, draft: ArtifactDraft) -> bool:
    """A digest or a label that is not told, or not known yet, is no other one."""
    pairs = ((draft.digest, latest.digest), (draft.label, latest.label))
    return all(not told or not known or told == known for told, known in pairs)


def keep_artifact(owner: Owner, draft: ArtifactDraft, *, embedded: Embedded, now: datetime) -> Kept:
    """Store an artifact, its next revision, or what the latest revision lacked; what is there already stays.

    Embed the text of `complete_draft` first, outside transactions. Raises Unprocessable for a URI that cannot be, for
    what is named and cannot be seen, and where an artifact would come from itself; Conflict for one that is
    quarantined.
    """
    check_draft(draft)
    chain = chain_of_uri(owner, draft.uri)
    with transaction.atomic():
        take_turn(owner, chain)
        latest_id, goal_id = of_identity(owner, chain).values_list("id", "for_goal_id").first() or (None, None)
        ends = lock_ends(owner, draft, latest_id, goal_id, now=now)
        latest: Artifact | None = of_identity(owner, chain).first() if latest_id else None
        if latest is not None and latest.quarantined:
            raise Conflict("the artifact of this path or URI is quarantined")
        draft = completed(draft, latest)
        if latest is not None and is_same_revision(latest, draft):
            ends = replace(ends, goal_id=None if ends.goal_id == latest.for_goal_id else ends.goal_id)
            add_missing(owner, latest, draft, ends, embedded=embedded, now=now)
            kept = Kept(artifact=latest, is_new=False)
        else:
            kept = Kept(artifact=add_revision(owner, draft, ends, latest, embedded=embedded, now=now), is_new=True)
        join(owner, kept, draft, ends, latest)
    return kept


def lock_ends(
    owner: Owner, draft: ArtifactDraft, latest_id: UUID | None, former_goal: UUID | None, *, now: datetime
) -> Ends:
    """Lock what the artifact is to be linked with, in one order everywhere, and its latest revision.

    Where neither the draft nor its record names a goal, it is for the one that the former revision was for. Raises
    Unprocessable.
    """
    record = find_producer(owner, draft.record_id)
    slots = {} if record is None else dict(slots_of(record).values_list("slot", "id"))
    slot_id = next((slots[slot] for slot in PRODUCING if slot in slots), None)
    goals = [each for each in (draft.goal_id, record and record.goal_id, former_goal) if each]
    named = {*draft.about, *draft.derived_from, *goals}
    kinds = lock_memories(owner, named | {each for each in (slot_id,) if each}, latest_id, now=now)
    # the record's own goal may be another holder's, and the former one may be gone
    needed = {*draft.about, *draft.derived_from, *([draft.goal_id] if draft.goal_id else [])}
    if needed - kinds.keys():
        raise Unprocessable("the artifact names a goal, an artifact or a memory that there is not")
    is_wrong = draft.goal_id is not None and kinds[draft.goal_id] != Kind.GOAL
    if is_wrong or any(kinds[each] != Kind.ARTIFACT for each in draft.derived_from):
        raise Unprocessable("what it is made from are artifacts, and what it is for is a goal")
    goal_id = next((each for each in goals if each in kinds), None)
    return Ends(goal_id=goal_id, record=record, slot_id=slot_id if slot_id in kinds else None)


def find_producer(owner: Owner, record_id: UUID | None) -> TurnRecord | None:
    if record_id is None:
        return None
    record = TurnRecord.objects.visible_to(owner).filter(id=record_id).first()
    if record is None:
        raise Unprocessable("there is no such turn record")
    return record


def slots_of(record: TurnRecord) -> QuerySet[Any]:
    rows: Any = TurnSlot.objects
    found: QuerySet[Any] = rows.filter(record=record, archived=False, quarantined=False)
    return found


def add_revision(
    owner: Owner, draft: ArtifactDraft, ends: Ends, latest: Artifact | None, *, embedded: Embedded, now: datetime
) -> Artifact:
    """The next revision, or the first."""
    chain = chain_of_uri(owner, draft.uri)
    if latest is not None:
        save_artifact(latest, now=now, is_latest=False, identity=former_identity(chain, latest.revision))
    made = Artifact(
        id=draft.id,
        kind=Kind.ARTIFACT,
        identity=chain,
        conversation_id=ends.record.conversation_id if ends.record else "",
        text=draft.text,
        uri=draft.uri,
        artifact_type=draft.type,
        title=draft.title,
        digest=draft.digest,
        label=draft.label,
        revision=latest.revision + 1 if latest else 1,
        record=ends.record,
        for_goal_id=ends.goal_id,
        event_time=draft.event_time or now,
        source=draft.source,
        metadata=draft.metadata,
    )
    own = {} if draft.own is None else {draft.id: draft.own}
    if not store_memories(owner, [made], embedded=embedded, own=own, now=now):
        raise Conflict("somebody else has stored the artifact at the same time: send it again")
    return made


def add_missing(
    owner: Owner, latest: Artifact, draft: ArtifactDraft, ends: Ends, *, embedded: Embedded, now: datetime
) -> None:
    """Give the latest revision what it lacks. One that was archived or has expired meanwhile is there again."""
    given = {
        "title": draft.title,
        "artifact_type": draft.type,
        "digest": draft.digest,
        "label": draft.label,
        "record_id": ends.record and ends.record.id,
        "for_goal_id": ends.goal_id,
        "metadata": draft.metadata,
    }
    missing: dict[str, Any] = {name: value for name, value in given.items() if value and not getattr(latest, name)}
    if latest.archived:
        missing["archived"] = False
    if latest.expires_at is not None and latest.expires_at <= now:
        missing["expires_at"] = None
    text = reworded(latest, title=draft.title, description=draft.description)
    change_columns(owner, latest, missing, Rewording(row=latest, text=text, own=draft.own), embedded=embedded, now=now)


def join(owner: Owner, kept: Kept, draft: ArtifactDraft, ends: Ends, latest: Artifact | None) -> None:
    """Link a stored artifact with what produced it, what it is for and about, and what it comes from. Raises
    Unprocessable."""
    artifact_id = kept.artifact.id
    if not kept.is_new:
        refuse_ring(owner, artifact_id, draft.derived_from)
    links = [NewLink(source_id=artifact_id, type=DERIVED_FROM, target_id=each) for each in draft.derived_from]
    links += [NewLink(source_id=artifact_id, type=ABOUT, target_id=each) for each in draft.about if each != artifact_id]
    if ends.goal_id is not None:
        links.append(NewLink(source_id=artifact_id, type=WORKS_ON, target_id=ends.goal_id))
    if ends.slot_id is not None:
        links.append(NewLink(source_id=ends.slot_id, type=PRODUCED, target_id=artifact_id))
    if kept.is_new and latest is not None:
        links.append(NewLink(source_id=artifact_id, type=SUPERSEDES, target_id=latest.id))
    insert_links(owner.account_id, links)


def refuse_ring(owner: Owner, artifact_id: UUID, derived_from: Sequence[UUID]) -> None:
    """Of one that is new nothing can come yet. Raises Unprocessable."""
    if not derived_from:
        return
    values: dict[str, Any] = {"account_id": owner.account_id, "type": DERIVED_FROM, "source": artifact_id}
    with connection.cursor() as cursor:
        cursor.execute(REACHES, values | {"targets": list(derived_from)})
        if cursor.fetchone() == (True,):
            raise Unprocessable("this would close a ring: an artifact would come from itself")


def listed_artifacts(owner: Owner, *, now: datetime) -> QuerySet[Artifact]:
    """Those of the owner's channel and of `_global`, of whatever revision; to be filtered and ordered."""
    rows: Any = visible_artifacts(owner, now=now)
    found: QuerySet[Artifact] = rows.in_channels(owner)
    return found
