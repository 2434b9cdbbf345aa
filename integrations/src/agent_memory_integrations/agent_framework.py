"""Providers of the Microsoft Agent Framework: the history of a session, and what is known from earlier ones.

`Agent(…, context_providers=[AgentMemoryHistoryProvider(client), AgentMemoryContextProvider(client)])`
"""

from collections.abc import Sequence
from typing import Any

from agent_framework import AgentSession, ContextProvider, HistoryProvider, Message, SessionContext, SupportsAgentRun
from agent_memory_client import AsyncClient

from agent_memory_integrations.turns import add_turns, cut_query, make_turn, read_last_turns, read_text, read_whole

WHOLE = "agent_framework"
MAX_RESULTS = 100
"""Results that a recall may ask for."""
OWN_RESULTS = 20
"""Results of the session itself that may come before those of others. They are left out."""
DEFAULT_PROMPT = "What is known from earlier conversations, which may help:"


class AgentMemoryHistoryProvider(HistoryProvider):
    """The messages of a session as turns of the conversation with its id."""

    def __init__(self, client: AsyncClient, source_id: str = "agent_memory_history", **options: Any) -> None:
        super().__init__(source_id, **options)
        self.client = client

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Message]:
        """Return the messages in order."""
        if not session_id:
            return []
        return [read_message(turn) for turn in await read_last_turns(self.client, session_id)]

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Message],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Append messages. Those of a run without a session are not stored."""
        turns = [make_turn(str(each.role), each.text, member=WHOLE, whole=each.to_dict()) for each in messages]
        if session_id and turns:
            await add_turns(self.client, session_id, turns)


class AgentMemoryContextProvider(ContextProvider):
    """Gives the agent what is recalled about the input, as one message. It stores nothing: the history provider does.

    Turns of the session itself are left out, since the history has them.
    """

    def __init__(
        self,
        client: AsyncClient,
        source_id: str = "agent_memory",
        *,
        top_k: int = 5,
        prompt: str = DEFAULT_PROMPT,
    ) -> None:
        super().__init__(source_id)
        self.client = client
        self.top_k = top_k
        self.prompt = prompt

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add what bears on the input."""
        query = cut_query("\n".join(message.text for message in context.input_messages if message.text))
        if not query:
            return
        # a long session has much to say about its own input
        found = (await self.client.recall(query, top_k=min(self.top_k + OWN_RESULTS, MAX_RESULTS))).results
        others = [each for each in found if not each.conversation_id or each.conversation_id != context.session_id]
        others = others[: self.top_k]
        if others:
            text = "\n".join([self.prompt, *(f"- {each.text}" for each in others)])
            origins = sorted({each.conversation_id for each in others if each.conversation_id})
            context.extend_messages(self, [Message("user", [text])], origin_session_ids=origins)


def read_message(turn: Any) -> Message:
    """Return the message of a turn, also of one of another program."""
    whole = read_whole(turn, WHOLE)
    return Message.from_dict(whole) if isinstance(whole, dict) else Message(turn.role, [read_text(turn)])
