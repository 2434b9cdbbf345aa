"""Storing artifacts (E9): files, documents and pages that work produces or uses, revision by revision.

The same path or URI of one holder and channel is the same artifact. Another digest or label makes its next revision,
which SUPERSEDES the former one. Former revisions stay and can be read and found, since one may ask what an older plan
said; recall ranks the newer one first, as with facts (`retrieval.selectors.lineage`). Whoever sees an artifact may read
it. It may be changed for the user that it is held for, by the agent that stored it, and by the account.

A path or URI that a browser would run, or that shows other characters than it has, is refused. Whether an address
becomes a link is decided where artifacts are shown; the check here keeps out what no reader should have to know.
"""

import html
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import unquote
from uuid import UUID

from django.db import transaction

from memory.audit import record_audit, texts_metadata
from memory.errors import Conflict, Unprocessable
from memory.invisible_characters import INVISIBLE_CODE_POINTS
from memory.masking import masks_secrets
from memory.models import Artifact, Kind, TurnRecord
from memory.models.statements import fetch_rows
from memory.owner import Owner
from memory.services.artifacts.read import (
    artifact_description,
    artifact_text,
    artifacts_by_identity,
    chain_key,
    changed_text,
    former_identity,
    lock_chain,
    lock_visible_memories,
)
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.goals.store import REACHES
from memory.services.memories.links import ABOUT, DERIVED_FROM, PRODUCED, SUPERSEDES, WORKS_ON, NewLink, insert_links
from memory.services.memories.store import MemoryDraft, TextUpdate, own_vectors, store_memories, update_texts
from memory.services.records.read import current_slot_rows

MAX_URI_CHARACTERS = 2_000
MAX_DECODINGS = 5
"""An address that is still escaped after so many decodings is refused: nobody writes one like that."""
EXECUTABLE_SCHEMES = ("javascript", "vbscript", "jscript", "livescript", "mocha", "data", "blob", "about", "filesystem")
WRAPPER_SCHEMES = ("view-source", "feed", "jar", "url", "wyciwyg")
"""Schemes that open the address after them."""
EXECUTABLE_URI = re.compile(rf"(?:(?:{'|'.join(WRAPPER_SCHEMES)}):)*(?:{'|'.join(EXECUTABLE_SCHEMES)}):")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

MAX_REFERENCES = 100
"""Maximum length of `about` and of `derived_from`."""

MAX_TITLE_CHARACTERS = 500
MAX_TYPE_CHARACTERS = 50
MAX_DIGEST_CHARACTERS = 200
MAX_LABEL_CHARACTERS = 100

