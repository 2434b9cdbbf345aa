"""The rule for restarting what has died, and for giving up."""

from dataclasses import dataclass

QUICK_SECONDS = 10.0
MAX_QUICK_DEATHS = 5
MAX_WAIT_SECONDS = 10.0


class KeepsDyingError(Exception):
    """Died too often too soon: starting it again does not help. The text is a whole sentence."""


@dataclass(slots=True)
class Restarts:
    """The deaths of one part. A life longer than QUICK_SECONDS forgives the earlier ones."""

    name: str
    quick_deaths: int = 0

    def wait_seconds(self, lived_seconds: float) -> float:
        """Return the pause before the next start: 0.5, 1, 2, 4 s. Raises KeepsDyingError at the fifth quick death."""
        self.quick_deaths = self.quick_deaths + 1 if lived_seconds < QUICK_SECONDS else 0
        if self.quick_deaths >= MAX_QUICK_DEATHS:
            raise KeepsDyingError(f"{self.name} died {self.quick_deaths} times in a row; its last lines are above.")
        return float(min(MAX_WAIT_SECONDS, 0.25 * 2.0**self.quick_deaths)) if self.quick_deaths else 0.0
