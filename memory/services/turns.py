"""Storing turns of conversations (row, vector and session, in this order), and reading them.

A turn gets its number under the lock of its conversation's row, so any number of clients can append to one conversation
and none of them loses or reorders turns. New turns reach the session's buffer after the commit, or from the log later.

A text is corrected to be rid of what it said, so nothing next to it may go on saying it (`TurnLifecycle`). Summaries
and extracted facts are memories of their own: they are corrected or rejected as such. To add a column, extend
`TurnDraft` and `build_turn`; for imports and exports, also `conversations.import_files` and `conversations.export`.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import Min, QuerySet
from redis.exceptions import RedisError

from memory import conf
from memory.dates import has_come
from memory.errors import Conflict, Unprocessable
from memory.extraction.messages import ChatMessage
from memory.masking import mask_value, masks_secrets
from memory.models import Conversation, Kind, Memory, Turn
from memory.models.memory import make_row
from memory.models.writer import insert_participants
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.conversations.lifecycle import (
    ConversationDefaults,
    advance_conversation,
    find_conversation,
    open_conversation,
)
from memory.services.embedding.embed import EmbeddedTexts
from memory.services.memories.lifecycle import Lifecycle
from memory.services.memories.store import ClientVector, store_memories
from memory.services.summaries.store import bury_summaries, remake_summaries
from memory.tiers.session_stores import session_store, session_turn
from memory_project.batches import batched
from memory_project.ids import uuid7

logger = logging.getLogger(__name__)

SOURCE = "agent"
MAX_TEXT_CHARACTERS = 2_097_152
"""Maximum size of a turn. Over HTTP, a content has at most half of it; tool calls and parts take the rest."""
MAX_NAME_CHARACTERS = 100
MAX_INDEXED_IDS = 100
"""Longest list for which PostgreSQL uses the partial index; of longer ones it cannot prove that no id is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDraft:
    """A turn before it is stored. `index` is its expected number, `client_id` the client's own name for it.

    `place` says in errors where the client sent it, such as `messages[3]`. Default: its place among the drafts, as
    `turns[3]`.
    """

    message: ChatMessage
    timestamp: datetime | None = None
    index: int | None = None
    client_id: str = ""
    model: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str = SOURCE
    own: ClientVector | None = None
    place: str = ""
    id: UUID = field(default_factory=uuid7)

    def name_place(self, position: int) -> str:
        """Return the place for an error about the draft at this position."""
        return self.place or f"turns[{position}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurns:
    """Turns in the order of their drafts, stored before or now; `new` are those stored now."""

    conversation: Conversation
    turns: Sequence[Turn]
    new: Sequence[Turn]

    @property
    def summary_is_due(self) -> bool:
        """Return whether a worker should summarize the conversation now."""
        due, last = self.conversation.summarize_after, self.conversation.updated_at
        return due is not None and due <= last


def store_turn(owner: Owner, conversation_id: str, *, draft: TurnDraft, embedded: EmbeddedTexts, now: datetime) -> Turn:
    """Append one turn, as `store_turns` does."""
    return store_turns(owner, conversation_id, drafts=[draft], embedded=embedded, now=now).turns[0]


def store_turns(
    owner: Owner,
    conversation_id: str,
    *,
    drafts: Sequence[TurnDraft],
    embedded: EmbeddedTexts,
    now: datetime,
    defaults: ConversationDefaults | None = None,
) -> StoredTurns:
    """Append turns. A turn stored before (same client id, or same message at its index) is returned instead.

    All or nothing. Embed their texts first (`embed_texts`), outside transactions. An ended conversation is reopened.
    Raises Conflict for an index or client id that another message has, Unprocessable for an index that leaves a gap.
    """
    with transaction.atomic():
        conversation = open_conversation(owner, conversation_id, defaults=defaults or ConversationDefaults(), now=now)
        stored = append_turns(owner, conversation, drafts=drafts, embedded=embedded, now=now)
        transaction.on_commit(lambda: append_to_session(conversation, stored.new))
    return stored


