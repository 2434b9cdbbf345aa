"""The places of turns among the candidates: session segments, and the turns right before and after each."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta

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


def find_segments(candidates: Sequence[Candidate]) -> Rows:
    """Return the number of each candidate's session segment. A gap between two candidates counts as a silence."""
    turns_of: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, each in enumerate(candidates):
        if each.index is not None:
            turns_of[each.conversation_id].append((each.index, row))
    segments = np.full(len(candidates), -1, dtype=np.intp)
    number = -1
    for _, turns in sorted(turns_of.items()):
        before = None
        for _, row in sorted(turns):
            time = candidates[row].event_time
            number += before is None or abs(time - before) > SESSION_GAP
            segments[row], before = number, time
    return segments


def find_adjacent(candidates: Sequence[Candidate], segments: Rows) -> Mapping[int, Rows]:
    """Return for each distance from -REACH to REACH the row of the turn so many places later."""
    indexes = np.array([0 if each.index is None else each.index for each in candidates], dtype=np.int64)
    # one number for segment and index; candidates that are not turns are far from all
    places = np.where(segments < 0, -MAX_TURNS, segments * MAX_TURNS + indexes)
    order = np.argsort(places)
    in_order = np.append(places[order], np.iinfo(np.int64).max)
    rows = np.append(order, len(candidates))
    return {step: rows_of_places(places + step, in_order, rows) for step in range(-REACH, REACH + 1) if step}


def rows_of_places(wanted: Rows, in_order: Rows, rows: Rows) -> Rows:
    """Return the rows of the wanted places, which `in_order` lists; the last row for a place that is not there."""
    found = np.searchsorted(in_order, wanted)
    return np.where(in_order[found] == wanted, rows[found], rows[-1])
