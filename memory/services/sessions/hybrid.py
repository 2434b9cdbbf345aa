"""Hybrid session memory (H1, H2): the latest messages, the summary of what came before, and similar past episodes.

A session is the live side of a conversation, under the same id. `MemoryManager` hands out the memories of sessions,
`HybridMemory` is one of them. Every message is a row of the log first, so that a lost Redis costs a session nothing
but goal, thoughts and values; those a saved session gets back.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.template.loader import render_to_string
from redis.exceptions import RedisError

from memory import conf
from memory.errors import NotFound, Unprocessable
from memory.extraction.messages import read_message
from memory.models import Conversation, Turn
from memory.owner import Owner
from memory.retrieval.episodes import EpisodeHit, EpisodesFound
from memory.retrieval.search import Found
from memory.services.conversations.lifecycle import find_conversation, join_conversation
from memory.services.embedding.embed import embed_texts
from memory.services.prompt_context.fence import fence_block, one_line
from memory.services.recall.search import LONGEST_QUERY, find_episodes
from memory.services.summaries.summarize import latest_summary
from memory.services.turns.store import TurnDraft, store_turns, writer_in
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import SessionTurn, place_of, session_store
from memory.tiers.session_turns import WITHHELD
from memory.tokens import estimate_tokens

logger = logging.getLogger(__name__)

NOTHING_FOUND: EpisodesFound = Found(hits=(), degraded=())


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
        conversation_id = self._conversation.conversation_id
        stored = store_turns(self._owner, conversation_id, drafts=[draft], embedded=embedded, now=now)
        self._conversation = stored.conversation
        return stored.turns[0]

    def get_messages(self, limit: int = conf.MAX_CONTEXT_MESSAGES) -> list[SessionTurn]:
        """The latest messages of the buffer, oldest first."""
        return session_store().recent(self._conversation, limit)

    def get_context(self, query: str = "", *, limit: int = conf.EPISODES_IN_CONTEXT, now: datetime) -> HybridContext:
        """The summary of what came before, and the `limit` episodes of other conversations most similar to `query`.

        Without a query, to the latest message of the user; where there is none either, no episodes. They are those
        of the conversation's own user and channel.
        """
        latest = latest_summary(self._owner, self._conversation)
        asked = query.strip() or latest_message_of_user(self._conversation)
        found = NOTHING_FOUND
        if asked and limit:
            found = find_episodes(
                writer_in(self._owner, self._conversation),
                text=asked,
                top_k=limit,
                own=None,
                now=now,
                without=[latest.id] if latest else [],
                besides=[self._conversation.conversation_id],
            )
        summary = latest.text if latest else ""
        text = lay_out(summary, found.hits)
        tokens = estimate_tokens(text)
        return HybridContext(context=text, summary=summary, items=found.hits, tokens=tokens, degraded=found.degraded)


class MemoryManager:
    """Hands out the memories of the sessions in which the owner takes part, and keeps what they have in Redis alone."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def get_memory(self, session_id: str, *, now: datetime) -> HybridMemory:
        """The session's memory; made where there is none, and the agent takes part in it from then on.

        A saved session that Redis has lost since gets back its goal, its thoughts, and the values that would not have
        expired by now.
        """
        conversation = join_conversation(self._owner, session_id, now=now)
        restore_session(conversation, now=now)
        return HybridMemory(self._owner, conversation)

    def find_memory(self, session_id: str) -> HybridMemory:
        """The memory of a session that there is; nothing is restored. Raises NotFound."""
        return HybridMemory(self._owner, find_conversation(self._owner, session_id))

    def save_memory(self, session_id: str, *, now: datetime) -> Conversation:
        """Keep goal, thoughts and values in the database: they are in Redis alone, messages are in the log anyway.

        Raises NotFound, Unprocessable for an ended conversation, RedisError.
        """
        conversation = find_conversation(self._owner, session_id)
        session = SessionMemory(place_of(conversation))
        conversation.saved_session, conversation.saved_at = session.snapshot(), now
        rows = Conversation.objects.filter(id=conversation.id, ended_at=None)
        if not rows.update(saved_session=conversation.saved_session, saved_at=now):
            raise Unprocessable("the conversation has ended: it has no live session to save")
        session.mark_saved()
        return conversation

    def clear_session(self, session_id: str) -> None:
        """Forget buffer, goal, thoughts and values, saved ones too; the log stays. Raises NotFound, RedisError."""
        conversation = find_conversation(self._owner, session_id)
        Conversation.objects.filter(id=conversation.id).update(saved_session=None, saved_at=None)
        session_store().clear(conversation)
        SessionMemory(place_of(conversation)).clear_session()

    def summarize_if_needed(self, session_id: str, *, now: datetime) -> bool:
        """Queue a summary where SUMMARY_THRESHOLD messages wait for one; True if one is due. Raises NotFound.

        One that is parked stays so: asking for it by name (`request_summary`) has it tried again.
        """
        conversation = find_conversation(self._owner, session_id)
        if conversation.summary_parked_at is not None:
            return False
        if conversation.turn_count - conversation.summarized_count >= conf.SUMMARY_THRESHOLD:
            # a wait after a failed attempt stays, that for an idle session does not
            rows = Conversation.objects.filter(id=conversation.id, summary_attempts=0, summary_parked_at=None)
            rows.exclude(summarize_after__lte=now).update(summarize_after=now)
            return True
        return conversation.summarize_after is not None and conversation.summarize_after <= now


