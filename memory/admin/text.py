"""Text written by strangers, made safe to look at."""

import re
import unicodedata
from collections import Counter

# C0 and C1 but tab and line ends; marks that turn the direction of what follows; spaces without width; halves of
# characters, which cannot be sent at all
INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\ud800-\udfff]"
)

EXCERPT_CHARACTERS = 120


def mark_invisible(text: str) -> str:
    """The text with a visible mark, such as ⟦U+202E⟧, for each character that shows nothing or turns the line."""
    return INVISIBLE.sub(lambda found: f"⟦U+{ord(found[0]):04X}⟧", text)


def name_invisible(text: str) -> str:
    """Which invisible characters a text holds and how often, for people; empty when none."""
    counted = Counter(INVISIBLE.findall(text))
    return ", ".join(f"U+{ord(char):04X} {name_of(char)} ({times})" for char, times in sorted(counted.items()))


def name_of(char: str) -> str:
    return unicodedata.name(char, "control character").lower()


def shorten(text: str, *, characters: int = EXCERPT_CHARACTERS) -> str:
    """One line of at most so many characters, and a mark where it was cut."""
    line = " ".join(text.split())
    return mark_invisible(line if len(line) <= characters else f"{line[:characters]}…")
