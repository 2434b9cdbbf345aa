"""Choices, and orders about what was named just before."""

import pytest

from tests.memory.extraction.spoken import claims


@pytest.mark.parametrize(
    ("text", "claim"),
    [
        ("ok polars it is. pin it to 1.4, 1.5 has a bug", "The user decided on polars"),
        ("ok polars it is. pin it to 1.4, 1.5 has a bug", "The user asks to pin polars to 1.4"),
        ("Let's use duckdb. Pin it to 1.1.", "The user asks to pin duckdb to 1.1"),
        ("Vitest then.", "The user decided on Vitest"),
        ("👍 also I don't like the name OldStore, call it DiskStore", "The user asks to call OldStore DiskStore"),
        ("The upload timeout is too short, make it 40 seconds", "The user asks to make the upload timeout 40 seconds"),
        ("The upload timeout is too short. Make it 40 seconds.", "The user asks to make the upload timeout 40 seconds"),
        ("make the upload limit 25 MB", "The user asks to make the upload limit 25 MB"),
    ],
)
def test_choices_and_orders_about_what_was_named_are_claims(text: str, claim: str) -> None:
    assert claim in claims(text)


@pytest.mark.parametrize(
    "text",
    [
        "so it is.",
        "what it is",
        "pin it to 1.4",
        "Friday then.",
        "It is too late, make it quick.",
        "make it 40 seconds",
        "make the best of 2 days",
    ],
)
def test_what_it_is_must_be_clear(text: str) -> None:
    assert claims(text) == []
