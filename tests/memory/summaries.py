"""Summaries for tests, and what tests read of them."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from memory.models import Conversation, EpisodicMemory, Link
from memory.owner import Owner
from memory.services.account_walk import BatchReport
from memory.services.conversations.lifecycle import join_conversation
from memory.services.embedding.embed import embed_texts
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory.services.summaries.summarize import summarize_due
from tests.memory.episodes import NOW

NOTHING_DUE = BatchReport(examined=0, changed=0)
ONE_STORED = BatchReport(examined=1, changed=1)


def summarize(now: datetime = NOW) -> BatchReport:
    """Summarize what is due, and return the report without its figures."""
    return replace(summarize_due(now=now, limit=4), figures={})


def remember_summary(owner: Owner, text: str, *, conversation_id: str = "c1") -> None:
    """Store a summary of the conversation, which is created if it does not exist."""
    log = join_conversation(owner, conversation_id, now=NOW)
    draft = EpisodeDraft(conversation_id=conversation_id, summary=text, source="summary", metadata={"log": str(log.id)})
    store_episodes(owner, drafts=[draft], embedded=embed_texts([text]), now=NOW)


def conversation(conversation_id: str = "c1") -> Conversation:
    return Conversation.objects.get(conversation_id=conversation_id)


def progress(conversation_id: str = "c1") -> tuple[int, int, int]:
    """Return how many turns there are, are summarized, and precede the buffer."""
    row = conversation(conversation_id)
    return row.turn_count, row.summarized_count, row.buffer_from


def summaries(**filters: Any) -> list[EpisodicMemory]:
    """Return all summaries ever stored, oldest first."""
    rows = EpisodicMemory.objects.filter(source="summary", **filters).order_by("created_at", "id")
    return list(rows)


def covered(row: EpisodicMemory) -> tuple[int, int, int]:
    return row.metadata["first_index"], row.metadata["last_index"], row.metadata["turns"]


def superseding() -> list[tuple[Any, Any]]:
    return list(Link.objects.filter(type="SUPERSEDES").values_list("source_id", "target_id"))
