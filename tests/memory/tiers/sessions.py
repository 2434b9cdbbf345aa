"""A session together with its buffer of turns, which expire together."""

from collections.abc import Sequence

from memory.tiers.session import SessionMemory
from memory.tiers.session_buffer import RedisBuffer, SessionTurn, turn_from_entry


class SessionWithTurns(SessionMemory):
    """A session whose buffer is in Redis."""

    def add_turn(self, turn: SessionTurn) -> None:
        self.add_turns([turn])

    def add_turns(self, turns: Sequence[SessionTurn]) -> None:
        """Add turns to the buffer, in order of index; turns that it has already change nothing."""
        RedisBuffer(self._session).append(turns, first=0)

    def get_recent_turns(self, limit: int) -> list[SessionTurn]:
        """Return the latest turns of the buffer, oldest first."""
        return [turn_from_entry(entry) for entry in RedisBuffer(self._session).latest(limit, first=0)]
