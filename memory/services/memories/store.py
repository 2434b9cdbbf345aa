"""Store memories of any kind in one transaction: rows, vectors, participants and the audit entry."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
from django.db import transaction
from django.db.models import Q

from memory.audit import record_audit, texts_metadata
from memory.dates import CLOCK_SKEW, has_come
from memory.errors import Unprocessable, WrongVectorWidth
from memory.instructions import gives_instructions
from memory.kinds import Kind, spec_of
from memory.masking import mask_row, mask_secrets
from memory.models import Account, MemoryRow, Vector
from memory.models.statements import Embedding, binary_cursor
from memory.models.writer import PassageVector, insert_memories, insert_participants, insert_passages, insert_vectors
from memory.owner import Owner
from memory.redaction import holds_secret
from memory.services.duplicates.texts import normalized_text_hash
from memory.services.embedding.embed import EmbeddedTexts, content_hash
from memory.services.embedding.serving import serving_model
from memory.services.replacements import is_statement, link_replaced_statements, relink_replaced_statements
from memory.tokens import estimate_tokens
from memory_project.ids import uuid7
from memory_project.tracing import traced

M = TypeVar("M", bound=MemoryRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVectors:
    """Vectors of memories by one model, to be stored. Those of the memories `given` came from clients."""

    vectors: dict[UUID, Embedding] = field(default_factory=dict)
    passages: dict[UUID, Sequence[PassageVector]] = field(default_factory=dict)
    given: set[UUID] = field(default_factory=set)

    def store(self, account_id: UUID, *, model: str, stored: Collection[UUID]) -> None:
        """Store the vectors of the memories that were stored. One statement, and two for passages."""
        vectors = [(memory_id, vector) for memory_id, vector in self.vectors.items() if memory_id in stored]
        insert_vectors(account_id, model=model, vectors=vectors, given=self.given)
        passages = {memory_id: own for memory_id, own in self.passages.items() if memory_id in stored}
        insert_passages(account_id, model=model, passages=passages)


VectorsByModel = defaultdict[str, NewVectors]
"""Vectors to be stored, by embedding model."""

UPDATE_TEXTS = """
UPDATE memories m SET text = new.text, content_hash = new.content_hash, wording = new.wording,
    token_count = new.token_count, version = m.version + 1, updated_at = %s, embed_after = new.embed_after,
    embed_attempts = 0, embed_error = '', has_secret = new.has_secret,
    quarantined = m.quarantined OR new.quarantined
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::bigint[], %s::int[], %s::timestamptz[], %s::bool[], %s::bool[])
    AS new (id, text, content_hash, wording, token_count, embed_after, has_secret, quarantined)
WHERE m.id = new.id AND m.account_id = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientVector:
    """A vector that the client sent, with the name of its embedding model.

    `is_comparable` is False if the account has no other vector of the model, so that a search by it finds nothing.
    """

    model: str
    vector: Embedding
    is_comparable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDraft:
    """The fields that a memory of any kind has before it is stored. `own` is a vector that the client supplied."""

    metadata: dict[str, Any] = field(default_factory=dict)
    event_time: datetime | None = None
    source: str = "agent"
    own: ClientVector | None = None
    id: UUID = field(default_factory=uuid7)
    trust: float = 1.0
    """From 0 to 1. What is derived is trusted no more than the least trusted of its sources; triggers see to it where
    links lead to these (migration 0034)."""

    def shared_columns(self, *, now: datetime) -> dict[str, Any]:
        """Return the columns of the new row that these fields fill. Without an `event_time` it happened now.

        Raises Unprocessable for an `event_time` in the future or without a time zone.
        """
        event_time = check_event_time(self.event_time or now, now=now)
        own = {"id": self.id, "source": self.source, "metadata": self.metadata, "trust": self.trust}
        return {**own, "event_time": event_time}


def check_event_time(event_time: datetime, *, now: datetime) -> datetime:
    """Return the time. Raises Unprocessable if it is in the future, apart from CLOCK_SKEW, or has no time zone."""
    if not has_come(event_time, now=now):
        minutes = CLOCK_SKEW.total_seconds() / 60
        raise Unprocessable(f"event_time needs a time zone and must be at most {minutes:.0f} minutes in the future")
    return event_time


def own_vectors(drafts: Iterable[MemoryDraft]) -> dict[UUID, ClientVector]:
    """Return the vectors that clients supplied, by the ids of the new rows, as `store_memories` takes them."""
    return {draft.id: draft.own for draft in drafts if draft.own is not None}


def fill_derived_columns(row: MemoryRow, *, owner: Owner) -> None:
    """Set the columns that follow from owner and text. The identity defaults to the id."""
    row.account_id = owner.account_id
    row.agent_id, row.user_id, row.channel = owner.agent_id, owner.user_id, owner.channel
    row.identity = row.identity or str(row.id)
    set_columns_of_text(row)


