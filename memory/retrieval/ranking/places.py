"""The places of turns among the candidates: session segments, and the turns right before and after each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memory.retrieval.candidates import Candidate

Rows = NDArray[np.intp]

REACH = 2
"""Places before and after a turn that count as next to it."""
SESSION_GAP = timedelta(hours=6)
"""A longer silence between two turns of a conversation begins a new session segment."""
MAX_TURNS = 2**32
"""More than any conversation has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The turns among the candidates, in the order in which they were said, conversation by conversation.

    `rows` are those of the turns among all candidates. `talks` numbers their conversations and `segments` their session
    segments, both from 0 on; `indexes` are the places of turns in their conversations.
    """

    rows: Rows
    talks: Rows
    indexes: Rows
    segments: Rows

    def segment_of_rows(self, size: int) -> Rows:
        """Return the segment of each candidate; -1 for candidates that are not turns."""
        segments = np.full(size, -1, dtype=np.intp)
        segments[self.rows] = self.segments
        return segments

    def adjacent_rows(self, size: int) -> Mapping[int, Rows]:
        """Return for each distance from -REACH to REACH the row of the turn so many places later in the same segment.

        It is `size`, the number of candidates, for those that have none.
        """
        # one number for segment and index, and one at the end that no turn has
        places = np.append(self.segments * MAX_TURNS + self.indexes, np.iinfo(np.intp).max)
        rows = np.append(self.rows, size)
        adjacent = {}
        for step in (step for step in range(-REACH, REACH + 1) if step):
            wanted = places[:-1] + step
            found = np.searchsorted(places, wanted)
            adjacent[step] = np.full(size, size, dtype=np.intp)
            adjacent[step][self.rows] = np.where(places[found] == wanted, rows[found], size)
        return adjacent


def find_places(candidates: Sequence[Candidate]) -> Places:
    """Return the places of the turns. A gap between two candidates counts as a silence."""
    turns = [row for row, each in enumerate(candidates) if each.index is not None]
    names = [candidates[row].conversation_id for row in turns]
    numbers = {name: number for number, name in enumerate(sorted(set(names)))}
    rows = np.array(turns, dtype=np.intp)
    talks = np.array([numbers[name] for name in names], dtype=np.intp)
    indexes = np.array([candidates[row].index for row in turns], dtype=np.intp)
    order = np.lexsort((indexes, talks))
    rows, talks, indexes = rows[order], talks[order], indexes[order]
    times = [candidates[row].event_time for row in rows.tolist()]
    is_late = np.array([abs(later - earlier) > SESSION_GAP for earlier, later in pairwise(times)], dtype=np.bool_)
    segments = np.zeros(rows.size, dtype=np.intp)
    np.cumsum(is_late | (talks[1:] != talks[:-1]), out=segments[1:])
    return Places(rows=rows, talks=talks, indexes=indexes, segments=segments)
