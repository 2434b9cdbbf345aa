"""Hybrid session memory (H1, H2): the latest messages, the summary of earlier ones, and similar past episodes.

A session is the live side of a conversation, with the same id. `MemoryManager` returns the memories of sessions, each a
`HybridMemory`. Every message is first a row of the log, so if Redis is lost, a session loses only its goal, thoughts
and values, and a saved session gets those back.

Keyed values of a session are kept by `memory.tiers.session`, its buffer of turns by `memory.tiers.session_stores`. To
add a part to the context of a session, extend `HybridContext` and the template `context/hybrid_memory.txt`.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Self

from django.template.loader import render_to_string
from redis.exceptions import RedisError

from memory import conf
from memory.errors import Unprocessable
from memory.extraction.messages import read_message
from memory.instructions import flags_of_texts
from memory.models import Conversation, Kind, Turn
from memory.owner import Owner
from memory.retrieval.queries import MAX_QUERY_CHARACTERS
from memory.retrieval.search import EpisodeHit, EpisodeResults, SearchResults
from memory.services.conversations.lifecycle import find_conversation, join_conversation
from memory.services.embedding.embed import embed_texts
from memory.services.prompt_context.quoting import clean_line, fence_block, mark_of_flags
from memory.services.recall.recall import search_helpful_episodes
from memory.services.summaries.summarize import latest_summary
from memory.services.turns import TurnDraft, resolve_writer, store_turns
from memory.tiers.base import time_of_call
from memory.tiers.session import SessionMemory
from memory.tiers.session_buffer import WITHHELD, AgentMessage
from memory.tiers.session_stores import SessionTurn, session_ref, session_store
from memory.tokens import estimate_tokens

logger = logging.getLogger(__name__)

NO_EPISODES: EpisodeResults = SearchResults(hits=(), degraded=())


class HybridContext(str):
    """The rendered context, a text, with its summary, episodes (best first), estimated tokens and `degraded`.

    `abstained` is True if there are episodes, but none that is likely enough to help.
    """

    summary: str
    items: Sequence[EpisodeHit]
    degraded: Sequence[str]
    abstained: bool

    def __new__(cls, context: str, *, summary: str, found: EpisodeResults, degraded: Sequence[str]) -> Self:
        made = super().__new__(cls, context)
        made.summary, made.items, made.degraded, made.abstained = summary, found.hits, degraded, found.abstained
        return made

    @property
    def context(self) -> str:
        """Return the text itself."""
        return str(self)

    @property
    def tokens(self) -> int:
        return estimate_tokens(self)


class HybridMemory:
    """The memory of one session as of when the manager returned it, plus what was added through it since."""

    def __init__(self, owner: Owner, conversation: Conversation) -> None:
        self._owner = owner
        self.conversation = conversation

    def add(self, message: Mapping[str, Any] | AgentMessage, *, now: datetime | None = None) -> Turn:
        """Append a chat message (`role`, `content`, …) to the log and the buffer. Raises MalformedMessage."""
        draft = TurnDraft(message=read_message(fields_of_message(message)))
        embedded = embed_texts([draft.message.text])
        conversation_id = self.conversation.conversation_id
        stored = store_turns(self._owner, conversation_id, drafts=[draft], embedded=embedded, now=time_of_call(now))
        self.conversation = stored.conversation
        return stored.turns[0]

    def get_messages(self, limit: int | None = None) -> list[SessionTurn]:
        """Return the latest messages of the buffer, oldest first; MEMORY_MAX_CONTEXT_MESSAGES by default."""
        return recent_turns(self._owner, self.conversation, conf.MAX_CONTEXT_MESSAGES if limit is None else limit)

    def get_context(
        self, query: str = "", *, limit: int = conf.EPISODES_IN_CONTEXT, now: datetime | None = None
    ) -> HybridContext:
        """Return the summary of earlier messages and the `limit` episodes most similar to `query`.

        Without a query, the user's latest message is used; without one of those, there are no episodes. Episodes are of
        other conversations of the same user and channel. There are none if none is likely enough to help.
        """
        latest = latest_summary(self._owner, self.conversation)
        text = query.strip() or latest_user_message(self._owner, self.conversation)
        found = NO_EPISODES
        if text and limit:
            found = search_helpful_episodes(
                resolve_writer(self._owner, self.conversation),
                text=text,
                top_k=limit,
                now=time_of_call(now),
                without=[latest.id] if latest else [],
                besides=[self.conversation.conversation_id],
            )
        summary = latest.text if latest else ""
        episodes = [replace(hit, summary=clean_line(mark_summary(hit.summary))) for hit in found.hits]
        # a part without content is left out
        values = {"summary": fence_block(mark_summary(summary)), "episodes": episodes}
        context = render_to_string("context/hybrid_memory.txt", values).strip()
        degraded = [*found.degraded, *summary_degraded(self.conversation)]
        return HybridContext(context, summary=summary, found=found, degraded=degraded)


def mark_summary(text: str) -> str:
    """Return a summary after the mark of orders if it gives some to the model."""
    return mark_of_flags(flags_of_texts(text, is_summary=True)) + text


def fields_of_message(message: Mapping[str, Any] | AgentMessage) -> Mapping[str, Any]:
    """Return a message as a mapping with role, content and name."""
    if not isinstance(message, AgentMessage):
        return message
    return {"role": message.role, "content": message.content, "name": message.name}


class MemoryManager:
    """The memories of sessions in which the owner takes part, and the storage of what they have only in Redis."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner

    def get_memory(self, session_id: str, *, now: datetime | None = None) -> HybridMemory:
        """Return the session's memory, created if it is new. The agent takes part in it from then on.

        A saved session that Redis has lost gets back its goal, its thoughts, and the values that would not have expired
        yet.
        """
        at = time_of_call(now)
        conversation = join_conversation(self._owner, session_id, now=at)
        restore_session(conversation, now=at)
        return HybridMemory(self._owner, conversation)

    def find_memory(self, session_id: str) -> HybridMemory:
        """Return the memory of an existing session without restoring it. Raises NotFound."""
        return HybridMemory(self._owner, find_conversation(self._owner, session_id))

    def save_memory(self, session_id: str, *, now: datetime | None = None) -> Conversation:
        """Save goal, thoughts and values, which are only in Redis, to the database. Messages are in the log anyway.

        Raises NotFound, Unprocessable for an ended conversation, RedisError.
        """
        conversation = find_conversation(self._owner, session_id)
        session = SessionMemory(session_ref(conversation))
        conversation.saved_session, conversation.saved_at = session.snapshot(), time_of_call(now)
        rows = Conversation.objects.filter(account_id=conversation.account_id, id=conversation.id, ended_at=None)
        if not rows.update(saved_session=conversation.saved_session, saved_at=conversation.saved_at):
            raise Unprocessable("the conversation has ended: it has no live session to save")
        session.mark_saved()
        return conversation

    def clear_session(self, session_id: str) -> None:
        """Delete buffer, goal, thoughts and values, saved ones too; the log stays. Raises NotFound, RedisError."""
        conversation = find_conversation(self._owner, session_id)
        rows = Conversation.objects.filter(account_id=conversation.account_id, id=conversation.id)
        rows.update(saved_session=None, saved_at=None)
        session_store().clear(conversation)
        SessionMemory(session_ref(conversation)).clear_session()

    def summarize_if_needed(self, session_id: str, *, now: datetime | None = None) -> bool:
        """Queue a summary if SUMMARY_THRESHOLD messages wait for one, and return whether one is due. Raises NotFound.

        A parked summary stays parked: request it by name (`request_summary`) to have it tried again.
        """
        conversation = find_conversation(self._owner, session_id)
        if conversation.summary_parked_at is not None:
            return False
        at = time_of_call(now)
        if conversation.turn_count - conversation.summarized_count >= conf.SUMMARY_THRESHOLD:
            # this ends the wait for an idle session, not that after a failed attempt
            rows = Conversation.objects.filter(
                account_id=conversation.account_id, id=conversation.id, summary_attempts=0, summary_parked_at=None
            )
            rows.exclude(summarize_after__lte=at).update(summarize_after=at)
            return True
        return conversation.summarize_after is not None and conversation.summarize_after <= at


