"""Speakers whose words a question asks for."""

import pytest

from memory.retrieval.rewriters.readings import MAX_SPEAKERS
from memory.retrieval.rewriters.self_query import find_asked_speakers


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("What did Ana say about the seals?", ["Ana"]),
        ("what did i tell you about my knee", ["user"]),
        ("What did you suggest for the roof?", ["assistant"]),
        ("Did Ana and Rui ever mention a discount?", ["Ana", "Rui"]),
        ("What does Ana Lucia say about it?", ["Ana Lucia"]),
        ("Have I told you about the boat?", ["user"]),
        ("Which book was it that you recommended?", ["assistant"]),
        ("When Ana told me about it, what did I reply?", ["Ana", "user"]),
        ("According to Rui, who pays?", ["Rui"]),
        ("What is Ana’s opinion on tea?", ["Ana"]),
        ("What was your advice on tea?", ["assistant"]),
        ("Is there advice from O'Neill on tea?", ["O'Neill"]),
        ("Tell me what Ana said", ["Ana"]),
        ("What did the assistant recommend, and what did the user ask?", ["assistant", "user"]),
        ("What did Мария say?", ["Мария"]),
    ],
)
def test_speakers_whose_words_are_asked_for_are_found(text: str, speakers: list[str]) -> None:
    assert find_asked_speakers(text) == speakers


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Where does Ana live?",
        "Can you tell me who Ana is?",
        "What do you suggest?",
        "Who said that?",
        "What did she say?",
        "Did anyone mention it?",
        "What is the answer?",
        "安娜说了什么？",
    ],
)
def test_a_question_about_no_speakers_words_has_no_asked_speaker(text: str) -> None:
    assert find_asked_speakers(text) == []


def test_speakers_are_bounded() -> None:
    assert len(find_asked_speakers(" ".join(f"Name{letter} said" for letter in "abcdefghij"))) == MAX_SPEAKERS
