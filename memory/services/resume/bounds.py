"""How much of what was read a packet looks at: of long texts the two ends, of what is said ever again the latest."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from memory.retrieval.resume import Remembered
from memory.services.resume.notes import Said

Row = TypeVar("Row", bound=Remembered)

MOST_CHARACTERS, FEWEST_CHARACTERS = 300_000, 500
"""Of all texts together, the newest first; of each so many at least, from its beginning and its end."""
MOST_WHEN_LATE = 60_000
"""As the former, where the deadline has passed."""
TOLD_OF_A_PATTERN = 3
WORDS_OF_A_PATTERN = 3


def marked_repeats(notes: Sequence[Said]) -> Iterator[Said]:
    """The notes; of those that say the same but for numbers all but the latest few are repeats."""
    told: Counter[tuple[object, ...]] = Counter()
    for said in sorted(notes, key=lambda each: each.place, reverse=True):
        pattern = frozenset(word for word in said.words if word.isalpha())
        is_one = len(pattern) >= WORDS_OF_A_PATTERN and len(pattern) < len(said.words) and not said.is_pending
        key = (said.note, said.by, said.label, pattern)
        told[key] += is_one
        yield replace(said, is_repeat=is_one and told[key] > TOLD_OF_A_PATTERN)


def within_characters(rows: Sequence[Row], most: int = MOST_CHARACTERS) -> list[Row]:
    """The rows with so much of their texts as is read in bounded time, in their order: the last are the newest."""
    left = max(0, most - FEWEST_CHARACTERS * len(rows))
    kept: list[Row] = []
    for row in reversed(rows):
        size = min(len(row.text), FEWEST_CHARACTERS + left)
        left -= max(0, size - FEWEST_CHARACTERS)
        kept.append(row if size == len(row.text) else replace(row, text=ends_of(row.text, size)))
    return kept[::-1]


def ends_of(text: str, size: int) -> str:
    return f"{text[: size // 2]}\n{text[-(size // 2) :]}"
