"""The live side of a conversation in the in-process API (`agent_memory`): its session, its ledger, its next turns."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from ledger import store as ledger
from ledger.store import Mark
from memory import conf
from memory.agent_tiers import Clock
from memory.extraction.imported import parse_time
from memory.extraction.messages import MalformedMessage, read_message
from memory.models import Turn
from memory.owner import Owner
from memory.services.conversations.lifecycle import ConversationDefaults
from memory.services.embedding.embed import embed_texts
from memory.services.sessions.hybrid import MemoryManager, join_session, open_session
from memory.services.turns import store as turns
from memory.services.turns.store import StoredTurns, TurnDraft
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import SessionTurn
from memory_project.redis import ConversationRef

Message = Mapping[str, Any] | TurnDraft
"""A chat message (`role`, `content`, `name`, tool calls), with `timestamp` and `client_id` where it has them; or a
draft, which may say more: index, model, metadata, …"""


def append_messages(
    owner: Owner,
    conversation_id: str,
    messages: Sequence[Message],
    *,
    now: datetime,
    opening: ConversationDefaults | None = None,
) -> StoredTurns:
    """Embed and store turns (`services.turns.store_turns`). Raises MalformedMessage, a ValueError, for no message."""
    drafts = [draft_of(message) for message in messages]
    embedded = embed_texts([draft.message.text for draft in drafts if draft.own is None])
    return turns.store_turns(owner, conversation_id, drafts=drafts, embedded=embedded, now=now, defaults=opening)


def draft_of(message: Message) -> TurnDraft:
    if isinstance(message, TurnDraft):
        return message
    said, client_id = time_of(message.get("timestamp")), read_name(message, "client_id")
    read_name(message, "name")
    return TurnDraft(message=read_message(message), timestamp=said, client_id=client_id)


def read_name(message: Mapping[str, Any], field: str) -> str:
    """Empty where there is none. Raises MalformedMessage."""
    name = message.get(field)
    if name is None:
        return ""
    if not isinstance(name, str):
        raise MalformedMessage(field, "must be a text")
    return name


def time_of(timestamp: object) -> datetime | None:
    """Return a time with a zone, or parse one in ISO 8601; None stays None. Raises MalformedMessage."""
    if timestamp is None:
        return None
    try:
        return parse_time(timestamp.isoformat() if isinstance(timestamp, datetime) else timestamp)
    except ValueError as err:
        raise MalformedMessage("timestamp", str(err)) from err


class AgentSession:
    """The session of one conversation.

    Writing creates the conversation if it is new; reading an unknown one raises NotFound. Values and thoughts may be
    any JSON (see `SessionMemory`).
    """

    def __init__(self, owner: Owner, moment: Clock, conversation_id: str) -> None:
        self._owner = owner
        self._moment = moment
        self._conversation_id = conversation_id

    def add_turn(self, message: Message, *, now: datetime | None = None) -> Turn:
        """Append to the log and to the session's buffer: `AgentMemory.store_turn`."""
        return append_messages(self._owner, self._conversation_id, [message], now=self._moment(now)).turns[0]

    def get_recent_turns(self, limit: int = conf.MAX_CONTEXT_MESSAGES) -> list[SessionTurn]:
        """Return the latest turns of the buffer, oldest first."""
        return MemoryManager(self._owner).find_memory(self._conversation_id).get_messages(limit)

    def set(self, key: str, value: Any, ttl_seconds: int | None = None, *, now: datetime | None = None) -> None:
        """Store a value for `ttl_seconds`, an hour by default. Raises TooLarge, Unprocessable for one too many."""
        self._for_write(now).set(key, value, ttl_seconds)

    def get(self, key: str, *, now: datetime | None = None) -> Any:
        """Return the value; None if there is none, or no longer."""
        return self._for_read(now).get(key)

    def delete(self, key: str, *, now: datetime | None = None) -> bool:
        """Delete a value, and return whether it existed."""
        return self._for_read(now).delete(key)

    def get_context(self, *, now: datetime | None = None) -> dict[str, Any]:
        """All values that have not expired, by name."""
        return self._for_read(now).get_context()

    def clear_session(self) -> None:
        """Forget buffer, goal, thoughts and values, saved ones too; the log stays."""
        MemoryManager(self._owner).clear_session(self._conversation_id)

    def set_active_goal(self, goal_id: str, goal_description: str, *, now: datetime | None = None) -> None:
        self._for_write(now).set_active_goal(goal_id, goal_description)

    def get_active_goal(self, *, now: datetime | None = None) -> dict[str, Any] | None:
        """`goal_id` and `goal_description`, or None where there is no goal (any more)."""
        return self._for_read(now).get_active_goal()

    def clear_active_goal(self, *, now: datetime | None = None) -> bool:
        """Clear the active goal, and return whether there was one."""
        return self._for_read(now).clear_active_goal()

    def push_thought(self, thought: Any, *, now: datetime | None = None) -> None:
        """Add a thought of this agent's; the oldest one beyond SESSION_THOUGHTS goes. Raises TooLarge."""
        moment = self._moment(now)
        self._for_write(moment).push_thought(thought, self._owner.agent_id, moment)

    def get_thoughts(self, limit: int = conf.SESSION_THOUGHTS, *, now: datetime | None = None) -> list[dict[str, Any]]:
        """Return the latest thoughts of all agents, newest last: thought, agent_id and timestamp (ISO 8601)."""
        return self._for_read(now).get_thoughts(limit)

    def _for_read(self, now: datetime | None) -> SessionMemory:
        return open_session(self._owner, self._conversation_id, now=self._moment(now))

    def _for_write(self, now: datetime | None) -> SessionMemory:
        return join_session(self._owner, self._conversation_id, now=self._moment(now))


class InjectionLedger:
    """The items that were injected into one conversation, by any agent."""

    def __init__(self, owner: Owner, conversation_id: str) -> None:
        self._agent_id = owner.agent_id
        self._place = ConversationRef(account_id=owner.account_id, conversation_id=conversation_id)

    def get_all(self) -> dict[str, str]:
        """Item key to value; empty where nothing was injected."""
        return ledger.get_all(self._place)

    def check(self, item_key: str) -> str | None:
        """Return the value with which the item was marked; None if it has not been injected."""
        return ledger.check(self._place, item_key)

    def mark(self, item_key: str, value: str = ledger.DEFAULT_VALUE) -> Mark:
        """Record an injection. Atomic, so two agents cannot both be first; the first value stays."""
        return ledger.mark(self._place, item_key, value, agent_id=self._agent_id)

    def evict(self, item_key: str) -> bool:
        """Take an item out, so that it may be injected again; False where it was not in."""
        return ledger.evict(self._place, item_key, agent_id=self._agent_id)
