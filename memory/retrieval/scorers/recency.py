"""Recency (X8): days since it happened, or since it was last read where that is later."""

from collections.abc import Sequence

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting
from memory.scoring import recency_factor

SECONDS_A_DAY = 86_400


def recency(candidates: Sequence[Candidate], setting: Setting) -> None:
    now = setting.now.timestamp()
    for candidate in candidates:
        latest = candidate.event_time.timestamp()
        if candidate.last_accessed is not None:
            latest = max(latest, candidate.last_accessed.timestamp())
        candidate.multiply("recency", recency_factor((now - latest) / SECONDS_A_DAY))