def derive_from_text(kind: str, text: str) -> dict[str, Any]:
    """Return the columns that follow from a memory's text."""
    return {
        "content_hash": content_hash(text),
        "wording": normalized_text_hash(kind, text),
        "token_count": estimate_tokens(text),
    }


def set_columns_of_text(row: MemoryRow) -> None:
    for name, value in derive_from_text(row.kind, row.text).items():
        setattr(row, name, value)


@traced("store", attributes=lambda new: {"count": len(new), **({"kind": new[0].kind} if new else {})})
def store_memories(
    owner: Owner, rows: Sequence[M], *, embedded: EmbeddedTexts, own: Mapping[UUID, ClientVector], now: datetime
) -> list[M]:
    """Store rows of one kind and return those that are new. Rows without a vector of the current model are queued.

    `embedded` is the result of `embed_texts`, called before the transaction. `own` has vectors that clients sent, by
    row id, from `validate_vector`. Rows that exist already are ignored.
    """
    vectors = VectorsByModel(NewVectors)
    quarantine_instructions(owner, rows)
    if owner.marks_secrets:
        for row in rows:
            row.has_secret = holds_secret(row.text)
    if owner.masks_secrets:
        own = mask_rows(rows, own)
    for row in rows:
        fill_derived_columns(row, owner=owner)
        has_current = collect_vectors(row, own=own.get(row.id), embedded=embedded, into=vectors)
        row.embed_after = None if has_current else now
        row.embed_error = "" if has_current else embedded.error
    # without a savepoint in a transaction of the caller
    with transaction.atomic(savepoint=False):
        new = insert_memories(rows)
        stored = {row.id for row in new}
        for model, found in vectors.items():
            found.store(owner.account_id, model=model, stored=stored)
        statements = [row for row in new if row.embed_after is None and is_statement(row)]
        if statements:
            ids, kind = [row.id for row in statements], statements[0].kind
            link_replaced_statements(owner.account_id, ids, kind=kind, model=embedded.model)
        insert_participants(owner, conversation_ids=[row.conversation_id for row in new])
        if new:
            texts = texts_metadata(owner, (row.text for row in new if not spec_of(row.kind).has_guarded_text))
            audit_memories(owner, "store", new, metadata=texts)
            audit_memories(owner, "quarantine", [row for row in new if row.quarantined])
    return new


def quarantine_instructions(owner: Owner, rows: Sequence[MemoryRow]) -> None:
    """Quarantine rows whose new texts give orders to the model that reads them, if the account asks for it.

    Goals are left alone: they are orders. The account is looked up only if there is such a text.
    """
    found = [row for row in rows if gives_orders(row, row.text)]
    if found and Account.objects.filter(id=owner.account_id, quarantines_instructions=True).exists():
        for row in found:
            row.quarantined = True


def gives_orders(row: MemoryRow, text: str) -> bool:
    is_summary = spec_of(row.kind).prompt_quote == "summary"
    return row.kind != Kind.GOAL and gives_instructions(text, is_summary=is_summary)


def keeps_secret_mark(owner: Owner, row: MemoryRow, text: str) -> bool:
    """Return whether a stored memory is to be marked once it has another text."""
    return (owner.marks_secrets or row.has_secret) and holds_secret(text)


def mask_rows(rows: Iterable[MemoryRow], own: Mapping[UUID, ClientVector]) -> dict[UUID, ClientVector]:
    """Mask the secrets in new rows, and return the vectors without those of texts that were masked.

    Vectors that the embedder made are found by the text, so a masked text has none of them and is queued.
    """
    kept = dict(own)
    for row in rows:
        text = row.text
        mask_row(row)
        if row.text != text:
            kept.pop(row.id, None)
    return kept


def collect_vectors(row: MemoryRow, *, own: ClientVector | None, embedded: EmbeddedTexts, into: VectorsByModel) -> bool:
    """Add the vectors of the row's text and return whether one is of the current model."""
    made = embedded.vectors.get(row.text)
    is_current = own is not None and own.model == embedded.model
    if own is not None:
        into[own.model].vectors[row.id] = own.vector
        into[own.model].given.add(row.id)
    if made is not None and not is_current:
        into[embedded.model].vectors[row.id] = made
        if row.text in embedded.passages:
            into[embedded.model].passages[row.id] = embedded.passages[row.text]
    return made is not None or is_current


@dataclass(frozen=True, slots=True, kw_only=True)
class TextUpdate:
    """A new text for a locked memory, with the vector of it that the client sent."""

    row: MemoryRow
    text: str
    own: ClientVector | None = None


