"""Differences between two texts: line by line, and word by word inside changed lines.

The work is bounded, whatever the texts are. The result is ready for a page: invisible characters are marked, and long
parts that are the same are left out.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import NamedTuple

from memory.admin.text import mark_invisible

WORD = re.compile(r"\s+|\w+|[^\w\s]")
MAX_DIFF_CHARACTERS = 200_000
"""Characters that are shown of both sides of all rows."""

MAX_ALIGNED_LINES = 20
"""Longest block of changed lines in which similar lines are put side by side."""

MIN_LIKENESS = 0.3
"""Share of common words from which one line counts as a changed version of the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffLimits:
    """Limits on how much is compared and how much of that is shown."""

    lines: int = 3_000
    """Lines that are compared between the first and the last difference."""
    words: int = 30_000
    """Words that are compared in all lines together. After that, lines are marked as a whole."""
    words_a_line: int = 10_000
    around: int = 3
    """Unchanged lines that are shown before and after changes."""
    rows: int = 400
    characters: int = 20_000
    """Characters that are shown of a line."""
    unchanged_characters: int = 200
    """Unchanged characters that are shown in a line before and after changes."""


WHOLE = DiffLimits()
EXCERPT = DiffLimits(
    lines=200, words=1_500, words_a_line=1_500, around=1, rows=8, characters=600, unchanged_characters=60
)  # fmt: skip


class TextRun(NamedTuple):
    """A part of a line. `left_out` counts the unchanged characters that are not shown in its place."""

    text: str
    is_changed: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """A line of each side (None if that side has none), or the number of unchanged lines that are `skipped`."""

    old: Sequence[TextRun] | None = None
    new: Sequence[TextRun] | None = None
    old_number: int = 0
    new_number: int = 0
    is_changed: bool = False
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDiff:
    """The rows to show; none if the texts are the same. `is_cut` if more differs than is shown."""

    rows: Sequence[DiffRow] = ()
    is_cut: bool = False

    @property
    def is_same(self) -> bool:
        return not self.rows


def compare_texts(old: str, new: str, *, limits: DiffLimits = WHOLE) -> TextDiff:
    if old == new:
        return TextDiff()
    comparison = LineComparison(old.split("\n"), new.split("\n"), limits)
    shown: list[DiffRow] = []
    characters_left = MAX_DIFF_CHARACTERS
    is_cut = comparison.is_cut
    for row in comparison.rows():
        if len(shown) == limits.rows or characters_left < 0:
            is_cut = True
            break
        shown.append(shorten_row(row, limits))
        characters_left -= shown_length(shown[-1])
        is_cut = is_cut or is_cut_row(row, limits)
    return TextDiff(rows=shown, is_cut=is_cut)


