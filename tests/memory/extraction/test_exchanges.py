"""Tests for short answers, which are matched with what they answer."""

import pytest

from memory.extraction.exchanges import match_answer, split_answer_sentences
from memory.extraction.work_notes import NoteKind


@pytest.mark.parametrize(
    ("before", "answer", "asked", "note"),
    [
        ("I would buy a second pump. It costs 90 euros.", "Then no.", "I would buy a second pump.", NoteKind.REJECTION),
        ("I'd call it basin-2. It is the other one.", "Like it.", "I'd call it basin-2.", NoteKind.DECISION),
        ("How long may the hose be?", "Six metres, because of the corner.", "How long may the hose be?", None),
        ("The old valve leaks. Shall I?", "Yes.", "The old valve leaks. Shall I?", NoteKind.DECISION),
        ("We could move the tank.", "Move it.", "We could move the tank.", NoteKind.DECISION),
        ("Shall I drain tank T-7?", "Okay.", "Shall I drain tank T-7?", NoteKind.DECISION),
        ("I'll look for a pump. Bed 4 has 412 roses.", "Please do.", "I'll look for a pump.", NoteKind.DECISION),
    ],
    ids=["refused", "agreed", "answered", "a bare question", "an instruction", "a bare answer", "next to the offer"],
)
def test_a_short_answer_is_matched_with_the_question_it_answers(
    before: str, answer: str, asked: str, note: NoteKind | None
) -> None:
    found = match_answer(before.replace(". ", ".\n").split("\n"), [answer], "user")

    assert found is not None
    assert (found.asked, found.answer) == (asked, answer)
    assert note is None or found.note == note


@pytest.mark.parametrize(
    ("before", "answer", "role"),
    [
        ("The tank is full.", "The neighbour's tank leaks at its second seam.", "user"),
        (
            "Where is the key?",
            "The long iron key hangs behind the green cellar door, left side, upper nail.",
            "assistant",
        ),
        ("Really?", "...", "user"),
        ("I looked at the roses.", "Great find.", "user"),
        ("Bed 4 has 412 roses.", "Please do.", "user"),
        ("I would drain tank T-7.", "Nice, thanks!", "user"),
        ("Anything else for today?", "No, it's late.", "user"),
        ("Tea?", "Always.", "assistant"),
        ("I'd drain it. Always.", "Ok back later.", "user"),
    ],
    ids=[
        "no verdict",
        "stands by itself",
        "nothing",
        "praise",
        "no offer",
        "thanks",
        "parting",
        "small talk",
        "farewell",
    ],
)
def test_other_answers_are_not_matched_with_a_question(before: str, answer: str, role: str) -> None:
    assert match_answer([before], [answer], role) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Yes.", ["Yes."]),
        ("Sure, for 90 days. It rains.", ["Sure, for 90 days.", "It rains."]),
        ("Okay. Then move it.", ["Then move it."]),
        ("Okay. It rains.", ["Okay.", "It rains."]),
        ("Okay, the roses by the green wall need two more buckets of water.", None),
    ],
    ids=["alone", "with more", "before an order", "before something else", "only an opening word"],
)
def test_an_opening_word_is_kept_if_it_is_the_answer(text: str, expected: list[str] | None) -> None:
    assert split_answer_sentences(text) == (expected or ["the roses by the green wall need two more buckets of water."])