def restore_session(conversation: Conversation, *, now: datetime) -> None:
    """Restore a saved session that Redis has lost. One round trip, none if nothing was saved."""
    if conversation.saved_at is None:
        return
    session = SessionMemory(session_ref(conversation))
    try:
        # the snapshot may be large: it is read and sent only if Redis has lost it
        if not session.is_saved() and conversation.saved_session is not None:
            session.restore(drop_expired_values(conversation.saved_session, saved_at=conversation.saved_at, now=now))
    except RedisError as err:
        logger.warning("session of conversation %s not restored: %s", conversation.id, type(err).__name__)


def drop_expired_values(saved: Mapping[str, Any], *, saved_at: datetime, now: datetime) -> dict[str, Any]:
    """Return the snapshot without values that have expired since, and with the remaining seconds of the others."""
    elapsed_seconds = int((now - saved_at).total_seconds())
    values = {
        name: value | {"ttl_seconds": value["ttl_seconds"] - elapsed_seconds}
        for name, value in saved["values"].items()
        if value["ttl_seconds"] > elapsed_seconds
    }
    return {**saved, "values": values}


def recent_turns(owner: Owner, conversation: Conversation, limit: int) -> list[SessionTurn]:
    """Return the latest turns of the buffer, oldest first; an owner limited to its user sees only this user's."""
    turns = session_store().recent(conversation, limit)
    if not owner.limited_to_user:
        return turns
    rows = Turn.objects.visible_to(owner, Kind.TURN).filter(id__in=[turn.id for turn in turns])
    seen = set(rows.values_list("id", flat=True))
    return [turn for turn in turns if turn.id in seen]