class LineComparison:
    """The lines of two texts, and how many words may still be compared."""

    def __init__(self, old: Sequence[str], new: Sequence[str], limits: DiffLimits) -> None:
        self.old, self.new, self.limits = old, new, limits
        self.start, self.common_end = common_ends(old, new)
        self.words_left = limits.words
        self.old_end, self.new_end = (len(lines) - self.common_end for lines in (old, new))
        self.is_cut = max(self.old_end, self.new_end) - self.start > limits.lines

    def rows(self) -> Iterator[DiffRow]:
        """Yield the rows in order. If too many lines differ, stop after those that are compared."""
        yield from self.unchanged_rows(0, 0, self.start)
        old, new = (
            lines[self.start : min(end, self.start + self.limits.lines)]
            for lines, end in ((self.old, self.old_end), (self.new, self.new_end))
        )
        for tag, i, i_end, j, j_end in SequenceMatcher(None, old, new).get_opcodes():
            if tag == "equal":
                yield from self.unchanged_rows(self.start + i, self.start + j, i_end - i)
            else:
                yield from self.changed_rows(self.start + i, self.start + j, old[i:i_end], new[j:j_end])
        if not self.is_cut:
            yield from self.unchanged_rows(self.old_end, self.new_end, self.common_end)

    def unchanged_rows(self, i: int, j: int, count: int) -> Iterator[DiffRow]:
        """Yield the lines near a change, and how many are skipped."""
        first = 0 if i == j == 0 else self.limits.around
        last = 0 if j + count == len(self.new) else self.limits.around
        skipped = max(0, count - first - last)
        if skipped == 1:
            skipped = 0
        for position in range(count):
            if skipped and position == first:
                yield DiffRow(skipped=skipped)
            if not skipped or not first <= position < first + skipped:
                line = [TextRun(self.new[j + position])]
                yield DiffRow(old=line, new=line, old_number=i + position + 1, new_number=j + position + 1)

    def changed_rows(self, i: int, j: int, old: Sequence[str], new: Sequence[str]) -> Iterator[DiffRow]:
        """Yield lines next to those that they resemble, numbered from `i` and `j` on."""
        for before, after in align_lines(old, new):
            row = DiffRow(is_changed=True)
            if before is not None:
                i += 1
                row = replace(row, old=[TextRun(before, is_changed=True)], old_number=i)
            if after is not None:
                j += 1
                row = replace(row, new=[TextRun(after, is_changed=True)], new_number=j)
            if before is not None and after is not None:
                old_runs, new_runs = self.compare_words(before, after)
                row = replace(row, old=old_runs, new=new_runs)
            yield row

    def compare_words(self, old: str, new: str) -> tuple[list[TextRun], list[TextRun]]:
        """Split the line of each side into unchanged and changed runs."""
        start, common_end = common_ends(old, new)
        start, common_end = widen_to_words(old, new, start, common_end)
        middles = old[start : len(old) - common_end], new[start : len(new) - common_end]
        pairs = [(old[:start], None), *self.compare_middles(*middles), (old[len(old) - common_end :], None)]
        return list(merge_runs(runs_of_side(pairs, side=0))), list(merge_runs(runs_of_side(pairs, side=1)))

    def compare_middles(self, old: str, new: str) -> list["TextPair"]:
        words = [WORD.findall(text[: self.limits.words_a_line * 20]) for text in (old, new)]
        count = len(words[0]) + len(words[1])
        is_all = sum(map(len, words[0])) == len(old) and sum(map(len, words[1])) == len(new)
        if not is_all or count > min(self.limits.words_a_line, self.words_left):
            return [(old, new)]
        self.words_left -= count
        return join_phrases(
            ("".join(words[0][i:i_end]), None if tag == "equal" else "".join(words[1][j:j_end]))
            for tag, i, i_end, j, j_end in SequenceMatcher(None, words[0], words[1]).get_opcodes()
        )


TextPair = tuple[str, str | None]
"""The text of one side, and of the other side in its place; None if it is the same."""


