"""Search in persistent contexts (P5), a recall of context entries alone; and the facts that an agent holds to be true.

Such facts are entries of type fact in the agent's own context, `agent_memory`: their functions raise Unprocessable
without an agent.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from memory.audit import is_verbose
from memory.errors import Conflict, Unprocessable
from memory.masking import masks_secrets
from memory.models import ContextEntry, Kind
from memory.owner import Owner
from memory.providers.passages import MAX_PASSAGE_TOKENS
from memory.retrieval.kind_searches import EntryResults, read_entry_hits
from memory.retrieval.queries import Query
from memory.retrieval.search import SearchResults
from memory.services.audit import count_other_channels, record_read
from memory.services.contexts.access_log import Action, log_reads
from memory.services.contexts.entries import EntryDraft, store_entries
from memory.services.contexts.manage import ensure_own_context, find_own_context, lock_context, lock_keyed_entries
from memory.services.embedding.embed import embed_texts
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, recall, serialize_search_details

FACT = ContextEntry.EntryType.FACT.value
WITHOUT_DEDUPLICATION = ("-duplicates",)
"""Entries with the same text are different entries: they have keys, types and contexts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryQuestion:
    """A question to entries, restricted to these contexts and entry types if any are given."""

    text: str
    top_k: int = 10
    own: ClientVector | None = None
    contexts: Collection[UUID] = ()
    types: Collection[str] = ()
    techniques: Collection[str] = ()
    """Techniques as in `choose_plan`."""
    max_snippet_tokens: int = MAX_PASSAGE_TOKENS
    whole: bool = False
    min_score: float | None = None
    """Least likelihood that an entry helps, as in `Query`."""


def find_entries(owner: Owner, asked: EntryQuestion, *, now: datetime) -> EntryResults:
    """Return the entries that answer best, from readable contexts that are not archived, and log the search."""
    found = recall_entries(owner, asked, now=now)
    record_entry_search(owner, asked, found, now=now)
    return found


def recall_entries(owner: Owner, asked: EntryQuestion, *, now: datetime) -> EntryResults:
    """Search without logging, so that the answer can be sent before `record_entry_search` is called."""
    query = Query(
        text=asked.text,
        top_k=asked.top_k,
        kinds=[Kind.CONTEXT_ENTRY],
        contexts=list(asked.contexts),
        types=list(asked.types),
        max_snippet_tokens=asked.max_snippet_tokens,
        whole=asked.whole,
        min_score=asked.min_score,
    )
    techniques = [*asked.techniques, *WITHOUT_DEDUPLICATION]
    bundle = recall(owner, RecallRequest(query=query, own=asked.own, techniques=techniques), now=now)
    return SearchResults(hits=read_entry_hits(owner, bundle.results), degraded=bundle.degraded, usage=bundle.usage)


def record_entry_search(owner: Owner, asked: EntryQuestion, found: EntryResults, *, now: datetime) -> None:
    """Add the found entries to the access log, which counts reads, and to the audit log if it keeps reads."""
    log_reads(owner, [(hit.context_id, hit.id) for hit in found.hits], action=Action.SEARCH, now=now)
    record_read(
        owner,
        memory_type="semantic",
        affected_ids=[hit.id for hit in found.hits],
        target_channels=list(owner.channels),
        query_text=asked.text,
        result_count=len(found.hits),
        cross_channel_count=count_other_channels(owner, [hit.channel for hit in found.hits]),
        metadata=search_metadata(asked, found) if is_verbose(owner) else {},
    )


def search_metadata(asked: EntryQuestion, found: EntryResults) -> dict[str, Any]:
    """Return the parameters of the search, and the score of each entry."""
    return {
        **serialize_search_details(found.hits, top_k=asked.top_k),
        "kinds": [str(Kind.CONTEXT_ENTRY)],
        "techniques": list(asked.techniques),
    }


@masks_secrets
def store_fact(owner: Owner, draft: EntryDraft, *, now: datetime) -> ContextEntry:
    """Store a fact; an existing key gets its next version. Do not call it in a transaction: embedding takes time.

    Raises Conflict if an entry of another type has the key, and while the context is archived; TooLarge.
    """
    fact = replace(draft, entry_type=FACT, memory_type=ContextEntry.MemoryType.FACTUAL.value)
    made = embed_texts([] if fact.own else [fact.text])
    with transaction.atomic():
        context = lock_context(owner, ensure_own_context(owner, now=now).id)
        taken = lock_keyed_entries(context, [fact.key] if fact.key else [])
        if any(entry.entry_type != FACT for entry in taken.values()):
            raise Conflict("an entry of another type has this key: choose another key, or remove that entry first")
        [stored] = store_entries(owner, context.id, drafts=[fact], embedded=made, now=now)
    return stored


def search_facts(
    owner: Owner, query: str, *, top_k: int = 10, own: ClientVector | None = None, now: datetime
) -> EntryResults:
    """Return the facts that answer the query best; entries of other types do not compete."""
    if not owner.agent_id:
        raise Unprocessable("long-term memory belongs to an agent: name an agent_id")
    contexts = list(find_own_context(owner).values_list("id", flat=True))
    if not contexts:
        return SearchResults(hits=[], degraded=[])
    asked = EntryQuestion(text=query, top_k=top_k, own=own, contexts=contexts, types=[FACT])
    return find_entries(owner, asked, now=now)
