"""Salience (X11): how much a memory stands out by itself; a half, which everything begins with, changes nothing."""

from collections.abc import Sequence

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting
from memory.scoring import salience_factor


def salience(candidates: Sequence[Candidate], _setting: Setting) -> None:
    for candidate in candidates:
        candidate.multiply("salience", salience_factor(candidate.salience))