def restore_session(conversation: Conversation, *, now: datetime) -> None:
    """Bring a saved session back where Redis has lost it. One round trip, none where nothing was saved."""
    if conversation.saved_at is None:
        return
    session = SessionMemory(place_of(conversation))
    try:
        # the snapshot may be large: it is read, and sent, only where it is missed
        if not session.is_saved() and conversation.saved_session is not None:
            session.restore(what_is_left(conversation.saved_session, saved_at=conversation.saved_at, now=now))
    except RedisError as err:
        logger.warning("session of conversation %s not restored: %s", conversation.id, type(err).__name__)


def what_is_left(saved: Mapping[str, Any], *, saved_at: datetime, now: datetime) -> dict[str, Any]:
    """The snapshot without the values that have expired since, and the others with the seconds that are left."""
    passed_seconds = int((now - saved_at).total_seconds())
    left = {
        name: value | {"ttl_seconds": value["ttl_seconds"] - passed_seconds}
        for name, value in saved["values"].items()
        if value["ttl_seconds"] > passed_seconds
    }
    return {**saved, "values": left}


def latest_message_of_user(conversation: Conversation) -> str:
    """The text of the latest message in the buffer that a user wrote, as a query; empty where none did."""
    buffer = session_store().recent(conversation, conf.BUFFER_MESSAGES)
    said = (turn.text for turn in reversed(buffer) if turn.role == Turn.Role.USER and turn.text != WITHHELD)
    return next(said, "")[:LONGEST_QUERY]


def lay_out(summary: str, hits: Sequence[EpisodeHit]) -> str:
    """The documented parts; one without content is left out."""
    episodes = [replace(hit, summary=one_line(hit.summary)) for hit in hits]
    return render_to_string(
        "context/hybrid_memory.txt", {"summary": fence_block(summary), "episodes": episodes}
    ).strip()


def open_session(owner: Owner, conversation_id: str, *, now: datetime) -> SessionMemory:
    """The session of a conversation that there is. Raises NotFound."""
    return live_session(find_conversation(owner, conversation_id), now=now)


def join_session(owner: Owner, conversation_id: str, *, now: datetime) -> SessionMemory:
    """The session for a write: the conversation is made on its first, and the agent takes part from then on."""
    return live_session(join_conversation(owner, conversation_id, now=now), now=now)


def live_session(conversation: Conversation, *, now: datetime) -> SessionMemory:
    """The session, brought back first where it was saved and Redis has lost it."""
    restore_session(conversation, now=now)
    return SessionMemory(place_of(conversation))


def latest_question(owner: Owner, conversation_id: str) -> str:
    """The latest message of the conversation's user, as a query.

    Raises Unprocessable where there is none, or no such conversation for this owner.
    """
    try:
        question = latest_message_of_user(find_conversation(owner, conversation_id))
    except NotFound:
        question = ""
    if not question.strip():
        raise Unprocessable("the conversation has no message of a user that could be the query")
    return question
