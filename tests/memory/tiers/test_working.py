"""Tests of working memory: exact JSON values, limits, and separate fields for each agent."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import conf
from memory.errors import TooLarge, Unprocessable
from memory.owner import Owner
from memory.tiers.working import WorkingMemory
from memory_project.ids import uuid7
from memory_project.redis import ConversationRef, client, conversation_key
from tests.properties import examples
from tests.round_trips import counted_commands

CONVERSATION = "call 7/ü"
LIMIT = conf.WORKING_MEMORY_LIMIT_BYTES

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=200)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@pytest.fixture
def account_id() -> UUID:
    return uuid7()


@pytest.fixture
def account_wide(account_id: UUID) -> WorkingMemory:
    return WorkingMemory(Owner(account_id=account_id))


@pytest.fixture
def ana(account_id: UUID) -> WorkingMemory:
    return WorkingMemory(Owner(account_id=account_id, agent_id="ana"))


@pytest.fixture
def ben(account_id: UUID) -> WorkingMemory:
    return WorkingMemory(Owner(account_id=account_id, agent_id="ben"))


def key_of(account_id: UUID) -> str:
    return conversation_key("working_memory", ConversationRef(account_id=account_id, conversation_id=CONVERSATION))


@given(data=st.dictionaries(names, values, max_size=5))
@examples(100)
def test_any_json_value_comes_back_as_it_went_in(data: dict[str, Any]) -> None:
    memory = WorkingMemory(Owner(account_id=uuid7(), agent_id="ana"))

    memory.set(CONVERSATION, data)

    # as JSON, since to Python 1 == 1.0 == True
    assert json.dumps(memory.get(CONVERSATION), sort_keys=True) == json.dumps(data, sort_keys=True)


@pytest.mark.parametrize("value", ["123", 123, 1, 1.0, -0.0, True, None, "", "null", 2**200, [], {}, {"a": [None]}])
def test_types_are_not_mixed_up(account_wide: WorkingMemory, value: Any) -> None:
    account_wide.set(CONVERSATION, {"field": value})

    assert repr(account_wide.get(CONVERSATION)) == repr({"field": value})


def test_a_write_merges(ana: WorkingMemory) -> None:
    ana.set(CONVERSATION, {"one": 1, "two": 2})
    ana.set(CONVERSATION, {"two": "II", "three": 3})

    assert ana.get(CONVERSATION) == {"one": 1, "two": "II", "three": 3}


def test_an_unknown_conversation_is_empty(ana: WorkingMemory) -> None:
    assert ana.get("never heard of") == {}


def test_conversations_with_braces_in_their_ids_stay_apart(ana: WorkingMemory) -> None:
    ana.set("{a}", {"in": "braces"})
    ana.set("a", {"in": "none"})
    ana.set("%7Ba%7D", {"in": "escapes"})

    assert [ana.get(name)["in"] for name in ("{a}", "a", "%7Ba%7D")] == ["braces", "none", "escapes"]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "\ud800", {"\udfff": 1}, object])
def test_a_value_without_json_form_is_refused(ana: WorkingMemory, bad: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        ana.set(CONVERSATION, {"good": 1, "bad": bad})

    assert ana.get(CONVERSATION) == {}


def test_endless_nesting_is_refused(ana: WorkingMemory) -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]

    with pytest.raises(ValueError, match="nested"):
        ana.set(CONVERSATION, {"deep": nested})


@pytest.mark.parametrize("name", ["", "n" * 201, "a\x00b", "\ud800"])
def test_an_invalid_name_is_refused(ana: WorkingMemory, name: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        ana.set(CONVERSATION, {name: 1})


def test_reads_and_writes_renew_the_expiry(account_id: UUID, ana: WorkingMemory) -> None:
    ana.set(CONVERSATION, {"one": 1, "two": 2})

    for touch in (
        lambda: ana.get(CONVERSATION),
        lambda: ana.set(CONVERSATION, {"one": 1}),
        lambda: ana.delete(CONVERSATION, ["two"]),
    ):
        client().expire(key_of(account_id), 100)
        touch()
        assert client().ttl(key_of(account_id)) > conf.WORKING_MEMORY_TTL_SECONDS - 100


def test_a_write_returns_the_size_of_the_memory(ana: WorkingMemory) -> None:
    ana.set(CONVERSATION, {"ü": "ä"})
    stored = ana.set(CONVERSATION, {"n": 12})

    # ü "ä" n 12: two bytes and four, one and two
    assert stored.size_bytes == 2 + 4 + 1 + 2
    assert stored.limit_bytes == LIMIT
    assert stored.ttl_seconds == conf.WORKING_MEMORY_TTL_SECONDS
    assert stored.memory_bytes > stored.size_bytes


def test_the_limit_itself_may_be_reached(ana: WorkingMemory) -> None:
    stored = ana.set(CONVERSATION, {"f": "x" * (LIMIT - 3)})

    assert stored.size_bytes == LIMIT


def test_a_write_over_the_limit_is_stored_and_reported(ana: WorkingMemory) -> None:
    with pytest.raises(TooLarge) as caught:
        ana.set(CONVERSATION, {"f": "x" * (LIMIT - 2)})

    assert caught.value.facts["stored"] is True
    assert caught.value.facts["size_bytes"] == LIMIT + 1
    assert caught.value.facts["limit_bytes"] == LIMIT
    assert len(ana.get(CONVERSATION)["f"]) == LIMIT - 2


def test_four_times_the_limit_may_be_reached_but_not_passed(ana: WorkingMemory, ben: WorkingMemory) -> None:
    with pytest.raises(TooLarge):
        ana.set(CONVERSATION, {"f": "x" * (3 * LIMIT - 3)})
    with pytest.raises(TooLarge) as reached:
        ben.set(CONVERSATION, {"f": "x" * (LIMIT - 3)})

    with pytest.raises(TooLarge) as passed:
        ben.set(CONVERSATION, {"f": 0, "g": "x" * LIMIT})

    assert (reached.value.facts["stored"], reached.value.facts["size_bytes"]) == (True, 4 * LIMIT)
    assert (passed.value.facts["stored"], passed.value.facts["size_bytes"]) == (False, 4 * LIMIT + 5)
    assert len(ben.get(CONVERSATION)["f"]) == LIMIT - 3


def test_a_write_that_can_never_fit_is_not_sent(ana: WorkingMemory) -> None:
    ana.get(CONVERSATION)

    with counted_commands() as commands, pytest.raises(TooLarge) as refused:
        ana.set(CONVERSATION, {"f": "x" * 5 * LIMIT})

    assert commands == []
    assert refused.value.facts == {"stored": False, "size_bytes": 5 * LIMIT + 3, "limit_bytes": LIMIT}


def test_replacing_a_large_value_by_a_small_one_frees_its_bytes(ana: WorkingMemory) -> None:
    ana.set(CONVERSATION, {"f": "x" * (LIMIT - 3)})

    assert ana.set(CONVERSATION, {"f": 1}).size_bytes == 2


def test_an_agent_reads_its_own_fields_before_the_accounts(account_wide: WorkingMemory, ana: WorkingMemory) -> None:
    account_wide.set(CONVERSATION, {"shared": "account", "mine": "account"})
    ana.set(CONVERSATION, {"mine": "ana"})

    assert ana.get(CONVERSATION) == {"shared": "account", "mine": "ana"}


def test_agents_do_not_see_each_others_fields(ana: WorkingMemory, ben: WorkingMemory) -> None:
    ana.set(CONVERSATION, {"field": "ana", "secret": 1})
    ben.set(CONVERSATION, {"field": "ben"})

    assert ana.get(CONVERSATION) == {"field": "ana", "secret": 1}
    assert ben.get(CONVERSATION) == {"field": "ben"}


def test_the_account_reads_its_own_value_then_the_first_agents(
    account_wide: WorkingMemory, ana: WorkingMemory, ben: WorkingMemory
) -> None:
    account_wide.set(CONVERSATION, {"all": "account"})
    ben.set(CONVERSATION, {"all": "ben", "two": "ben", "one": "ben"})
    ana.set(CONVERSATION, {"all": "ana", "two": "ana"})

    assert account_wide.get(CONVERSATION) == {"all": "account", "two": "ana", "one": "ben"}


def test_a_field_written_by_the_account_is_visible_to_every_agent(
    account_wide: WorkingMemory, ana: WorkingMemory
) -> None:
    ana.set(CONVERSATION, {"field": "ana", "other": "ana"})

    account_wide.set(CONVERSATION, {"field": "account"})

    assert ana.get(CONVERSATION) == {"field": "account", "other": "ana"}


def test_an_agent_deletes_only_its_own(account_wide: WorkingMemory, ana: WorkingMemory, ben: WorkingMemory) -> None:
    account_wide.set(CONVERSATION, {"field": "account"})
    ben.set(CONVERSATION, {"field": "ben"})
    ana.set(CONVERSATION, {"field": "ana"})

    assert ana.delete(CONVERSATION, ["field", "unknown"]) == 1

    assert ana.get(CONVERSATION) == {"field": "account"}
    assert ben.get(CONVERSATION) == {"field": "ben"}


def test_the_account_deletes_for_everybody(account_wide: WorkingMemory, ana: WorkingMemory) -> None:
    ana.set(CONVERSATION, {"field": "ana", "other": "ana"})

    account_wide.delete(CONVERSATION, ["field"])

    assert ana.get(CONVERSATION) == {"other": "ana"}


def test_clearing_follows_the_same_rule(account_wide: WorkingMemory, ana: WorkingMemory, ben: WorkingMemory) -> None:
    account_wide.set(CONVERSATION, {"shared": 0})
    ana.set(CONVERSATION, {"a": 1})
    ben.set(CONVERSATION, {"b": 1})

    assert ana.clear(CONVERSATION) == 1
    assert account_wide.get(CONVERSATION) == {"shared": 0, "b": 1}
    assert account_wide.clear(CONVERSATION) == 2
    assert ben.get(CONVERSATION) == {}


def test_another_account_sees_nothing(ana: WorkingMemory) -> None:
    ana.set(CONVERSATION, {"field": "ana"})

    assert WorkingMemory(Owner(account_id=uuid7(), agent_id="ana")).get(CONVERSATION) == {}


class Naive:
    """The rules once more, slowly: writer to fields."""

    def __init__(self) -> None:
        self.fields: dict[str, dict[str, Any]] = {"": {}, "ana": {}, "ben": {}}

    def get(self, agent: str) -> dict[str, Any]:
        if agent:
            return self.fields[""] | self.fields[agent]
        return self.fields["ben"] | self.fields["ana"] | self.fields[""]

    def set(self, agent: str, data: dict[str, Any]) -> int:
        if not agent:
            self.delete("", list(data))
        self.fields[agent] |= data
        stored = [item for fields in self.fields.values() for item in fields.items()]
        return sum(len(name.encode()) + len(json.dumps(value)) for name, value in stored)

    def delete(self, agent: str, unwanted: list[str]) -> None:
        for writer in [agent] if agent else self.fields:
            self.fields[writer] = {k: v for k, v in self.fields[writer].items() if k not in unwanted}


few_names = st.sampled_from(["a", "b", "ü", "ana"])
operations = st.tuples(st.just("set"), st.dictionaries(few_names, st.integers(0, 1000), max_size=3)) | st.tuples(
    st.sampled_from(["delete", "clear"]), st.lists(few_names, max_size=3)
)


@given(calls=st.lists(st.tuples(st.sampled_from(["", "ana", "ben"]), operations), max_size=12))
@examples(60)
def test_working_memory_agrees_with_a_naive_model(calls: list[tuple[str, tuple[str, Any]]]) -> None:
    account_id, naive = uuid7(), Naive()

    for agent, (operation, argument) in calls:
        memory = WorkingMemory(Owner(account_id=account_id, agent_id=agent))
        if operation == "set":
            assert memory.set(CONVERSATION, argument).size_bytes == naive.set(agent, argument)
        elif operation == "delete":
            memory.delete(CONVERSATION, argument)
            naive.delete(agent, argument)
        else:
            memory.clear(CONVERSATION)
            naive.delete(agent, [*few_names_of(naive)])
        for reader in ("", "ana", "ben"):
            seen = WorkingMemory(Owner(account_id=account_id, agent_id=reader)).get(CONVERSATION)
            assert seen == naive.get(reader)


def few_names_of(naive: Naive) -> set[str]:
    return {name for fields in naive.fields.values() for name in fields}


def test_every_call_is_one_round_trip(ana: WorkingMemory) -> None:
    def call_everything() -> None:
        ana.set(CONVERSATION, {"one": 1, "two": 2})
        ana.get(CONVERSATION)
        ana.delete(CONVERSATION, ["one"])
        ana.clear(CONVERSATION)
        ana.set_scratchpad(CONVERSATION, "notes")
        ana.get_scratchpad(CONVERSATION)

    call_everything()
    with counted_commands() as commands:
        call_everything()

    assert [command.split()[0] for command in commands] == ["EVALSHA"] * 6


def test_writers_of_different_fields_do_not_lose_each_other(account_id: UUID) -> None:
    def write(number: int) -> None:
        memory = WorkingMemory(Owner(account_id=account_id, agent_id=f"agent-{number % 3}"))
        memory.set(CONVERSATION, {f"field-{number}": number})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(200)))

    everything = WorkingMemory(Owner(account_id=account_id)).get(CONVERSATION)
    assert everything == {f"field-{number}": number for number in range(200)}


def test_concurrent_writers_cannot_pass_four_times_the_limit_together(account_id: UUID) -> None:
    def write(number: int) -> bool:
        try:
            WorkingMemory(Owner(account_id=account_id)).set(CONVERSATION, {f"f{number:02}": "x" * (LIMIT - 5)})
        except TooLarge as caught:
            return bool(caught.facts["stored"])
        return True

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(write, range(16)))

    assert outcomes.count(True) == 4
    assert client().hlen(key_of(account_id)) == 4


def test_scratchpad_and_entities_have_their_own_methods(ana: WorkingMemory) -> None:
    ana.set_scratchpad(CONVERSATION, "notes")
    ana.set_entities(CONVERSATION, [{"type": "well", "id": "42", "name": "Mitchell Ranch"}])

    assert ana.get_scratchpad(CONVERSATION) == "notes"
    assert ana.get_entities(CONVERSATION) == [{"type": "well", "id": "42", "name": "Mitchell Ranch"}]


def test_documented_fields_never_written_are_none_or_empty(ana: WorkingMemory) -> None:
    assert ana.get_scratchpad(CONVERSATION) is None
    assert ana.get_entities(CONVERSATION) == []


def test_a_documented_field_of_another_type_is_refused(ana: WorkingMemory) -> None:
    ana.set(CONVERSATION, {"scratchpad": 7, "entities": "none"})

    with pytest.raises(Unprocessable):
        ana.get_scratchpad(CONVERSATION)
    with pytest.raises(Unprocessable):
        ana.get_entities(CONVERSATION)


def test_fields_from_before_plain_names_are_read_and_replaced(account_wide: WorkingMemory, account_id: UUID) -> None:
    key = key_of(account_id)
    client().hset(key, mapping={"\x00step": "1", "\x00plan": '"look"', "ana\x00step": "2"})

    assert account_wide.get(CONVERSATION) == {"plan": "look", "step": 1}
    account_wide.set(CONVERSATION, {"step": 3})

    assert client().hgetall(key) == {"\x00plan": '"look"', "step": "3"}
    assert account_wide.delete(CONVERSATION, ["plan"]) == 1