@masks_secrets
def append_turns(
    owner: Owner,
    conversation: Conversation,
    *,
    drafts: Sequence[TurnDraft],
    embedded: EmbeddedTexts,
    now: datetime,
    before: int = 0,
) -> StoredTurns:
    """Append turns to an open conversation in the caller's transaction, without its session.

    Errors count the drafts from `before` on.
    """
    writer = resolve_writer(owner, conversation)
    turns = match_drafts(conversation, drafts, now=now, before=before)
    fresh = {turn.id: turn for turn in turns if turn.index >= conversation.turn_count}
    own = {draft.id: draft.own for draft in drafts if draft.own is not None}
    new = store_memories(writer, list(fresh.values()), embedded=embedded, own=own, now=now)
    if new:
        advance_conversation(conversation, new, now=now)
    else:
        # an agent that repeats the messages of others takes part as well
        insert_participants(owner, conversation_ids=[conversation.conversation_id])
    return StoredTurns(conversation=conversation, turns=turns, new=new)


def store_turn_stream(
    owner: Owner,
    conversation_id: str,
    *,
    batches: Iterable[tuple[Sequence[TurnDraft], EmbeddedTexts]],
    now: datetime,
    defaults: ConversationDefaults | None = None,
) -> Iterator[StoredTurns]:
    """Append turns batch by batch in the caller's transaction. All or nothing, once the iterator is exhausted.

    No more than one batch and the size of a session's buffer is held in memory.
    """
    conversation = open_conversation(owner, conversation_id, defaults=defaults or ConversationDefaults(), now=now)
    latest: list[Turn] = []
    count = 0
    for drafts, embedded in batches:
        stored = append_turns(owner, conversation, drafts=drafts, embedded=embedded, now=now, before=count)
        count += len(drafts)
        latest = latest_for_session([*latest, *stored.new])
        yield stored
    transaction.on_commit(lambda: append_to_session(conversation, latest))


def latest_for_session(turns: Sequence[Turn]) -> list[Turn]:
    """Return as many of the latest turns as a buffer may hold, estimated by the size of their texts."""
    latest = turns[-conf.BUFFER_MESSAGES :]
    sizes = accumulate(len(turn.text) for turn in reversed(latest))
    fitting = sum(1 for size in sizes if size <= conf.BUFFER_BYTES)
    return list(latest[-max(1, fitting) :])


def resolve_writer(owner: Owner, conversation: Conversation) -> Owner:
    """Return the owner of a turn. A writer without user or channel gets those of the conversation."""
    channel = conversation.channel if owner.channel == GLOBAL_CHANNEL else owner.channel
    return replace(owner, user_id=owner.user_id or conversation.user_id, channel=channel)


def match_drafts(
    conversation: Conversation, drafts: Sequence[TurnDraft], *, now: datetime, before: int = 0
) -> list[Turn]:
    """Return a turn for each draft: the stored one if it was sent before, else a new one with the next number."""
    known = find_stored_turns(conversation, drafts)
    by_index = {turn.index: turn for turn in known}
    by_client_id = {turn.client_id: turn for turn in known if turn.client_id}
    turns: list[Turn] = []
    following = conversation.turn_count
    for position, draft in enumerate(drafts, before):
        check_turn_draft(draft, position=position, now=now)
        turn = find_same_turn(draft, position=position, by_index=by_index, by_client_id=by_client_id)
        if turn is None:
            if draft.index is not None and draft.index != following:
                place = draft.name_place(position)
                raise Unprocessable(f"{place}: index {draft.index} leaves a gap, the next is {following}")
            turn = build_turn(conversation, draft, index=following, now=now)
            by_index[following] = turn
            if draft.client_id:
                by_client_id[draft.client_id] = turn
            following += 1
        turns.append(turn)
    return turns


