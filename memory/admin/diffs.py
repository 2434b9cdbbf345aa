"""Two texts beside each other: by line, and inside changed lines by word. Bounded, however long and odd the texts are.

What comes out is ready for a page: invisible characters marked, long stretches that are the same left out.
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
MOST_CHARACTERS = 200_000
"""Characters shown, of both sides and all rows."""

MOST_ALIGNED = 20
"""Lines of a changed stretch, up to which those that resemble each other are put side by side."""

ALIKE = 0.3
"""The share of words in common from which one line is the other, changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """How much is compared, and how much of that is shown."""

    lines: int = 3_000
    """Compared, of those between the first and the last that differ."""
    words: int = 30_000
    """Compared inside all lines; when they are spent, lines are marked as a whole."""
    words_a_line: int = 10_000
    around: int = 3
    """Lines that are the same, before and after changes."""
    rows: int = 400
    characters: int = 20_000
    """Shown of a line."""
    same_characters: int = 200
    """Shown of what is the same in a line, before and after changes."""


WHOLE = Extent()
EXCERPT = Extent(
    lines=200, words=1_500, words_a_line=1_500, around=1, rows=8, characters=600, same_characters=60
)  # fmt: skip


class Run(NamedTuple):
    """Part of a line. `left_out` is how many characters of what is the same are not shown in its place."""

    text: str
    is_changed: bool = False
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A line of each side, None where that side has none; or `skipped` lines that are the same."""

    old: Sequence[Run] | None = None
    new: Sequence[Run] | None = None
    old_number: int = 0
    new_number: int = 0
    is_changed: bool = False
    skipped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """`is_cut`: there is more that differs, which is not shown."""

    rows: Sequence[Row] = ()
    is_cut: bool = False

    @property
    def is_same(self) -> bool:
        return not self.rows


def compare(old: str, new: str, *, extent: Extent = WHOLE) -> Diff:
    """No rows where the texts are the same."""
    if old == new:
        return Diff()
    comparison = Comparison(old.split("\n"), new.split("\n"), extent)
    shown: list[Row] = []
    characters_left = MOST_CHARACTERS
    is_cut = comparison.is_cut
    for row in comparison.rows():
        if len(shown) == extent.rows or characters_left < 0:
            is_cut = True
            break
        shown.append(show_row(row, extent))
        characters_left -= length_of(shown[-1])
        is_cut = is_cut or is_longer(row, extent)
    return Diff(rows=shown, is_cut=is_cut)


class Comparison:
    """The lines of two texts, and how many words may still be compared inside them."""

    def __init__(self, old: Sequence[str], new: Sequence[str], extent: Extent) -> None:
        self.old, self.new, self.extent = old, new, extent
        self.start, self.same_at_end = same_ends(old, new)
        self.words_left = extent.words
        self.old_end, self.new_end = (len(lines) - self.same_at_end for lines in (old, new))
        self.is_cut = max(self.old_end, self.new_end) - self.start > extent.lines

    def rows(self) -> Iterator[Row]:
        """In order; where too many lines are between the first and the last change, no further than those."""
        yield from self.same_rows(0, 0, self.start)
        old, new = (
            lines[self.start : min(end, self.start + self.extent.lines)]
            for lines, end in ((self.old, self.old_end), (self.new, self.new_end))
        )
        for tag, i, i_end, j, j_end in SequenceMatcher(None, old, new).get_opcodes():
            if tag == "equal":
                yield from self.same_rows(self.start + i, self.start + j, i_end - i)
            else:
                yield from self.changed_rows(self.start + i, self.start + j, old[i:i_end], new[j:j_end])
        if not self.is_cut:
            yield from self.same_rows(self.old_end, self.new_end, self.same_at_end)

    def same_rows(self, i: int, j: int, count: int) -> Iterator[Row]:
        """Those near a change, and how many there are beside them."""
        first = 0 if i == j == 0 else self.extent.around
        last = 0 if j + count == len(self.new) else self.extent.around
        skipped = max(0, count - first - last)
        if skipped == 1:
            skipped = 0
        for place in range(count):
            if skipped and place == first:
                yield Row(skipped=skipped)
            if not skipped or not first <= place < first + skipped:
                line = [Run(self.new[j + place])]
                yield Row(old=line, new=line, old_number=i + place + 1, new_number=j + place + 1)

    def changed_rows(self, i: int, j: int, old: Sequence[str], new: Sequence[str]) -> Iterator[Row]:
        """Lines beside those that they resemble, numbered from those at `i` and `j`."""
        for before, after in align(old, new):
            row = Row(is_changed=True)
            if before is not None:
                i += 1
                row = replace(row, old=[Run(before, is_changed=True)], old_number=i)
            if after is not None:
                j += 1
                row = replace(row, new=[Run(after, is_changed=True)], new_number=j)
            if before is not None and after is not None:
                old_runs, new_runs = self.compare_words(before, after)
                row = replace(row, old=old_runs, new=new_runs)
            yield row

    def compare_words(self, old: str, new: str) -> tuple[list[Run], list[Run]]:
        """The line of each side in runs that are the same and runs that are not."""
        start, same_at_end = same_ends(old, new)
        start, same_at_end = to_words(old, new, start, same_at_end)
        middles = old[start : len(old) - same_at_end], new[start : len(new) - same_at_end]
        pairs = [(old[:start], None), *self.compare_middles(*middles), (old[len(old) - same_at_end :], None)]
        return list(merge_runs(runs_of(pairs, side=0))), list(merge_runs(runs_of(pairs, side=1)))

    def compare_middles(self, old: str, new: str) -> list["Pair"]:
        words = [WORD.findall(text[: self.extent.words_a_line * 20]) for text in (old, new)]
        count = len(words[0]) + len(words[1])
        is_all = sum(map(len, words[0])) == len(old) and sum(map(len, words[1])) == len(new)
        if not is_all or count > min(self.extent.words_a_line, self.words_left):
            return [(old, new)]
        self.words_left -= count
        return join_fragments(
            ("".join(words[0][i:i_end]), None if tag == "equal" else "".join(words[1][j:j_end]))
            for tag, i, i_end, j, j_end in SequenceMatcher(None, words[0], words[1]).get_opcodes()
        )


Pair = tuple[str, str | None]
"""What one side says and what the other says in its place; None for the same."""


def same_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """How many elements at the start, and how many of those after them at the end, are the same."""
    most = min(len(old), len(new))
    start = next((place for place in range(most) if old[place] != new[place]), most)
    rest = most - start
    end = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    return start, end


def to_words(old: str, new: str, start: int, end: int) -> tuple[int, int]:
    """Less of what is the same at both ends, so that no word is cut in two."""
    while start and any(is_within_word(text, start) for text in (old, new)):
        start -= 1
    while end and any(is_within_word(text, len(text) - end) for text in (old, new)):
        end -= 1
    return start, end


def is_within_word(text: str, place: int) -> bool:
    before, after = text[place - 1 : place], text[place : place + 1]
    return (is_word(before) and is_word(after)) or (before.isspace() and after.isspace())


def is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def join_fragments(pairs: Iterable[Pair]) -> list[Pair]:
    """Take the spaces between two changed words as changed as well: a phrase is read as one."""
    found = list(pairs)
    for place in range(1, len(found) - 1):
        (text, other), around = found[place], (found[place - 1], found[place + 1])
        if other is None and text.isspace() and all(pair[1] is not None for pair in around):
            found[place] = (text, text)
    return found


def runs_of(pairs: Iterable[Pair], *, side: int) -> Iterator[Run]:
    for old, new in pairs:
        if new is None:
            yield Run(old)
        else:
            yield Run((old, new)[side], is_changed=True)


def merge_runs(runs: Iterable[Run]) -> Iterator[Run]:
    for is_changed, some in groupby((run for run in runs if run.text), key=lambda run: run.is_changed):
        yield Run("".join(run.text for run in some), is_changed=is_changed)


def align(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str | None, str | None]]:
    """The lines of a changed stretch side by side: where one was changed, else as they come."""
    if len(old) == len(new) == 1 or max(len(old), len(new)) > MOST_ALIGNED:
        yield from zip_longest(old, new)
        return
    i = j = 0
    for next_i, next_j in [*alike_lines(old, new), (len(old), len(new))]:
        yield from zip_longest(old[i:next_i], new[j:next_j])
        yield from zip(old[next_i : next_i + 1], new[next_j : next_j + 1], strict=False)
        i, j = next_i + 1, next_j + 1


def alike_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The pairs of lines, in order, that have most in common altogether."""
    bags = [[Counter(WORD.findall(line[:2_000])) for line in lines] for lines in (old, new)]
    # by how many lines of each side are left: what they have in common at best, and the pairs
    best: dict[tuple[int, int], tuple[float, list[tuple[int, int]]]] = {}
    nothing: tuple[float, list[tuple[int, int]]] = (0.0, [])
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            without = max(best.get((i + 1, j), nothing), best.get((i, j + 1), nothing), key=lambda found: found[0])
            alike = likeness(bags[0][i], bags[1][j])
            total, pairs = best.get((i + 1, j + 1), nothing)
            is_better = alike >= ALIKE and alike + total > without[0]
            best[i, j] = (alike + total, [(i, j), *pairs]) if is_better else without
    return best.get((0, 0), nothing)[1]


