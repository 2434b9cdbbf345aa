"""The Python of the agent memory manager, as a user would type it."""

import pytest
from django.test import override_settings

from memory.documented.sessions import AgentMessage, MemoryManager
from memory.models import Conversation, Turn
from memory.owner import Owner
from memory.services.sessions import MemoryManager as SynchronousManager
from tests.documents_python.conftest import run
from tests.memory.summaries import remember_summary

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("empty_redis", "embedding_server")]


def test_a_session_is_remembered_saved_and_summarized(owner: Owner) -> None:
    async def work() -> list[str]:
        manager = MemoryManager(owner)
        memory = await manager.get_memory("s1")
        for number in range(50):
            memory.add(AgentMessage(role="user", content=f"message {number}"))
        assert memory.get_context() == ""
        await manager.save_memory("s1")
        await manager.summarize_if_needed("s1")
        return [message.content for message in memory.get_messages(limit=2)]

    assert run(work) == ["message 48", "message 49"]
    conversation = Conversation.objects.get()
    assert (conversation.turn_count, conversation.summarize_after is not None) == (50, True)


def test_messages_are_twenty_by_default_as_the_settings_say(owner: Owner) -> None:
    async def work() -> tuple[int, int]:
        memory = await MemoryManager(owner).get_memory("s1")
        for number in range(30):
            memory.add({"role": "user", "content": f"message {number}"})
        default = len(memory.get_messages())
        with override_settings(MEMORY_MAX_CONTEXT_MESSAGES=5):
            return default, len(memory.get_messages())

    assert run(work) == (20, 5)


def test_what_was_not_saved_is_stored_by_the_next_call_of_the_manager(owner: Owner) -> None:
    async def work() -> None:
        manager = MemoryManager(owner)
        memory = await manager.get_memory("s1")
        memory.add(AgentMessage(role="user", content="hello"))
        again = await manager.get_memory("s1")
        assert again is memory
        assert [message.content for message in again.get_messages()] == ["hello"]

    run(work)

    assert Turn.objects.get().text == "hello"


def test_the_context_has_the_documented_sections(owner: Owner) -> None:
    SynchronousManager(owner).get_memory("s1").add(AgentMessage(role="user", content="hello"))
    remember_summary(owner, "They greeted.", conversation_id="s1")

    async def work() -> str:
        return (await MemoryManager(owner).get_memory("s1")).get_context()

    assert run(work).startswith("[Previous Context Summary]\nThey greeted.")


def test_the_synchronous_manager_needs_no_time(owner: Owner) -> None:
    manager = SynchronousManager(owner)
    memory = manager.get_memory("s1")
    memory.add(AgentMessage(role="assistant", content="hello"))

    context = memory.get_context()

    assert isinstance(context, str)
    assert (context.summary, context.tokens) == ("", 0)
    assert [message.content for message in memory.get_messages(limit=20)] == ["hello"]
    manager.save_memory("s1")
    assert manager.summarize_if_needed("s1") is False
