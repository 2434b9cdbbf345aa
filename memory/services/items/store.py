"""Write items: store, replace and delete many at once. Values that are replaced stay as versions of the entry."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from memory.errors import StaleVersion, Unprocessable
from memory.models import ContextEntry, Vector
from memory.models.statements import Embedding, execute_statement
from memory.models.writer import PassageVector
from memory.owner import Owner
from memory.services.audit import write_waiting_reads
from memory.services.contexts.access_log import Action
from memory.services.contexts.entries import ITEM_SOURCE, EntryDraft, is_gone, record_writes, store_entries
from memory.services.contexts.manage import lock_context, lock_keyed_entries
from memory.services.custody.traces import erase_traces_of_deleted
from memory.services.embedding.embed import EmbeddedTexts, embed_texts, mean_of_passages
from memory.services.embedding.serving import serving_model
from memory.services.items.paths import ItemPath
from memory.services.memories.store import NewVectors, VectorInput, VectorsByModel, collect_vectors

TTL_SECONDS = "ttl_seconds"
"""Member of the metadata of an item that expires. Reads that ask for it extend the item by so much."""

MAX_TTL_SECONDS = 10 * 365 * 86_400

# with no function of a column that the session's settings may change, which a distributed database refuses
SET_TIMES = """
UPDATE memories m SET updated_at = %(now)s, embed_after = CASE WHEN new.is_indexed THEN m.embed_after END,
    expires_at = new.expires_at,
    metadata = CASE WHEN new.ttl IS NULL THEN m.metadata - 'ttl_seconds'
        ELSE m.metadata || ('{"ttl_seconds": ' || new.ttl::text || '}')::jsonb END
FROM unnest(%(ids)s::uuid[], %(ttls)s::float8[], %(expiries)s::timestamptz[], %(indexed)s::boolean[])
    AS new (id, ttl, expires_at, is_indexed)
