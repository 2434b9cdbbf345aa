"""Registers of conversations and questions; nicknames, what is nearby, and what an assistant said."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from memory.retrieval.candidates import Candidate
from memory.retrieval.ranking import Weights, compute_signals, rank_by_weights
from memory.retrieval.ranking.registers import CHAT, LONG_CHAT, MIN_LONG_TOKENS, NOTES, OTHER_SCRIPT, TALK
from memory.retrieval.ranking.table import make_table
from memory.retrieval.ranking.turns import find_speakers
from memory_project.embedded.models import BUNDLED_MODEL
from tests.memory.candidates import asking, found

Said = tuple[str, str, str]
"""The role, the speaker's name, and the text of a turn."""

FRIENDS: Sequence[Said] = [
    ("user", "Emi", "I skate on Sundays."),
    ("user", "Elise", "Hey Kate, that sounds fun!"),
    ("user", "Elise", "I paint."),
]


def turns(said: Sequence[Said], **fields: Any) -> list[Candidate]:
    return [
        found(number, index=number, role=role, speaker=name, text=text, **fields)
        for number, (role, name, text) in enumerate(said)
    ]


def signal(name: str, candidates: Sequence[Candidate], **asked: Any) -> list[float]:
    values: list[float] = compute_signals(make_table(candidates, asking(**asked)), [name])[:, 0].tolist()
    return values


@pytest.mark.parametrize(
    ("said", "register"),
    [
        (FRIENDS, TALK),
        ([("user", "Ana", "I sailed."), ("user", "Ana", "It rained.")], TALK),
        ([("user", "", "How?"), ("assistant", "", "So.")], CHAT),
        ([("user", "Ana", "How?"), ("assistant", "", "So.")], CHAT),
        ([("user", "", "Door code 4711."), ("user", "", "Bins on Monday.")], NOTES),
        ([("user", "Ana", "How?"), ("user", "Ana", "And why?"), ("assistant", "", "So.")], CHAT),
        ([("user", "Ana", "How?"), ("user", "Ben", "And why?"), ("assistant", "", "So.")], TALK),
        ([("user", "Ana", "Hi."), *[("user", "", "A note.")] * 4], NOTES),
        ([], NOTES),
    ],
    ids=[
        "friends",
        "one with a name",
        "chat",
        "chat with a name",
        "notes",
        "a user with a name who says more than the assistant",
        "two people and an assistant who says little",
        "hardly any names",
        "no turns",
    ],
)
def test_roles_and_names_decide_the_register(said: Sequence[Said], register: str) -> None:
    assert find_speakers(turns(said), asking().query).register == register


@pytest.mark.parametrize(
    ("tokens", "register"), [((20, MIN_LONG_TOKENS - 1, 900), CHAT), ((20, MIN_LONG_TOKENS, 900), LONG_CHAT)]
)
def test_the_median_length_of_its_messages_makes_a_chat_a_long_one(tokens: Sequence[int], register: str) -> None:
    chat = turns([("user", "", "How?"), ("assistant", "", "So."), ("user", "", "I see.")])
    for each, token_count in zip(chat, tokens, strict=True):
        each.token_count = token_count

    assert find_speakers(chat, asking().query).register == register


@pytest.mark.parametrize(
    ("text", "model", "register"),
    [
        ("我的门禁密码是多少?", BUNDLED_MODEL, OTHER_SCRIPT),
        ("Где живёт Elise?", BUNDLED_MODEL, OTHER_SCRIPT),
        ("Où habite Élise, và tại sao?", BUNDLED_MODEL, TALK),
        ("Who is 李?", BUNDLED_MODEL, TALK),
        ("我的门禁密码是多少?", "multilingual-e5-small", TALK),
    ],
    ids=["Chinese", "Russian with a name", "accents", "one Chinese name", "a model that reads Chinese"],
)
def test_questions_in_a_script_that_the_bundled_model_does_not_read_have_a_register(
    text: str, model: str, register: str
) -> None:
    asked = asking(text=text, vector=np.ones(3), model=model).query

    assert find_speakers(turns(FRIENDS), asked).register == register


def test_each_register_has_its_own_weights() -> None:
    by = Weights(turns={NOTES: {"words": 1.0}, CHAT: {"words": -1.0}}, others={})
    notes = turns([("user", "", "a"), ("user", "", "b")])
    chat = turns([("user", "", "a"), ("assistant", "", "b")])
    for first, second in (notes, chat):
        first.bm25, second.bm25 = 4.0, 0.0

    for candidates in (notes, chat):
        rank_by_weights(by, candidates, asking())

    assert notes[0].score > notes[1].score
    assert chat[0].score < chat[1].score


@pytest.mark.parametrize(
    ("name", "asked"),
    [("Kate", {"emi"}), ("Elisa", {"elise"}), ("Bob", set())],
    ids=["greeted by the other", "another spelling", "unknown"],
)
def test_one_of_two_speakers_may_go_by_another_name(name: str, asked: set[str]) -> None:
    query = asking(text=f"Where does {name} skate?", subjects=[name], names=[name]).query

    assert find_speakers(turns(FRIENDS), query).asked == asked


def test_somebody_who_is_only_talked_about_is_nobodys_nickname() -> None:
    said = [("user", "Emi", "I skate."), ("user", "Elise", "My daughter Kate paints.")]
    query = asking(text="What does Kate do?", subjects=["Kate"], names=["Kate"]).query

    assert find_speakers(turns(said), query).asked == set()


def test_nearby_is_the_best_turn_within_eight_places_of_the_same_conversation() -> None:
    here = [found(number, index=number, bm25=4.0 if number == 0 else 0.0, conversation_id="a") for number in (0, 8, 9)]
    elsewhere = found(50, index=1, bm25=0.0, conversation_id="b")

    best, near, far, other = signal("nearby", [*here, elsewhere])

    assert best == near
    assert best > far
    assert far == other


def test_what_the_assistant_said_counts_unless_it_is_asked_for() -> None:
    chat = turns([("user", "", "How?"), ("assistant", "", "So."), ("assistant", "Ben", "Hi.")])

    assert signal("by_assistant", chat) == [0.0, 1.0, 0.0]
    assert not np.any(signal("by_assistant", chat, speakers=["assistant"]))
