"""What texts of a packet are compared by: words, names, numbers."""

import pytest

from memory.services.resume.pieces import specifics_of


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
    assert specifics_of(text) == named


@pytest.mark.parametrize("letter", ["a", "漢", "`", "'", "_", "漢。"])
def test_a_long_text_without_blanks_is_looked_through_once(letter: str) -> None:
    """By a pattern that begins anew at each character this would take minutes."""
    assert specifics_of(letter * 300_000) <= {letter * 200}