def latest_user_message(owner: Owner, conversation: Conversation) -> str:
    """Return the text of the user's latest message in the buffer, cut to a query's length; empty if there is none."""
    buffer = recent_turns(owner, conversation, conf.BUFFER_MESSAGES)
    texts = (turn.text for turn in reversed(buffer) if turn.role == Turn.Role.USER and turn.text != WITHHELD)
    return next(texts, "")[:MAX_QUERY_CHARACTERS]


def open_session(owner: Owner, conversation_id: str, *, now: datetime) -> SessionMemory:
    """Return the session of an existing conversation. Raises NotFound."""
    return live_session(find_conversation(owner, conversation_id), now=now)


def join_session(owner: Owner, conversation_id: str, *, now: datetime) -> SessionMemory:
    """Return the session for a write. The first write creates the conversation, and the agent takes part in it."""
    return live_session(join_conversation(owner, conversation_id, now=now), now=now)


def live_session(conversation: Conversation, *, now: datetime) -> SessionMemory:
    """Return the session, restored if it was saved and Redis has lost it."""
    restore_session(conversation, now=now)
    return SessionMemory(session_ref(conversation))


def latest_question(owner: Owner, conversation: Conversation | None) -> str:
    """Return the latest message of the conversation's user as a query; empty if there is none."""
    return "" if conversation is None else latest_user_message(owner, conversation).strip()


def summary_degraded(conversation: Conversation | None) -> list[str]:
    """Return the reason `summary_failing` if summaries of the conversation fail, or failed too often; else nothing."""
    if conversation is None:
        return []
    is_failing = bool(conversation.summary_error) or conversation.summary_parked_at is not None
    return ["summary_failing"] if is_failing else []
