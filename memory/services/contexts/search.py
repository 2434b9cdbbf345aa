"""Searches in persistent contexts (P5): a recall of their entries, answered with all that is known of each."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from memory.audit import is_verbose
from memory.models import Kind
from memory.owner import Owner
from memory.retrieval.entries import EntriesFound, read_entries
from memory.retrieval.queries import Query
from memory.retrieval.search import Found
from memory.services.audit.log import count_elsewhere, record_read
from memory.services.contexts.access_log import Action, log_reads
from memory.services.memories.store import OwnVector
from memory.services.recall.recall import RecallRequest, recall
from memory.services.recall.search import tell_searched

EACH_BY_ITSELF = ("-duplicates",)
"""Entries that say the same are different ones: they have keys, types and contexts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryQuestion:
    """What entries are asked for: of these contexts and entry types, where any are named."""

    text: str
    top_k: int = 10
    own: OwnVector | None = None
    contexts: Collection[UUID] = ()
    types: Collection[str] = ()
    techniques: Collection[str] = ()
    """As in `choose_plan`."""


def find_entries(owner: Owner, asked: EntryQuestion, *, now: datetime) -> EntriesFound:
    """The entries that answer best, in contexts that the owner may read and that are not archived; and note it."""
    found = recall_entries(owner, asked, now=now)
    note_search(owner, asked, found, now=now)
    return found


def recall_entries(owner: Owner, asked: EntryQuestion, *, now: datetime) -> EntriesFound:
    """As `find_entries` does, without a note: `note_search` is called once the answer is on its way."""
    query = Query(
        text=asked.text,
        top_k=asked.top_k,
        kinds=[Kind.CONTEXT_ENTRY],
        contexts=list(asked.contexts),
        types=list(asked.types),
    )
    techniques = [*asked.techniques, *EACH_BY_ITSELF]
    bundle = recall(owner, RecallRequest(query=query, own=asked.own, techniques=techniques), now=now)
    return Found(hits=read_entries(owner, bundle.results), degraded=bundle.degraded)


def note_search(owner: Owner, asked: EntryQuestion, found: EntriesFound, *, now: datetime) -> None:
    """Who found what, in the access log, whose lines count the reads; and in the audit log, where it keeps reads."""
    log_reads(owner, [(hit.context_id, hit.id) for hit in found.hits], action=Action.SEARCH, now=now)
    record_read(
        owner,
        memory_type="semantic",
        affected_ids=[hit.id for hit in found.hits],
        target_channels=list(owner.channels),
        query_text=asked.text,
        result_count=len(found.hits),
        cross_channel_count=count_elsewhere(owner, [hit.channel for hit in found.hits]),
        metadata=tell_entries_asked(asked, found) if is_verbose(owner) else {},
    )


def tell_entries_asked(asked: EntryQuestion, found: EntriesFound) -> dict[str, Any]:
    """What was asked for beside the question, and how near each entry is."""
    return {
        **tell_searched(found.hits, top_k=asked.top_k),
        "kinds": [str(Kind.CONTEXT_ENTRY)],
        "techniques": list(asked.techniques),
    }
