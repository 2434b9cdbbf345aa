"""The LangChain chat history on the service."""

from typing import Any

from agent_memory_client import Client
from agent_memory_integrations.langchain import AgentMemoryChatHistory
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, message_to_dict

CALL = {"name": "search", "args": {"to": "FNC"}, "id": "c1", "type": "tool_call"}


def test_messages_come_back_as_they_were(client: Client) -> None:
    history = AgentMemoryChatHistory(client, "trip")
    messages = [
        SystemMessage("Be brief."),
        HumanMessage("We fly to Madeira.", additional_kwargs={"a": 1}),
        AIMessage("", tool_calls=[CALL]),
        ToolMessage("2 flights", tool_call_id="c1"),
        HumanMessage([{"type": "text", "text": "Look:"}, {"type": "image_url", "image_url": {"url": "data:x"}}]),
    ]

    history.add_messages(messages[:2])
    history.add_messages(messages[2:])

    assert AgentMemoryChatHistory(client, "trip").messages == messages


def test_what_was_said_is_recalled_and_cleared(client: Client) -> None:
    history = AgentMemoryChatHistory(client, "trip")
    history.add_user_message("We fly to Madeira on 4 May.")

    assert client.recall("When do we fly to Madeira?").results[0].text == "We fly to Madeira on 4 May."
    history.clear()
    assert history.messages == []


def test_turns_of_other_programs_are_messages_too(client: Client) -> None:
    foreign: list[Any] = ["x", {"type": "human"}, {"type": "unknown", "data": {}}, {"type": "human", "data": {"a": 1}}]
    turns = [{"role": "user", "content": "hello", "metadata": {"langchain": each}} for each in foreign]
    client.add_turns("trip", [*turns, {"role": "assistant", "content": "hi"}])

    assert AgentMemoryChatHistory(client, "trip").messages == [*[HumanMessage("hello")] * 4, AIMessage("hi")]


def test_long_messages_and_many_messages_come_back_as_they_were(client: Client) -> None:
    history = AgentMemoryChatHistory(client, "trip")
    messages = [HumanMessage("We fly to Madeira. " * 2_000), *(AIMessage(str(number)) for number in range(1_000))]

    history.add_messages(messages)

    assert history.messages == messages


def test_messages_of_former_versions_are_read(client: Client) -> None:
    message = AIMessage("", tool_calls=[CALL])
    turn = {"role": "assistant", "content": "(no text)", "metadata": {"langchain": message_to_dict(message)}}
    client.add_turns("trip", [turn])

    assert AgentMemoryChatHistory(client, "trip").messages == [message]


def test_a_turn_that_was_erased_is_no_message(client: Client) -> None:
    history = AgentMemoryChatHistory(client, "trip")
    history.add_messages([HumanMessage("My PIN is 4711."), HumanMessage("[erased]"), AIMessage("Hello.")])
    first = next(iter(client.turns("trip")))

    client.delete_conversation_turn("trip", first.id)

    assert history.messages == [HumanMessage("[erased]"), AIMessage("Hello.")]
