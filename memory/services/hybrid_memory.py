"""Hybrid session memory (H1, H2): the latest messages, the summary of what came before, and similar past episodes.

A session is the live side of a conversation, under the same id. `MemoryManager` hands out the memories of sessions,
`HybridMemory` is one of them. Every message is a row of the log first, so that a lost Redis costs a session nothing
but thoughts and values; those a saved session gets back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string

from memory import conf
from memory.extraction.messages import read_message
from memory.models import Conversation, EpisodicMemory, Kind, Turn
from memory.owner import Owner
from memory.retrieval.episodes import EpisodeHit
from memory.services.context import fence, one_line
from memory.services.conversations import find_conversation, join_conversation
from memory.services.embedding import embed_texts
from memory.services.recall import LONGEST_QUERY, find_episodes
from memory.services.turns import TurnDraft, store_turns
from memory.tiers.session_stores import SessionTurn, session_store
from memory.tokens import estimate_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class HybridContext:
    """The two parts laid out, the episodes in it (best first), its size by estimate, and what kept it from better."""

    context: str
    summary: str
    items: Sequence[EpisodeHit]
    tokens: int
    degraded: Sequence[str]


class HybridMemory:
    """The memory of one session, as of when it was got from its manager, and of what was added through it since."""

    def __init__(self, owner: Owner, conversation: Conversation) -> None:
        self._owner = owner
        self._conversation = conversation

    @property
    def conversation(self) -> Conversation:
        return self._conversation

    def add(self, message: Mapping[str, Any], *, now: datetime) -> Turn:
        """Append a chat message (`role`, `content`, …) to the log and the buffer. Raises MalformedMessage."""
        draft = TurnDraft(message=read_message(message))
        embedded = embed_texts([draft.message.text])
        stored = store_turns(
            self._owner, self._conversation.conversation_id, drafts=[draft], embedded=embedded, now=now
        )
        self._conversation = stored.conversation
        return stored.turns[0]

    def get_messages(self, limit: int = conf.MAX_CONTEXT_MESSAGES) -> list[SessionTurn]:
        """The latest messages of the buffer, oldest first."""
        return session_store().recent(self._conversation, limit)

    def get_context(self, query: str = "", *, limit: int = conf.EPISODES_IN_CONTEXT, now: datetime) -> HybridContext:
        """The summary of what came before, and the `limit` episodes of other conversations most similar to `query`.

        Without a query, to the latest message of the user; where there is none either, no episodes.
        """
        summary = latest_text(self._owner, self._conversation)
        asked = query.strip() or latest_message_of_user(self._conversation)
        hits, degraded = self._find_episodes(asked, limit=limit, now=now) if asked and limit else ((), ())
        text = lay_out(summary, hits)
        return HybridContext(context=text, summary=summary, items=hits, tokens=estimate_tokens(text), degraded=degraded)

    def _find_episodes(self, query: str, *, limit: int, now: datetime) -> tuple[Sequence[EpisodeHit], Sequence[str]]:
        found = find_episodes(
            self._owner,
            text=query,
            top_k=limit,
            own=None,
            now=now,
            besides=[self._conversation.conversation_id],
        )
        return found.hits, found.degraded


class MemoryManager:
    """Hands out the memories of the sessions in which the owner takes part."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def get_memory(self, session_id: str, *, now: datetime) -> HybridMemory:
        """The session's memory; made where there is none, and the agent takes part in it from then on."""
        conversation = join_conversation(self._owner, session_id, now=now)
        return HybridMemory(self._owner, conversation)

    def find_memory(self, session_id: str) -> HybridMemory:
        """The memory of a session that there is. Raises NotFound."""
        return HybridMemory(self._owner, find_conversation(self._owner, session_id))

    def summarize_if_needed(self, session_id: str, *, now: datetime) -> bool:
        """Queue a summary where SUMMARY_THRESHOLD messages wait for one; True if one is due. Raises NotFound."""
        conversation = find_conversation(self._owner, session_id)
        if conversation.turn_count - conversation.summarized_count >= conf.SUMMARY_THRESHOLD:
            # a wait after a failed attempt stays, an idle session's does not
            rows = Conversation.objects.filter(id=conversation.id, summary_attempts=0)
            rows.exclude(summarize_after__lte=now).update(summarize_after=now)
            return True
        return conversation.summarize_after is not None and conversation.summarize_after <= now


def latest_text(owner: Owner, conversation: Conversation) -> str:
    """The text of the conversation's latest summary, empty where it has none."""
    rows = EpisodicMemory.objects.visible_to(owner, Kind.EPISODE).in_conversation(conversation.conversation_id)
    found = rows.filter(source="summary", archived=False).order_by("-created_at", "-id").first()
    return "" if found is None else found.text


def latest_message_of_user(conversation: Conversation) -> str:
    """The text of the latest message in the buffer that a user wrote, as a query; empty where none did."""
    buffer = session_store().recent(conversation, conf.BUFFER_MESSAGES)
    return next((turn.text[:LONGEST_QUERY] for turn in reversed(buffer) if turn.role == Turn.Role.USER), "")


def lay_out(summary: str, hits: Sequence[EpisodeHit]) -> str:
    """The documented parts; one without content is left out."""
    episodes = [replace(hit, summary=one_line(hit.summary)) for hit in hits]
    values = {"summary": fence_start(fence(summary)), "episodes": episodes}
    return render_to_string("context/hybrid_memory.txt", values).strip()


def fence_start(text: str) -> str:
    """A text that begins like a heading is indented: it stands on a line of its own."""
    return f"  {text}" if text.startswith("[") else text
