"""Measurements of whether reading a text takes linear or quadratic time, by the processor's clock."""

import time
from collections.abc import Callable

TIMES = 3
LONGER = 4
MOST_TIMES = 8
"""As long for a text four times as long: half of what the square would take."""
NOTICED_SECONDS = 0.02
"""What is over sooner is quick enough, however it grows."""


def takes_the_square(read: Callable[[str], object], make: Callable[[int], str], characters: int) -> bool:
    """Compared by texts of so many characters and of four times as many, the quickest of three of each."""
    long = make(LONGER * characters)
    if seconds(read, long) <= NOTICED_SECONDS:
        return False
    return quickest(read, long) > MOST_TIMES * quickest(read, make(characters))


def quickest(read: Callable[[str], object], text: str) -> float:
    """Return the shortest of several measurements in seconds."""
    return min(seconds(read, text) for _ in range(TIMES))


def seconds(read: Callable[[str], object], text: str) -> float:
    began = time.process_time()
    read(text)
    return time.process_time() - began
