"""What a corrected turn means for what repeats it: its payload, and the buffer of its session. A quarantined one, too.

A text is corrected to be rid of what it said, so nothing beside it may go on saying that. Summaries, and facts
that were extracted, are memories of their own: they are corrected, or rejected, as such.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.db import transaction
from redis.exceptions import RedisError

from memory.models import Conversation, Turn
from memory.tiers.session_stores import session_store

logger = logging.getLogger(__name__)


def spread_correction(turn_id: UUID, *, is_reworded: bool) -> None:
    """To be called in the correction's transaction. Raises RedisError: without Redis, nothing is corrected."""
    turns: Any = Turn.objects
    turn = turns.select_related("log").get(pk=turn_id)
    if is_reworded:
        turns.filter(pk=turn_id).update(payload=without_wording(turn.payload))
    forget_buffer(turn.log)


def spread_quarantine(turn_ids: Sequence[UUID]) -> None:
    """To be called in the transaction that quarantines or releases turns. Raises RedisError, and neither is done."""
    turns: Any = Turn.objects
    of_turns = turns.filter(pk__in=turn_ids).values("log_id")
    for conversation in Conversation.objects.filter(id__in=of_turns).defer("saved_session"):
        forget_buffer(conversation)


def without_wording(payload: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What ties tool calls to their results, so that the messages are still a chat: ids and names, no arguments."""
    payload = payload or {}
    kept = {name: payload[name] for name in ("tool_call_id",) if name in payload}
    if "tool_calls" in payload:
        kept["tool_calls"] = [without_arguments(call) for call in payload["tool_calls"]]
    if "function_call" in payload:
        kept["function_call"] = {"name": payload["function_call"]["name"], "arguments": "{}"}
    return kept or None


def without_arguments(call: Mapping[str, Any]) -> dict[str, Any]:
    kind = call.get("type", "function")
    emptied = {"arguments": "{}"} if kind == "function" else {"input": ""}
    return {name: call[name] for name in ("id", "type") if name in call} | {
        kind: {"name": call[kind]["name"]} | emptied
    }


def forget_buffer(conversation: Conversation) -> None:
    """The session reads the log again. Cleared before the commit, to be sure of Redis, and after it for good."""
    session_store().clear(conversation)
    transaction.on_commit(lambda: forget_again(conversation))


def forget_again(conversation: Conversation) -> None:
    try:
        session_store().clear(conversation)
    except RedisError as err:
        logger.warning("buffer of conversation %s not cleared again: %s", conversation.id, type(err).__name__)
