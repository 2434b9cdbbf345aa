"""Store memories of any kind: rows, vectors, participants and the audit entry in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import numpy as np
from django.db import transaction

from memory.audit import record_audit, texts_metadata
from memory.errors import Unprocessable, WrongVectorWidth
from memory.kinds import spec_of
from memory.models import Kind, Memory, Vector
from memory.models.binary import Embedding, binary_cursor
from memory.models.writer import insert_memories, insert_participants, insert_vectors
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.services.duplicates.texts import normalized_text_hash
from memory.services.embedding.embed import EmbeddedTexts, content_hash
from memory.tokens import estimate_tokens
from memory_project.tracing import traced

M = TypeVar("M", bound=Memory)

VectorsByModel = dict[str, list[tuple[UUID, Embedding]]]
"""Ids of memories with their vectors, by embedding model."""

UPDATE_TEXTS = """
UPDATE memories m SET text = new.text, content_hash = new.content_hash, wording = new.wording,
    token_count = new.token_count, version = m.version + 1, updated_at = %s, embed_after = new.embed_after,
    embed_attempts = 0, embed_error = ''
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::bigint[], %s::int[], %s::timestamptz[])
    AS new (id, text, content_hash, wording, token_count, embed_after)
WHERE m.id = new.id AND m.account_id = %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientVector:
    """A vector that the client sent, with the name of its embedding model."""

    model: str
    vector: Embedding


def fill_derived_columns(row: Memory, *, owner: Owner) -> None:
    """Set the columns that follow from owner and text. The identity defaults to the id."""
    row.account_id = owner.account_id
    row.agent_id, row.user_id, row.channel = owner.agent_id, owner.user_id, owner.channel
    row.identity = row.identity or str(row.id)
    row.content_hash, row.wording = content_hash(row.text), normalized_text_hash(row.kind, row.text)
    row.token_count = estimate_tokens(row.text)


@traced("store", attributes=lambda new: {"count": len(new), **({"kind": new[0].kind} if new else {})})
def store_memories(
    owner: Owner, rows: Sequence[M], *, embedded: EmbeddedTexts, own: Mapping[UUID, ClientVector], now: datetime
) -> list[M]:
    """Store rows of one kind and return those that are new. Rows without a vector of the current model are queued.

    `embedded` is the result of `embed_texts`, called before the transaction. `own` has vectors that clients sent, by
    row id, from `validate_vector`. Rows that exist already are ignored.
    """
    vectors: VectorsByModel = {}
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
            insert_vectors(owner.account_id, model=model, vectors=[pair for pair in found if pair[0] in stored])
        insert_participants(owner, conversation_ids=[row.conversation_id for row in new])
        if new:
            audit_store(owner, new)
    return new


def collect_vectors(row: Memory, *, own: ClientVector | None, embedded: EmbeddedTexts, into: VectorsByModel) -> bool:
    """Add the vectors of the row's text and return whether one is of the current model."""
    made = embedded.vectors.get(row.text)
    is_current = own is not None and own.model == embedded.model
    if own is not None:
        into.setdefault(own.model, []).append((row.id, own.vector))
    if made is not None and not is_current:
        into.setdefault(embedded.model, []).append((row.id, made))
    return made is not None or is_current


@dataclass(frozen=True, slots=True, kw_only=True)
class TextUpdate:
    """A new text for a locked memory, with the vector of it that the client sent."""

    row: Memory
    text: str
    own: ClientVector | None = None


def update_texts(owner: Owner, updates: Sequence[TextUpdate], *, embedded: EmbeddedTexts, now: datetime) -> None:
    """Give locked memories new texts, with a new version each, and replace their vectors.

    Memories without a vector of the current model are queued. The row objects are changed as well. Two statements, and
    one for each model of the vectors.
    """
    vectors: VectorsByModel = {}
    rows = [each.row for each in updates]
    for each in updates:
        row = each.row
        row.text, row.version, row.updated_at = each.text, row.version + 1, now
        row.content_hash, row.wording = content_hash(each.text), normalized_text_hash(row.kind, each.text)
        row.token_count = estimate_tokens(each.text)
        has_current = collect_vectors(row, own=each.own, embedded=embedded, into=vectors)
        row.embed_after, row.embed_attempts, row.embed_error = (None if has_current else now), 0, ""
    columns = ("id", "text", "content_hash", "wording", "token_count", "embed_after")
    with binary_cursor() as cursor:
        cursor.execute(
            UPDATE_TEXTS, [now, *([getattr(row, name) for row in rows] for name in columns), owner.account_id]
        )
    # of all models, since they belong to the old text
    Vector.objects.filter(account_id=owner.account_id, memory_id__in=[row.id for row in rows]).delete()
    for model, found in vectors.items():
        insert_vectors(owner.account_id, model=model, vectors=found)


def audit_store(owner: Owner, rows: Sequence[Memory]) -> None:
    """Write the audit entry of stored memories. It has no texts of slots, which the account's reasoning tier guards."""
    conversations = {row.conversation_id for row in rows}
    conversation_id = conversations.pop() if len(conversations) == 1 else ""
    record_audit(
        owner,
        operation="store",
        memory_type=spec_of(rows[0].kind).memory_type,
        affected_ids=[row.id for row in rows],
        conversation_id=conversation_id,
        session_id=conversation_id,
        result_count=len(rows),
        metadata=texts_metadata(owner, (row.text for row in rows if row.kind != Kind.TURN_SLOT)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorInput:
    """Validates the vectors that a client sends in one request. Looks up the width of each model once."""

    owner: Owner
    widths: dict[str, int | None] = field(default_factory=dict)

    def validate(self, *, model: str, vector: Embedding) -> ClientVector:
        """Return the vector at unit length, if it has the width of its model (default: the configured embedding model).

        Raises WrongVectorWidth, which names both widths, and Unprocessable for a zero or infinite vector.
        """
        model = model or embedding_provider().model
        if model not in self.widths:
            self.widths[model] = find_vector_width(self.owner, model)
        # the first vector of a model sets its width
        wanted = self.widths[model] = self.widths[model] or len(vector)
        if len(vector) != wanted:
            raise WrongVectorWidth(given=len(vector), wanted=wanted, model=model)
        exact = vector.astype(np.float64)
        norm = np.linalg.norm(exact)
        if not np.isfinite(norm) or not norm:
            raise Unprocessable("the vector has no direction: send the embedding of the text, or leave it out")
        return ClientVector(model=model, vector=(exact / norm).astype(np.float32))


def validate_vector(owner: Owner, *, model: str, vector: Embedding) -> ClientVector:
    """Validate one vector (see `VectorInput.validate`)."""
    return VectorInput(owner=owner).validate(model=model, vector=vector)


def find_vector_width(owner: Owner, model: str) -> int | None:
    """Return the width of a model's vectors, or None if the account has none of this model."""
    provider = embedding_provider()
    if model == provider.model:
        return provider.width
    # not limited to visible rows: a model has one width in the whole account, and it reveals no text
    return Vector.objects.filter(account_id=owner.account_id, model=model).values_list("width", flat=True).first()
