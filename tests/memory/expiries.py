"""Lifetimes of values: a value that is read right after it was written has a little less left."""

MOST_SPENT_SECONDS = 20


def left_of(seconds: int) -> range:
    """The seconds that a value may have left which was given so many: some pass until somebody looks."""
    return range(seconds - MOST_SPENT_SECONDS, seconds + 1)
