"""Episodes (A3, A5): storing them, and finding those that are summaries of conversations.

Summaries are made by the service, or by imports of whole conversations. Each names the conversation's primary key in
its metadata, since the client's id may come to belong to another conversation. A summary is stored as one copy for each
agent that takes part.
"""

import json
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Now

from memory.audit import record_audit
from memory.masking import masks_secrets
from memory.models import Conversation, EpisodicMemory, Kind, Memory
from memory.owner import Owner
from memory.providers.digests import Digest
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.correct import mark_rows
from memory.services.memories.lifecycle import lock_conversations
from memory.services.memories.store import MemoryDraft, own_vectors, store_memories
from memory_project.ids import uuid7

SOURCE = "summary"
SOURCE_OF_IMPORTS = "import"
SUMMARIES = (SOURCE, SOURCE_OF_IMPORTS)
LOG = "log"
"""Key in a summary's metadata for the primary key of the conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpisodeDraft(MemoryDraft):
    """An episode before it is stored. A draft with the `identity` of a stored episode is not stored again."""

    conversation_id: str
    summary: str
    key_decisions: Sequence[Any] = ()
    entities_mentioned: Sequence[Any] = ()
    tools_called: Sequence[Any] = ()
    identity: str = ""


@masks_secrets
def store_episodes(
    owner: Owner, *, drafts: Sequence[EpisodeDraft], embedded: EmbeddedTexts, now: datetime
) -> list[EpisodicMemory]:
    """Store episodes and return the new ones. Embed their summaries first (`embed_texts`), outside transactions."""
    rows = [
        EpisodicMemory(
            kind=Kind.EPISODE,
            identity=draft.identity,
            conversation_id=draft.conversation_id,
            text=draft.summary,
            key_decisions=list(draft.key_decisions),
            entities_mentioned=list(draft.entities_mentioned),
            tools_called=list(draft.tools_called),
            **draft.shared_columns(now=now),
        )
        for draft in drafts
    ]
    return store_memories(owner, rows, embedded=embedded, own=own_vectors(drafts), now=now)


def episodes_of_conversation(owner: Owner, conversation_id: str, *, now: datetime) -> QuerySet[EpisodicMemory]:
    """Return the episodes of a conversation, in any channel, that a search could return."""
    return EpisodicMemory.objects.visible_to(owner, Kind.EPISODE).live(now).in_conversation(conversation_id)


def live_summaries(
    account_id: UUID, conversation_ids: Sequence[str], *, among: QuerySet[Conversation]
) -> QuerySet[EpisodicMemory]:
    """Return every copy of a current summary of these conversations that are in `among`."""
    own = among.alias(key=Cast("id", TextField())).filter(
        account_id=account_id, conversation_id=OuterRef("conversation_id"), key=OuterRef(LOG)
    )
    rows = summary_episodes(account_id, conversation_ids).filter(
        # the database's clock, since callers need not pass a time
        Q(expires_at=None) | Q(expires_at__gt=Now()),
        Exists(own),
        archived=False,
        quarantined=False,
        buried=False,
    )
    return cast("QuerySet[EpisodicMemory]", rows)


def current_summaries(
    account_id: UUID, conversation_ids: Sequence[str], *, among: QuerySet[Conversation]
) -> QuerySet[EpisodicMemory]:
    """Return the latest summary of each conversation, as its most corrected copy.

    A summary of which any copy is quarantined is left out.
    """
    suspect = summary_episodes(account_id, conversation_ids).filter(
        conversation_id=OuterRef("conversation_id"),
        log=OuterRef(LOG),
        created_at=OuterRef("created_at"),
        quarantined=True,
    )
    rows = live_summaries(account_id, conversation_ids, among=among).exclude(Exists(suspect))
    return rows.order_by("conversation_id", "-created_at", "-version", "-id").distinct("conversation_id")


def summary_episodes(account_id: UUID, conversation_ids: Sequence[str]) -> Any:
    """Return all episodes made as summaries, superseded ones included; the alias `log` is their conversation's key."""
    rows = EpisodicMemory.objects.alias(log=KeyTextTransform(LOG, "metadata"))
    return rows.filter(account_id=account_id, source__in=SUMMARIES, conversation_id__in=conversation_ids)


def summaries_of_logs(account_id: UUID, logs: Collection[UUID]) -> QuerySet[EpisodicMemory]:
    """Return all copies of all summaries of these conversations, former ones included."""
    named = Conversation.objects.filter(account_id=account_id, id__in=logs).values_list("conversation_id", flat=True)
    rows = summary_episodes(account_id, list(named))
    return cast("QuerySet[EpisodicMemory]", rows.filter(log__in=[str(log) for log in logs]))