def check_turn_draft(draft: TurnDraft, *, position: int, now: datetime) -> None:
    """Raise Unprocessable for what the log cannot store. The edges refuse it with more specific errors."""
    text, names, timestamp = draft.message.text, (draft.message.name, draft.model, draft.client_id), draft.timestamp
    error = ""
    if len(text) > MAX_TEXT_CHARACTERS or "\x00" in text:
        error = f"its text has more than {MAX_TEXT_CHARACTERS} characters, or contains NUL"
    elif any(len(name) > MAX_NAME_CHARACTERS or "\x00" in name for name in names):
        error = f"name, model and client_id have at most {MAX_NAME_CHARACTERS} characters and no NUL"
    elif timestamp is not None and not has_come(timestamp, now=now):
        error = "its timestamp has no zone, or lies in the future"
    if error:
        raise Unprocessable(f"{draft.name_place(position)}: {error}")


def find_stored_turns(conversation: Conversation, drafts: Sequence[TurnDraft]) -> list[Turn]:
    """Return the stored turns that the drafts may repeat, perhaps twice. No query if they name none."""
    indexes = [draft.index for draft in drafts if draft.index is not None and draft.index < conversation.turn_count]
    client_ids = [draft.client_id for draft in drafts if draft.client_id and conversation.turn_count]
    if not indexes and not client_ids:
        return []
    rows = Turn.objects.filter(account_id=conversation.account_id, log=conversation)
    known = list(rows.filter(index__in=indexes)) if indexes else []
    for some in batched(client_ids, MAX_INDEXED_IDS):
        known += rows.filter(client_id__in=some)
    return known


def find_same_turn(
    draft: TurnDraft, *, position: int, by_index: dict[int, Turn], by_client_id: dict[str, Turn]
) -> Turn | None:
    """Return the turn that the draft repeats, if any. Raises Conflict if another message has its client id or index.

    A turn that was corrected or erased since is repeated by what it was, of which only the client id is left.
    """
    named = by_client_id.get(draft.client_id) if draft.client_id else None
    if named is not None:
        is_same = named.version > 1 or is_same_message(draft, named)
        if not is_same or draft.index not in (None, named.index):
            raise Conflict(
                f"{draft.name_place(position)}: its client_id belongs to another message, at index {named.index}"
            )
        return named
    placed = by_index.get(draft.index) if draft.index is not None else None
    if placed is not None and (not is_same_message(draft, placed) or (draft.client_id and placed.client_id)):
        raise Conflict(f"{draft.name_place(position)}: index {placed.index} is taken by another message")
    return placed


def is_same_message(draft: TurnDraft, turn: Turn) -> bool:
    """Compare with the stored turn as it is, and masked: it may be older than the account's wish to mask secrets."""
    sent = [draft.message.role, draft.message.text, without_timestamp(draft.message.payload)]
    stored = [turn.role, turn.text, without_timestamp(turn.payload)]
    return sent == stored or sent == mask_value(stored)


def without_timestamp(payload: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (payload or {}).items() if name != "timestamp"}


def build_turn(conversation: Conversation, draft: TurnDraft, *, index: int, now: datetime) -> Turn:
    message = draft.message
    columns = {
        "id": draft.id,
        "account_id": conversation.account_id,
        "kind": Kind.TURN,
        "identity": f"{conversation.conversation_id}:{index}",
        "conversation_id": conversation.conversation_id,
        "log_id": conversation.id,
        "index": index,
        "role": message.role,
        "name": message.name,
        "text": message.text,
        "payload": message.payload,
        "model": draft.model,
        "client_id": draft.client_id,
        "metadata": draft.metadata,
        "event_time": draft.timestamp or now,
        "source": draft.source,
    }
    return make_row(Turn, columns)


def append_to_session(conversation: Conversation, new: Sequence[Turn]) -> None:
    """Append stored turns to the session's buffer. If that fails, the session reads them from the log later."""
    try:
        session_store().append(conversation, [session_turn(turn) for turn in new])
    except (RedisError, DatabaseError) as err:
        logger.warning("turns not appended to the session of %s: %s", conversation.id, type(err).__name__)


