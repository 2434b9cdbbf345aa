"""Search in persistent contexts (P5): a recall of context entries alone."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.audit import is_verbose
from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.entries import EntryResults, read_entry_hits
from memory.retrieval.queries import Query
from memory.retrieval.search import SearchResults
from memory.services.audit import count_other_channels, record_read
from memory.services.contexts.access_log import Action, log_reads
from memory.services.memories.store import ClientVector
from memory.services.recall.recall import RecallRequest, recall
from memory.services.recall.search import serialize_search_details

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
    )
    techniques = [*asked.techniques, *WITHOUT_DEDUPLICATION]
    bundle = recall(owner, RecallRequest(query=query, own=asked.own, techniques=techniques), now=now)
    return SearchResults(hits=read_entry_hits(owner, bundle.results), degraded=bundle.degraded)


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
