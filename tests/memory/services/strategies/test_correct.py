"""The searched text of strategies, and what follows from corrections of them."""

from datetime import timedelta
from typing import Any

import pytest

from memory.errors import Unprocessable
from memory.models import Strategy, StrategyTool, Vector
from memory.owner import Owner
from memory.services.embedding.embed import content_hash
from memory.services.memories.correct import correct_memory
from memory.services.strategies.learn import MAX_TOOLS, find_strategies, find_strategy
from tests.memory.episodes import NOW
from tests.memory.procedures import learn

pytestmark = pytest.mark.django_db

LATER = NOW + timedelta(hours=1)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("the house is cold", "When the house is cold: Restart it."),
        (" When the house is cold.\n", "When the house is cold: Restart it."),
        ("whenever it is cold:", "When whenever it is cold: Restart it."),
        ("", "Restart it."),
        ("when ", "Restart it."),
    ],
)
def test_the_text_joins_pattern_and_description(owner: Owner, pattern: str, text: str) -> None:
    learn(owner, "Restart it.", context_pattern=pattern)

    stored = Strategy.objects.get()
    assert (stored.text, stored.description, stored.context_pattern) == (text, "Restart it.", pattern)


def test_a_pattern_learned_later_is_embedded(owner: Owner) -> None:
    learn(owner, "Restart it.", angle=0.0)

    learned = learn(owner, "restart it", context_pattern="the house is cold", now=LATER)

    stored = find_strategy(owner, learned.id, now=NOW)
    assert stored.text == learned.text == "When the house is cold: Restart it."
    assert (stored.content_hash, stored.version, stored.embed_after) == (content_hash(stored.text), 2, LATER)
    assert not Vector.objects.exists()


def test_a_client_vector_is_stored_with_the_new_text(owner: Owner) -> None:
    learn(owner, "Restart it.")

    learned = learn(owner, "Restart it.", context_pattern="the house is cold", angle=0.0)

    assert Vector.objects.get().memory_id == learned.id


def test_a_strategy_is_found_by_words_of_its_pattern(owner: Owner) -> None:
    learn(owner, "Restart it.", context_pattern="the house is cold")

    found = find_strategies(owner, task_description="a cold house", top_k=5, now=NOW)

    assert [hit.description for hit in found.hits] == ["Restart it."]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"description": "Ring."}, "When the house is cold: Ring."),
        ({"context_pattern": "the oven is cold"}, "When the oven is cold: Restart it."),
        ({"context_pattern": ""}, "Restart it."),
    ],
    ids=["description", "pattern", "no pattern"],
)
def test_a_correction_of_description_or_pattern_is_embedded_again(
    owner: Owner, changes: dict[str, Any], text: str
) -> None:
    learned = learn(owner, "Restart it.", context_pattern="the house is cold", angle=0.0)

    correct_memory(owner, learned.id, changes=changes, version=1, now=LATER)

    stored = find_strategy(owner, learned.id, now=NOW)
    assert (stored.text, stored.content_hash, stored.version) == (text, content_hash(text), 2)
    assert stored.embed_after == LATER
    assert not Vector.objects.exists()


def test_a_correction_of_anything_else_keeps_text_and_vector(owner: Owner) -> None:
    learned = learn(owner, context_pattern="the house is cold", angle=0.0)

    correct_memory(owner, learned.id, changes={"task_type": "look up", "salience": 0.9}, version=1, now=LATER)

    assert find_strategy(owner, learned.id, now=NOW).text == learned.text
    assert Vector.objects.exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"text": "another"},
        {"description": " "},
        {"description": None},
        {"context_pattern": None},
        {"task_type": "x" * 101},
        {"task_type": "a\0"},
        {"task_type": None},
        {"tool_sequence": "abc"},
        {"tool_sequence": {"search": 1}},
        {"tool_sequence": None},
        {"tool_sequence": [7]},
        {"tool_sequence": [["search"]]},
        {"tool_sequence": ["x" * 101]},
        {"tool_sequence": ["x"] * (MAX_TOOLS + 1)},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_an_invalid_correction_is_refused(owner: Owner, changes: dict[str, Any]) -> None:
    learned = learn(owner, tool_sequence=["search"], task_type="look up")

    with pytest.raises(Unprocessable):
        correct_memory(owner, learned.id, changes=changes, version=1, now=LATER)

    stored = find_strategy(owner, learned.id, now=NOW)
    assert (stored.tool_sequence, stored.task_type, stored.version) == (["search"], "look up", 1)


def test_a_correction_may_remove_tools_and_type_of_task(owner: Owner) -> None:
    learned = learn(owner, tool_sequence=["search"], task_type="look up")

    correct_memory(owner, learned.id, changes={"tool_sequence": [], "task_type": ""}, version=1, now=LATER)

    stored = find_strategy(owner, learned.id, now=NOW)
    assert (stored.tool_sequence, stored.task_type) == ([], "")
    assert not StrategyTool.objects.exists()