def likeness(old: Counter[str], new: Counter[str]) -> float:
    """The share of words in common, in [0, 1]."""
    count = old.total() + new.total()
    return 2 * (old & new).total() / count if count else 0.0


def show_row(row: Row, extent: Extent) -> Row:
    old, new = (None if runs is None else list(show_runs(runs, extent)) for runs in (row.old, row.new))
    return replace(row, old=old, new=new)


def show_runs(runs: Sequence[Run], extent: Extent) -> Iterator[Run]:
    """As much of a line as is shown: changes, and what is the same around them."""
    left = extent.characters
    for place, run in enumerate(runs):
        for part in [run] if run.is_changed else shorten_same(run.text, place, len(runs), extent.same_characters):
            yield part._replace(text=mark(part.text[:left]))
            left -= len(part.text)
            if left < 0:
                yield Run(" … cut off here")
                return


def shorten_same(text: str, place: int, count: int, characters: int) -> Iterator[Run]:
    """The beginning, unless the line begins with it, and the end, unless the line ends with it."""
    is_alone = count == 1
    first = 0 if place == 0 and not is_alone else characters
    last = 0 if place == count - 1 else characters
    left_out = len(text) - first - last
    if left_out <= characters:
        yield Run(text)
        return
    yield Run(text[:first])
    yield Run("", left_out=left_out)
    yield Run(text[len(text) - last :])


def is_longer(row: Row, extent: Extent) -> bool:
    """Whether changes of the line go on where it is cut."""
    sides = (runs for runs in (row.old, row.new) if runs is not None)
    return any(sum(len(run.text) for run in runs if run.is_changed) > extent.characters for runs in sides)


def length_of(row: Row) -> int:
    return sum(len(run.text) for runs in (row.old, row.new) if runs is not None for run in runs)


def mark(text: str) -> str:
    """A line's end within the line tells Windows' lines from others."""
    return mark_invisible(text).replace("\r", "⟦U+000D⟧")
