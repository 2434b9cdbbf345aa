"""One candidate in the place of others that say the same."""

from memory.retrieval.candidates import Candidate


def stand_for(first: Candidate, other: Candidate) -> None:
    """Take in the other, with all that it stands for. What stands for something pinned is kept as that would be."""
    first.also += [other.id, *other.also]
    first.pinned = first.pinned or other.pinned
