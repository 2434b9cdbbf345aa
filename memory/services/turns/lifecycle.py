"""Hooks for turns that are corrected, quarantined or released: their payloads and the buffers of their sessions.

A text is corrected to be rid of what it said, so nothing next to it may go on saying it. Summaries and extracted facts
are memories of their own: they are corrected or rejected as such.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from redis.exceptions import RedisError

from memory.errors import Unprocessable
from memory.models import Conversation, Kind, Memory, Turn
from memory.services.memories.lifecycle import Lifecycle
from memory.tiers.session_stores import session_store

logger = logging.getLogger(__name__)

turn_rows: Any = Turn._default_manager


class TurnLifecycle(Lifecycle):
    """Turns, which are the log of a conversation."""

    def prepare(self) -> None:
        """Refuse to leave a gap in a conversation."""
        visible = Memory.objects.visible_to(self.owner, Kind.TURN)
        if self.operation.is_erasure and visible.filter(id__in=self.memory_ids).exists():
            raise Unprocessable("a turn is erased only with its conversation: correct its text to remove what it says")

    def propagate(self, rows: Sequence[Memory]) -> None:
        """Clear payloads and buffers. Raises RedisError: without Redis, nothing is corrected or marked."""
        columns, turn_ids = self.operation.columns, [row.id for row in rows]
        is_update = self.operation.name == "update"
        if is_update and "text" in columns:
            for turn in turn_rows.filter(pk__in=turn_ids):
                turn_rows.filter(pk=turn.pk).update(payload=strip_payload_text(turn.payload))
        if is_update or "quarantined" in columns:
            clear_session_buffers(turn_ids)


def strip_payload_text(payload: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return only what ties tool calls to their results (ids and names), so that the messages are still a chat."""
    payload = payload or {}
    kept = {name: payload[name] for name in ("tool_call_id",) if name in payload}
    if "tool_calls" in payload:
        kept["tool_calls"] = [strip_arguments(call) for call in payload["tool_calls"]]
    if "function_call" in payload:
        kept["function_call"] = {"name": payload["function_call"]["name"], "arguments": "{}"}
    return kept or None


def strip_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    kind = call.get("type", "function")
    emptied = {"arguments": "{}"} if kind == "function" else {"input": ""}
    return {name: call[name] for name in ("id", "type") if name in call} | {
        kind: {"name": call[kind]["name"]} | emptied
    }


def clear_session_buffers(turn_ids: Sequence[UUID]) -> None:
    """Have the sessions of turns read the log again.

    Buffers are cleared before the commit, to be sure that Redis answers, and after it, since a reader may refill them.
    """
    logs = turn_rows.filter(pk__in=turn_ids).values("log_id")
    conversations = list(Conversation.objects.filter(id__in=logs).defer("saved_session"))
    for conversation in conversations:
        session_store().clear(conversation)
    transaction.on_commit(lambda: clear_buffers_again(conversations))


def clear_buffers_again(conversations: Sequence[Conversation]) -> None:
    for conversation in conversations:
        try:
            session_store().clear(conversation)
        except RedisError as err:
            logger.warning("buffer of conversation %s not cleared again: %s", conversation.id, type(err).__name__)
