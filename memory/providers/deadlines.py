"""Moments after which nobody waits any more."""

import math
import time
from dataclasses import dataclass

from memory.errors import ProviderTooSlow


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock, or never."""

    at: float | None

    @classmethod
    def after(cls, seconds: float | None) -> "Deadline":
        return cls(None if seconds is None else time.monotonic() + seconds)

    def remaining_seconds(self, *, at_most: float) -> float:
        """Return the seconds that remain. Raises ProviderTooSlow when nothing remains."""
        if self.at is None:
            return at_most
        remaining = self.at - time.monotonic()
        if remaining <= 0:
            raise ProviderTooSlow("the deadline has passed")
        return min(remaining, at_most)

    def left_seconds(self) -> float:
        """Return the seconds left: negative after the deadline, infinite without one."""
        return math.inf if self.at is None else self.at - time.monotonic()

    def leaves_room_for(self, seconds: float) -> bool:
        return self.at is None or time.monotonic() + seconds < self.at
