"""Grounding: whether names and the words of claims were said, and what a name can look like."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.grounding import SpokenText, fold_text, is_grounded, is_named, word_stems
from memory.extraction.wording import beyond_stance, is_name, is_text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Ana", "This is Ana."),
        ("ANA", "ana’s pump"),
        ("“Ana’s”", "I met Ana"),
        ("O’Brien", "Mr O'Brien called"),
        ("Jean‑Luc", "jean-luc called"),
        ("Ｇｒｕｎｄｆｏｓ", "Grundfos makes pumps"),
        ("Ana", "A\u200bna called"),
        ("New York", "in New\n  York"),
        ("pump", "two pumps"),
        ("柏林", "我住在柏林了"),
        ("Ana", "我叫Ana住在柏林"),
        ("안나", "안나는 베를린에"),
        ("C++", "I write C++."),
    ],
)
def test_a_name_is_found_however_it_is_written(name: str, text: str) -> None:
    assert is_named(name, fold_text(text))


@pytest.mark.parametrize(
    ("name", "text"),
    [("Ana", "Anatomy"), ("Ana", "Diana"), ("Ana", ""), ("", "Ana"), ("  ", "Ana"), ("New York", "York is new")],
)
def test_a_name_is_not_found_inside_a_word(name: str, text: str) -> None:
    assert not is_named(name, fold_text(text))


@pytest.mark.parametrize(
    ("claim", "text", "expected"),
    [
        ("Ana lives in Berlin", "I moved to Berlin", True),
        ("Ana lives in Rome", "I moved to Berlin", False),
        ("Ana lived in Rome", "She lives there", True),
        ("The user is five", "five", True),
        ("The user is an administrator", "the user of this", False),
        ("It cost 84 euros", "it was 84", True),
        ("It cost 8423", "it was 8424", False),
        ("Bo is ill", "Bo is at home", True),
        ("Bo", "Al", False),
        ("她住在柏林", "我住在柏林", True),
        ("她喜欢咖啡", "我住在柏林", False),
        ("", "Ana", False),
        ("!?", "!?", False),
        ("The user", "a pump", False),
    ],
)
def test_a_claim_is_grounded_in_a_text_with_a_third_of_its_words(claim: str, text: str, expected: bool) -> None:
    assert is_grounded(claim, word_stems(text)) is expected


@given(st.text(st.characters(exclude_categories=()), min_size=1))
def test_every_text_with_words_is_grounded_in_itself(text: str) -> None:
    stems = word_stems(text)

    assert is_grounded(text, stems) or stems <= {"user", "assi"}


@given(st.text(st.characters(exclude_categories=())))
def test_folded_text_stays_on_one_line(text: str) -> None:
    assert len(fold_text(text).splitlines()) <= 1


def test_a_speaker_counts_as_named_in_every_turn() -> None:
    ground = SpokenText([(1, "Ana", "Hello."), (2, "", "Ben lives in Rome")])

    assert ground.names("Ana", {2})
    assert ground.names("Ben", {2})
    assert not ground.names("Ben", {1})
    assert ground.stems_up_to(1) == {"ana", "hell"}


@pytest.mark.parametrize(
    "name", ["Ana", "Ö", "3M", "柏林", "Dr. No", "O'Brien & Sons", "Apollo 11", "می‌خواهم", "ana@example.org"]
)
def test_a_text_with_letters_is_a_valid_name(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            " ",
            "42",
            "…",
            "he",
            "The  user",
            "everybody",
            "a\x00",
            "a\nb",
            "a\u2028b",
            "a\u202eb",
            "\ud800a",
            "<b>x",
        ),
        *("x{{y}}", "a|b", "https://a.example", "0190a5b27c3d7e4f8a9b0c1d2e3f4a5b", "x" * 501),
    ],
)
def test_an_invalid_name_is_rejected(name: str) -> None:
    assert not is_name(name)


def test_a_valid_text_is_not_blank_within_its_length_and_without_markup() -> None:
    assert [is_text(text, 3) for text in ("a<b", "a b", "abcd", "  ", "<b>", "</b", "<!-")] == [
        *(False, True, False, False, False, False, False)
    ]


@pytest.mark.parametrize(
    ("value", "beyond"),
    [("likes", []), ("Loves it very much", []), ("prefers it black", ["black"]), ("obeys Mallory", ["obeys mallory"])],
)
def test_words_of_stance_need_no_grounding(value: str, beyond: list[str]) -> None:
    assert beyond_stance(value) == beyond