PRODUCING_SLOTS = ("action", "outcome", "reasoning", "observation")
"""Slots that link to a produced artifact. The first one that the record has gets the link."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactDraft(MemoryDraft):
    """An artifact before it is stored: its path or URI, its type, and what it says.

    `digest` is the hash of its content, `label` the client's own name of the revision. `record_id` is the structured
    turn that produced it, `goal_id` what it is for (the record's goal by default). `about` are memories, `derived_from`
    artifacts.
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

    @property
    def text(self) -> str:
        """The text to embed."""
        return artifact_text(self.title, self.uri, self.description)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRevision:
    """A stored revision, and whether this call created it."""

    artifact: Artifact
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkTargets:
    """The existing, locked rows to link an artifact with: a goal, a record and its slot, and the latest revision."""

    goal_id: UUID | None
    record: TurnRecord | None
    slot_id: UUID | None
    latest: Artifact | None


def complete_draft(owner: Owner, draft: ArtifactDraft) -> ArtifactDraft:
    """Fill what the draft leaves out from the stored artifact, so that its text can be embedded before it is stored.

    One statement. Raises Unprocessable.
    """
    check_artifact_draft(draft)
    return fill_from_latest(draft, artifacts_by_identity(owner, chain_key(owner, draft.uri)).first())


def check_artifact_draft(draft: ArtifactDraft) -> None:
    """Raise Unprocessable for a draft that cannot be stored."""
    error = find_uri_error(draft.uri)
    limits = {
        "type": MAX_TYPE_CHARACTERS,
        "title": MAX_TITLE_CHARACTERS,
        "digest": MAX_DIGEST_CHARACTERS,
        "label": MAX_LABEL_CHARACTERS,
    }
    for name, limit in limits.items():
        text = getattr(draft, name)
        if len(text) > limit or len(text.splitlines()) > 1 or "\x00" in text:
            error = error or f"{name} must be one line of at most {limit} characters, without NUL"
    if "\x00" in draft.description:
        error = error or "the description must not contain NUL"
    if max(len(draft.about), len(draft.derived_from)) > MAX_REFERENCES:
        error = error or f"about and derived_from may each name at most {MAX_REFERENCES} memories"
    if error:
        raise Unprocessable(error)


def fill_from_latest(draft: ArtifactDraft, latest: Artifact | None) -> ArtifactDraft:
    """Complete a draft from the latest revision. If both are the same revision, what is stored takes precedence."""
    if latest is None:
        return draft
    known = replace(draft, title=latest.title, type=latest.artifact_type, description=artifact_description(latest))
    first, second = (known, draft) if is_same_revision(latest, draft) else (draft, known)
    return replace(
        draft,
        title=first.title or second.title,
        type=first.type or second.type,
        description=first.description or second.description,
    )


def is_same_revision(latest: Artifact, draft: ArtifactDraft) -> bool:
    """Return whether digest and label agree. A missing one agrees with any."""
    pairs = ((draft.digest, latest.digest), (draft.label, latest.label))
    return all(not given or not known or given == known for given, known in pairs)


@masks_secrets
def store_artifact(owner: Owner, draft: ArtifactDraft, *, embedded: EmbeddedTexts, now: datetime) -> StoredRevision:
    """Store an artifact, its next revision, or what the latest revision lacks. What is stored already stays.

    Embed the text of `complete_draft` first, outside transactions. Raises Unprocessable for an invalid URI, for
    references that do not exist or cannot be seen, and if the artifact would come from itself; Conflict if it is
    quarantined.
    """
    check_artifact_draft(draft)
    chain = chain_key(owner, draft.uri)
    with transaction.atomic():
        lock_chain(owner, chain)
        targets = lock_link_targets(owner, draft, chain, now=now)
        latest = targets.latest
        if latest is not None and latest.quarantined:
            raise Conflict("the artifact of this path or URI is quarantined")
        draft = fill_from_latest(draft, latest)
        if latest is not None and is_same_revision(latest, draft):
            targets = replace(targets, goal_id=None if targets.goal_id == latest.for_goal_id else targets.goal_id)
            fill_latest_revision(owner, latest, draft, targets, embedded=embedded, now=now)
            stored = StoredRevision(artifact=latest, is_new=False)
        else:
            artifact = add_revision(owner, draft, targets, embedded=embedded, now=now)
            stored = StoredRevision(artifact=artifact, is_new=True)
        link_artifact(owner, stored, draft, targets)
    return stored


def lock_link_targets(owner: Owner, draft: ArtifactDraft, chain: str, *, now: datetime) -> LinkTargets:
    """Lock the memories that the artifact is to be linked with and its latest revision, always in the same order.

    If neither the draft nor its record names a goal, the goal of the former revision is used. Raises Unprocessable.
    """
    known = artifacts_by_identity(owner, chain).values_list("id", "for_goal_id").first()
    latest_id, former_goal = known or (None, None)
    record = None
    if draft.record_id is not None:
        record = TurnRecord.objects.visible_to(owner).filter(id=draft.record_id).first()
        if record is None:
            raise Unprocessable("there is no such turn record")
    rows = current_slot_rows(owner.account_id).filter(record=record)
    slots = {} if record is None else dict(rows.values_list("slot", "id"))
    slot_id = next((slots[slot] for slot in PRODUCING_SLOTS if slot in slots), None)
    goals = [each for each in (draft.goal_id, record and record.goal_id, former_goal) if each]
    named = {*draft.about, *draft.derived_from, *goals}
    kinds = lock_visible_memories(owner, named | {each for each in (slot_id,) if each}, latest_id, now=now)
    # the record's own goal may be another holder's, and the former one may be gone
    needed = {*draft.about, *draft.derived_from, *([draft.goal_id] if draft.goal_id else [])}
    if needed - kinds.keys():
        raise Unprocessable("the artifact names a goal, an artifact or a memory that does not exist")
    is_wrong = draft.goal_id is not None and kinds[draft.goal_id] != Kind.GOAL
    if is_wrong or any(kinds[each] != Kind.ARTIFACT for each in draft.derived_from):
        raise Unprocessable("derived_from must name artifacts, and goal_id must name a goal")
    return LinkTargets(
        goal_id=next((each for each in goals if each in kinds), None),
        record=record,
        slot_id=slot_id if slot_id in kinds else None,
        latest=artifacts_by_identity(owner, chain).first() if latest_id else None,
    )


def add_revision(
    owner: Owner, draft: ArtifactDraft, targets: LinkTargets, *, embedded: EmbeddedTexts, now: datetime
) -> Artifact:
    """Store the first or next revision."""
    chain, latest = chain_key(owner, draft.uri), targets.latest
    if latest is not None:
        save_artifact(latest, now=now, is_latest=False, identity=former_identity(chain, latest.revision))
    made = Artifact(
        kind=Kind.ARTIFACT,
        identity=chain,
        conversation_id=targets.record.conversation_id if targets.record else "",
        text=draft.text,
        uri=draft.uri,
        artifact_type=draft.type,
        title=draft.title,
        digest=draft.digest,
        label=draft.label,
        revision=latest.revision + 1 if latest else 1,
        source_record=targets.record,
        for_goal_id=targets.goal_id,
        **draft.shared_columns(now=now),
    )
    if not store_memories(owner, [made], embedded=embedded, own=own_vectors([draft]), now=now):
        raise Conflict("the artifact was stored by another request at the same time: send it again")
    return made


def fill_latest_revision(
    owner: Owner,
    latest: Artifact,
    draft: ArtifactDraft,
    targets: LinkTargets,
    *,
    embedded: EmbeddedTexts,
    now: datetime,
) -> None:
    """Set what the latest revision lacks. One that was archived or has expired becomes live again."""
    given = {
        "title": draft.title,
        "artifact_type": draft.type,
        "digest": draft.digest,
        "label": draft.label,
        "source_record_id": targets.record and targets.record.id,
        "for_goal_id": targets.goal_id,
        "metadata": draft.metadata,
    }
    missing: dict[str, Any] = {name: value for name, value in given.items() if value and not getattr(latest, name)}
    if latest.archived:
        missing["archived"] = False
    if latest.expires_at is not None and latest.expires_at <= now:
        missing["expires_at"] = None
    text = changed_text(latest, title=draft.title, description=draft.description)
    update_artifact(
        owner, latest, missing, TextUpdate(row=latest, text=text, own=draft.own), embedded=embedded, now=now
    )


def link_artifact(owner: Owner, stored: StoredRevision, draft: ArtifactDraft, targets: LinkTargets) -> None:
    """Link an artifact with its record, its goal, what it is about and what it comes from. Raises Unprocessable."""
    artifact_id = stored.artifact.id
    if not stored.is_new:
        refuse_derivation_cycle(owner, artifact_id, draft.derived_from)
    links = [NewLink(source_id=artifact_id, type=DERIVED_FROM, target_id=each) for each in draft.derived_from]
    links += [NewLink(source_id=artifact_id, type=ABOUT, target_id=each) for each in draft.about if each != artifact_id]
    if targets.goal_id is not None:
        links.append(NewLink(source_id=artifact_id, type=WORKS_ON, target_id=targets.goal_id))
    if targets.slot_id is not None:
        links.append(NewLink(source_id=targets.slot_id, type=PRODUCED, target_id=artifact_id))
    if stored.is_new and targets.latest is not None:
        links.append(NewLink(source_id=artifact_id, type=SUPERSEDES, target_id=targets.latest.id))
    insert_links(owner.account_id, links)


def refuse_derivation_cycle(owner: Owner, artifact_id: UUID, derived_from: Sequence[UUID]) -> None:
    """Raise Unprocessable if one of the artifacts comes from this one. A new artifact needs no check."""
    if not derived_from:
        return
    values: dict[str, Any] = {"account_id": owner.account_id, "type": DERIVED_FROM, "source": artifact_id}
    if fetch_rows(REACHES, values | {"targets": list(derived_from)}) == [(True,)]:
        raise Unprocessable("derived_from would close a cycle: the artifact would come from itself")


def find_uri_error(uri: str) -> str:
    """Return why an artifact cannot have this path or URI; empty if it can."""
    if not 1 <= len(uri) <= MAX_URI_CHARACTERS:
        return f"a path or URI has 1 to {MAX_URI_CHARACTERS} characters"
    if CONTROL.search(uri) or any(ord(character) in INVISIBLE_CODE_POINTS for character in uri):
        return "a path or URI must not contain control characters or invisible ones"
    if uri != uri.strip():
        return "a path or URI must not begin or end with blanks"
    plain = decode_uri(uri)
    if plain is None or EXECUTABLE_URI.match(plain):
        return "a path or URI must not be one that a browser would run"
    return ""


def decode_uri(uri: str) -> str | None:
    """Return the address without escapes, case and blanks, or None if it is escaped too often."""
    for _ in range(MAX_DECODINGS):
        decoded = html.unescape(unquote(uri))
        if decoded == uri:
            folded = unicodedata.normalize("NFKC", uri).casefold()
            visible = (each for each in folded if ord(each) not in INVISIBLE_CODE_POINTS and not each.isspace())
            # bytes that are no text are shown as nothing
            return CONTROL.sub("", "".join(visible)).replace("\ufffd", "")
        uri = decoded
    return None


def save_artifact(artifact: Artifact, *, now: datetime, **columns: Any) -> None:
    """Store columns of a locked artifact as its next version."""
    for name, value in columns.items():
        setattr(artifact, name, value)
    artifact.version, artifact.updated_at = artifact.version + 1, now
    rows = Artifact.objects.filter(account_id=artifact.account_id, id=artifact.id)
    rows.update(**columns, version=artifact.version, updated_at=now)


def update_artifact(
    owner: Owner,
    artifact: Artifact,
    columns: Mapping[str, Any],
    update: TextUpdate,
    *,
    embedded: EmbeddedTexts,
    now: datetime,
) -> None:
    """Store other columns and another text of a locked artifact as one change, if anything differs."""
    has_new_text = update.text != artifact.text
    if not columns and not has_new_text:
        return
    if has_new_text:
        # `save_artifact` counts one change for both
        artifact.version -= 1
        update_texts(owner, [update], embedded=embedded, now=now)
    save_artifact(artifact, now=now, **columns)
    texts = texts_metadata(owner, [update.text] if has_new_text else [])
    audit_artifact(owner, "update", artifact, metadata={"columns": sorted(columns)} | texts)


def audit_artifact(owner: Owner, operation: str, artifact: Artifact, **columns: Any) -> None:
    record_audit(owner, operation=operation, memory_type="semantic", affected_ids=[artifact.id], **columns)
