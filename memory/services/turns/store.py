"""Turns: storing what was said (row, vector and session, in this order), and reading it again.

A turn's number is given under the lock of its conversation's row, so that any number of clients can append to one
conversation and none of them loses or reorders anything. What is in the log reaches the session's buffer after the
commit; where that fails, the hybrid store reads it from the log.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any, cast
from uuid import UUID

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from redis.exceptions import RedisError

from memory import conf
from memory.errors import Conflict, Unprocessable
from memory.extraction.messages import ChatMessage
from memory.models import Conversation, Kind, Turn
from memory.models.writer import insert_participants
from memory.owner import GLOBAL_CHANNEL, Owner
from memory.services.conversations.lifecycle import Opening, find_conversation, open_conversation, plan_summary
from memory.services.embedding.embed import Embedded
from memory.services.memories.store import OwnVector, store_memories
from memory.tiers.session_stores import session_store, session_turn
from memory_project.ids import uuid7

logger = logging.getLogger(__name__)

SOURCE = "agent"
CLOCK_SKEW = timedelta(minutes=5)
LONGEST_TEXT = 2_097_152
"""Characters. A content has at most half of it over HTTP; tool calls and parts are told beside it."""
LONGEST_NAME = 100
PROVABLE_IDS = 100
"""PostgreSQL uses a partial index for lists up to so long: of longer ones it does not see that none is empty."""
ADVANCED = (
    *("turn_count", "last_turn_at", "started_at", "ended_at", "cleared_at"),
    *("outcome", "archived", "consolidated_at", "patterns_extracted_at", "summarize_after", "extract_after"),
    "updated_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnDraft:
    """A turn before it is stored. `index` is where the client believes it belongs, `client_id` its own name for it."""

    message: ChatMessage
    timestamp: datetime | None = None
    index: int | None = None
    client_id: str = ""
    model: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str = SOURCE
    own: OwnVector | None = None
    id: UUID = field(default_factory=uuid7)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurns:
    """The turns in the order of their drafts, those that were there already among them; `new` are the others."""

    conversation: Conversation
    turns: Sequence[Turn]
    new: Sequence[Turn]

    @property
    def summary_is_due(self) -> bool:
        """Whether a worker should look at the conversation now."""
        due, last = self.conversation.summarize_after, self.conversation.updated_at
        return due is not None and due <= last


def store_turn(owner: Owner, conversation_id: str, *, draft: TurnDraft, embedded: Embedded, now: datetime) -> Turn:
    """`store_turns` of one."""
    return store_turns(owner, conversation_id, drafts=[draft], embedded=embedded, now=now).turns[0]


def store_turns(
    owner: Owner,
    conversation_id: str,
    *,
    drafts: Sequence[TurnDraft],
    embedded: Embedded,
    now: datetime,
    opening: Opening | None = None,
) -> StoredTurns:
    """Append turns; what was stored before (same client id, or same message at its index) is answered again.

    All or nothing. Embed their texts first (`embed_texts`), outside transactions. An ended conversation is reopened.
    Raises Conflict for an index or client id that another message has, Unprocessable for an index that jumps.
    """
    with transaction.atomic():
        conversation = open_conversation(owner, conversation_id, opening=opening or Opening(), now=now)
        stored = append_turns(owner, conversation, drafts=drafts, embedded=embedded, now=now)
        transaction.on_commit(lambda: tell_session(conversation, stored.new))
    return stored


def append_turns(
    owner: Owner,
    conversation: Conversation,
    *,
    drafts: Sequence[TurnDraft],
    embedded: Embedded,
    now: datetime,
    before: int = 0,
) -> StoredTurns:
    """`store_turns` in the caller's transaction, into an open conversation (`open_conversation`), no session told.

    Errors count the drafts from `before` on.
    """
    writer = writer_in(owner, conversation)
    turns = place_drafts(conversation, drafts, now=now, before=before)
    fresh = {turn.id: turn for turn in turns if turn.index >= conversation.turn_count}
    own = {draft.id: draft.own for draft in drafts if draft.own is not None}
    new = store_memories(writer, list(fresh.values()), embedded=embedded, own=own, now=now)
    if new:
        advance(conversation, new, now=now)
    else:
        # who sends what others sent before takes part, too
        insert_participants(owner, conversation_ids=[conversation.conversation_id])
    return StoredTurns(conversation=conversation, turns=turns, new=new)


def store_turn_stream(
    owner: Owner,
    conversation_id: str,
    *,
    batches: Iterable[tuple[Sequence[TurnDraft], Embedded]],
    now: datetime,
    opening: Opening | None = None,
) -> Iterator[StoredTurns]:
    """`store_turns` batch by batch in the caller's transaction: all of it, or nothing, once it is read to its end.

    No more than a batch and what a session's buffer takes is held in memory.
    """
    conversation = open_conversation(owner, conversation_id, opening=opening or Opening(), now=now)
    latest: list[Turn] = []
    count = 0
    for drafts, embedded in batches:
        stored = append_turns(owner, conversation, drafts=drafts, embedded=embedded, now=now, before=count)
        count += len(drafts)
        latest = latest_for_session([*latest, *stored.new])
        yield stored
    transaction.on_commit(lambda: tell_session(conversation, latest))


def latest_for_session(turns: Sequence[Turn]) -> list[Turn]:
    """As many of the latest as a buffer holds. It counts its bytes itself: those of the texts are fewer."""
    latest = turns[-conf.BUFFER_MESSAGES :]
    sizes = accumulate(len(turn.text) for turn in reversed(latest))
    fitting = sum(1 for size in sizes if size <= conf.BUFFER_BYTES)
    return list(latest[-max(1, fitting) :])


def writer_in(owner: Owner, conversation: Conversation) -> Owner:
    """A turn whose writer names no user or channel has its conversation's."""
    channel = conversation.channel if owner.channel == GLOBAL_CHANNEL else owner.channel
    return replace(owner, user_id=owner.user_id or conversation.user_id, channel=channel)


