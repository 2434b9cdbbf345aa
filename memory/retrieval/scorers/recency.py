"""Recency (X8): days since it happened, or since it was last read where that is later."""

from collections.abc import Sequence
from datetime import timedelta

from memory.retrieval.candidates import Candidate
from memory.retrieval.plans import Setting
from memory.scoring import recency_factor

DAY = timedelta(days=1)


def recency(candidates: Sequence[Candidate], setting: Setting) -> None:
    now = setting.now
    for candidate in candidates:
        happened, accessed = candidate.event_time, candidate.last_accessed
        latest = happened if accessed is None or accessed < happened else accessed
        candidate.multiply("recency", recency_factor((now - latest) / DAY))
