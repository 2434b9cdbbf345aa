import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.tokens import estimate_tokens

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=200)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("word", 1),
        ("words", 2),  # five bytes
        ("a b c d e f", 6),  # eleven bytes, six words
        ("x=[1,2,3]", 8),  # x = [ 1 , 2 , 3 ], where "=[" is one piece
        ("naïve", 2),  # six bytes
        ("日本語", 3),  # nine bytes
        ("\ud800", 1),
        ("\x00\x00\x00\x00\x00", 5 // 4 + 1),
    ],
)
def test_an_estimate_is_bytes_by_four_or_pieces_whichever_is_more(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(ANY_TEXT)
def test_an_estimate_never_passes_the_bytes(text: str) -> None:
    assert 0 <= estimate_tokens(text) <= len(text.encode("utf-8", "surrogatepass"))


@given(ANY_TEXT, ANY_TEXT)
def test_a_whole_never_costs_more_than_its_parts(left: str, right: str) -> None:
    assert estimate_tokens(left + right) <= estimate_tokens(left) + estimate_tokens(right)


@given(ANY_TEXT, ANY_TEXT)
def test_a_longer_text_never_costs_less(text: str, more: str) -> None:
    assert estimate_tokens(text) <= estimate_tokens(text + " " + more)


@given(ANY_TEXT.filter(str.strip))
def test_a_text_with_something_in_it_costs_something(text: str) -> None:
    assert estimate_tokens(text) >= 1
