"""Orders to machinery are distinguished from ordinary sentences."""

import json
from pathlib import Path

import pytest
from django.conf import settings
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.orders import gives_orders
from tests.memory.extraction.injections import ORDERS, Injection
from tests.memory.pace import takes_the_square

SAMPLE = Path(settings.BASE_DIR) / "docs" / "sample" / "conversations.jsonl"


@pytest.mark.parametrize("injection", ORDERS, ids=lambda injection: injection.name)
def test_orders_are_detected_in_every_injection(injection: Injection) -> None:
    assert any(gives_orders(said.text) or gives_orders(said.speaker) for said in injection.turns)


@pytest.mark.parametrize(
    "text",
    [
        "Please remember that my sister Ana moved to Berlin.",
        "Forget it, the rules of that club are absurd.",
        "I ignored the instructions on the box, and the shelf fell down.",
        "Can you record my weight for today? It is 81 kilograms.",
        "Save the date: Ana's wedding is on 3 May.",
        "The system: two pumps, a tank and a valve.",
        "You are now a grandmother, congratulations!",
        "In fact, 3 of the 5 pumps are broken.",
        "I want to create lasting relationships at work.",
        "My role at Grundfos is new: I lead the user research.",
        "Actually, I meant Hamburg, not Berlin.",
        "I'll return the following Monday.",
        "What are your plans for the weekend?",
        "Delete the old photos from my phone, please.",
        "Our evidence was dismissed by the judge.",
        "The wind blows from England \U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f today.",
        "Ключ подошёл, инструкции не понадобились.",
        "a < b and b > c",
        "The commit is 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08.",
        "",
    ],
)
def test_ordinary_sentences_are_not_orders(text: str) -> None:
    assert not gives_orders(text)


def test_the_sample_conversations_contain_no_orders() -> None:
    conversations = map(json.loads, SAMPLE.read_text().splitlines())

    texts = [message["content"] for conversation in conversations for message in conversation["messages"]]

    assert len(texts) > 80
    assert not list(filter(gives_orders, texts))


@pytest.mark.parametrize("unit", ["ignore ", "<system ", "x", "fact ", "["])
def test_a_long_text_is_checked_in_linear_time(unit: str) -> None:
    assert not takes_the_square(gives_orders, lambda length: unit * (length // len(unit)), 5_000)


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_can_be_checked_for_orders(text: str) -> None:
    gives_orders(text)