def bury_summaries(account_id: UUID, first_of_log: Mapping[UUID, int], *, now: datetime) -> set[UUID]:
    """Bury the summaries, of all agents, that may repeat a turn of these conversations from the first buried one on.

    Returns the conversations that had such a summary.
    """
    rows = summaries_of_logs(account_id, first_of_log.keys())
    covering = {
        row.id: UUID(row.metadata[LOG])
        for row in rows.filter(buried=False).only("metadata")
        if read_metadata_count(row.metadata, "last_index", default=sys.maxsize) >= first_of_log[UUID(row.metadata[LOG])]
    }
    account = Owner(account_id=account_id)
    marked = Memory.objects.filter(account_id=account_id, id__in=covering)
    if mark_rows(account, marked, mark="bury", now=now):
        record_audit(account, operation="bury", memory_type="episodic", affected_ids=list(covering))
    return set(covering.values())


def remake_summaries(
    account_id: UUID, logs: Collection[UUID], first_of_log: Mapping[UUID, int], *, now: datetime
) -> None:
    """Bury what was summarized meanwhile as well, and queue summaries in its place and in those of `logs`.

    Call it once nothing is locked: who makes a summary locks the conversation first.
    """
    with transaction.atomic():
        lock_conversations(Owner(account_id=account_id), first_of_log.keys())
        meanwhile = bury_summaries(account_id, first_of_log, now=now)
        # a conversation whose summary stays must not be summarized again: it would include itself
        summarize_again(account_id, {*logs, *meanwhile}, now=now)


def summarize_again(account_id: UUID, logs: Collection[UUID], *, now: datetime) -> None:
    """Queue summaries of all turns of these conversations, as far as they were summarized. Locks them."""
    rows = Conversation.objects.filter(account_id=account_id, id__in=logs, summarized_count__gt=0)
    rows.update(summarized_count=0, summarize_to=F("turn_count"), summarize_after=now, summary_lease_until=None)


def current_summary(conversation: Conversation) -> EpisodicMemory | None:
    """Return the summary that the next one includes."""
    this = Conversation.objects.filter(account_id=conversation.account_id, id=conversation.id)
    return current_summaries(conversation.account_id, [conversation.conversation_id], among=this).first()


def covered_turns(conversation: Conversation, summary: EpisodicMemory | None) -> int:
    """Return how many of a conversation's turns, from the first, its summary covers."""
    last_index = read_metadata_count(summary.metadata, "last_index", default=-1) if summary else -1
    return min(last_index + 1, conversation.summarized_count)


def read_metadata_count(metadata: Mapping[str, Any], name: str, *, default: int = 0) -> int:
    """Return a count in the metadata of a summary, which staff may have corrected to anything."""
    found = metadata.get(name)
    return found if isinstance(found, int) and found >= 0 else default


def store_copies(
    owner: Owner, draft: EpisodeDraft, *, agents: Sequence[str], embedded: EmbeddedTexts, now: datetime
) -> list[EpisodicMemory]:
    """Store a summary for each agent and return the new copies. Runs in the caller's transaction.

    The agent is appended to the identity. Copies of one summary are recognized by their equal `created_at`.
    """
    stored: list[EpisodicMemory] = []
    for agent_id in agents:
        identity = f"{draft.identity}:{agent_id}" if draft.identity else ""
        copy = replace(draft, id=uuid7(), identity=identity)
        stored += store_episodes(replace(owner, agent_id=agent_id), drafts=[copy], embedded=embedded, now=now)
    if len(stored) > 1:
        rows = EpisodicMemory.objects.filter(account_id=owner.account_id, id__in=[row.id for row in stored])
        rows.update(created_at=stored[0].created_at)
    return stored


def adopt_episode(
    owner: Owner, conversation: Conversation, *, identity: str, metadata: Mapping[str, Any], now: datetime
) -> bool:
    """Make the episode of an older import the conversation's summary by adding `metadata`.

    Returns False if there is no such episode or it is another conversation's.
    """
    rows = Memory.objects.filter(
        account_id=owner.account_id,
        kind=Kind.EPISODE,
        identity=identity,
        source=SOURCE_OF_IMPORTS,
        agent_id=owner.agent_id,
        user_id=conversation.user_id,
    )
    episode = rows.select_for_update(no_key=True).first()
    if episode is None or LOG in episode.metadata:
        return False
    rows.update(metadata=episode.metadata | metadata, version=F("version") + 1, updated_at=now)
    return True


def stored_digest(episode: EpisodicMemory | None) -> Digest | None:
    """Return a stored summary as a digest. Staff may have corrected its lists to hold other things than texts."""
    if episode is None:
        return None
    return Digest(
        summary=episode.text,
        key_decisions=as_texts(episode.key_decisions),
        entities_mentioned=as_texts(episode.entities_mentioned),
        tools_called=as_texts(episode.tools_called),
        source=episode.source,
    )


def as_texts(items: Any) -> tuple[str, ...]:
    listed = items if isinstance(items, list) else [items]
    return tuple(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in listed)
