"""Lifetimes of values: a value that is read right after it was written has a little less left."""

MOST_SPENT_SECONDS = 20


def left_of(seconds: int) -> range:
    """Return the seconds that may remain of a lifetime of `seconds` by the time it is read."""
    return range(seconds - MOST_SPENT_SECONDS, seconds + 1)
