"""Sessions reached through their conversations: whose they are, and the question that stands in them."""

from datetime import datetime

from memory.errors import NotFound, Unprocessable
from memory.models import Conversation
from memory.owner import Owner
from memory.services.conversations.lifecycle import find_conversation, join_conversation
from memory.services.sessions.hybrid import latest_message_of_user, restore_session
from memory.tiers.session import SessionMemory
from memory.tiers.session_stores import place_of


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
