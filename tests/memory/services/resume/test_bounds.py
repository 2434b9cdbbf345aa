"""How much of what was read a packet looks at."""

from datetime import timedelta
from uuid import UUID

import pytest

from memory.models import Kind
from memory.retrieval.resume import Remembered
from memory.services.resume.bounds import FEWEST_CHARACTERS, MOST_CHARACTERS, marked_repeats, within_characters
from memory.services.resume.notes import Said
from memory.services.resume.pieces import NOTES
from tests.memory.episodes import NOW


def row(text: str, number: int = 0) -> Remembered:
    return Remembered(
        id=UUID(int=number), kind=Kind.TURN, text=text, conversation_id="c1", channel="_global", event_time=NOW
    )


def said(text: str, number: int) -> Said:
    return Said(of=row(text), text=text, note=None, place=(NOTES, NOW + timedelta(hours=number), number, 0))


def test_of_many_long_texts_the_newest_are_read_whole() -> None:
    kept = within_characters([row("ab" * 2_000, number) for number in range(400)])

    sizes = [len(each.text) for each in kept]
    assert sum(sizes) <= MOST_CHARACTERS + len(kept)
    assert min(sizes) >= FEWEST_CHARACTERS
    assert sizes[-20:] == [4_000] * 20
    assert [each.id.int for each in kept] == [*range(400)]


@pytest.mark.parametrize("most", [10, 30_000])
def test_short_texts_are_left_as_they_are(most: int) -> None:
    rows = [row("A short text.", number) for number in range(30)]
    assert within_characters(rows, most) == rows


def test_of_a_long_text_both_ends_are_kept() -> None:
    [kept] = within_characters([row("a" * 3_000 + "b" * 3_000)], 1_000)
    assert kept.text == "a" * 500 + "\n" + "b" * 500


def test_all_but_the_latest_few_that_differ_by_a_number_are_repeats() -> None:
    notes = [said(f"Wall {number} of the house is painted.", number) for number in range(6)]

    repeats = {
        each.text for each in marked_repeats([*notes, said("The roof of the house is green.", 7)]) if each.is_repeat
    }

    assert repeats == {f"Wall {number} of the house is painted." for number in range(3)}
