"""Tests for the limits on what is read for a packet."""

from datetime import timedelta
from uuid import UUID

import pytest

from memory.models import Kind
from memory.retrieval.resume import ResumedMemory
from memory.services.resume.items import NOTES
from memory.services.resume.read import MAX_READ_CHARACTERS, MIN_READ_CHARACTERS, limit_characters
from memory.services.resume.snippets import Snippet, mark_repeats
from tests.memory.episodes import NOW


def make_row(text: str, number: int = 0) -> ResumedMemory:
    return ResumedMemory(
        id=UUID(int=number), kind=Kind.TURN, text=text, conversation_id="c1", channel="_global", event_time=NOW
    )


def make_snippet(text: str, number: int) -> Snippet:
    return Snippet(
        source=make_row(text), text=text, note=None, position=(NOTES, NOW + timedelta(hours=number), number, 0)
    )


def test_the_newest_of_many_long_texts_are_read_whole() -> None:
    kept = limit_characters([make_row("ab" * 2_000, number) for number in range(400)])

    sizes = [len(each.text) for each in kept]
    assert sum(sizes) <= MAX_READ_CHARACTERS + len(kept)
    assert min(sizes) >= MIN_READ_CHARACTERS
    assert sizes[-20:] == [4_000] * 20
    assert [each.id.int for each in kept] == [*range(400)]


@pytest.mark.parametrize("most", [10, 30_000])
def test_short_texts_are_left_as_they_are(most: int) -> None:
    rows = [make_row("A short text.", number) for number in range(30)]
    assert limit_characters(rows, most) == rows


def test_both_ends_of_a_long_text_are_kept() -> None:
    [kept] = limit_characters([make_row("a" * 3_000 + "b" * 3_000)], 1_000)
    assert kept.text == "a" * 500 + "\n" + "b" * 500


def test_snippets_that_differ_in_a_number_are_repeats_but_for_the_latest() -> None:
    notes = [make_snippet(f"Wall {number} of the house is painted.", number) for number in range(6)]

    repeats = {
        each.text
        for each in mark_repeats([*notes, make_snippet("The roof of the house is green.", 7)])
        if each.is_repeat
    }

    assert repeats == {f"Wall {number} of the house is painted." for number in range(3)}