WHERE m.account_id = %(account_id)s AND m.id = new.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDraft:
    """An item before it is stored. `texts` are what searches compare, one by one; without any it is not searched.

    `embeddings` are vectors of the texts that the client made.
    """

    path: ItemPath
    value: dict[str, Any]
    texts: Sequence[str] = ()
    embeddings: Sequence[Embedding] = ()
    ttl_seconds: float | None = None

    @property
    def content(self) -> str:
        """The text of the entry: its texts, or its path, so that nothing of an item without texts is searched."""
        return "\n".join(self.texts) or self.path.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemWrites:
    """Items to store and items to delete. A path is in one of them, once.

    `expected` are the versions that some of them must have, 0 for items that must not exist.
    """

    drafts: Sequence[ItemDraft] = ()
    deleted: Sequence[ItemPath] = ()
    embedding_model: str = field(default="")
    expected: Mapping[ItemPath, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenItems:
    """The versions of stored items, and how many were there to delete."""

    versions: Mapping[ItemPath, int]
    deleted: int


def embed_items(owner: Owner, writes: ItemWrites) -> EmbeddedTexts:
    """Return the vectors of the items' contents: given ones, or made by the configured model. Call it first.

    Raises Unprocessable and WrongVectorWidth for vectors that cannot be stored.
    """
    indexed = [draft for draft in writes.drafts if draft.texts]
    if writes.embedding_model:
        return take_given_vectors(owner, indexed, model=writes.embedding_model)
    if any(draft.embeddings for draft in indexed):
        raise Unprocessable("vectors of items need embedding_model, the name of the model that made them")
    made = embed_texts([text for draft in indexed for text in draft.texts])
    passages = dict(made.passages)
    for draft in indexed:
        if len(draft.texts) > 1 and all(text in made.vectors for text in draft.texts):
            passages[draft.content] = place_passages(draft.texts, [made.vectors[text] for text in draft.texts])
    return joined(made.model, made.width, made.vectors, passages, error=made.error)


def take_given_vectors(owner: Owner, drafts: Sequence[ItemDraft], *, model: str) -> EmbeddedTexts:
    if any(len(draft.embeddings) != len(draft.texts) for draft in drafts):
        raise Unprocessable("with embedding_model, every item has one vector for each of its texts")
    checked, passages = VectorInput(owner=owner), {}
    for draft in drafts:
        vectors = [checked.validate(model=model, vector=vector).vector for vector in draft.embeddings]
        passages[draft.content] = place_passages(draft.texts, vectors)
    width = next(iter(checked.widths.values()), None) or serving_model().provider.width
    return joined(model, width, {}, passages)


def place_passages(texts: Sequence[str], vectors: Sequence[Embedding]) -> list[PassageVector]:
    """Return the vectors of texts as passages of the texts joined by line breaks."""
    placed, start = [], 0
    for text, vector in zip(texts, vectors, strict=True):
        placed.append(PassageVector(start=start, end=start + len(text), vector=vector))
        start += len(text) + 1
    return placed


def joined(
    model: str, width: int, vectors: Mapping[str, Embedding], passages: Mapping[str, Any], *, error: str = ""
) -> EmbeddedTexts:
    """Return the vectors, and for texts with passages the mean of theirs. One passage is the whole text."""
    whole = dict(vectors) | {text: mean_of_passages(own) for text, own in passages.items()}
    several = {text: own for text, own in passages.items() if len(own) > 1}
    return EmbeddedTexts(model=model, width=width, vectors=whole, passages=several, error=error)


def store_items(
    owner: Owner, context_id: UUID, writes: ItemWrites, *, embedded: EmbeddedTexts, editor: str, now: datetime
) -> WrittenItems:
    """Store items and delete others. `embedded` comes from `embed_items`.

    Raises NotFound, Forbidden, Conflict for an archived context, TooLarge for a value, StaleVersion where an item has
    another version than the expected one.
    """
    drafts = [
        EntryDraft(content=draft.content, key=draft.path.text, value=draft.value, source=ITEM_SOURCE)
        for draft in writes.drafts
    ]
    if writes.deleted:
        write_waiting_reads(owner.account_id)
    with transaction.atomic():
        check_item_versions(owner, context_id, writes.expected, now=now)
        rows = store_entries(owner, context_id, drafts=drafts, embedded=embedded, editor=editor, now=now)
        if writes.embedding_model:
            replace_given_vectors(owner, [row for row in rows if row.updated_at < now], embedded=embedded)
        set_times(owner, rows, writes.drafts, now=now)
        deleted = delete_items(owner, context_id, writes.deleted, now=now)
    versions = {draft.path: row.version for row, draft in zip(rows, writes.drafts, strict=True)}
    return WrittenItems(versions=versions, deleted=deleted)


def check_item_versions(owner: Owner, context_id: UUID, expected: Mapping[ItemPath, int], *, now: datetime) -> None:
    """Lock these items, and raise StaleVersion if one of them has another version. No statement for no items."""
    if not expected:
        return
    locked = lock_keyed_entries(lock_context(owner, context_id), [path.text for path in expected])
    versions = {key: row.version for key, row in locked.items() if not is_gone(row, now)}
    if any(versions.get(path.text, 0) != version for path, version in expected.items()):
        raise StaleVersion("an item was changed since you read it: read it again")


def replace_given_vectors(owner: Owner, unchanged: Sequence[ContextEntry], *, embedded: EmbeddedTexts) -> None:
    """Store the vectors that a client gave for items that have their texts already, in place of those of the model."""
    vectors = VectorsByModel(NewVectors)
    for row in unchanged:
        collect_vectors(row, own=None, embedded=embedded, into=vectors)
    for model, found in vectors.items():
        held = Vector.objects.filter(account_id=owner.account_id, memory_id__in=list(found.vectors))
        held.filter(model=model).delete()
        found.store(owner.account_id, model=model, stored=found.vectors)


def set_times(owner: Owner, rows: Sequence[ContextEntry], drafts: Sequence[ItemDraft], *, now: datetime) -> None:
    """Set when items expire, and take those that are not searched out of the embedding queue.

    Two statements, none for new items that are searched and never expire.
    """
    changed = [
        (row, draft)
        for row, draft in zip(rows, drafts, strict=True)
        if row.created_at < now or draft.ttl_seconds is not None or not draft.texts
    ]
    if not changed:
        return
    execute_statement(
        SET_TIMES,
        {
            "now": now,
            "ids": [row.id for row, _ in changed],
            "ttls": [draft.ttl_seconds for _, draft in changed],
            "expiries": [draft.ttl_seconds and now + timedelta(seconds=draft.ttl_seconds) for _, draft in changed],
            "indexed": [bool(draft.texts) for _, draft in changed],
            "account_id": owner.account_id,
        },
    )
    plain = [row.id for row, draft in changed if not draft.texts]
    Vector.objects.filter(account_id=owner.account_id, memory_id__in=plain).delete()


def delete_items(owner: Owner, context_id: UUID, paths: Sequence[ItemPath], *, now: datetime) -> int:
    if not paths:
        return 0
    context = lock_context(owner, context_id)
    held = [row for row in lock_keyed_entries(context, [path.text for path in paths]).values() if not row.archived]
    rows = ContextEntry.objects.filter(account_id=owner.account_id, id__in=[row.id for row in held])
    rows.update(archived=True, version=F("version") + 1, updated_at=now)
    if held:
        erase_traces_of_deleted(owner, [row.id for row in held])
        record_writes(owner, held, action=Action.ARCHIVE, now=now)
    return len(held)