def turns_of_conversation(owner: Owner, conversation_id: str) -> QuerySet[Turn]:
    """Return all turns of a conversation, in any state. Raises NotFound."""
    # seeing the conversation implies seeing its turns: one check, and the index on numbers gives the order
    rows = Turn.objects.filter(account_id=owner.account_id, log=find_conversation(owner, conversation_id))
    return rows.filter(user_id=owner.user_id) if owner.limited_to_user else rows


def get_conversation(owner: Owner, conversation_id: str) -> list[Turn]:
    """Return the whole log, first turn first. Raises NotFound."""
    return list(turns_of_conversation(owner, conversation_id).order_by("index"))


def get_recent_turns(owner: Owner, *, hours: float, limit: int, now: datetime) -> list[Turn]:
    """Return the latest turns of the last `hours` in the owner's channels (with a user, only theirs), newest first."""
    rows = visible_turns(owner).filter(channel__in=owner.channels, archived=False, quarantined=False)
    if owner.user_id:
        rows = rows.filter(user_id=owner.user_id)
    since = now - timedelta(hours=hours)
    return list(rows.filter(event_time__gt=since).order_by("-event_time", "-index", "-id")[:limit])


def visible_turns(owner: Owner) -> QuerySet[Turn]:
    return Turn.objects.visible_to(owner, Kind.TURN)


class TurnLifecycle(Lifecycle):
    """Hooks for turns that are corrected or marked: their payloads, their sessions' buffers, and their summaries."""

    def prepare(self) -> None:
        """Refuse to leave a gap in a conversation."""
        visible = Memory.objects.visible_to(self.owner, Kind.TURN)
        if self.operation.is_erasure and visible.filter(id__in=self.memory_ids).exists():
            raise Unprocessable("a turn is erased only with its conversation: correct its text to remove what it says")

    def propagate(self, rows: Sequence[Memory]) -> None:
        """Clear payloads and buffers, and bury summaries that repeat buried turns.

        Raises RedisError: without Redis, nothing is corrected or marked.
        """
        columns, turn_ids = self.operation.columns, [row.id for row in rows]
        if self.operation.name == "bury":
            buried = Turn.objects.filter(account_id=self.owner.account_id, id__in=turn_ids).order_by()
            firsts = dict(buried.values_list("log_id").annotate(first=Min("index")))
            account_id, now = self.owner.account_id, self.now
            logs = bury_summaries(account_id, firsts, now=now)
            transaction.on_commit(lambda: remake_summaries(account_id, logs, firsts, now=now), robust=True)
        is_update = self.operation.name == "update"
        if is_update and "text" in columns:
            turns = Turn.objects.filter(account_id=self.owner.account_id)
            for turn_id, payload in turns.filter(id__in=turn_ids).values_list("id", "payload"):
                turns.filter(id=turn_id).update(payload=strip_payload_text(payload))
        if is_update or "quarantined" in columns:
            clear_session_buffers(self.owner, turn_ids)


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


def clear_session_buffers(owner: Owner, turn_ids: Sequence[UUID]) -> None:
    """Have the sessions of turns read the log again.

    Buffers are cleared before the commit, to be sure that Redis answers, and after it, since a reader may refill them.
    """
    logs = Turn.objects.filter(account_id=owner.account_id, id__in=turn_ids).values("log_id")
    conversations = list(Conversation.objects.filter(account_id=owner.account_id, id__in=logs).defer("saved_session"))
    for conversation in conversations:
        session_store().clear(conversation)
    transaction.on_commit(lambda: clear_buffers_again(conversations))


def clear_buffers_again(conversations: Sequence[Conversation]) -> None:
    for conversation in conversations:
        try:
            session_store().clear(conversation)
        except RedisError as err:
            logger.warning("buffer of conversation %s not cleared again: %s", conversation.id, type(err).__name__)