def masked_update(update: TextUpdate) -> TextUpdate:
    """Return the update with its secrets masked, and then without a vector, which is of another text."""
    text = mask_secrets(update.text)
    return update if text == update.text else replace(update, text=text, own=None)


def update_texts(owner: Owner, updates: Sequence[TextUpdate], *, embedded: EmbeddedTexts, now: datetime) -> None:
    """Give locked memories new texts, with a new version each, and replace their vectors.

    Where the text stays the same, vectors of other models stay: clients made them, and may not have sent them again.
    Memories without a vector of the current model are queued. The row objects are changed as well. Two statements, one
    for each model of the vectors, and those by which statements are linked to what they replace. What gives orders is
    quarantined, as in new memories.
    """
    vectors = VectorsByModel(NewVectors)
    if owner.masks_secrets:
        updates = [masked_update(each) for each in updates]
    rows = [each.row for each in updates]
    rewritten = [each.row.id for each in updates if each.text != each.row.text]
    shown = [row for row in rows if not row.quarantined]
    for each in updates:
        row = each.row
        row.has_secret = keeps_secret_mark(owner, row, each.text)
        row.text, row.version, row.updated_at = each.text, row.version + 1, now
        set_columns_of_text(row)
        has_current = collect_vectors(row, own=each.own, embedded=embedded, into=vectors)
        row.embed_after, row.embed_attempts, row.embed_error = (None if has_current else now), 0, ""
    quarantine_instructions(owner, rows)
    columns = ("id", "text", "content_hash", "wording", "token_count", "embed_after", "has_secret", "quarantined")
    with binary_cursor() as cursor:
        cursor.execute(
            UPDATE_TEXTS, [now, *([getattr(row, name) for row in rows] for name in columns), owner.account_id]
        )
    replaced = Q(memory_id__in=rewritten) | Q(model__in={serving_model().name, embedded.model, *vectors})
    held = Vector.objects.filter(account_id=owner.account_id, memory_id__in=[row.id for row in rows])
    held.filter(replaced).delete()
    for model, found in vectors.items():
        found.store(owner.account_id, model=model, stored=found.vectors)
    relink_replaced_statements(owner.account_id, rows, model=embedded.model)
    audit_memories(owner, "quarantine", [row for row in shown if row.quarantined])


def audit_memories(owner: Owner, operation: str, rows: Sequence[MemoryRow], **columns: Any) -> None:
    """Write one audit entry per documented type of memory, none for no rows."""
    by_type: dict[str, list[MemoryRow]] = {}
    for row in rows:
        by_type.setdefault(spec_of(row.kind).memory_type, []).append(row)
    for memory_type, of_type in by_type.items():
        conversations = {row.conversation_id for row in of_type}
        conversation_id = conversations.pop() if len(conversations) == 1 else ""
        record_audit(
            owner,
            operation=operation,
            memory_type=memory_type,
            affected_ids=[row.id for row in of_type],
            conversation_id=conversation_id,
            session_id=conversation_id,
            result_count=len(of_type),
            **columns,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorInput:
    """Validates the vectors that a client sends in one request. Looks up the width of each model once."""

    owner: Owner
    widths: dict[str, int | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def validate(self, *, model: str, vector: Embedding | Sequence[float]) -> ClientVector:
        """Return the vector at unit length, if it has the width of its model (default: the configured embedding model).

        Raises WrongVectorWidth, which names both widths, and Unprocessable for a zero or infinite vector.
        """
        model = self.names.get(model) or self.names.setdefault(model, model or serving_model().name)
        if model not in self.widths:
            self.widths[model] = find_vector_width(self.owner, model)
        is_comparable = self.widths[model] is not None or model == serving_model().name
        # the first vector of a model sets its width
        wanted = self.widths[model] = self.widths[model] or len(vector)
        if len(vector) != wanted:
            raise WrongVectorWidth(given=len(vector), wanted=wanted, model=model)
        exact = np.asarray(vector, dtype=np.float64)
        norm = np.linalg.norm(exact)
        if not np.isfinite(norm) or not norm:
            raise Unprocessable("the vector has no direction: send the embedding of the text, or leave it out")
        return ClientVector(model=model, vector=(exact / norm).astype(np.float32), is_comparable=is_comparable)


def validate_vector(owner: Owner, *, model: str, vector: Embedding | Sequence[float]) -> ClientVector:
    """Validate one vector (see `VectorInput.validate`)."""
    return VectorInput(owner=owner).validate(model=model, vector=vector)


def find_vector_width(owner: Owner, model: str) -> int | None:
    """Return the width of a model's vectors, or None if the account has none of this model."""
    serving = serving_model()
    if model == serving.name:
        return serving.width or serving.provider.width
    # not limited to visible rows: a model has one width in the whole account, and it reveals no text
    return Vector.objects.filter(account_id=owner.account_id, model=model).values_list("width", flat=True).first()
