"""Times that the question speaks of: what is of them is boosted, what is shortly before or after a little less, and
nothing is left out. A fact is of a time in which it was true, too."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.retrieval.candidates import IS_OF_THE_TIME, Candidate
from memory.retrieval.plans import Setting
from memory.retrieval.queries import Window
from memory.scoring import fading_seconds, window_factor

FAR = 20.0
"""Fadings: what is left is less than a millionth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A window in seconds since 1970, infinite where it is open, and how it fades outside."""

    since: float
    until: float
    fading: float

    def fadings(self, begins: float, ends: float) -> float:
        """How far outside it is what lasts so long; 0 where they meet."""
        if begins > self.until:
            return (begins - self.until) / self.fading
        return (self.since - ends) / self.fading if ends < self.since else 0.0

    def has(self, begins: float, ends: float) -> bool:
        """Half-open both, but for what is of one moment."""
        return begins < self.until and (self.since < ends or self.since <= begins)


def window(candidates: Sequence[Candidate], setting: Setting) -> None:
    spans = [make_span(window) for window in setting.query.windows]
    if not spans:
        return
    for candidate in candidates:
        times = times_of(candidate)
        nearest = min([span.fadings(*time) for span in spans for time in times])
        if nearest < FAR:
            is_inside = nearest == 0 and is_of(times, spans)
            candidate.multiply("window", window_factor(nearest), IS_OF_THE_TIME if is_inside else "")


def is_of(times: Sequence[tuple[float, float]], spans: Sequence[Span]) -> bool:
    return any(span.has(*time) for span in spans for time in times)


def make_span(window: Window) -> Span:
    since, until = seconds(window.since, -math.inf), seconds(window.until, math.inf)
    return Span(since=since, until=until, fading=fading_seconds(until - since))


def times_of(candidate: Candidate) -> list[tuple[float, float]]:
    """When it happened, and when it was true as far as that is known."""
    moment = candidate.event_time.timestamp()
    if candidate.valid_from is None and candidate.valid_to is None:
        return [(moment, moment)]
    return [(moment, moment), (seconds(candidate.valid_from, -math.inf), seconds(candidate.valid_to, math.inf))]


def seconds(moment: datetime | None, otherwise: float) -> float:
    return otherwise if moment is None else moment.timestamp()
