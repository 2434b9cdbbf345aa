"""Scorers by time: recency, the times that the question mentions, and whether a fact is current."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from memory.retrieval.candidates import IS_OF_THE_TIME, Candidate
from memory.retrieval.plans import ScoringContext
from memory.retrieval.queries import TimeWindow
from memory.scoring import TEMPORAL_BOOSTS, recency_factor, window_factor, window_fade_seconds

DAY = timedelta(days=1)
MAX_FADES = 20.0
"""A memory further outside a window than this many fade times gets no boost: less than a millionth would be left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FadingWindow:
    """A time window in seconds since 1970, infinite on an open side. `fade_seconds` halve the boost outside it."""

    since: float
    until: float
    fade_seconds: float

    def fades(self, begins: float, ends: float) -> float:
        """Return the distance of a time range from the window in units of `fade_seconds`; 0 where they meet."""
        if begins > self.until:
            return (begins - self.until) / self.fade_seconds
        return (self.since - ends) / self.fade_seconds if ends < self.since else 0.0

    def overlaps(self, begins: float, ends: float) -> bool:
        """Return True if a time range overlaps the window. Both are half-open, except for a range of length 0."""
        return begins < self.until and (self.since < ends or self.since <= begins)


def score_recency(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Weigh by the days since a memory happened or was last read, whichever is later (X8)."""
    now = context.now
    for candidate in candidates:
        happened, accessed = candidate.event_time, candidate.last_accessed
        latest = happened if accessed is None or accessed < happened else accessed
        candidate.apply_factor("recency", recency_factor((now - latest) / DAY))


def score_temporal_context(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Boost facts about the present over facts about the past, by the documented factors (X11).

    Questions about another time are left alone: those with `as_of`, and those whose time windows are all over.
    """
    windows = context.query.windows
    are_over = [window.until is not None and window.until <= context.now for window in windows]
    if context.query.as_of is not None or (are_over and all(are_over)):
        return
    for candidate in candidates:
        if candidate.temporal:
            candidate.apply_factor("temporal_context", TEMPORAL_BOOSTS[candidate.temporal])


def score_window(candidates: Sequence[Candidate], context: ScoringContext) -> None:
    """Boost memories from the times that the question mentions, and a little less those shortly before or after.

    Nothing is left out. A fact also belongs to the time in which it was true.
    """
    windows = [fading_window(window) for window in context.query.windows]
    if not windows:
        return
    for candidate in candidates:
        times = candidate_times(candidate)
        nearest = min([window.fades(*time) for window in windows for time in times])
        if nearest < MAX_FADES:
            is_inside = nearest == 0 and any(window.overlaps(*time) for window in windows for time in times)
            candidate.apply_factor("window", window_factor(nearest), IS_OF_THE_TIME if is_inside else "")


def fading_window(window: TimeWindow) -> FadingWindow:
    since, until = timestamp_or(window.since, -math.inf), timestamp_or(window.until, math.inf)
    return FadingWindow(since=since, until=until, fade_seconds=window_fade_seconds(until - since))


def candidate_times(candidate: Candidate) -> list[tuple[float, float]]:
    """Return when a memory happened and, if known, from when until when it was true."""
    at = candidate.event_time.timestamp()
    if candidate.valid_from is None and candidate.valid_to is None:
        return [(at, at)]
    return [(at, at), (timestamp_or(candidate.valid_from, -math.inf), timestamp_or(candidate.valid_to, math.inf))]


def timestamp_or(time: datetime | None, default: float) -> float:
    return default if time is None else time.timestamp()
