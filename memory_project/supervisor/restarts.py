"""Pauses before restarts: short at first, longer for what keeps dying, never endless."""

from dataclasses import dataclass

QUICK_SECONDS = 10.0
MAX_WAIT_SECONDS = 10.0


@dataclass(slots=True)
class Restarts:
    """The deaths of one process. A life longer than QUICK_SECONDS forgives the earlier ones."""

    quick_deaths: int = 0

    def wait_seconds(self, lived_seconds: float) -> float:
        """Note a death and return the pause before the next start: 0 after a long life, else 0.5, 1, 2 … 10 s."""
        self.quick_deaths = self.quick_deaths + 1 if lived_seconds < QUICK_SECONDS else 0
        return min(MAX_WAIT_SECONDS, 0.25 * 2.0 ** min(self.quick_deaths, 10)) if self.quick_deaths else 0.0
