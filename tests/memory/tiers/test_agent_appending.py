"""Tests of appending to an agent's working memory without loss, and of the documented names for values."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import conf
from memory.errors import TooLarge, Unprocessable
from memory.owner import Owner
from memory.tiers.agent_working import WorkingMemoryService
from memory_project.ids import uuid7
from memory_project.redis import AgentMemoryRef, agent_key, client
from tests.memory.tiers.test_working import texts, values
from tests.properties import examples


@pytest.fixture
def owner() -> Owner:
    return Owner(account_id=uuid7(), agent_id="ana")


@pytest.fixture
def memory(owner: Owner) -> WorkingMemoryService:
    return WorkingMemoryService(owner)


def some_memory() -> WorkingMemoryService:
    return WorkingMemoryService(Owner(account_id=uuid7(), agent_id="ana"))


def exactly(value: Any) -> str:
    # as JSON, since to Python 1 == 1.0 == True
    return json.dumps(value, sort_keys=True)


@given(stored=st.lists(values, max_size=3), appended=st.lists(values, min_size=1, max_size=3))
@examples(100)
def test_elements_are_added_to_a_list_exactly(stored: list[Any], appended: list[Any]) -> None:
    memory = some_memory()
    memory.store("list", stored)

    returned = [memory.append("list", value).value for value in appended]

    assert exactly(returned[-1]) == exactly(memory.retrieve("list")) == exactly(stored + appended)


@given(stored=texts, appended=st.lists(texts, min_size=1, max_size=3))
@examples(100)
def test_text_is_joined_to_a_text_exactly(stored: str, appended: list[str]) -> None:
    memory = some_memory()
    memory.store("text", stored)

    for text in appended:
        memory.append("text", text)

    assert memory.retrieve("text") == stored + "".join(appended)


@pytest.mark.parametrize("value", ["123", 1.0, 10**30, None, [], {"a": []}])
def test_appending_to_a_missing_value_starts_a_list(memory: WorkingMemoryService, value: Any) -> None:
    stored = memory.append("list", value)

    assert repr(stored.value) == repr(memory.retrieve("list")) == repr([value])
    assert (stored.ttl_seconds, memory.keys()) == (conf.AGENT_MEMORY_TTL_SECONDS, ["list"])


def test_the_expiry_stays(memory: WorkingMemoryService) -> None:
    memory.store("list", [], ttl=100)
    memory.store("text", "", ttl=200)

    seconds = [memory.append(key, "x").ttl_seconds for key in ("list", "text")]

    assert seconds == [100, 200]
    assert memory.expiries() == {"list": 100, "text": 200}


@pytest.mark.parametrize("stored", [1, 1.5, True, None, {"a": 1}, {}])
def test_appending_to_other_values_is_refused(memory: WorkingMemoryService, stored: Any) -> None:
    memory.store("key", stored)

    with pytest.raises(Unprocessable):
        memory.append("key", "x")

    assert repr(memory.retrieve("key")) == repr(stored)


@pytest.mark.parametrize("appended", [1, None, ["x"], {"x": 1}])
def test_only_text_can_be_appended_to_a_text(memory: WorkingMemoryService, appended: Any) -> None:
    memory.store("key", "text")

    with pytest.raises(Unprocessable):
        memory.append("key", appended)

    assert memory.retrieve("key") == "text"


# JSON of 65,532 and 65,531 bytes, to which 4 and 5 bytes come
@pytest.mark.parametrize(("stored", "fitting"), [("x" * 65_530, "yyyy"), (["x" * 65_527], "yy")])
def test_the_limit_holds_after_appending(memory: WorkingMemoryService, stored: Any, fitting: str) -> None:
    memory.store("key", stored)
    fits = memory.append("key", fitting)

    with pytest.raises(TooLarge) as refused:
        memory.append("key", "y")

    assert refused.value.facts["size_bytes"] > refused.value.facts["limit_bytes"] == conf.TIER_VALUE_BYTES == 65_536
    assert refused.value.facts["stored"] is False
    assert memory.retrieve("key") == fits.value


def test_concurrent_appends_lose_nothing(owner: Owner) -> None:
    def append(writer: str) -> None:
        memory = WorkingMemoryService(owner)
        for number in range(100):
            memory.append("list", [writer, number])
            memory.append_to_scratch_pad(writer)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(append, "ab"))

    appended = WorkingMemoryService(owner).retrieve("list")
    assert [number for writer, number in appended if writer == "a"] == list(range(100))
    assert [number for writer, number in appended if writer == "b"] == list(range(100))
    assert sorted(WorkingMemoryService(owner).get_scratch_pad() or "") == ["a"] * 100 + ["b"] * 100


def test_an_expired_list_is_not_appended_to(owner: Owner, memory: WorkingMemoryService) -> None:
    memory.store("list", ["old"])
    client().delete(agent_key(AgentMemoryRef(account_id=owner.account_id, agent_id="ana"), "memory", "list"))

    memory.append("list", "new")

    assert memory.retrieve("list") == ["new"]


def test_task_state_and_results_and_tool_states_are_kept_apart(memory: WorkingMemoryService) -> None:
    memory.store_task_state({"step": 3})
    memory.store_intermediate_result("parse", [1.0])
    memory.store_intermediate_result("weigh", "7 kg")
    memory.store_tool_state("parse", {"open": True})

    assert memory.get_task_state() == {"step": 3}
    assert (memory.get_intermediate_result("parse"), memory.get_intermediate_result("weigh")) == ([1.0], "7 kg")
    assert (memory.get_tool_state("parse"), memory.get_tool_state("weigh")) == ({"open": True}, None)


def test_a_conversation_is_stored_and_extended(memory: WorkingMemoryService) -> None:
    before = memory.get_conversation_context()
    memory.store_conversation_context([{"role": "user", "content": "Hello"}])
    memory.append_to_conversation({"role": "assistant", "content": "Good day"})

    assert before == []
    assert [message["content"] for message in memory.get_conversation_context()] == ["Hello", "Good day"]


def test_a_scratch_pad_is_stored_and_extended(memory: WorkingMemoryService) -> None:
    before = memory.get_scratch_pad()
    memory.store_scratch_pad("Check the keel. ")
    memory.append_to_scratch_pad("Then the mast.")

    assert before is None
    assert memory.get_scratch_pad() == "Check the keel. Then the mast."


def test_appending_can_start_a_scratch_pad(memory: WorkingMemoryService) -> None:
    memory.append_to_scratch_pad("Check ")
    memory.append_to_scratch_pad("the keel.")

    assert memory.get_scratch_pad() == "Check the keel."


def test_appending_can_start_a_conversation(memory: WorkingMemoryService) -> None:
    memory.append_to_conversation("Hello")

    assert memory.get_conversation_context() == ["Hello"]


def test_another_shape_under_a_documented_name_is_refused(memory: WorkingMemoryService) -> None:
    memory.store("conversation_context", "a text")
    memory.store("scratch_pad", ["a list"])

    for call in (
        memory.get_conversation_context,
        memory.get_scratch_pad,
        lambda: memory.append_to_conversation("x"),
        lambda: memory.append_to_scratch_pad("x"),
    ):
        with pytest.raises(Unprocessable):
            call()
