"""Registers: talk, chats and notes are told apart; nicknames, what is nearby, and what an assistant said."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from memory.retrieval.candidates import Candidate
from memory.retrieval.ranking import Weights, compute_signals, rank_by_weights
from memory.retrieval.ranking.signals import make_table
from memory.retrieval.ranking.turns import CHAT, NOTES, TALK, find_speakers
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
        ([("user", "Ana", "Hi."), *[("user", "", "A note.")] * 4], NOTES),
    ],
    ids=["friends", "one with a name", "chat", "chat with a name", "notes", "hardly any names"],
)
def test_roles_and_names_tell_the_register(said: Sequence[Said], register: str) -> None:
    assert find_speakers(turns(said), asking().query).register == register


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
