"""Searches by the other engine find what `re` finds, also in texts that are not ASCII."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.extraction.phrase_searches import make_search

PATTERN = r"\b(?:now|no longer|(?:turned|went) (?:\w+ ){0,2}off)\b|, not \w+|n't|\b[a-z]+[-_][\w.-]+"
is_found = make_search(PATTERN)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("we live in porto now", True),
        ("it is snowing", False),
        # a letter or a digit of another script goes on with the word, for `re`
        ("nowé", False),
        ("énow", False),
        ("we moved – now", True),
        ("we went сразу off", True),
        ("co_²", True),
        ("tea, not café", True),
    ],
)
def test_phrases_end_where_words_end_in_any_script(text: str, found: bool) -> None:
    assert is_found(text) is found
    assert (re.search(PATTERN, text) is not None) is found


@pytest.mark.property
@given(
    st.text(st.sampled_from("nowtlgerfu ,'-_é²и.\n"))
    | st.lists(st.sampled_from(["now", "no", "longer", "went", "off", " ", "é", ", not ", "’"])).map("".join)
)
def test_it_finds_what_re_finds(text: str) -> None:
    assert is_found(text) == (re.search(PATTERN, text) is not None)