def place_drafts(
    conversation: Conversation, drafts: Sequence[TurnDraft], *, now: datetime, before: int = 0
) -> list[Turn]:
    """A turn for each draft: the stored one where it was sent before, else a new one with the next number."""
    known = find_known(conversation, drafts)
    by_index = {turn.index: turn for turn in known}
    by_client_id = {turn.client_id: turn for turn in known if turn.client_id}
    turns: list[Turn] = []
    following = conversation.turn_count
    for position, draft in enumerate(drafts, before):
        check_draft(draft, position=position, now=now)
        turn = find_same(draft, position=position, by_index=by_index, by_client_id=by_client_id)
        if turn is None:
            if draft.index is not None and draft.index != following:
                raise Unprocessable(f"turns[{position}]: index {draft.index} jumps, the next is {following}")
            turn = new_turn(conversation, draft, index=following, now=now)
            by_index[following] = turn
            if draft.client_id:
                by_client_id[draft.client_id] = turn
            following += 1
        turns.append(turn)
    return turns


def check_draft(draft: TurnDraft, *, position: int, now: datetime) -> None:
    """Raises Unprocessable for what the log cannot keep, whoever brings it: the edges refuse it more kindly."""
    text, timestamp = draft.message.text, draft.timestamp
    wrong = ""
    if len(text) > LONGEST_TEXT or "\x00" in text:
        wrong = f"its text has more than {LONGEST_TEXT} characters, or holds a NUL"
    elif any(len(name) > LONGEST_NAME or "\x00" in name for name in (draft.message.name, draft.model, draft.client_id)):
        wrong = f"name, model and client_id have at most {LONGEST_NAME} characters and no NUL"
    elif timestamp is not None and (timestamp.tzinfo is None or timestamp > now + CLOCK_SKEW):
        wrong = "its timestamp has no zone, or lies in the future"
    if wrong:
        raise Unprocessable(f"turns[{position}]: {wrong}")


def find_known(conversation: Conversation, drafts: Sequence[TurnDraft]) -> list[Turn]:
    """The stored turns that the drafts may mean, perhaps twice. No query where they name none."""
    indexes = [draft.index for draft in drafts if draft.index is not None and draft.index < conversation.turn_count]
    client_ids = [draft.client_id for draft in drafts if draft.client_id and conversation.turn_count]
    rows: Any = Turn.objects.filter(log=conversation)
    known: list[Turn] = list(rows.filter(index__in=indexes)) if indexes else []
    for start in range(0, len(client_ids), PROVABLE_IDS):
        known += rows.filter(client_id__in=client_ids[start : start + PROVABLE_IDS])
    return known


