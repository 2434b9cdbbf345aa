"""Comparison of two texts: differences are marked by line and by word, and the output is bounded."""

import random
import time
from collections.abc import Sequence

import pytest

from memory.admin.diffs import EXCERPT, MAX_DIFF_CHARACTERS, WHOLE, DiffRow, TextDiff, TextRun, compare_texts
from tests.memory.admin.chats import HOSTILE


def format_side(runs: Sequence[TextRun] | None) -> str | None:
    """Format a side of the difference as text, with changes in brackets."""
    if runs is None:
        return None
    return "".join(
        f"<{run.left_out}>" if run.left_out else f"[{run.text}]" if run.is_changed else run.text for run in runs
    )


def sides(row: DiffRow) -> tuple[str | None, str | None] | int:
    return row.skipped or (format_side(row.old), format_side(row.new))


def seen(diff: TextDiff) -> list[tuple[str | None, str | None] | int]:
    return [sides(row) for row in diff.rows]


def changes(diff: TextDiff) -> list[tuple[str | None, str | None] | int]:
    return [sides(row) for row in diff.rows if row.is_changed]


def test_the_same_text_has_no_rows() -> None:
    assert compare_texts("a\nb", "a\nb").is_same


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("The pump is old.", "The pump is new.", [("The pump is [old].", "The pump is [new].")]),
        ("one two three", "four five six", [("[one two three]", "[four five six]")]),
        ("I like pumps", "I like all pumps", [("I like pumps", "I like [all ]pumps")]),
        ("a\nb", "a", [("[b]", None)]),
        ("a", "a\nb", [(None, "[b]")]),
        ("a\n", "a", [("[]", None)]),
        ("", "a", [("", "[a]")]),
        ("pumping", "pumped", [("[pumping]", "[pumped]")]),
        ("x  y", "x y", [("x[  ]y", "x[ ]y")]),
        ("naïve 🙂", "naïve 🙃", [("naïve [🙂]", "naïve [🙃]")]),
    ],
)
def test_differences_are_marked_word_by_word(old: str, new: str, found: list[tuple[str | None, str | None]]) -> None:
    assert changes(compare_texts(old, new)) == found


def test_a_changed_line_is_paired_with_its_old_version_after_an_inserted_line() -> None:
    diff = compare_texts("a\nthe pump was bought in March\nz", "a\nnew line\nthe pump was bought in April\nz")

    assert changes(diff) == [
        (None, "[new line]"),
        ("the pump was bought in [March]", "the pump was bought in [April]"),
    ]
    assert [(row.old_number, row.new_number) for row in diff.rows] == [(1, 1), (0, 2), (2, 3), (3, 4)]


def test_unchanged_lines_are_left_out_except_around_changes() -> None:
    lines = [f"line {number}" for number in range(100)]
    changed = [*lines[:50], "another", *lines[51:]]

    found = seen(compare_texts("\n".join(lines), "\n".join(changed)))

    assert found[0] == 47
    assert found[1:4] == [(f"line {n}", f"line {n}") for n in (47, 48, 49)]
    assert found[-1] == 46
    assert len(found) == 9


def test_long_unchanged_parts_of_a_line_are_left_out() -> None:
    diff = compare_texts("x " * 2_000 + "old", "x " * 2_000 + "new")

    (row,) = diff.rows
    assert row.old is not None
    assert row.old[1].left_out == 3_800
    assert row.old[-1].text == "old"


def test_invisible_characters_and_line_ends_of_windows_are_marked() -> None:
    (row,) = compare_texts("a\r", f"a {HOSTILE}").rows

    assert format_side(row.old) == "a[⟦U+000D⟧]"
    assert "⟦U+202E⟧" in str(format_side(row.new))


def test_an_excerpt_is_short() -> None:
    lines = [f"{number} {'word ' * 300}" for number in range(300)]

    diff = compare_texts("\n".join(lines), "\n".join(line.replace("word", "term") for line in lines), limits=EXCERPT)

    assert len(diff.rows) == EXCERPT.rows
    assert diff.is_cut


def draw(vocabulary: int, count: int, between: str) -> str:
    drawn = random.Random(vocabulary + count)
    return between.join(f"w{drawn.randrange(vocabulary)}" for _ in range(count))


LONG = 1_000_000
PAIRS = {
    "one word": ("x" * LONG, "x" * LONG + "y"),
    "no word": ("!" * LONG, "?" * LONG),
    "all words differ": ("x " * LONG, "y " * LONG),
    "empty lines": ("\n" * LONG, "\n" * (LONG // 2) + "a" + "\n" * LONG),
    "many lines": ("a\nb\n" * LONG, "b\na\nc\n" * LONG),
    "few words in any order": (draw(50, 4_900, " "), draw(50, 4_901, " ")),
    "few lines in any order": (draw(50, 100_000, "\n"), draw(51, 100_001, "\n")),
}


@pytest.mark.parametrize("name", PAIRS)
def test_any_two_texts_are_compared_in_seconds_and_shown_in_part(name: str) -> None:
    old, new = PAIRS[name]
    started = time.process_time()

    diff = compare_texts(old, new)

    assert diff.rows
    assert time.process_time() - started < 10
    shown = sum(len(run.text) for row in diff.rows for runs in (row.old, row.new) for run in runs or ())
    assert shown <= MAX_DIFF_CHARACTERS + 2 * WHOLE.characters + 100
    assert len(diff.rows) <= WHOLE.rows
