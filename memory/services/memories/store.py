"""Storing memories of any kind: rows, vectors, participants and the audit entry in one transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

import numpy as np
from django.db import transaction

from memory.audit import record, texts_kept
from memory.errors import Unprocessable, WrongVectorWidth
from memory.models import Kind, Memory, Vector
from memory.models.binary import Embedding, binary_cursor
from memory.models.writer import insert_memories, insert_participants, insert_vectors
from memory.owner import Owner
from memory.providers.embeddings import embedding_provider
from memory.services.duplicates.texts import wording_of
from memory.services.embedding.embed import Embedded, content_hash
from memory.tokens import estimate_tokens
from memory_project.tracing import traced

M = TypeVar("M", bound=Memory)

VectorsByModel = dict[str, list[tuple[UUID, Embedding]]]
"""The vectors of memories, by the model that they are of."""

REWORD = """
UPDATE memories m SET text = new.text, content_hash = new.content_hash, wording = new.wording,
    token_count = new.token_count, version = m.version + 1, updated_at = %s, embed_after = new.embed_after,
    embed_attempts = 0, embed_error = ''
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::bigint[], %s::int[], %s::timestamptz[])
    AS new (id, text, content_hash, wording, token_count, embed_after)
WHERE m.id = new.id AND m.account_id = %s
"""

MEMORY_TYPES = {
    **dict.fromkeys(("episode", "turn", "turn_slot", "work_episode"), "episodic"),
    "strategy": "procedural",
}
"""The documented word for a kind in the audit log; what is not named is semantic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnVector:
    """A vector that the client brought, of the model it names."""

    model: str
    vector: Embedding


def fill_derived(row: Memory, *, owner: Owner) -> None:
    """The columns that follow from owner and text. A row is its own identity unless its kind gave it another."""
    row.account_id = owner.account_id
    row.agent_id, row.user_id, row.channel = owner.agent_id, owner.user_id, owner.channel
    row.identity = row.identity or str(row.id)
    row.content_hash, row.wording = content_hash(row.text), wording_of(row.kind, row.text)
    row.token_count = estimate_tokens(row.text)


@traced("store", told=lambda new: {"count": len(new), **({"kind": new[0].kind} if new else {})})
def store_memories(
    owner: Owner, rows: Sequence[M], *, embedded: Embedded, own: Mapping[UUID, OwnVector], now: datetime
) -> list[M]:
    """Store rows of one kind; returns those that are new. Rows without a vector of the current model are queued.

    `embedded` comes from `embed_texts`, called before the transaction; `own` are vectors that clients brought,
    by row id, from `admit_vector`. Raises nothing for what is stored already.
    """
    vectors: VectorsByModel = {}
    for row in rows:
        fill_derived(row, owner=owner)
        has_current = collect_vectors(row, own=own.get(row.id), embedded=embedded, into=vectors)
        row.embed_after = None if has_current else now
        row.embed_error = "" if has_current else embedded.error
    # part of the caller's transaction where there is one
    with transaction.atomic(savepoint=False):
        new = insert_memories(rows)
        stored = {row.id for row in new}
        for model, found in vectors.items():
            insert_vectors(owner.account_id, model=model, vectors=[pair for pair in found if pair[0] in stored])
        insert_participants(owner, conversation_ids=[row.conversation_id for row in new])
        if new:
            record_store(owner, new)
    return new


def collect_vectors(row: Memory, *, own: OwnVector | None, embedded: Embedded, into: VectorsByModel) -> bool:
    """Add the vectors that there are of the row's text; whether one is of the current model."""
    made = embedded.vectors.get(row.text)
    is_current = own is not None and own.model == embedded.model
    if own is not None:
        into.setdefault(own.model, []).append((row.id, own.vector))
    if made is not None and not is_current:
        into.setdefault(embedded.model, []).append((row.id, made))
    return made is not None or is_current


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewording:
    """A locked memory, another text for it, and the vector that the client brought of that."""

    row: Memory
    text: str
    own: OwnVector | None = None


def reword_memories(owner: Owner, rewordings: Sequence[Rewording], *, embedded: Embedded, now: datetime) -> None:
    """Give locked memories other texts, each at its next version, with the vectors of those texts and no others.

    Without one of the current model they are queued for it. The rows given are changed, too. Two statements, and one
    for each model that there are vectors of.
    """
    vectors: VectorsByModel = {}
    rows = [each.row for each in rewordings]
    for each in rewordings:
        row = each.row
        row.text, row.version, row.updated_at = each.text, row.version + 1, now
        row.content_hash, row.wording = content_hash(each.text), wording_of(row.kind, each.text)
        row.token_count = estimate_tokens(each.text)
        has_current = collect_vectors(row, own=each.own, embedded=embedded, into=vectors)
        row.embed_after, row.embed_attempts, row.embed_error = (None if has_current else now), 0, ""
    columns = ("id", "text", "content_hash", "wording", "token_count", "embed_after")
    with binary_cursor() as cursor:
        cursor.execute(REWORD, [now, *([getattr(row, name) for row in rows] for name in columns), owner.account_id])
    # of whatever model: they are of what it said before
    Vector.objects.filter(account_id=owner.account_id, memory_id__in=[row.id for row in rows]).delete()
    for model, found in vectors.items():
        insert_vectors(owner.account_id, model=model, vectors=found)


def record_store(owner: Owner, rows: Sequence[Memory]) -> None:
    """The texts of slots are not kept: who may see those, the account's reasoning policy says."""
    conversations = {row.conversation_id for row in rows}
    conversation_id = conversations.pop() if len(conversations) == 1 else ""
    record(
        owner,
        operation="store",
        memory_type=MEMORY_TYPES.get(rows[0].kind, "semantic"),
        affected_ids=[row.id for row in rows],
        conversation_id=conversation_id,
        session_id=conversation_id,
        result_count=len(rows),
        metadata=texts_kept(owner, (row.text for row in rows if row.kind != Kind.TURN_SLOT)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """Lets in the vectors that a client brings in one request, which asks for the width of each model once."""

    owner: Owner
    widths: dict[str, int | None] = field(default_factory=dict)

    def admit(self, *, model: str, vector: Embedding) -> OwnVector:
        """The vector, made unit length, if it fits those of its model (the configured embedder's, if not named).

        Raises WrongVectorWidth (both widths named), Unprocessable for a vector without a direction.
        """
        model = model or embedding_provider().model
        if model not in self.widths:
            self.widths[model] = known_width(self.owner, model)
        # a model that is new here has the width of its first vector
        wanted = self.widths[model] = self.widths[model] or len(vector)
        if len(vector) != wanted:
            raise WrongVectorWidth(given=len(vector), wanted=wanted, model=model)
        exact = vector.astype(np.float64)
        norm = np.linalg.norm(exact)
        if not np.isfinite(norm) or not norm:
            raise Unprocessable("this vector has no direction: give the text's embedding, or none")
        return OwnVector(model=model, vector=(exact / norm).astype(np.float32))


def admit_vector(owner: Owner, *, model: str, vector: Embedding) -> OwnVector:
    """`Admission.admit` of one."""
    return Admission(owner=owner).admit(model=model, vector=vector)


def known_width(owner: Owner, model: str) -> int | None:
    """The width of a model's vectors: the configured embedder's, else what the account stored first."""
    provider = embedding_provider()
    if model == provider.model:
        return provider.width
    # a model is one width for the whole account, whoever stored it, and no text is revealed by it
    return Vector.objects.filter(account_id=owner.account_id, model=model).values_list("width", flat=True).first()
