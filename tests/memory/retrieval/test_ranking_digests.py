"""What a process remembers of texts that it has looked at: what they are like, and nothing of what they say."""

from dataclasses import astuple

import pytest

from memory.retrieval.ranking import said
from memory.retrieval.ranking.said import LONGEST_SAID, read_beginning, read_said

NUMERALS = ("none", "one", "one two")
"""By how many there are."""


def test_what_was_read_is_remembered_by_what_is_looked_at() -> None:
    long = "kept once " * LONGEST_SAID

    assert read_said(long) is read_said(f"{long} and more")
    assert read_said(f"3 {long}") is not read_said(long)


def test_of_a_text_nothing_is_kept_but_a_digest_and_what_it_is_like() -> None:
    read = read_said("I painted the cellar yesterday.")

    kept = said._read
    assert any(read is each for each in kept.values())
    assert {(type(key), len(key)) for key in kept} == {(bytes, 16)}
    assert not any(b"cellar" in key for key in kept)
    assert {type(value) for each in kept.values() for value in astuple(each)} == {float}


def test_no_more_are_kept_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(said, "_read", {})
    monkeypatch.setattr(said, "MOST_KEPT", 3)

    for place in [*range(9), *range(9)]:
        assert read_said(f"{'again ' * place}{NUMERALS[place % 3]}").numbers == place % 3
        assert len(said._read) <= 3


@pytest.mark.parametrize("text", ["", "\ud800", "I saw \udfff in Lisbon", "\0", "é", "🦀" * 700], ids=ascii)
def test_any_text_has_a_digest(text: str) -> None:
    assert read_said(text) == read_said(text) == read_beginning(text[:LONGEST_SAID])


def test_texts_that_differ_where_it_is_looked_at_are_told_apart() -> None:
    filler = "x " * (LONGEST_SAID // 2 - 1)

    assert [read_said(f"{filler}{number}").numbers for number in ("1", "x", "2 3")] == [1, 0, 1]
