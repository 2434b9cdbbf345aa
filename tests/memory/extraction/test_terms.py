"""Tests for the terms by which texts are compared: words, names, numbers."""

import pytest

from memory.extraction.terms import specific_terms


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The pump stopped with E-17.", {"e-17"}),
        ("Run `make all` in src/pump.py, then HTTP.", {"make all", "src/pump.py", "http"}),
        ("It takes 3.5 % of 2,000 rows (see v2.1).", {"3.5", "2", "000", "v2.1"}),
        ("camelCase and snake_case stay.", {"camelcase", "snake_case"}),
        ("Nothing is named here.", set()),
        ("漢字の長い文", set()),
    ],
)
def test_numbers_identifiers_paths_and_codes_are_specific(text: str, named: set[str]) -> None:
    assert specific_terms(text) == named


@pytest.mark.parametrize("letter", ["a", "漢", "`", "'", "_", "漢。"])
def test_a_long_text_without_blanks_takes_linear_time(letter: str) -> None:
    """A pattern that starts again at each character would take minutes."""
    assert specific_terms(letter * 300_000) <= {letter * 200}