def find_same(
    draft: TurnDraft, *, position: int, by_index: dict[int, Turn], by_client_id: dict[str, Turn]
) -> Turn | None:
    """The turn that the draft is again, if it is. Raises Conflict where another message has its name or place."""
    named = by_client_id.get(draft.client_id) if draft.client_id else None
    if named is not None:
        if not is_same(draft, named) or draft.index not in (None, named.index):
            raise Conflict(f"turns[{position}]: its client_id belongs to another message, at index {named.index}")
        return named
    placed = by_index.get(draft.index) if draft.index is not None else None
    if placed is not None and (not is_same(draft, placed) or (draft.client_id and placed.client_id)):
        raise Conflict(f"turns[{position}]: index {placed.index} is taken by another message")
    return placed


def is_same(draft: TurnDraft, turn: Turn) -> bool:
    message = draft.message
    sent = (message.role, message.text, without_timestamp(message.payload))
    return sent == (turn.role, turn.text, without_timestamp(turn.payload))


def without_timestamp(payload: dict[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (payload or {}).items() if name != "timestamp"}


def new_turn(conversation: Conversation, draft: TurnDraft, *, index: int, now: datetime) -> Turn:
    return Turn(
        id=draft.id,
        kind=Kind.TURN,
        identity=f"{conversation.conversation_id}:{index}",
        conversation_id=conversation.conversation_id,
        log=conversation,
        index=index,
        role=draft.message.role,
        name=draft.message.name,
        text=draft.message.text,
        payload=draft.message.payload,
        model=draft.model,
        client_id=draft.client_id,
        metadata=draft.metadata,
        event_time=draft.timestamp or now,
        source=draft.source,
    )


def advance(conversation: Conversation, new: Sequence[Turn], *, now: datetime) -> None:
    """What new turns mean for their conversation: it is open, and what was made of it is out of date."""
    times = [turn.event_time for turn in new]
    if not conversation.turn_count:
        conversation.started_at = min(times)
    conversation.turn_count += len(new)
    conversation.last_turn_at = max([*times, *filter(None, [conversation.last_turn_at])])
    conversation.ended_at = conversation.cleared_at = None
    conversation.outcome, conversation.archived = "", False
    conversation.consolidated_at = conversation.patterns_extracted_at = None
    conversation.updated_at = now
    plan_summary(conversation, now=now)
    # since the first turn that nobody looked through; what failed waits as told, what is parked for ever
    if conversation.extract_parked_at is None:
        conversation.extract_after = conversation.extract_after or now
    conversation.save(update_fields=ADVANCED)


def tell_session(conversation: Conversation, new: Sequence[Turn]) -> None:
    """The turns are safe by now: a session that cannot be told reads them from the log later."""
    try:
        session_store().append(conversation, [session_turn(turn) for turn in new])
    except (RedisError, DatabaseError) as err:
        logger.warning("session of conversation %s not told: %s", conversation.id, type(err).__name__)


def turns_of_conversation(owner: Owner, conversation_id: str) -> QuerySet[Turn]:
    """All turns, whatever became of them since. Raises NotFound."""
    # whoever may see the conversation may see its turns: asked once, and the numbers' own index gives the order
    conversation = find_conversation(owner, conversation_id)
    rows: Any = Turn.objects.filter(log=conversation)
    return cast("QuerySet[Turn]", rows)


def get_conversation(owner: Owner, conversation_id: str) -> list[Turn]:
    """The whole log, first turn first. Raises NotFound."""
    return list(turns_of_conversation(owner, conversation_id).order_by("index"))


def get_recent_turns(owner: Owner, *, hours: float, limit: int, now: datetime) -> list[Turn]:
    """The latest turns of the last `hours` in the owner's channels, newest first; with a user, that user's only."""
    rows = visible_turns(owner).filter(channel__in=owner.channels, archived=False, quarantined=False)
    if owner.user_id:
        rows = rows.filter(user_id=owner.user_id)
    since = now - timedelta(hours=hours)
    return list(rows.filter(event_time__gt=since).order_by("-event_time", "-index", "-id")[:limit])


def visible_turns(owner: Owner) -> QuerySet[Turn]:
    rows: Any = Turn.objects.visible_to(owner, Kind.TURN)
    return cast("QuerySet[Turn]", rows)