def common_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Count the common elements at the start and, of the rest, at the end."""
    count = min(len(old), len(new))
    start = next((position for position in range(count) if old[position] != new[position]), count)
    rest = count - start
    end = next((position for position in range(rest) if old[-1 - position] != new[-1 - position]), rest)
    return start, end


def widen_to_words(old: str, new: str, start: int, end: int) -> tuple[int, int]:
    """Shorten the common ends so that no word is split."""
    while start and any(is_inside_word(text, start) for text in (old, new)):
        start -= 1
    while end and any(is_inside_word(text, len(text) - end) for text in (old, new)):
        end -= 1
    return start, end


def is_inside_word(text: str, position: int) -> bool:
    before, after = text[position - 1 : position], text[position : position + 1]
    return (is_word_character(before) and is_word_character(after)) or (before.isspace() and after.isspace())


def is_word_character(character: str) -> bool:
    return character.isalnum() or character == "_"


def join_phrases(pairs: Iterable[TextPair]) -> list[TextPair]:
    """Mark spaces between two changed words as changed, too, so that a phrase reads as one."""
    found = list(pairs)
    for position in range(1, len(found) - 1):
        (text, other), around = found[position], (found[position - 1], found[position + 1])
        if other is None and text.isspace() and all(pair[1] is not None for pair in around):
            found[position] = (text, text)
    return found


def runs_of_side(pairs: Iterable[TextPair], *, side: int) -> Iterator[TextRun]:
    for old, new in pairs:
        if new is None:
            yield TextRun(old)
        else:
            yield TextRun((old, new)[side], is_changed=True)


def merge_runs(runs: Iterable[TextRun]) -> Iterator[TextRun]:
    for is_changed, some in groupby((run for run in runs if run.text), key=lambda run: run.is_changed):
        yield TextRun("".join(run.text for run in some), is_changed=is_changed)


def align_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """Pair the lines of a changed block: similar lines with each other, the others in order."""
    if len(old) == len(new) == 1 or max(len(old), len(new)) > MAX_ALIGNED_LINES:
        yield from zip_longest(old, new)
        return
    i = j = 0
    for next_i, next_j in [*similar_lines(old, new), (len(old), len(new))]:
        yield from zip_longest(old[i:next_i], new[j:next_j])
        yield from zip(old[next_i : next_i + 1], new[next_j : next_j + 1], strict=False)
        i, j = next_i + 1, next_j + 1


def similar_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return the pairs of lines, in order, whose likeness adds up to the most."""
    bags = [[Counter(WORD.findall(line[:2_000])) for line in lines] for lines in (old, new)]
    # by the first line of each side that is left: the greatest sum of likeness, and its pairs
    best: dict[tuple[int, int], tuple[float, list[tuple[int, int]]]] = {}
    nothing: tuple[float, list[tuple[int, int]]] = (0.0, [])
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            without = max(best.get((i + 1, j), nothing), best.get((i, j + 1), nothing), key=lambda found: found[0])
            alike = word_likeness(bags[0][i], bags[1][j])
            total, pairs = best.get((i + 1, j + 1), nothing)
            is_better = alike >= MIN_LIKENESS and alike + total > without[0]
            best[i, j] = (alike + total, [(i, j), *pairs]) if is_better else without
    return best.get((0, 0), nothing)[1]


def word_likeness(old: Counter[str], new: Counter[str]) -> float:
    """Return the share of common words, in [0, 1]."""
    count = old.total() + new.total()
    return 2 * (old & new).total() / count if count else 0.0


def shorten_row(row: DiffRow, limits: DiffLimits) -> DiffRow:
    old, new = (None if runs is None else list(shorten_runs(runs, limits)) for runs in (row.old, row.new))
    return replace(row, old=old, new=new)


def shorten_runs(runs: Sequence[TextRun], limits: DiffLimits) -> Iterator[TextRun]:
    """Yield as much of a line as is shown: changes, and the unchanged text around them."""
    left = limits.characters
    for position, run in enumerate(runs):
        for part in (
            [run] if run.is_changed else shorten_unchanged(run.text, position, len(runs), limits.unchanged_characters)
        ):
            yield part._replace(text=mark_line_ends(part.text[:left]))
            left -= len(part.text)
            if left < 0:
                yield TextRun(" … cut off here")
                return


def shorten_unchanged(text: str, position: int, count: int, characters: int) -> Iterator[TextRun]:
    """Yield the ends of an unchanged run next to changes, and how much between them is left out."""
    is_alone = count == 1
    first = 0 if position == 0 and not is_alone else characters
    last = 0 if position == count - 1 else characters
    left_out = len(text) - first - last
    if left_out <= characters:
        yield TextRun(text)
        return
    yield TextRun(text[:first])
    yield TextRun("", left_out=left_out)
    yield TextRun(text[len(text) - last :])


def is_cut_row(row: DiffRow, limits: DiffLimits) -> bool:
    """Return whether a line has changes beyond the point where it is cut."""
    sides = (runs for runs in (row.old, row.new) if runs is not None)
    return any(sum(len(run.text) for run in runs if run.is_changed) > limits.characters for runs in sides)


def shown_length(row: DiffRow) -> int:
    return sum(len(run.text) for runs in (row.old, row.new) if runs is not None for run in runs)


def mark_line_ends(text: str) -> str:
    """Mark invisible characters, including the carriage returns that distinguish Windows line ends."""
    return mark_invisible(text).replace("\r", "⟦U+000D⟧")
