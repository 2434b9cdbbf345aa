"""The episodes that are summaries of conversations: ours, and those that imports make of whole conversations.

Each names the conversation's row in its metadata: the client's id may come to be another conversation's. A summary is
a copy for each agent that takes part, all stored at once.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from django.db.models import Exists, F, OuterRef, Q, QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Now

from memory.models import Conversation, EpisodicMemory, Kind, Memory
from memory.owner import Owner
from memory.providers.digests import Digest
from memory.services.embedding.embed import Embedded
from memory.services.summaries.store import EpisodeDraft, store_episodes
from memory_project.ids import uuid7

SOURCE = "summary"
SOURCE_OF_IMPORTS = "import"
SUMMARIES = (SOURCE, SOURCE_OF_IMPORTS)
LOG = "log"
"""In a summary's metadata: the id of the conversation's row."""


def live_summaries(
    account_id: UUID, conversation_ids: Sequence[str], *, among: QuerySet[Conversation]
) -> QuerySet[EpisodicMemory]:
    """Every copy that nothing has superseded, of the conversations of these ids that are among those."""
    own = among.alias(key=Cast("id", TextField())).filter(
        account_id=account_id, conversation_id=OuterRef("conversation_id"), key=OuterRef(LOG)
    )
    rows: Any = episodes(account_id, conversation_ids).filter(
        # the database's clock: readers are not asked for theirs
        Q(expires_at=None) | Q(expires_at__gt=Now()),
        Exists(own),
        archived=False,
        quarantined=False,
    )
    return cast("QuerySet[EpisodicMemory]", rows)


def current_summaries(
    account_id: UUID, conversation_ids: Sequence[str], *, among: QuerySet[Conversation]
) -> QuerySet[EpisodicMemory]:
    """The latest of each conversation, the copy that was corrected most. None of which a copy is quarantined."""
    suspect = episodes(account_id, conversation_ids).filter(
        conversation_id=OuterRef("conversation_id"),
        log=OuterRef(LOG),
        created_at=OuterRef("created_at"),
        quarantined=True,
    )
    rows = live_summaries(account_id, conversation_ids, among=among).exclude(Exists(suspect))
    return rows.order_by("conversation_id", "-created_at", "-version", "-id").distinct("conversation_id")


def episodes(account_id: UUID, conversation_ids: Sequence[str]) -> Any:
    """Whatever was made to be a summary; `log` is the row that each names."""
    rows: Any = EpisodicMemory.objects.alias(log=KeyTextTransform(LOG, "metadata"))
    return rows.filter(
        account_id=account_id, kind=Kind.EPISODE, source__in=SUMMARIES, conversation_id__in=conversation_ids
    )


def current_summary(conversation: Conversation) -> EpisodicMemory | None:
    """The one that the next summary takes in."""
    this = Conversation.objects.filter(id=conversation.id)
    return current_summaries(conversation.account_id, [conversation.conversation_id], among=this).first()


def covered_turns(conversation: Conversation, summary: EpisodicMemory | None) -> int:
    """How many of its turns, from the first on, the summary stands for."""
    last_index = number_in(summary.metadata, "last_index", default=-1) if summary else -1
    return min(last_index + 1, conversation.summarized_count)


def number_in(metadata: Mapping[str, Any], name: str, *, default: int = 0) -> int:
    """Metadata may have been corrected by staff, to say anything."""
    found = metadata.get(name)
    return found if isinstance(found, int) and found >= 0 else default


def store_copies(
    owner: Owner, draft: EpisodeDraft, *, agents: Sequence[str], embedded: Embedded, now: datetime
) -> list[EpisodicMemory]:
    """The summary for each of the agents, by which an identity ends; returns those that are new.

    In the caller's transaction. They are dated alike: that is how copies of one summary are known.
    """
    stored: list[EpisodicMemory] = []
    for agent_id in agents:
        identity = f"{draft.identity}:{agent_id}" if draft.identity else ""
        copy = replace(draft, id=uuid7(), identity=identity)
        stored += store_episodes(replace(owner, agent_id=agent_id), drafts=[copy], embedded=embedded, now=now)
    if len(stored) > 1:
        alike = stored[0].created_at
        Memory.objects.filter(id__in=[row.id for row in stored]).update(created_at=alike)
    return stored


def adopt_episode(
    owner: Owner, conversation: Conversation, *, identity: str, metadata: Mapping[str, Any], now: datetime
) -> bool:
    """Have the episode that an older import made for this owner be the conversation's summary, with what `metadata`
    says of one; False where there is none, or it is another's."""
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
    Memory.objects.filter(id=episode.id).update(
        metadata=episode.metadata | metadata, version=F("version") + 1, updated_at=now
    )
    return True


def digest_of(episode: EpisodicMemory | None) -> Digest | None:
    """A stored summary as a digest; staff may have corrected its lists to hold other things than texts."""
    if episode is None:
        return None
    return Digest(
        summary=episode.text,
        key_decisions=texts_of(episode.key_decisions),
        entities_mentioned=texts_of(episode.entities_mentioned),
        tools_called=texts_of(episode.tools_called),
        source=episode.source,
    )


def texts_of(items: Any) -> tuple[str, ...]:
    listed = items if isinstance(items, list) else [items]
    return tuple(item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in listed)
